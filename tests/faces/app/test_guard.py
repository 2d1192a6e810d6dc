"""Tests of what every request passes: host, origin, method, size, and the headers of answers."""

import pytest
from app_clients import HOST, entered, said

OWN = f"http://{HOST}"


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost", f"{HOST}:80", f"{HOST}.evil.example", f"x@{HOST}", ""]
)
def test_another_host_is_refused_as_names_can_be_bound_to_this_machine(client, host):
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 400
    assert client.get("/static/app.css", headers={"host": host}).status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "null"},
        {"origin": "https://evil.example"},
        {"origin": f"https://{HOST}"},
        {"origin": f"{OWN}:8080"},
        {"origin": ""},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": OWN, "sec-fetch-site": "same-site"},
        {"origin": OWN, "sec-fetch-site": "other"},
    ],
)
@pytest.mark.parametrize("path", ["/reload", "/tables"])
def test_pages_of_other_sites_change_nothing(client, headers, path):
    answer = client.post(path, headers=headers, data={"text": "a\nb\n"})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers", [{}, {"origin": OWN}, {"origin": OWN, "sec-fetch-site": "same-origin"}]
)
def test_our_own_pages_change(client, headers):
    answer = client.post("/reload", headers=headers, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_other_sites_link_to_pages_and_take_no_parts_of_them(client):
    elsewhere = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert (
        client.get("/lake", headers={**elsewhere, "sec-fetch-dest": "document"}).status_code == 200
    )
    for headers in (
        {**elsewhere, "sec-fetch-dest": "iframe"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
    ):
        assert client.get("/lake.json", headers=headers).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "X"])
def test_other_methods_are_not_answered(client, method):
    answer = client.request(method, "/")
    assert answer.status_code == 405


def test_pages_are_not_asked_as_actions_are_nor_actions_as_pages(client):
    for answer in (client.post("/lake"), client.get("/reload"), client.get("/tables")):
        assert answer.status_code == 405
        assert said(answer) == "This page does not answer this method."


def test_a_head_is_that_of_the_page(client):
    got, head = client.get("/lake"), client.head("/lake")
    assert (head.status_code, head.text) == (200, "")
    assert head.headers["content-type"] == got.headers["content-type"]


@pytest.mark.parametrize(
    "path",
    [
        "/static/app.css", "/static/app.js", "/static/page.css", "/static/none",
        "/static/../app.py",
        "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/static/%00",
        "/static/..%5c..%5capp.py", "/static", "/static/", "/lake.json", "/none", "//", "//lake",
        "/lake/", "/%00", "/%ff", "/lake/table?name=none", "/lake/table?name=../notes.csv",
        "/tables/none", "/tables/../../x", "/tables/a/joined.exe?column=x", "/lake?page=0",
    ],
)  # fmt: skip
def test_every_answer_has_the_headers_and_none_leads_out(client, path):
    answer = client.get(f"{OWN}{path}")
    assert answer.status_code in (200, 400, 404)
    assert "from __future__" not in answer.text
    assert "root:" not in answer.text
    client.cookies.clear()
    refused = client.get(f"{OWN}{path}")
    assert refused.status_code == 403  # not even that a file is there, nor what is served
    assert str(client.pages.served.path) not in refused.text


def test_too_large_a_body_is_refused_by_its_length(small_index):
    with entered(small_index, max_bytes=1000) as client:
        data = b"a\n" + b"x\n" * (200 << 10)
        answer = client.post("/tables", files={"file": ("a.csv", data)})
        assert answer.status_code == 413
        assert "pexeso search" in answer.text
        headers = {"content-length": "9" * 5000}
        assert client.post("/tables", headers=headers).status_code == 413


@pytest.mark.parametrize("length", [None, "10"])
def test_a_body_that_does_not_tell_its_length_or_lies_is_counted(small_index, length):
    """As an ASGI server would pass it on that does not compare the two."""
    with entered(small_index, max_bytes=1000) as client:
        kind = "multipart/form-data; boundary=b"
        headers = {"content-type": kind} | ({"content-length": length} if length else {})

        def pieces():
            yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
            for _ in range(40):
                yield b"x\n" * 4096
            yield b"\r\n--b--\r\n"

        answer = client.post("/tables", content=pieces(), headers=headers)
        assert answer.status_code == 413
        assert "pexeso search" in said(answer)


@pytest.mark.parametrize("length", ["-1", "1e3", "x", "", "\u0661", "1_0"])
def test_a_length_that_is_no_number_is_refused(client, length):
    answer = client.post("/reload", headers={"content-length": length.encode()})
    assert answer.status_code == 400


def test_there_is_no_websocket(client):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/"):
        pass
