"""The part for redundant tables.

It holds the hashed cells of all tables, so that their rows are compared without the lake.
"""

from pexeso.build.parts.base import PackagePart

ROW_HASHES_PART = PackagePart(
    package="pexeso.redundancy.part",
    name="row_hashes",
    choices=("redundancy",),
    stages=("divide-hashes", "hashes"),
    folders_are="hash_shards",
)
