"""When a process goes over from arrays to compiled loops."""

import subprocess
import sys
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
        subtotal = 0
        for number in numbers:
            subtotal += number
        return subtotal

    assert jit.loop(total)(np.arange(9)) == total(np.arange(9)) == 36


def printed(script, folder):
    """Run a script of a folder.

    Python keeps no bytecode (`-B`), which it takes for that of a module of the same size that was
    written again within the same second.
    """
    command = [sys.executable, "-B", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


CALLED = "from pexeso.runtime.jit import loop\n@loop\ndef called(number):\n    return number + {}\n"
CALLER = """
from pexeso.runtime.jit import loop
from called import called
@loop
def caller(number):
    return called(number) * 10
print(caller(1))
"""


def test_a_loop_is_compiled_anew_where_one_that_it_calls_was_changed(tmp_path):
    def answer(added):
        (tmp_path / "called.py").write_text(CALLED.format(added))
        (tmp_path / "caller.py").write_text(CALLER)
        return printed("caller.py", tmp_path)

    assert answer(1) == answer(1) == "20\n"
    assert list(tmp_path.rglob("caller.caller*.nbc")), "it is kept for the next process"
    assert answer(2) == "30\n"


VIEWS = """
from typing import NamedTuple
import numpy as np
FACTOR = {}
class Pair(NamedTuple):
    {}: np.ndarray
    {}: np.ndarray
"""
READER = """
import numpy as np
from pexeso.runtime.jit import loop
from views import FACTOR, Pair
@loop
def reader(pair):
    return pair.left[0] * FACTOR
print(reader(Pair(left=np.array([1]), right=np.array([2]))))
"""


@pytest.mark.long
def test_a_loop_is_compiled_anew_where_the_views_or_numbers_it_imports_were_changed(tmp_path):
    """Fields of the same type in another order: what was compiled would read the wrong arrays."""

    def answer(factor, *fields):
        (tmp_path / "views.py").write_text(VIEWS.format(factor, *fields))
        (tmp_path / "reader.py").write_text(READER)
        return printed("reader.py", tmp_path)

    assert answer(10, "left", "right") == answer(10, "left", "right") == "10\n"
    [kept] = tmp_path.rglob("reader.reader*.nbc")
    written = kept.stat().st_mtime_ns
    assert answer(10, "left", "right") == "10\n"
    assert kept.stat().st_mtime_ns == written, "it is kept for the next process"
    assert answer(10, "right", "left") == "10\n"
    assert answer(300, "right", "left") == "300\n"


RENAMED = """
from typing import NamedTuple
import numpy as np
from pexeso.runtime.jit import loop
class {0}(NamedTuple):
    left: np.ndarray
@loop
def first(pair):
    return pair.left[0]
print(first({0}(np.array([7]))))
"""


@pytest.mark.parametrize("damaged", [False, True])
def test_a_loop_is_compiled_anew_where_a_view_is_gone_or_what_was_kept_is_cut(tmp_path, damaged):
    """numba reads the types of what it kept before it asks whether they have changed."""

    def answer(name):
        (tmp_path / "renamed.py").write_text(RENAMED.format(name))
        return printed("import_renamed.py", tmp_path)

    (tmp_path / "import_renamed.py").write_text("import renamed")
    assert answer("Pair") == "7\n"
    [index] = tmp_path.rglob("renamed.first*.nbi")
    if damaged:
        index.write_bytes(index.read_bytes()[:-20])
    assert answer("Both") == "7\n"
    assert answer("Both") == "7\n"


OWN = """
import sys
from pexeso.runtime import jit
jit.own_numba(lambda: print("compiling"))
from pexeso.runtime.jit import loop
@loop
def first(number):
    return number + 1
@loop
def second(number):
    return first(number) + 1
print(second(1), second(1.0), "scipy" in sys.modules, "cffi" in sys.modules)
import scipy.linalg
"""


def test_a_process_is_told_once_that_loops_are_compiled(tmp_path):
    (tmp_path / "own.py").write_text(OWN)

    def said():
        return printed("own.py", tmp_path).splitlines()

    assert said() == ["compiling", "3 3.0 False False"]
    assert said() == ["3 3.0 False False"], "what an earlier process left is only loaded"


def test_a_process_that_has_numba_keeps_it_as_it_is(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", sys.modules.get("numba", sys))
    monkeypatch.setattr(jit, "_tell", None)
    jit.own_numba(lambda: None)
    assert jit._tell is None


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
