"""Tests of the build report: task measures arrive complete, in one size, and are read back."""

import json
import time

import pyarrow as pa
import pytest

from pexeso.build.report import BuildReport, StageReport, stage_report
from pexeso.build.workers import LocalWorkers, added, class_of, empty_sums, median, run_tasks
from pexeso.errors import InputError
from pexeso.faces.cli.inspect import report_lines


def every_second(numbers, attempt):
    batches = iter([pa.RecordBatch.from_pydict({"id": numbers})])
    for batch in attempt.counted(batches, "in"):
        attempt.count(batch.filter(pa.array([n % 2 == 0 for n in numbers])), "out")
    time.sleep(0.4 if numbers[0] == 0 else 0.05)


def test_tasks_measure_rows_bytes_and_seconds(tmp_path):
    items = [list(range(first, first + 125)) for first in range(0, 1000, 125)]
    started = time.perf_counter()
    _, sums = run_tasks(LocalWorkers(), every_second, items, tmp_path)
    report = stage_report("read", time.perf_counter() - started, sums)
    assert (report.tasks, report.rows_in, report.rows_out) == (8, 1000, 500)
    assert 8 * 1000 <= report.bytes_in < 12 * 1000
    assert 8 * 500 <= report.bytes_out < report.bytes_in
    assert 0.05 <= report.median_seconds < 0.4 <= report.slowest_seconds <= report.seconds
    assert report.task_seconds >= 0.4 + 7 * 0.05
    assert report.skew > 1.2
    assert StageReport("x", 1, slowest_seconds=2.0, median_seconds=2.05).skew >= 1.0


def test_nothing_measured_is_nothing_said():
    report = stage_report("commit", 0.25, empty_sums())
    assert report.to_dict() == {"stage": "commit", "seconds": 0.25}


def test_sums_keep_one_size_and_themedian():
    sums = empty_sums()
    for place in range(2000):
        seconds = 0.5 + place % 100 / 100
        figures = {
            "tasks": 1,
            "rows_in": place,
            "rows_out": 1,
            "bytes_in": 8,
            "bytes_out": 8,
            "task_seconds": seconds,
        }
        sums = added(sums, {**figures, "slowest": seconds, "classes": {class_of(seconds): 1}})
    assert sums["tasks"] == 2000
    assert sums["rows_in"] == 2000 * 1999 // 2
    assert sums["slowest"] == pytest.approx(1.49)
    assert len(sums["classes"]) < 30
    assert median(sums["classes"]) == pytest.approx(0.99, rel=0.03)


def test_a_report_is_read_back_as_it_was_written():
    stages = (
        StageReport("read", 2.5, 10, 500, 1000, 20_000, 4, 8.0, 4.0, 2.0),
        StageReport("commit", 0.125),
    )
    report = BuildReport(stages, {"cores": 2})
    document = json.loads(json.dumps(report.to_dict()))
    assert document["seconds"] == 2.625
    assert document["stages"][0]["skew"] == 2.0
    assert BuildReport.from_dict(document) == report
    assert BuildReport.from_dict({**document, "later": 1}) == report


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"stages": 3},
        {"stages": [1]},
        {"stages": [{"stage": "read"}]},
        {"stages": [{"seconds": 1}]},
    ],
)
def test_what_is_no_report_is_refused(document):
    with pytest.raises(InputError):
        BuildReport.from_dict(document)


def test_a_report_for_people():
    report = BuildReport(
        (
            StageReport("read", 2.5, 10, 5000, 1000, 20_000, 4, 8.0, 4.0, 2.0),
            StageReport("commit", 0.1),
        )
    )
    lines = report_lines(report)
    assert lines[0].split() == [
        "stage",
        "seconds",
        "rows",
        "in",
        "rows",
        "out",
        "bytes",
        "in",
        "bytes",
        "out",
        "tasks",
        "slowest",
        "skew",
    ]
    assert lines[1].split() == [
        "read",
        "2.5",
        "10",
        "5,000",
        "1.0",
        "kB",
        "20.0",
        "kB",
        "4",
        "4.00",
        "s",
        "2.0",
    ]
    assert lines[2].split() == ["commit", "0.1"]
    assert lines[3].split() == ["all", "2.6"]
