"""Build an index on the cluster that the environment names:

LAKE INDEX [OPTIONS as JSON]. Prints each stage as it starts.
"""

import json
import os
import sys

from pexeso.index import build_index

if __name__ == "__main__":
    lake, path, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    build_index(
        lake,
        path,
        master=os.environ["CLUSTER_URL"],
        conf=json.loads(os.environ["CLUSTER_CONF"]),
        progress=lambda stage: print(stage, flush=True),  # noqa: T201
        **options,
    )
