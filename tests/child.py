"""Work in a child process that has fewer rights than the tests."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable
from typing import Any


def in_a_child(work: Callable[[], Any], *, user: int | None = None, limit: int | None = None) -> Any:
    """What a function returns or raises in a child that is another user, or may write no large file."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(100)
        try:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            if user is not None and os.geteuid() == 0:
                os.setgid(user)
                os.setuid(user)
            told: Any = work()
        except BaseException as error:  # told to the parent
            told = f"{type(error).__name__}: {error}"
        os.write(write_end, json.dumps(told).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else None
