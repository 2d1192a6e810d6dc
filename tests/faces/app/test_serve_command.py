"""Tests of ``pexeso serve`` as a process: many clients, those that leave, and its end."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from app_clients import CITIES
from click.testing import CliRunner
from peak_memory import peak_bytes

from pexeso.faces.cli.main import cli

START_SECONDS = 120
END_SECONDS = 10
"""It takes under 2 seconds; machines are shared."""

CAPITALS = "nested/capitals.tsv:Capital"


class Serving:
    """A process that serves, and a session with it."""

    def __init__(self, index: Path, folder: Path) -> None:
        self.temporary = folder / "temporary"
        self.temporary.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "OMP_NUM_THREADS": "1",
        }
        self.log = folder / "stderr"
        # Whoever ignores hangups, as what nohup starts does, has its children ignore them too.
        hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with self.log.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pexeso", "serve", str(index), "--port", "0"],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=stream,
                start_new_session=True,
            )
        signal.signal(signal.SIGHUP, hangup)
        self.link = self._link()
        self.address = urlsplit(self.link)
        self.cookie = ""

    def _link(self) -> str:
        deadline = time.monotonic() + START_SECONDS
        while not (match := re.search(r"Open (http://\S+)\n", self.log.read_text())):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return match[1]

    def ask(self, path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.address.port, timeout=60)
        try:
            connection.request(method, path, body, {"Cookie": self.cookie, **headers})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def enter(self) -> "Serving":
        status, headers, _ = self.ask(f"/?{self.address.query}")
        assert status == 303
        self.cookie = headers["set-cookie"].partition(";")[0]
        return self

    def give(self) -> str:
        kind = "application/x-www-form-urlencoded"
        text = f"text={CITIES.replace(chr(10), '%0A')}"
        status, headers, _ = self.ask("/tables", "POST", text, **{"Content-Type": kind})
        assert status == 303
        return headers["location"]

    def give_file(self, data: bytes) -> str:
        head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        body, kind = head + data + b"\r\n--x--\r\n", "multipart/form-data; boundary=x"
        status, headers, _ = self.ask("/tables", "POST", body, **{"Content-Type": kind})
        assert status == 303
        return headers["location"]

    def left(self) -> list[str]:
        return [path.name for path in self.temporary.iterdir()]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def serving(small_index, tmp_path_factory):
    process = Serving(small_index, tmp_path_factory.mktemp("serving"))
    try:
        yield process.enter()
    finally:
        process.end()


@pytest.fixture
def own(small_index, tmp_path):
    process = Serving(small_index, tmp_path)
    try:
        yield process.enter()
    finally:
        process.end()


def comparable(body):
    return re.sub(rb'"seconds": ({[^}]*}|[0-9.e-]+)', b"", body)


def test_eight_clients_at_once_get_the_answers_of_one(serving):
    page = serving.give()
    paths = [
        f"{page}/search.json?column=%230",
        f"{page}/search.json?column=%230&method=overlap",
        f"{page}/search.json?column=%230&max_distance=0.3&k=2",
        f"{page}/search?column=%230",
        f"{page}/match?column=%230&lake_column={CAPITALS}",
        f"{page}/joined.csv?column=%230&lake_column={CAPITALS}",
        "/lake",
        "/lake/table?name=cities.csv",
        "/none",
    ]
    alone = {path: serving.ask(path)[::2] for path in paths}
    assert [alone[path][0] for path in paths] == [200] * 8 + [404]

    def client(number):
        order = paths[number:] + paths[:number]
        return {path: serving.ask(path)[::2] for path in order}

    with ThreadPoolExecutor(8) as pool:
        for answers in pool.map(client, range(8)):
            for path, (status, body) in answers.items():
                assert status == alone[path][0]
                assert comparable(body) == comparable(alone[path][1]), path


def test_eight_clients_that_give_tables_at_once_get_their_own(serving):
    def client(number):
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        _, headers, _ = serving.ask("/tables", "POST", f"text=name{number}%0Ax%0Ay%0A", **kind)
        return serving.ask(f"{headers['location']}.json")[2]

    with ThreadPoolExecutor(8) as pool:
        for number, body in enumerate(pool.map(client, range(8))):
            assert f'"column": "name{number}"'.encode() in body


def test_clients_that_go_away_in_the_middle_harm_nobody(serving):
    page = serving.give()
    head = (
        "POST /tables HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nContent-Length: 100000\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
        '--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\nx\n'
    )
    search = "GET {page}/search?column=%230 HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n"
    for text in (head, search, "GET / HT", "\0\1\2", "POST /tables HTTP/1.1\r\n") * 3:
        with socket.create_connection(("127.0.0.1", serving.address.port), timeout=10) as client:
            text = text.format(host=serving.address.netloc, cookie=serving.cookie, page=page)
            client.sendall(text.encode())
    assert serving.ask(f"{page}/search?column=%230")[0] == 200
    time.sleep(0.5)
    assert "Traceback" not in serving.log.read_text()
    assert serving.process.poll() is None


def test_it_is_asked_on_this_machine_alone(serving):
    connections = psutil.Process(serving.process.pid).net_connections("tcp")
    listening = {
        connection.laddr.ip for connection in connections if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_answers_do_not_tell_what_serves(serving):
    _, headers, _ = serving.ask("/")
    assert "server" not in headers


def test_a_used_link_is_shown_anew_in_the_terminal(serving):
    before = serving.log.read_text().count("Open http")
    cookie, serving.cookie = serving.cookie, ""
    try:
        assert serving.ask(f"/?{serving.address.query}")[0] == 403
    finally:
        serving.cookie = cookie
    assert serving.log.read_text().count("Open http") == before + 1


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_it_calmly_and_empties_its_folder(own, number, code):
    own.give()
    assert any(name.startswith("pexeso-serve-") for name in own.left())
    with socket.create_connection(("127.0.0.1", own.address.port)) as half:
        half.sendall(b"POST /tables HTTP/1.1\r\nContent-Length: 9\r\n")
        own.process.send_signal(number)
        assert own.process.wait(END_SECONDS) == code
    lines = own.log.read_text().splitlines()
    assert lines[-1] == "Stopped; the tables that you gave are removed."
    assert [line for line in lines if "Traceback" in line or "ERROR" in line] == []
    assert own.left() == []


def test_a_kill_leaves_no_process(own):
    children = psutil.Process(own.process.pid).children(recursive=True)
    own.process.kill()
    own.process.wait()
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def fail(*arguments):
    result = CliRunner().invoke(cli, ["serve", *map(str, arguments)], prog_name="pexeso")
    assert "Traceback" not in result.output
    return result.exit_code, " ".join(result.stderr.split())


def test_a_port_that_is_taken_is_told(small_index):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        code, message = fail(small_index, "--port", port)
    assert code == 1
    assert f"Port {port} of this machine cannot be used: Address already in use." in message
    assert "--port" in message


@pytest.mark.parametrize("port", [-1, 65536, 10**30])
def test_a_port_that_is_none_is_told(small_index, port):
    code, message = fail(small_index, f"--port={port}")
    assert code == 2
    assert "from 0 to 65535" in message


def test_an_index_that_is_none_is_told(tmp_path, small_index):
    code, message = fail(tmp_path / "none.pexeso")
    assert code == 1
    assert "There is no index at" in message
    (tmp_path / "manifest.json").write_text("{}")
    assert fail(tmp_path)[0] == 1


def test_without_its_packages_it_says_how_to_install_them(small_index, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, message = fail(small_index)
    assert code == 1
    assert "pip install 'pexeso[app]'" in message


def test_a_large_table_takes_a_few_times_its_bytes_of_memory(own):
    numbers = range(250_000)
    rows = (
        f"{n},20{n % 90 + 10}-{n % 12 + 1:02}-01,{n * 7919 % 1_000_003} Long Road,{n % 997}.5,"
        f"words of note {n * 104_729 % 15_485_863} and some more words\n"
        for n in numbers
    )
    data = f"id,day,street,price,note\n{''.join(rows)}".encode()

    def use(table: str) -> None:
        for page in (table, f"{table}/search?column=%231"):
            # The page that says how far it is, while it takes long.
            while b"/jobs/" in (answer := own.ask(page))[2]:
                time.sleep(0.1)
            assert answer[0] == 200

    use(own.give())
    use(own.give_file(data[: len(data) // 100]))
    before = peak_bytes(own.process.pid)
    use(own.give_file(data))
    assert peak_bytes(own.process.pid) - before < 7 * len(data)
