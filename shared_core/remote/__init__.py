"""A memory that a service keeps, used as one in this process."""

from shared_core.remote.memory import RemoteMemory

__all__ = ["RemoteMemory"]
