"""The memory as a service over HTTP: one store, one model, a key for each namespace."""

from shared_core.serving.app import make_app
from shared_core.serving.keys import Key, KeyFile
from shared_core.serving.server import listen, serve

__all__ = ["Key", "KeyFile", "listen", "make_app", "serve"]
