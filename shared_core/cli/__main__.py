"""``python -m shared_core.cli`` is ``scg``."""

from shared_core.cli import main

main()
