"""The part for exact-value searches.

It holds columns as sets of tokens with posting lists, and signatures of these sets.
"""

from pexeso.parts.base import PackagePart

TOKEN_SETS_PART = PackagePart(
    package="pexeso.parts.token_sets",
    name="token_sets",
    choices=("overlap", "containment"),
    stages=("divide", "tokens"),
    folders_are="shards",
)
