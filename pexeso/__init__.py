"""Exact join search for data lakes: find every column that a query column can be joined with.

Columns are joined by similar values.

The public names are imported when they are first used, so that `import pexeso` is quick and needs
none of the heavy packages: an index is searched without Spark and Java, a result is read without
torch.

Examples
--------
>>> import pexeso
>>> "build_index" in dir(pexeso), issubclass(pexeso.IndexNotFoundError, pexeso.PexesoError)
(True, True)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pexeso.errors import (
    BuildError,
    ColumnNotFoundError,
    DeviceError,
    EmbedderError,
    IndexCorruptError,
    IndexNotFoundError,
    IndexVersionError,
    InputError,
    LakeError,
    MissingPackageError,
    OutputError,
    PexesoError,
    PlaceError,
    QueryError,
    SparkError,
    StoredIndexError,
    TableReadError,
)

if TYPE_CHECKING:
    from pexeso.acquisition.results import AcquisitionPlan, AcquisitionResult
    from pexeso.clusters import Cluster, Clusters, cluster
    from pexeso.composite.candidate_keys import CandidateKey, FoundKeys, find_keys
    from pexeso.contracts import JoinChecks, record_join, verify
    from pexeso.index import Index, build_index, open_index
    from pexeso.joins.enrichment.enrich import Enrichment, enrich, enrich_from
    from pexeso.joins.enrichment.feature_selection import FeatureChoice, select_features
    from pexeso.joins.graph.graphs import ColumnGraph
    from pexeso.lake.choose import ColumnRules
    from pexeso.lake.judgements import Judgement, read_judgements, record_judgements
    from pexeso.lake.normalise.normaliser import Normaliser
    from pexeso.lake.readers.options import ReadingOptions
    from pexeso.redundancy.holding import undo_plan
    from pexeso.redundancy.plan_actions import PlanCheck, apply_plan, verify_plan
    from pexeso.redundancy.search import Redundancy, find_redundancy
    from pexeso.results.matches import Match, SearchResult
    from pexeso.runtime.progress import set_verbosity
    from pexeso.semantic.combined import CombinedMatch, CombinedResult, search_combined
    from pexeso.sets.results import TokenMatch, TokenSearchResult
    from pexeso.transform.joins.joined import TransformJoin
    from pexeso.transform.joins.learned import learn_transformation
    from pexeso.transform.search.results import TransformMatch, TransformSearchResult
    from pexeso.two_tables import fuzzy_join

__version__ = "0.2.0"

_HOMES = {
    "pexeso.acquisition.results": ("AcquisitionPlan", "AcquisitionResult"),
    "pexeso.clusters": ("Cluster", "Clusters", "cluster"),
    "pexeso.contracts": ("JoinChecks", "record_join", "verify"),
    "pexeso.redundancy.holding": ("undo_plan",),
    "pexeso.redundancy.plan_actions": ("PlanCheck", "apply_plan", "verify_plan"),
    "pexeso.redundancy.search": ("Redundancy", "find_redundancy"),
    "pexeso.composite.candidate_keys": ("CandidateKey", "FoundKeys", "find_keys"),
    "pexeso.joins.enrichment.enrich": ("Enrichment", "enrich", "enrich_from"),
    "pexeso.sets.results": ("TokenMatch", "TokenSearchResult"),
    "pexeso.semantic.combined": ("CombinedMatch", "CombinedResult", "search_combined"),
    "pexeso.joins.enrichment.feature_selection": ("FeatureChoice", "select_features"),
    "pexeso.index": ("Index", "build_index", "open_index"),
    "pexeso.lake.choose": ("ColumnRules",),
    "pexeso.lake.judgements": ("Judgement", "read_judgements", "record_judgements"),
    "pexeso.lake.normalise.normaliser": ("Normaliser",),
    "pexeso.lake.readers.options": ("ReadingOptions",),
    "pexeso.joins.graph.graphs": ("ColumnGraph",),
    "pexeso.results.matches": ("Match", "SearchResult"),
    "pexeso.runtime.progress": ("set_verbosity",),
    "pexeso.transform.joins.joined": ("TransformJoin",),
    "pexeso.transform.joins.learned": ("learn_transformation",),
    "pexeso.transform.search.results": ("TransformMatch", "TransformSearchResult"),
    "pexeso.two_tables": ("fuzzy_join",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AcquisitionPlan",
    "AcquisitionResult",
    "BuildError",
    "CandidateKey",
    "Cluster",
    "Clusters",
    "ColumnGraph",
    "ColumnNotFoundError",
    "ColumnRules",
    "CombinedMatch",
    "CombinedResult",
    "DeviceError",
    "EmbedderError",
    "Enrichment",
    "FeatureChoice",
    "FoundKeys",
    "Index",
    "IndexCorruptError",
    "IndexNotFoundError",
    "IndexVersionError",
    "InputError",
    "JoinChecks",
    "Judgement",
    "LakeError",
    "Match",
    "MissingPackageError",
    "Normaliser",
    "OutputError",
    "PexesoError",
    "PlaceError",
    "PlanCheck",
    "QueryError",
    "ReadingOptions",
    "Redundancy",
    "SearchResult",
    "SparkError",
    "StoredIndexError",
    "TableReadError",
    "TokenMatch",
    "TokenSearchResult",
    "TransformJoin",
    "TransformMatch",
    "TransformSearchResult",
    "__version__",
    "apply_plan",
    "build_index",
    "cluster",
    "enrich",
    "enrich_from",
    "find_keys",
    "find_redundancy",
    "fuzzy_join",
    "learn_transformation",
    "open_index",
    "read_judgements",
    "record_join",
    "record_judgements",
    "search_combined",
    "select_features",
    "set_verbosity",
    "undo_plan",
    "verify",
    "verify_plan",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
