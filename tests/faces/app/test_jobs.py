"""Pages that take long say how far they are, are made once for all tabs, and can be cancelled."""

import gc
import html
import re
import threading
import time
import weakref

import pytest
from app_clients import said

from pexeso.errors import InputError
from pexeso.faces.app import app as app_module
from pexeso.faces.app import jobs as jobs_module
from pexeso.faces.app.jobs import Jobs, report_count, report_stage
from pexeso.faces.app.page import Page
from pexeso.runtime.progress import advance, begin_steps

SCRIPT = {"HX-Request": "true"}


class SlowPage:
    """A page that is made until it is let go, and says how far it is."""

    def __init__(self):
        self.n_made, self.released = 0, threading.Event()

    def __call__(self, pages, request):
        self.n_made += 1
        report_stage("first part")
        for n_done in range(100_000):
            report_count(n_done, 200_000)
            if self.released.wait(0.005):
                break
        return Page("names.html", {"names": ["made"]}, lambda: {})


@pytest.fixture
def slow(monkeypatch):
    """Have the graph be a page that takes long, and browsers impatient."""
    page = SlowPage()
    usual = app_module.handler_of
    monkeypatch.setattr(
        app_module, "handler_of", lambda path: page if path == "/graph" else usual(path)
    )
    monkeypatch.setattr(app_module, "PATIENCE", 0.05)
    yield page
    page.released.set()


def job_of(answer):
    return re.search(r'hx-get="(/jobs/[^"]*)"', html.unescape(answer.text))[1]


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_tabs_wait_for_one_page(client, slow):
    first, second = client.get("/graph?run=1"), client.get("/graph?run=1")
    assert "<h1>Comparing all columns</h1>" in first.text
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in first.text
    job = job_of(first)
    assert job == job_of(second)
    wait_for(lambda: re.search("first part: [0-9]+ of 200,000 done", part(client, job)))
    slow.released.set()
    wait_for(lambda: client.get(job, headers=SCRIPT).headers.get("hx-redirect") == "/graph?run=1")
    for _ in range(2):
        assert '<option value="made">' in client.get("/graph?run=1").text
    assert slow.n_made == 1
    client.post("/reload")
    assert "made" in client.get("/graph?run=1").text
    assert slow.n_made == 2, "what was made before is not shown after a change"


def part(client, job):
    return html.unescape(client.get(job, headers=SCRIPT).text)


def test_a_page_is_cancelled_and_begun_again(client, slow):
    job = job_of(client.get("/graph?run=1"))
    answer = client.post(f"{job}/cancel")
    assert "Comparing all columns was cancelled" in answer.text
    assert 'href="/graph?run=1">Start again' in answer.text
    assert 'href="/graph">Change the settings' in answer.text
    other_tab = client.get(job, headers=SCRIPT)
    assert other_tab.headers["hx-redirect"] == job
    assert job_of(client.get("/graph?run=1")) != job
    slow.released.set()


def test_a_page_that_fails_later_says_why(client, slow, monkeypatch):
    def fail(pages, request):
        slow(pages, request)
        raise InputError("Nothing is compared.")

    monkeypatch.setattr(app_module, "handler_of", lambda path: fail)
    job = job_of(client.get("/graph?run=1"))
    slow.released.set()
    wait_for(lambda: "hx-redirect" in client.get(job, headers=SCRIPT).headers)
    answer = client.get("/graph?run=1")
    assert (answer.status_code, said(answer)) == (400, "Nothing is compared.")


class Large:
    """Something that a job holds."""


def test_a_cancelled_job_frees_its_memory_and_its_thread():
    held, begun = [], threading.Event()

    def work():
        large = Large()
        held.append(weakref.ref(large))
        begin_steps(10)
        while True:
            advance(0, to=3)
            begun.set()
            time.sleep(0.005)

    with Jobs() as jobs:
        n_threads = threading.active_count()
        job = jobs.joined("/", work)
        assert begun.wait(30)
        assert (job.n_done, job.total) == (3, 10)
        job.cancel()
        job.join(30)
        gc.collect()
        assert held[0]() is None
        assert threading.active_count() == n_threads
        assert job.result() is None


def test_the_end_of_the_server_cancels_its_jobs():
    with Jobs() as jobs:
        jobs.joined("/", lambda: [report_count(1, 2) or time.sleep(0.005) for _ in iter(int, 1)])
    assert [job.ended.is_set() for job in jobs._jobs.values()] == [True]


def test_no_more_jobs_run_than_the_limit(monkeypatch):
    monkeypatch.setattr(jobs_module, "MAX_RUNNING", 1)
    released = threading.Event()
    with Jobs() as jobs:
        jobs.joined("/one", released.wait)
        with pytest.raises(InputError, match="1 pages are being made, which is the limit"):
            jobs.joined("/two", released.wait)
        released.set()


def test_what_began_before_a_change_is_made_anew():
    released = threading.Event()
    with Jobs() as jobs:
        first = jobs.joined("/", released.wait)
        assert jobs.joined("/", released.wait) is first
        jobs.forget()
        assert jobs.joined("/", released.wait) is not first
        assert jobs[first.id] is first
        released.set()


def test_outside_of_a_job_nothing_is_told():
    report_stage("read")
    report_count(1, 2)
