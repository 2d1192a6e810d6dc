"""When a process goes over from arrays to compiled loops."""

import threading

import numpy as np
import pytest

from pexeso.runtime import jit
from pexeso.runtime.scratch_buffers import borrow_counters, give_back


@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(jit, "_left", jit.WORTH_LOADING)


def test_loops_pay_once_arrays_have_done_as_much_work(fresh):
    searches = 0
    while not jit.loops_pay(1 << 20):
        searches += 1
    assert searches == jit.WORTH_LOADING // ((1 << 20) + jit.WORK_OF_A_SEARCH)
    assert jit.loops_pay(0)
    assert jit.loops_are_loaded()


def test_small_searches_are_work_too(fresh):
    assert not jit.loops_are_loaded()
    for _ in range(jit.WORTH_LOADING // jit.WORK_OF_A_SEARCH - 1):
        assert not jit.loops_pay(0)
    assert jit.loops_pay(0)


def test_a_process_can_begin_with_loops(fresh):
    jit.use_loops()
    assert jit.loops_pay(0)


def test_a_loop_gives_what_the_function_gives():
    def total(numbers):
        found = 0
        for number in numbers:
            found += number
        return found

    assert jit.loop(total)(np.arange(9)) == total(np.arange(9)) == 36


def test_counters_are_of_one_thread():
    counters = borrow_counters(5)
    counters[2] = 7
    seen = []
    thread = threading.Thread(target=lambda: seen.append(borrow_counters(5).tolist()))
    thread.start()
    thread.join()
    assert seen == [[0] * 5]
    counters[2] = 0
    give_back(counters)
    assert borrow_counters(3).tolist() == [0, 0, 0]
