"""Readers of conversation files: JSON Lines, chat messages, plain transcripts and LoCoMo."""

from shared_core.formats.reader import FORMATS, Format, read_entries

__all__ = ["FORMATS", "Format", "read_entries"]
