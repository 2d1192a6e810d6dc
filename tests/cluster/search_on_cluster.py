"""Answer a file of queries on the cluster that the environment names:

INDEX QUERIES ANSWERS [OPTIONS as JSON]. Says when it begins to search.
"""

import json
import os
import sys

from pexeso.build.spark.session import spark_session
from pexeso.index import open_index
from pexeso.results.query import batch_lines
from pexeso.semantic.batch_file import run_batch
from pexeso.semantic.spark_executor import on_spark

if __name__ == "__main__":
    path, queries, answers, options = *sys.argv[1:4], json.loads(sys.argv[4])
    with spark_session(
        os.environ["CLUSTER_URL"], conf=json.loads(os.environ["CLUSTER_CONF"])
    ) as spark:
        index = on_spark(open_index(path, device="cpu"), spark)
        index.search(["anything"])
        print("searching", flush=True)  # noqa: T201
        run_batch(index, batch_lines(queries), answers, **options)
