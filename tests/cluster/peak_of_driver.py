"""Program that builds one lake after the other on a cluster, with peaks of driver memory.

The environment names the cluster. The peak memory of the driver is printed after each build.

    python peak_of_driver.py OPTIONS LAKE INDEX [LAKE INDEX ...]

Prints a line of ``{"python": bytes, "java": bytes}`` a lake: the highest resident sizes, so far, of
this process and of its Java process.
"""

import json
import os
import sys
from pathlib import Path

import psutil

sys.path.append(str(Path(__file__).resolve().parent.parent))

from peak_memory import peak_bytes

from pexeso.build.spark.session import spark_session
from pexeso.index import build_index


def java_process() -> int:
    """Find the Java process of the driver."""
    return next(
        child.pid for child in psutil.Process().children(recursive=True) if "java" in child.name()
    )


if __name__ == "__main__":
    options, *places = sys.argv[1:]
    with spark_session(os.environ["CLUSTER_URL"], conf=json.loads(os.environ["CLUSTER_CONF"])):
        for lake, path in zip(places[::2], places[1::2], strict=True):
            build_index(lake, path, **json.loads(options))
            print(  # noqa: T201
                json.dumps({"python": peak_bytes(), "java": peak_bytes(java_process())}), flush=True
            )
