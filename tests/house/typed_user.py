"""A program as a user writes it, for the type checkers alone: it is never run.

What each call gives is asserted, so that a name that becomes `Any` is an error.
"""

from pathlib import Path
from typing import Any, assert_type

import pexeso
from pexeso.build.diagnostics.info import IndexInfo
from pexeso.composite.key_explanation import KeyExplanation
from pexeso.composite.results import CompositeResult
from pexeso.index import AnySearchResult
from pexeso.results.match_kinds import KindCounts
from pexeso.results.matches import Explanation
from pexeso.semantic.thresholds.advice import Advice
from pexeso.store.integrity import Problem


def build(folder: Path) -> pexeso.Index:
    rules = pexeso.ColumnRules(min_distinct=2)
    index = pexeso.build_index(folder, folder / "lake.pexeso", rules=rules)
    assert_type(index, pexeso.Index)
    assert_type(pexeso.open_index("lake.pexeso"), pexeso.Index)
    assert_type(index.info(), IndexInfo)
    assert_type(index.check(), list[Problem])
    return index


def graph(index: pexeso.Index, folder: Path) -> None:
    column_graph = index.graph(k=3, min_joinability=0.9)
    assert_type(column_graph, pexeso.ColumnGraph)
    assert_type(column_graph.to_mermaid(), str)
    assert_type(column_graph.to_graphml(folder / "joins.graphml"), Path)


def search(index: pexeso.Index, method: str) -> list[str]:
    result = index.search(["Oslo", "Rome"], k=3, max_distance=0.3)
    assert_type(result, pexeso.SearchResult)
    assert_type(result[0], pexeso.Match)
    assert_type(result[0].joinability, float)
    assert_type(result[0].kinds(), KindCounts)
    assert_type(result[0].similarity, float | None)
    assert_type(result.to_dict(), dict[str, Any])
    assert_type(index.search_batch([["Oslo"], ["Rome"]]), list[pexeso.SearchResult])
    assert_type(index.search(["1"], method="overlap"), pexeso.TokenSearchResult)
    assert_type(index.search(["1"], method="containment"), pexeso.TokenSearchResult)
    assert_type(index.search(["1"], method="transform"), pexeso.TransformSearchResult)
    assert_type(index.search(["1"], method="all"), pexeso.CombinedResult)
    assert_type(index.search(["1"], method=method), AnySearchResult)
    assert_type(index.overlap([1, 2], k="all"), pexeso.TokenSearchResult)
    assert_type(index.contain([1, 2], min_containment=0.9), pexeso.TokenSearchResult)
    assert_type(index.explain(["Oslo"], "cities.csv", "city"), Explanation)
    assert_type(index.advise(["Oslo"]), Advice)
    for match in result:
        assert_type(match, pexeso.Match)
        for copy in match.copies:
            assert_type(copy, Any)
    return [match.table for match in result]


def keys(index: pexeso.Index) -> None:
    table = {"country": ["NO", "IT"], "year": [2001, 2002]}
    assert_type(pexeso.find_keys(table), pexeso.FoundKeys)
    assert_type(index.search_composite(table, ["country", "year"]), CompositeResult)
    explained = index.explain_composite(table, ["country", "year"], "games.csv")
    assert_type(explained, KeyExplanation)


def further(index: pexeso.Index, folder: Path) -> None:
    assert_type(pexeso.search_combined(index, ["Oslo"]), pexeso.CombinedResult)
    assert_type(pexeso.learn_transformation("a.csv", "b.csv"), pexeso.TransformJoin)
    assert_type(pexeso.find_redundancy(folder), pexeso.Redundancy)
    assert_type(pexeso.read_judgements(folder).rows, tuple[pexeso.Judgement, ...])
    assert_type(pexeso.enrich(index, {"city": ["Oslo"]}, "city"), pexeso.Enrichment)
    try:
        pexeso.open_index(folder)
    except pexeso.IndexNotFoundError as error:
        assert_type(error, pexeso.IndexNotFoundError)
        raise
