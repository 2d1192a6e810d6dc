"""Workers of Spark do not search for garbage among what they imported."""

import gc
import subprocess
import sys

import pyarrow as pa
import pytest

from pexeso.build.report import TaskMeter

ALONE = """
import gc, weakref
from pexeso.build.spark.workers import freeze_imports

class Node:
    pass

def cycle():
    node = Node()
    node.itself = node
    return weakref.ref(node)

gc.disable()
before = cycle()
freeze_imports()
frozen = gc.get_freeze_count()
print(before() is None, frozen > 1000)

later = cycle()
freeze_imports()
print(later() is not None, gc.get_freeze_count() <= frozen)
gc.collect()
print(later() is None)

import xml.dom.minidom
freeze_imports()
print(gc.get_freeze_count() > frozen + 100)
"""


def test_what_is_alive_after_imports_is_frozen_and_garbage_is_not():
    run = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.split() == ["True"] * 6


@pytest.mark.spark
def test_a_worker_that_ran_a_measured_task_has_frozen_its_imports(spark):
    def frozen(batches):
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()]})

    def run(task):
        frame = spark.range(0, 1, 1, 1).mapInArrow(task, "frozen long")
        return frame.toArrow().column("frozen").to_pylist()

    run(TaskMeter(lambda: spark.sparkContext).measured(frozen))
    # Idle workers take turns, and another may never have run a task of ours.
    assert max(count for _ in range(6) for count in run(frozen)) > 1000
