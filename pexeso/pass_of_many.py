"""Several query columns that ask alike, through all partitions: each distinct value of theirs is compared once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from pexeso.batching import Batch
from pexeso.engine.batch import vectors_of
from pexeso.engine.partition import Partition
from pexeso.engine.search import BatchQuery, search_batch_partition
from pexeso.engine.stats import SearchStats
from pexeso.engine.summary import Outlook
from pexeso.options import SearchOptions
from pexeso.passes import Looked, Pass, goal_of, left_out_columns
from pexeso.prepared import PreparedQuery
from pexeso.ranking import Hit, Ranking
from pexeso.scanning import PartitionScan


class PassOfMany(Pass):
    """Query columns that ask alike: each distinct value of theirs is compared once.

    Parameters
    ----------
    scan : PartitionScan
    batch : Batch
    queries, options
        Of all query columns; those of the batch are taken.
    """

    def __init__(
        self,
        scan: PartitionScan,
        batch: Batch,
        queries: Sequence[PreparedQuery],
        options: Sequence[SearchOptions],
    ) -> None:
        super().__init__(scan)
        self._batch = batch
        self._options = [options[place] for place in batch.places]
        self._weights = [queries[place].weights for place in batch.places]
        self._totals = [queries[place].total(options[place].ignore_missing) for place in batch.places]
        self._rankings = [Ranking(each.k) for each in self._options]
        self._shared, self._skipped = SearchStats(), [0] * len(batch.places)
        self._looks = scan.store.n_partitions > 1
        self._ones = torch.ones(len(batch.vectors), dtype=torch.int64)

    @property
    def n_values(self) -> int:
        """Distinct query values."""
        return len(self._batch.vectors)

    @property
    def ranks(self) -> bool:
        """Whether only the best columns of all partitions are wanted."""
        return self._looks and any(each.k is not None for each in self._options)

    def look(self, number: int) -> Looked | None:
        """Look at the summary of a partition; None where no column of it can be found."""
        if not self._looks:
            return Looked()
        outlook = self._outlook(number, self._batch.vectors, self._ones, 0, self._options[0])
        looked = Looked(outlook, self._most(outlook))
        if not self._wanted(looked):
            self._skipped = [n + 1 for n in self._skipped]
            return None
        return looked

    def promise(self, number: int) -> tuple[int, int]:
        """Give query rows that may match something, and boxes that they are near to."""
        outlook = self._outlook(number, self._batch.vectors, self._ones, 0, self._options[0], keep=True)
        return sum(self._most(outlook)), 0 if outlook.boxes is None else int(outlook.boxes.sum())

    def search(self, number: int, partition: Partition, looked: Looked) -> None:
        """Search a partition for the query columns that what was found since does not rule out."""
        wanted = self._wanted(looked)
        for place in set(range(len(self._weights))) - set(wanted):
            self._skipped[place] += 1
        if not wanted:
            return
        vectors, asked = self._asked(wanted, looked)
        goal = goal_of(0, self._options[0], 0)
        answers = search_batch_partition(
            partition,
            vectors,
            asked,
            goal.max_distance,
            self._shared,
            lemmas=goal.lemmas,
            kernel=self._scan.kernel,
            max_pairs=self._scan.max_pairs(number),
        )
        for place, (columns, counts) in zip(wanted, answers, strict=True):
            left_out = left_out_columns(self._scan, number, self._options[place].exclude_table)
            if left_out is not None:
                kept = ~left_out[columns]
                columns, counts = columns[kept], counts[kept]
            self._rankings[place].add(number, self._scan.names(number), columns.numpy(), counts.numpy())

    def results(self) -> Iterator[tuple[int, tuple[list[Hit], SearchStats]]]:
        """Give the query columns' places, and what was found for each; counters of the pass as a whole."""
        self._shared.add(self._ahead)
        for place, ranking, skipped in zip(self._batch.places, self._rankings, self._skipped, strict=True):
            stats = replace(self._shared, seconds=dict(self._shared.seconds), partitions_skipped=skipped)
            yield place, (ranking.hits(), stats)

    def _needed(self, place: int) -> int:
        return goal_of(self._totals[place], self._options[place], self._rankings[place].floor).min_count

    def _most(self, outlook: Outlook) -> tuple[int, ...]:
        reaching = outlook.reaching(len(self._batch.vectors))
        members = self._batch.members
        return tuple(int(weights[reaching[own]].sum()) for own, weights in zip(members, self._weights, strict=True))

    def _wanted(self, looked: Looked) -> list[int]:
        """Give the query columns that cannot skip the partition."""
        places = range(len(self._weights))
        if not looked.most:
            return list(places)
        return [place for place in places if looked.most[place] >= self._needed(place)]

    def _asked(self, wanted: list[int], looked: Looked) -> tuple[torch.Tensor, list[BatchQuery]]:
        """Give the values of some query columns that may match something, and the query columns over them."""
        asked = [BatchQuery(self._batch.members[place], self._weights[place], self._needed(place)) for place in wanted]
        if looked.outlook is None:
            return self._batch.vectors, asked
        reaching = looked.outlook.reaching(len(self._batch.vectors))
        if bool(reaching.all()) and len(wanted) == len(self._weights):
            return self._batch.vectors, asked
        kept = [reaching[each.members] for each in asked]
        asked = [
            replace(each, members=each.members[some], weights=each.weights[some])
            for each, some in zip(asked, kept, strict=True)
        ]
        return vectors_of(self._batch.vectors, asked)
