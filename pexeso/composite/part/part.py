"""The part for searches by composite keys.

It holds the rows of tables as numbers of values, with posting lists and filters of rows.
"""

from pexeso.build.parts.base import PackagePart

ROW_KEYS_PART = PackagePart(
    package="pexeso.composite.part",
    name="row_keys",
    choices=("composite",),
    stages=("divide-rows", "rows"),
    folders_are="row_shards",
    reads_rows=True,
)
