"""The ``scg`` command: remember, recall and forget from a shell."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

_EXIT_INTERRUPTED = 130  # as shells have it


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the ``scg`` command.

    Exit codes: 0 done, 1 something failed, 2 wrong usage or input, 130 interrupted.

    Args:
        arguments: The command line without the program's name; ``None`` takes it from the process.

    Raises:
        SystemExit: always, with the exit code.
    """
    try:
        from shared_core.cli.app import run  # takes a while, in which somebody may change their mind

        code = run(arguments)
    except KeyboardInterrupt:
        code = _EXIT_INTERRUPTED
    if code == _EXIT_INTERRUPTED:
        sys.stderr.write("interrupted: what was stored by then stays\n")
    sys.exit(code)
