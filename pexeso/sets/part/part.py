"""The part for exact-value searches.

It holds columns as sets of tokens with posting lists, by which overlap and containment are
searched, and bands of signatures of these sets where they are asked for.
"""

from pexeso.build.parts.base import PackagePart

TOKEN_SETS_PART = PackagePart(
    package="pexeso.sets.part",
    name="token_sets",
    choices=("overlap", "containment", "bands"),
    stages=("divide", "tokens"),
    folders_are="shards",
)
