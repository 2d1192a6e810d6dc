"""Every result is shown in a few lines, whatever its names and cells hold."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

import pexeso
from pexeso.acquisition.results import AcquisitionPlan, AcquisitionResult, PlanJoin, PlanTable
from pexeso.build.diagnostics.info import IndexInfo, ReasonListing
from pexeso.build.report import Update
from pexeso.build.updates import Added
from pexeso.composite.key_explanation import JoinedRows, KeyExplanation, PartOverlap
from pexeso.composite.results import CompositeMatch, CompositeResult, FanOut
from pexeso.contracts import DeclaredJoin, JoinCheck, JoinChecks
from pexeso.index import Index
from pexeso.joins.enrichment.enrich import Enrichment
from pexeso.joins.enrichment.feature_selection import FeatureChoice
from pexeso.joins.enrichment.gathering import AddedColumn, EnrichmentRules
from pexeso.joins.exports.files import EDGES
from pexeso.joins.graph.graphs import ColumnGraph, EdgeStream
from pexeso.joins.report import CONFLICTS, JoinReport
from pexeso.joins.sql import JoinSql
from pexeso.joins.tables import Joined
from pexeso.lake.left_out import ReasonGroup
from pexeso.redundancy.plan import Applied, Deletion, Plan, Refusal
from pexeso.redundancy.plan_actions import PlanCheck
from pexeso.redundancy.search import Redundancy
from pexeso.results.column_matches import Hints, NearColumn
from pexeso.results.match_kinds import KindCounts, Pair
from pexeso.results.matches import Explanation, Match, SearchResult, Unmatched
from pexeso.runtime.formatting import MAX_ROWS, Shown
from pexeso.semantic.combined import CombinedMatch, CombinedResult
from pexeso.semantic.thresholds.advice import Advice
from pexeso.semantic.word_contributions import ContributingWord, WordContributions
from pexeso.sets.results import TokenMatch, TokenSearchResult
from pexeso.transform.search.results import TransformMatch, TransformSearchResult
from tests.lake.frames.test_shown_results import HOSTILE, TAGS, Reader

MANY = 50
TOKEN_FIELDS = ("table", "column", "overlap")
H = HOSTILE + "\n\x00\u202e" + "x" * 5000
COPIES = pa.table({"table": [H]})


def details():
    pairs = [Pair(H, H, 0.1, H, "meaning")] * MANY
    return SimpleNamespace(pairs=lambda position, limit=None: pairs)


def semantic():
    return Match(H, H, 0.75, 3, 4, 0, details(), 0)


def token():
    return TokenMatch(H, H, 3, 0.75, 9, (None, 0), list)


def learned():
    source = {H: [f"{H}-{n}" for n in range(MANY)]}
    target = {H + "2": [f"{H} {n}".upper() for n in range(MANY)]}
    return pexeso.learn_transformation(source, target)


def transform():
    return TransformMatch(H, H, 3, 4, 0, learned())


def composite():
    fan_out = FanOut("N:M", 9, 1.5, 1.5, 3, 3)
    return CompositeMatch(H, (H, H), 3, 4, 0.75, 3, 3, fan_out, (H,), None, (H, H))


def plan():
    table, join = PlanTable(H, (H,), H, 1.0), PlanJoin(H, (H,), H, (H,), 0.1, 3, 1, 1)
    want = ((H, H),)
    numbers = (1.0, 0.5, 1.0, 0.1, 9, True, 0.0)
    return AcquisitionPlan((table,) * 6, (table,), (join,) * 6, want, want, *numbers)


def deletions():
    gone = Deletion(H, H, H, 9, 9, 1.0, None, (H,), H, H, True)
    return Plan(H, H, {}, 1.0, 2.0, True, 0.0, (gone,) * MANY, (H,) * MANY)


def group():
    return ReasonGroup("tables", H, MANY, (H, H))


def listing():
    reasons = object.__new__(ReasonListing)
    reasons.groups = (group(),) * MANY
    return reasons


def info():
    parts, counts = {H: 1, "partitions": [H] * MANY}, (1, 2, 3, 4, 5)
    return IndexInfo(H, H, H, H, *counts, [H], 6, (group(),) * MANY, 7, of_parts=parts)


def edges(n=MANY):
    cells = {pa.bool_(): True, pa.float64(): 0.5, pa.int64(): 3}
    columns = [pa.array([cells.get(field.type)] * n, field.type) for field in EDGES]
    for at in range(4):
        columns[at] = pa.array([f"{row % (5 + at)}{H}" for row in range(n)], pa.large_string())
    return pa.Table.from_arrays(columns, schema=EDGES)


def index():
    """Return an index that has what is shown of it alone."""
    shown = object.__new__(type("Index", (Index,), {**_facts_of_an_index()}))
    return shown


def _facts_of_an_index():
    facts = SimpleNamespace(manifest=SimpleNamespace(facts={"values": 9}), n_partitions=1)
    names = {"models": [H], "parts": [H], "lake": f"/home/someone/{H}"}
    return {"store": facts, "path": "lake.pexeso", **names}


def explained_keys():
    part = PartOverlap(*[H] * len(PartOverlap.__dataclass_fields__))
    sample = JoinedRows(*[()] * len(JoinedRows.__dataclass_fields__))
    return KeyExplanation({}, H, (H, H), True, 3, 4, (part,) * MANY, (), None, (), True, sample)


def explained():
    result = Explanation({}, None, semantic())
    vars(result)["unmatched"] = (Unmatched(H, H),) * MANY
    return result


def added_column():
    fields = AddedColumn.__dataclass_fields__.values()
    return AddedColumn(*[0.5 if field.type == "float" else H for field in fields])


def conflicts():
    return CONFLICTS.empty_table()


PICTURED = {"ColumnGraph"}
OF_PICTURES = {"style", "figure", "figcaption", "svg", "g", "title", "path", "rect", "text"}
ATTRIBUTES = {
    "class", "role", "aria-label", "width", "height", "viewbox", "d", "x", "y", "rx",
}  # fmt: skip

RESULTS = {
    "AcquisitionPlan": plan,
    "AcquisitionResult": lambda: AcquisitionResult({"have": [H], "want": [H]}, {}, (plan(),), H),
    "Added": lambda: Added(1, True, (H,), of_parts={H: 3}),
    "Advice": lambda: Advice(0.3, 0.5, H, {H: H, "all": [H] * MANY}),
    "Applied": lambda: Applied(H, H, (H,) * MANY, (H,), (Refusal(H, H),) * MANY),
    "CandidateKey": lambda: pexeso.find_keys({H: [str(n) for n in range(MANY)]}).keys[0],
    "Clusters": lambda: pexeso.cluster([f"{H} {end}" for end in ("one", "two", "one two")]),
    "ColumnGraph": lambda: ColumnGraph({}, 9, 0, edges(), COPIES),
    "CombinedMatch": lambda: CombinedMatch(H, H, ("meaning",), semantic(), token()),
    "CombinedResult": lambda: CombinedResult({}, {}, (RESULTS["CombinedMatch"](),) * MANY, {}),
    "CompositeMatch": composite,
    "CompositeResult": lambda: CompositeResult({}, {}, (composite(),) * MANY, {}),
    "EdgeStream": lambda: EdgeStream({H: H}, 9, COPIES, ()),
    "Enrichment": lambda: Enrichment(
        [H], H, H, (added_column(),) * MANY, (), (), EnrichmentRules()
    ),
    "Explanation": explained,
    "FeatureChoice": lambda: FeatureChoice(H, "regression", 9, (H,), {H: 1.0}, (H,), {}, {}, {}),
    "FoundKeys": lambda: pexeso.find_keys({H: [str(n) for n in range(MANY)]}),
    "Hints": lambda: Hints((NearColumn(H, H, 0.5, 1, 2),) * 3, (group(),)),
    "Index": index,
    "IndexInfo": info,
    "JoinChecks": lambda: JoinChecks(H, (JoinCheck(DeclaredJoin(H, H), None, (H,)),) * MANY),
    "JoinReport": lambda: JoinReport(9, 8, 7, H, conflicts=conflicts(), counts={"shared": 3}),
    "JoinSql": lambda: JoinSql(H * MANY, {H: H}, H, H, [(H, None)] * MANY),
    "Joined": lambda: Joined(pa.table({H: [H] * MANY}), None),
    "KeyExplanation": explained_keys,
    "KindCounts": lambda: KindCounts({"exact": 1}, {"exact": 1}),
    "Match": semantic,
    "Plan": deletions,
    "PlanCheck": lambda: PlanCheck(H, (H,) * MANY, (Refusal(H, H),) * MANY),
    "ReasonListing": listing,
    "Redundancy": lambda: Redundancy(SimpleNamespace(tables=(), edges=()), deletions(), {H: H}),
    "SearchResult": lambda: SearchResult({}, None, (semantic(),) * MANY, None, None),
    "TokenMatch": token,
    "TokenSearchResult": lambda: TokenSearchResult({}, {}, (token(),) * MANY, TOKEN_FIELDS, {}),
    "TransformJoin": learned,
    "TransformMatch": transform,
    "TransformSearchResult": lambda: TransformSearchResult({}, {}, (transform(),), {}),
    "Update": lambda: Update(1, True, left_out=(group(),), of_parts={H: 3}),
    "WordContributions": lambda: WordContributions(
        (ContributingWord(H, H, 0.5, 3),) * MANY, MANY, 9, 9
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_results_are_shown_short_and_escaped(name):
    result = RESULTS[name]()
    assert type(result).__name__ == name
    printed, page = repr(result), result._repr_html_()
    assert printed.startswith(f"{name}(")
    assert printed.isprintable()
    assert len(printed) < 500
    reader = Reader(page)
    if name in PICTURED:
        assert set(reader.tags) <= {*TAGS, *OF_PICTURES}
        assert {key for key, _ in reader.attributes} <= ATTRIBUTES
    else:
        assert set(reader.tags) <= {*TAGS, "p"}
        assert reader.attributes == []
    assert reader.tags.count("tr") <= MAX_ROWS + 1
    assert len(page) < (80_000 if name in PICTURED else 40_000)
    assert "\x00" not in page
    assert "\u202e" not in page


def test_every_kind_of_result_is_among_them():
    """Whatever is shown by `Shown` is tried above, or stands above what is."""

    def below(cls):
        return [cls, *(kind for sub in cls.__subclasses__() for kind in below(sub))]

    ours = {kind.__name__ for kind in below(Shown) if kind.__module__.startswith("pexeso.")}
    bases = {
        "Shown",
        "ShownMatch",
        "AsTables",
        "Tabular",
        "Matches",
        "ColumnMatch",
        "ColumnMatches",
        "OfParts",
        "Estimate",
    }
    assert ours - bases <= set(RESULTS)


def test_an_index_shows_no_path_of_its_lake():
    assert "someone" not in index()._repr_html_()
    assert "someone" not in repr(index())
