"""The parts for semantic searches: values as vectors, in partitions.

Every index has that of its main model, and one for each further model.
"""

from pexeso.build.parts.base import PackagePart
from pexeso.build.parts.metadata import part_of


def _part(model: int) -> PackagePart:
    stages = ("train", "embed", "partition", "index")
    return PackagePart(
        package="pexeso.semantic.part",
        name=part_of(model),
        choices=(),
        stages=tuple(stage_of(stage, model) for stage in stages),
        folders_are="partitions",
        model=model,
    )


def stage_of(stage: str, model: int) -> str:
    """Return the name of a stage for the model at a position: of the first, its plain name."""
    return stage if model == 0 else f"{stage}_{model + 1}"


SEMANTIC_PART, SECOND_MODEL_PART, THIRD_MODEL_PART = map(_part, range(3))
