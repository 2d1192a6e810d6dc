"""What answers for one snapshot of an index, by one of its models."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pexeso.errors import InputError
from pexeso.joins.match_details import MatchDetails
from pexeso.results.pages.renderer import HtmlRenderer
from pexeso.runtime.formatting import shown
from pexeso.semantic.answers.semantic_search import SemanticSearch
from pexeso.semantic.open_index import OpenIndex
from pexeso.semantic.thresholds.thresholds import Thresholds

if TYPE_CHECKING:
    from pexeso.acquisition.searches import AcquisitionSearches
    from pexeso.composite.lake.searches import CompositeSearches
    from pexeso.joins.graph.graphs import EdgeStream
    from pexeso.joins.graph.options import GraphOptions
    from pexeso.runtime.progress import CountedProgress
    from pexeso.semantic.executor import Executor
    from pexeso.sets.search.searches import TokenSearches
    from pexeso.transform.search.searches import TransformSearches


@dataclass(frozen=True)
class Answering:
    """What answers for one snapshot; replaced as a whole, so that no call sees two of them."""

    opened: OpenIndex
    thresholds: Thresholds
    semantic: SemanticSearch
    _by_model: dict[str, Answering] = field(default_factory=dict)

    @classmethod
    def of(cls, opened: OpenIndex, executor: Executor) -> Answering:
        """Return what answers for a snapshot."""
        thresholds = Thresholds(opened)
        semantic = SemanticSearch(opened, executor, thresholds, HtmlRenderer(), MatchDetails)
        return cls(opened, thresholds, semantic)

    def require_known(self, table: str | None) -> None:
        """Refuse a table that a search was to leave out, and that the index does not know.

        To be called after the search, which has mapped the names of columns: the catalog, which
        has tables without columns too, takes as long to read as a small lake to search.
        """
        if table is None or self._has_columns(table):
            return
        catalog = self.opened.catalog
        if not catalog.tables(["table"], among=pa.array([table])).num_rows:
            raise InputError(f"exclude_table: {catalog.why_unknown(table, self.opened.lake)}")

    def _has_columns(self, table: str) -> bool:
        loader = self.opened.loader
        if getattr(self.semantic.executor, "spark", None) is not None:
            return False  # tasks have mapped the names, not this process
        store = loader.store
        for number in range(store.n_partitions):
            has = pc.equal(loader.names(number).sound_tables, table).to_numpy(zero_copy_only=False)
            deleted = store.deleted_mask(number)
            if (has if deleted is None else has & ~deleted).any():
                return True
        return False

    @cached_property
    def equal_text(self) -> TokenSearches:
        """What searches by equal values; loaded when it is first asked."""
        from pexeso.sets.search.searches import TokenSearches

        return TokenSearches(self.opened)

    @cached_property
    def composite(self) -> CompositeSearches:
        """What searches by composite keys; loaded when it is first asked."""
        from pexeso.composite.lake.searches import CompositeSearches

        return CompositeSearches(self.opened, self.semantic.executor)

    @cached_property
    def transform(self) -> TransformSearches:
        """What searches for columns that join after a program; loaded when it is first asked."""
        from pexeso.transform.search.searches import TransformSearches

        return TransformSearches(self.opened)

    @cached_property
    def acquisition(self) -> AcquisitionSearches:
        """What finds tables to buy; loaded when it is first asked."""
        from pexeso.acquisition.searches import AcquisitionSearches

        return AcquisitionSearches(self.opened)

    def stream_graph(
        self,
        options: GraphOptions,
        *,
        passes: int = 1,
        progress: CountedProgress | None = None,
    ) -> EdgeStream:
        """Begin to find all pairs of columns that join; see `pexeso.joins.graph.graphs`."""
        from pexeso.joins.graph.graphs import stream_edges

        executor, edges_on = self.semantic.executor, None
        if (spark := getattr(executor, "spark", None)) is not None:
            from pexeso.joins.graph.spark_tasks import edges_on_spark

            edges_on = edges_on_spark(spark)
        return stream_edges(
            self.opened, options, executor, passes=passes, edges_on=edges_on, progress=progress
        )

    def by_model(self, model: str) -> Answering:
        """Return what answers by a model, which is kept with what it learns.

        Raises
        ------
        InputError
            The index does not hold the model.
        """
        if not isinstance(model, str):
            raise InputError(f"A model is named by a text, such as 'hashing'. Got {shown(model)}.")
        if model not in self._by_model:
            opened = OpenIndex(self.opened.whole, replace(self.opened.options, model=model))
            opened.loader  # noqa: B018  a model, device or kernel that is not there is refused here
            self._by_model[model] = Answering.of(opened, self.semantic.executor)
        return self._by_model[model]
