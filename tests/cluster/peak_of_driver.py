"""Build on the cluster that the environment names, as `build_on_cluster`; print the most memory that the driver took.

Prints ``{"python": bytes, "java": bytes}``: the highest resident sizes of this process and of its Java process.
"""

import json
import os
import sys
from pathlib import Path

import psutil

sys.path.append(str(Path(__file__).resolve().parent.parent))

from peak_memory import peak_bytes

from pexeso.index import build_index


def java_process() -> int | None:
    """Find the Java process of the driver."""
    return next((each.pid for each in psutil.Process().children(recursive=True) if "java" in each.name()), None)


if __name__ == "__main__":
    lake, path, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    java = 0

    def look(stage: str) -> None:
        """Look at the Java process as each stage starts; it is gone when the build is done."""
        global java
        found = java_process()
        java = max(java, peak_bytes(found)) if found is not None else java

    build_index(
        lake,
        path,
        master=os.environ["CLUSTER_URL"],
        conf=json.loads(os.environ["CLUSTER_CONF"]),
        progress=look,
        **options,
    )
    print(json.dumps({"python": peak_bytes(), "java": java}))  # noqa: T201
