"""A Spark cluster of two workers for the tests of this folder."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.cluster.spark_cluster import Cluster, running_cluster
from pexeso.build.job import SMALL_LAKE_SETTINGS

ROOT = Path(__file__).resolve().parent.parent.parent
SETTINGS = {
    "spark.executor.memory": "600m",
    "spark.driver.memory": "700m",
    **SMALL_LAKE_SETTINGS,
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": 2,
}


@pytest.fixture(scope="session")
def cluster():
    """Start a cluster of two workers, for all tests that leave it whole."""
    with running_cluster() as started:
        yield started


@pytest.fixture
def start_on() -> Callable[..., subprocess.Popen[str]]:
    """Return a function that starts a program with the address and settings of a cluster.

    They are passed in the environment.

    A process of its own, since a Spark session that is active in this one would be used in place of
    the cluster.
    """
    started: list[subprocess.Popen[str]] = []

    def start(
        cluster: Cluster, program: Path, *arguments: object, **settings: object
    ) -> subprocess.Popen[str]:
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)]),
            "CLUSTER_URL": cluster.url,
            "CLUSTER_CONF": json.dumps({**SETTINGS, **settings}),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, str(program), *map(str, arguments)]
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def run_on(start_on):
    """Return a function that runs such a program to its end and returns its output.

    The program must not fail.
    """

    def run(cluster: Cluster, program: Path, *arguments: object, **settings: object) -> str:
        process = start_on(cluster, program, *arguments, **settings)
        out, said = process.communicate(timeout=300)
        assert process.returncode == 0, said[-4000:]
        return out

    return run
