"""The ``scg`` command: remember, recall and forget from a shell."""

from shared_core.cli.app import main

__all__ = ["main"]
