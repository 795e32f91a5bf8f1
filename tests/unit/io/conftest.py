"""A real server of PostgreSQL, which the tests start on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

PASSWORD = "pass-Diotima"


def binaries() -> Path | None:
    """The folder of the server's programs; Debian keeps them off the path."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders and (folders[-1] / "pg_ctl").exists() else None


@pytest.fixture(scope="session")
def server():
    """Give the address of a server with the users admin (trusted) and locked (with a password)."""
    programs = binaries()
    if programs is None:
        pytest.skip("no server of PostgreSQL is installed")
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []  # it refuses to run as root
    if as_user and subprocess.run(["id", "postgres"], check=False, capture_output=True).returncode:
        pytest.skip("the server of PostgreSQL needs a user `postgres` where the tests run as root")
    folder = Path(tempfile.mkdtemp(prefix="sfumato-pg-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if as_user:
        shutil.chown(folder, "postgres")

    def run(*command):
        subprocess.run([*as_user, *map(str, command)], check=True, capture_output=True, cwd="/", timeout=60)

    data = folder / "data"
    try:
        run(
            programs / "initdb",
            "-D",
            data,
            "-U",
            "admin",
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        )
        rules = "host all locked 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        (data / "pg_hba.conf").write_text(rules)
        settings = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        run(programs / "pg_ctl", "-D", data, "-w", "-t", "30", "-l", folder / "log", "-o", settings, "start")
        try:
            yield f"127.0.0.1:{port}"
        finally:
            run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def sql(server):
    """Give a function that runs statements on a fresh schema of the server, first in the search path."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(f"postgresql://admin@{server}/postgres", autocommit=True) as connection:

        def run(*statements):
            for statement in statements:
                with connection.cursor() as cursor:
                    cursor.execute(statement)
                    rows = cursor.fetchall()
            return rows

        run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "DROP SCHEMA IF EXISTS other CASCADE")
        run("DROP ROLE IF EXISTS locked", f"CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'")
        run("DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN")
        yield run
        run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch):
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSFILE", "/nowhere")


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """Give a function from the name of a table to its address, on either system."""
    if request.param == "sqlite":
        return lambda table: f"sqlite:{tmp_path}/people.db?table={table}"
    request.getfixturevalue("sql")
    server = request.getfixturevalue("server")
    return lambda table: f"postgresql://admin@{server}/postgres?table={table}"
