"""Arrow without pandas: nothing imports it, and DataFrames still come when they are asked for."""

import sys
from pathlib import Path

from processes import ran

ROOT = Path(__file__).resolve().parent.parent.parent


def run_fresh(program):
    done = ran([sys.executable, "-c", program], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_texts_become_arrays_without_pandas():
    program = """
import sys
from pexeso.runtime.arrow_alone import use_arrow_alone
use_arrow_alone()
import pyarrow as pa
print(len(pa.array(["a", None])), "pandas" in sys.modules)
"""
    assert run_fresh(program) == ["2", "False"]


def test_data_frames_come_when_they_are_asked_for():
    program = """
from pexeso.runtime.arrow_alone import use_arrow_alone
use_arrow_alone()
import pyarrow as pa
frame = pa.table({"a": ["x", None]}).to_pandas()
back = pa.Table.from_pandas(frame)
print(type(frame).__name__, back.num_rows, pa.array(frame["a"]).null_count)
"""
    assert run_fresh(program) == ["DataFrame", "2", "1"]


def test_a_process_that_has_pandas_keeps_it():
    program = """
import pandas, sys
from pexeso.runtime.arrow_alone import use_arrow_alone
use_arrow_alone()
import pyarrow as pa
print(pa.array(pandas.Series(["x", float("nan")])).null_count, sys.modules["pandas"] is pandas)
"""
    assert run_fresh(program) == ["1", "True"]
