"""Requests to build, estimate and update an index."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from embed.corpus import VALUE_VECTORS
from pexeso.build.parts.metadata import PRESETS, with_preset
from pexeso.faces.service.bases import Conf, Engine, IndexRequest, Master, Request, SparkRequest
from pexeso.faces.service.schema import option
from pexeso.lake.choose import ColumnRules
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.options import METRICS, VALUE_FORMS, BuildOptions
from pexeso.registry import choices, require_parts

MODEL, COLUMNS, VALUES_READ = "Model", "Columns", "Values"
STORED = "Index"

Dimensions = Annotated[
    int | None,
    option(
        "Number of dimensions of the vectors.",
        group=MODEL,
        metavar="N",
        default="the model's own; 256 for hashing, 100 for fasttext",
        expert=True,
    ),
]
ValueVectors = Annotated[
    Literal[VALUE_VECTORS] | None,  # type: ignore[valid-type]
    option(
        "How the words of a value make up its vector, with fasttext, a .bin file or a file of word "
        "vectors: weighted (rare words count more) or the mean of unit vectors.",
        group=MODEL,
        default="weighted; mean for a file of word vectors",
        expert=True,
    ),
]


class LakeRequest(Request, frozen=True, kw_only=True):
    """Base of requests to build an index; for the fields see `pexeso.options.BuildOptions`.

    `lake` is a folder of tables, a table, a URL, or the name of a Spark table or database.
    """

    lake: str
    preset: Annotated[
        Literal[PRESETS] | None,  # type: ignore[valid-type]
        option(
            "published: build as in the PEXESO paper, with a fastText model, the mean "
            "of unit word vectors, pivots, a grid with levels by the cost model, and 10 "
            "partitions or more. Options that contradict it are refused.",
            group=MODEL,
        ),
    ] = None
    model: Annotated[
        str,
        option(
            "lexical or hashing (spelling and rare words; sparse, or dense vectors; no training), "
            "fasttext (trained on the lake), a fastText .bin file, a file of word vectors (.txt, "
            ".vec), or sentence:NAME. Separate several by commas: a search uses the first, or the "
            "one that it names.",
            group=MODEL,
            metavar="MODEL,...",
            is_repeated=True,
        ),
    ] = BuildOptions.model
    dimensions: Dimensions = None
    value_vectors: ValueVectors = None
    vector_precision: str = BuildOptions.vector_precision
    metric: Annotated[
        Literal[METRICS],  # type: ignore[valid-type]
        option("Distance of vectors.", group=MODEL, expert=True),
    ] = BuildOptions.metric  # type: ignore[assignment]
    map: str = BuildOptions.map
    n_axes: int | None = BuildOptions.n_axes
    cells: str = BuildOptions.cells
    n_pivots: int = BuildOptions.n_pivots
    n_levels: int | None = BuildOptions.n_levels
    pivot_choice: str = BuildOptions.pivot_choice
    n_partitions: int | None = None
    min_partitions: int = BuildOptions.min_partitions
    partition_bytes: Annotated[
        int,
        option(
            "Maximum size of a partition. A search holds one partition in memory at a time.",
            group=STORED,
            is_size=True,
            default="1GiB",
            expert=True,
        ),
    ] = BuildOptions.partition_bytes
    rules: Annotated[
        ColumnRules,
        option(
            "Leave out tables and columns beyond a limit: min_rows=5, min_distinct=2, "
            "max_missing_fraction=1, max_median_tokens=12 (words of a value), or "
            "max_number_fraction=0.5, above which a column is one of numbers. May be repeated.",
            "--column-rule",
            group=COLUMNS,
            metavar="NAME=N",
        ),
    ] = msgspec.field(default_factory=ColumnRules)
    normaliser: Annotated[
        Normaliser,
        option(
            "Switch a rule for normalising values on, such as articles, or off, such as "
            "no-opponents; pexeso rules lists them. May be repeated.",
            "--rule",
            group=VALUES_READ,
            metavar="[no-]NAME",
        ),
    ] = msgspec.field(default_factory=Normaliser)
    aliases: Annotated[
        str | None,
        option(
            "A table with two columns, an alias and the value that it means. Both count as the "
            "same value.",
            group=VALUES_READ,
            metavar="FILE",
        ),
    ] = None
    as_of: Annotated[
        str | None,
        option(
            "Read Delta and Iceberg tables as of a time, such as 2024-06-01T12:00:00Z, or of a "
            "version or snapshot number.",
            group=COLUMNS,
            metavar="TIME",
        ),
    ] = None
    max_table_bytes: Annotated[
        int,
        option(
            "Leave out larger files; one task reads a whole table.",
            group=COLUMNS,
            is_size=True,
            default="1GiB",
        ),
    ] = BuildOptions.max_table_bytes
    values: Annotated[
        Literal[VALUE_FORMS],  # type: ignore[valid-type]
        option(
            "Store texts, or hashes with the key in PEXESO_KEY, for equal values alone.",
            group=STORED,
            expert=True,
        ),
    ] = BuildOptions.values  # type: ignore[assignment]
    parts: Annotated[
        tuple[str, ...],
        option(
            f"Further parts, of {', '.join(choices())}: overlap and containment for pexeso "
            "search --method, bands for their signatures, composite for keys of several "
            "columns, redundancy for pexeso redundancy.",
            "--include",
            group=STORED,
            metavar="PART,...",
        ),
    ] = ()
    row_filters: tuple[str, ...] = BuildOptions.row_filters
    seed: Annotated[int, option("Random seed.", group=STORED, metavar="N", expert=True)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.chosen(BuildOptions.__dataclass_fields__)
        with_preset(given, self.preset)
        BuildOptions(**given)

    @classmethod
    def completed(cls, given: dict[str, Any]) -> dict[str, Any]:
        return with_preset(given, given.get("preset"))

    def build_options(self) -> BuildOptions:
        return BuildOptions(**self.chosen(BuildOptions.__dataclass_fields__))


class BuildRequest(LakeRequest, frozen=True, kw_only=True):
    """Build an index of a lake; `overwrite` replaces an index that exists."""

    verb: ClassVar[str] = "build"

    index: str
    overwrite: Annotated[
        bool,
        option("Replace an existing index. It serves until the new one is complete.", group=STORED),
    ] = False
    engine: Engine = "auto"
    master: Master = None
    conf: Conf = msgspec.field(default_factory=dict)


class EstimateRequest(LakeRequest, frozen=True, kw_only=True):
    """Estimate what a build of a lake, a folder or one table, with the same options will cost."""

    verb: ClassVar[str] = "estimate"


class WritingRequest(SparkRequest, frozen=True, kw_only=True):
    """Base of requests that update an index."""

    engine: Engine = "auto"


class AppendRequest(WritingRequest, frozen=True, kw_only=True):
    """Add the tables of a lake that are new or have changed; see `pexeso.build.updates.append`."""

    verb: ClassVar[str] = "append"

    lake: str | None = None
    delete_missing: Annotated[
        bool, option("Delete the tables whose files are gone from the lake.")
    ] = False
    compare: Annotated[
        Literal["modified", "content"],
        option(
            "Recognise changed files by their size and time of change, or by their content, which "
            "is then read."
        ),
    ] = "modified"


class CompactRequest(WritingRequest, frozen=True, kw_only=True):
    """Merge small partitions and purge deleted columns; `everything`: repartition all columns."""

    verb: ClassVar[str] = "compact"

    everything: Annotated[bool, option("Repartition all columns.", "--all")] = False


class AddPartsRequest(WritingRequest, frozen=True, kw_only=True):
    """Add parts, of `pexeso.registry.choices`, to an index that exists."""

    verb: ClassVar[str] = "add_parts"

    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_parts(self.parts)


class AddModelRequest(WritingRequest, frozen=True, kw_only=True):
    """Add a model to an index that exists; see `pexeso.build.updates.add_model`."""

    verb: ClassVar[str] = "add_model"

    model: str
    dimensions: Dimensions = None
    value_vectors: ValueVectors = None

    def __post_init__(self) -> None:
        super().__post_init__()
        BuildOptions(model=self.model, dimensions=self.dimensions, value_vectors=self.value_vectors)


class DeleteRequest(IndexRequest, frozen=True, kw_only=True):
    """Delete tables, by the names that searches give, from an index."""

    verb: ClassVar[str] = "delete"

    tables: tuple[str, ...]
