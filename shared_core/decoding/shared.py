"""The model of a process's memories."""

from __future__ import annotations

import os
import threading

from shared_core.decoding.decoder import ConceptDecoder
from shared_core.decoding.queue import DecodeQueue
from shared_core.decoding.voice import KeyVoice
from shared_core.errors import StoreError
from shared_core.models import ModelSource


class SharedModel:
    """The model with its queue, loaded when first needed; shared by the memories of one process that asked for it.

    Args:
        source: Which model.
    """

    def __init__(self, source: ModelSource) -> None:
        self._source = source
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._voice: KeyVoice | None = None
        self._queue: DecodeQueue | None = None

    def voice(self) -> KeyVoice:
        """The model's knowledge of keys; loads the model."""
        self.check_process()
        with self._lock:
            if self._voice is None:
                from shared_core.models import load_model  # loads torch, which only the model needs

                self._voice = KeyVoice(ConceptDecoder(load_model(self._source)))
            return self._voice

    @property
    def loaded(self) -> bool:
        """Whether the model is there already."""
        return self._voice is not None

    def forget(self) -> None:
        """Let go of the keys that the model's side remembers."""
        with self._lock:
            if self._voice is not None:
                self._voice.forget()

    def check_process(self) -> None:
        """Refuse to go on in a forked process, which has neither threads nor locks and would wait for ever."""
        if os.getpid() != self._process:
            raise StoreError("this memory was opened in another process: open it again after the fork")

    def queue(self) -> DecodeQueue:
        """Where decodes are asked for; loads the model."""
        voice = self.voice()
        with self._lock:
            if self._queue is None:
                self._queue = DecodeQueue(voice.decoder)
            return self._queue

    @property
    def queued(self) -> int:
        """Decodes that were asked for and have not begun."""
        return 0 if self._queue is None else len(self._queue)

    def close(self) -> None:
        """Finish what waits and stop the queue's thread."""
        with self._lock:
            if self._queue is not None:
                self._queue.close()
                self._queue = None
