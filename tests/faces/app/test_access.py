"""Tests of the link that works once and the session that it opens."""

from threading import Thread

import pytest

from pexeso.faces.app.guard import Access


def test_a_link_works_once_and_is_told_anew_when_it_is_used_again():
    tokens = []
    access = Access(tokens.append)
    first = access.token
    session = access.exchange(first)
    assert access.knows(session)
    assert tokens == []
    assert [access.exchange(first), access.exchange(first)] == [None, None]
    assert tokens == [access.token]
    assert tokens[0] != first
    assert access.exchange(tokens[0]) == session
    assert access.exchange("wrong") is None
    assert len(tokens) == 1


def test_of_many_that_use_a_link_at_once_one_enters():
    access = Access(lambda token: None)
    token, sessions = access.token, []
    threads = [
        Thread(target=lambda: sessions.append(access.exchange(token)), daemon=True)
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([session for session in sessions if session is not None]) == 1


@pytest.mark.parametrize("guess", ["", "x", "é", "\0", "a" * 10_000])
def test_guesses_open_nothing(guess):
    access = Access(lambda token: None)
    assert access.exchange(guess) is None
    assert not access.knows(guess)
    assert not access.knows(access.token)


def test_the_link_opens_the_app_for_one_browser(visitor):
    refused = visitor.get("/")
    assert refused.status_code == 403
    assert "link" in refused.text
    token = visitor.access.token
    opened = visitor.get(f"/lake?text=a&token={token}&page=1", follow_redirects=False)
    assert (opened.status_code, opened.headers["location"]) == (303, "/lake?text=a&page=1")
    cookie = opened.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "domain" not in cookie
    assert "max-age" not in cookie  # it ends with the browser
    assert visitor.get("/lake").status_code == 200
    visitor.cookies.clear()
    again = visitor.get(f"/?token={token}")
    assert again.status_code == 403
    assert visitor.tokens == [visitor.access.token]
    assert "set-cookie" not in again.headers
    assert visitor.get(f"/?token={visitor.tokens[0]}").status_code == 200


def test_a_session_takes_the_token_out_of_the_address_and_leaves_the_link_for_others(client):
    token = client.access.token
    answer = client.get("/", params={"token": token}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert client.access.token == token
    assert client.get("/?token=wrong", follow_redirects=False).headers["location"] == "/"


def test_looking_at_a_link_does_not_use_it(visitor):
    token = visitor.access.token
    assert visitor.head(f"/?token={token}").status_code == 403
    assert visitor.post(f"/?token={token}").status_code == 403
    assert visitor.access.token == token


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example/", "///evil.example", "/%5Cevil.example", "/%2F%2Fevil.example/a",
        "/%09/evil.example", "/%0d%0aSet-Cookie:%20a=b", "/.//evil.example", "/@evil.example",
    ],
)  # fmt: skip
def test_a_link_leads_to_no_other_host(visitor, path):
    from urllib.parse import urljoin, urlsplit

    answer = visitor.get(
        f"http://testserver{path}?token={visitor.access.token}", follow_redirects=False
    )
    assert answer.status_code == 303
    location = answer.headers["location"]
    assert location.startswith("/")
    assert not location.startswith(("//", "/\\"))
    assert not set(location) & set("\t\r\n\\")
    assert urlsplit(urljoin("http://testserver/", location)).netloc == "testserver"
    assert "a=b" not in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "cookie", ["pexeso=guessed", "pexeso=", "other=1", 'pexeso="\\377"', ";;="]
)
def test_a_wrong_cookie_is_none(visitor, cookie):
    assert visitor.get("/", headers={"cookie": cookie}).status_code == 403


def test_cookies_of_other_programs_do_not_hide_ours(client):
    session = client.cookies["pexeso"]
    client.cookies.clear()
    beside = f'broken={{"a": [1, "b"]}}; =; pexeso={session}; last=@"x'
    assert client.get("/", headers={"cookie": beside}).status_code == 200
