"""A real server of Postgres for tests, on loopback and of a folder of its own."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

USER, PASSWORD = "reader", "p:w@/?#%'\\ \"$ü"


def _program(name):
    """Return a program of the newest server that is installed."""
    programs = sorted(
        Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: path.parts
    )
    program = str(programs[-1]) if programs else shutil.which(name)
    if program is None:
        pytest.skip("no server of Postgres is installed")
    return program


def _run(*command, **options):
    if os.getuid() == 0:  # as which the server does not run
        options["user"] = options["group"] = "postgres"
    subprocess.run(command, check=True, capture_output=True, cwd="/", **options)


@pytest.fixture(scope="session")
def postgres_port():
    """Start a server, and return its port."""
    pytest.importorskip("adbc_driver_postgresql")
    with tempfile.TemporaryDirectory() as folder:  # those of pytest are closed to other users
        yield from _served(Path(folder))


def _served(folder):
    initialise, control = _program("initdb"), _program("pg_ctl")
    (folder / "password").write_text(PASSWORD)
    if os.getuid() == 0:
        for path in (folder, folder / "password"):
            shutil.chown(path, "postgres", "postgres")
    data = folder / "data"
    login = ("-U", USER, "--auth=scram-sha-256", f"--pwfile={folder / 'password'}")
    _run(initialise, "-D", data, *login, "-E", "UTF8", "--locale=C.UTF-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = f"-p {port} -h 127.0.0.1 -k {folder} -c fsync=off"
    _run(control, "-D", data, "-o", settings, "-l", folder / "log", "-w", "start")
    yield port
    _run(control, "-D", data, "-m", "immediate", "-w", "stop")


class Database:
    """A database, and its URL; the environment says where it is and what the password is."""

    def __init__(self, name, environment):
        self.name, self.environment = name, environment
        self.url = f"postgresql://{USER}@/{name}"

    def run(self, *statements):
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                with connection.cursor() as cursor:
                    cursor.execute(statement)

    def export(self, table, path):
        """Write a table as text by the client of Postgres."""
        text = f"COPY {table} TO STDOUT (FORMAT csv, HEADER)"
        command = [_program("psql"), "-U", USER, "-d", self.name, "-qc", text]
        with open(path, "wb") as file:
            subprocess.run(command, check=True, stdout=file, env=self.environment)


@pytest.fixture
def database(postgres_port, monkeypatch, request):
    """Return a new database, which is removed afterwards."""
    login = {"PGHOST": "127.0.0.1", "PGPORT": str(postgres_port), "PGPASSWORD": PASSWORD}
    for name, value in login.items():
        monkeypatch.setenv(name, value)
    server = Database("postgres", dict(os.environ))
    server.run("CREATE DATABASE lake")
    yield Database("lake", dict(os.environ))
    server.run("DROP DATABASE lake WITH (FORCE)")
