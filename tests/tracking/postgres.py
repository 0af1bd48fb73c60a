"""A real PostgreSQL: a cluster of its own in a temporary folder, on the loopback interface, without systemd."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy
from places import free_port

_numbers = count()


@dataclass(frozen=True)
class Cluster:
    """A PostgreSQL server.

    Attributes:
        programs: folder of initdb and pg_ctl.
        folder: holds everything of it.
    """

    programs: Path
    folder: Path
    port: int
    password: str

    def uri(self, database: str) -> str:
        return f"postgresql://shapelaw:{self.password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self.control("-l", str(self.folder / "log"), "-o", options, "-w", "start")

    def stop(self) -> None:
        """At once, as a crash: it recovers when it starts."""
        self.control("-m", "immediate", "-w", "stop")

    def control(self, *arguments: str) -> None:
        _run(self.folder, [str(self.programs / "pg_ctl"), "-D", str(self.folder / "data"), *arguments])

    def new_database(self) -> str:
        """The URI of an empty database."""
        name = f"tracking{next(_numbers)}"
        engine = sqlalchemy.create_engine(self.uri("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return self.uri(name)


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A running cluster; skips the test where there can't be one."""
    pytest.importorskip("psycopg2", reason="the Python package psycopg2 is not installed")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="shapelaw-postgres-"))
    made = Cluster(programs, folder, free_port(), secrets.token_hex(8))
    try:
        (folder / "password").write_text(made.password)
        _give_away(folder)
        initialise = [
            str(programs / "initdb"),
            "-D",
            str(folder / "data"),
            "-U",
            "shapelaw",
            "-A",
            "scram-sha-256",
        ]
        initialise += ["--pwfile", str(folder / "password"), "-E", "UTF8", "--locale", "C", "--no-sync"]
        _run(folder, initialise)
        made.start()
        try:
            yield made
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                made.stop()
    finally:
        shutil.rmtree(folder)


def _programs() -> Path | None:
    """The newest PostgreSQL of Debian, or the one on the PATH."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: -float(p.parent.name)):
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).parent if found and shutil.which("pg_ctl") else None


def _give_away(folder: Path) -> None:
    """PostgreSQL does not run as root."""
    if os.geteuid() == 0:
        try:
            owner = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        for path in (folder, *folder.iterdir()):
            os.chown(path, owner.pw_uid, owner.pw_gid)


def _run(folder: Path, command: list[str]) -> None:
    user = "postgres" if os.geteuid() == 0 else None
    with (folder / "commands.log").open("a") as log:  # a pipe would stay open in the server
        done = subprocess.run(command, cwd=folder, user=user, group=user, stdout=log, stderr=log)
    assert done.returncode == 0, (folder / "commands.log").read_text()
