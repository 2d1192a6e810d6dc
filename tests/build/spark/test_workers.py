"""Workers of Spark do not search for garbage among what they imported."""

import gc
import subprocess
import sys
from contextlib import nullcontext

from pexeso.build.workers import SparkWorkers, run_tasks

ALONE = """
import gc, weakref
from pexeso.runtime.threads import freeze_imports

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


def frozen(item, attempt):
    return gc.get_freeze_count()


def test_a_worker_that_ran_a_task_has_frozen_its_imports(spark, tmp_path):
    with SparkWorkers(lambda: nullcontext(spark)) as workers:
        counts = [run_tasks(workers, frozen, [0], tmp_path)[0][0] for _ in range(7)]
    # Idle workers take turns, and another may never have run a task of ours.
    assert max(counts) > 1000
