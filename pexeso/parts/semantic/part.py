"""The part for semantic searches: values as vectors, in partitions. Every index has it."""

from pexeso.parts.base import PackagePart

SEMANTIC_PART = PackagePart(
    package="pexeso.parts.semantic",
    name="semantic",
    choices=(),
    stages=("train", "embed", "partition", "index"),
    folders_are="partitions",
)
