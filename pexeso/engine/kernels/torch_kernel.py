"""The kernel of tensor operations: any device, nothing compiled.

The other kernels are compared with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch

from pexeso.engine.arrays import (
    any_in_rows,
    expand_ranges,
    expand_ranges_in_chunks,
    offsets_of,
    run_lengths,
)
from pexeso.engine.blocks import FANOUT, STEPS, pad_axes
from pexeso.engine.kernel import (
    Counts,
    Groups,
    Kernel,
    Limits,
    Pairs,
    Query,
    merge_by_query,
)
from pexeso.engine.metrics import difference_band, distances
from pexeso.engine.partition import Partition
from pexeso.engine.stats import SearchStats
from pexeso.engine.vector_space import MATCHING_LEMMAS, Lemma

FRONTIER = 1 << 18  # (query value, box) pairs that are tested together
BOX_CHUNK_SIZE = 1 << 21  # corner coordinates: 8 MiB
CHUNK_SIZE = 1 << 20  # vector elements that are gathered together: few enough for a cache
PAIRS_CHUNK_SIZE = 1 << 18  # candidates; on the way each takes about 100 bytes


Couples = tuple[torch.Tensor, torch.Tensor]


class TorchKernel(Kernel):
    name = "torch"

    def candidates(self, query: Query, max_pairs: int, stats: SearchStats) -> Pairs | None:
        descent = Descent(query, stats)
        parts: list[Couples] = []
        n_found = 0
        for queries, blocks in descent.surviving_blocks():
            for near in descent.rows_of(queries, blocks):
                parts.append((near[0].int(), near[1].int()))
                n_found += len(near[0])
                if n_found > max_pairs:
                    return None
        stats.candidates += n_found
        return merge_by_query(parts, len(query), query.partition.device)

    def count(self, query: Query, pairs: Pairs, counts: Counts | None) -> Counts:
        partition = query.partition
        everyone = torch.arange(len(query), device=partition.device)
        if counts is None:
            zeros = torch.zeros(partition.n_columns, dtype=torch.int64, device=partition.device)
            counts = Counts(zeros, zeros.clone(), zeros[:0])
        for some, some_weights in _runs_of_members(pairs, everyone, query.weights):
            position, rows = _members_of(pairs, some)
            position, column = _distinct_columns(partition, position, _plain(rows))
            counts.possible.index_add_(0, column, some_weights[position])
            counts.touched = torch.unique(torch.cat([counts.touched, column]))
        return counts

    def verify(
        self,
        query: Query,
        pairs: Pairs,
        members: torch.Tensor,
        counts: Counts,
        limits: Limits,
        stats: SearchStats,
    ) -> None:
        """Decide pairs with a column that matters, and update the counts.

        Every (query value, column) pair without a match lowers the possible count.
        """
        partition = query.partition
        for some, weights in _runs_of_members(pairs, members, query.weights[members]):
            position, rows = _members_of(pairs, some)
            column_mask = (counts.possible >= limits.needed) & (counts.matched < limits.enough)
            mask = _in_wanted_column(partition, _plain(rows), column_mask)
            stats.pairs_skipped += len(rows) - int(mask.sum())
            hit = self._decide(query, some[position[mask]], rows[mask], stats)
            matched = _distinct_columns(partition, position[mask][hit], _plain(rows[mask][hit]))
            counts.matched.index_add_(0, matched[1], weights[matched[0]])
            every = _distinct_columns(partition, position, _plain(rows))
            counts.possible.index_add_(0, every[1], -weights[every[0]])
            counts.possible.index_add_(0, matched[1], weights[matched[0]])

    def matches(self, query: Query, pairs: Pairs, stats: SearchStats) -> Pairs:
        device = query.partition.device
        everyone = torch.arange(len(query), device=device)
        parts: list[Couples] = []
        for some, _ in _runs_of_members(pairs, everyone, everyone):
            position, rows = _members_of(pairs, some)
            hit = self._decide(query, some[position], rows, stats)
            parts.append((some[position[hit]].int(), _plain(rows[hit]).int()))
        return merge_by_query(parts, len(query), device)

    def count_batch(
        self, partition: Partition, matches: Pairs, groups: Groups
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Count distinct (member, column) pairs by sorting them.

        A bounded number of query columns is handled at a time.
        """
        device = partition.device
        sizes = groups.offsets[1:] - groups.offsets[:-1]
        owner = torch.repeat_interleave(torch.arange(len(sizes), device=device), sizes)
        parts: list[tuple[torch.Tensor, ...]] = []
        for begin, end in _runs_of_groups(groups, matches):
            members = slice(int(groups.offsets[begin]), int(groups.offsets[end]))
            keys, counts = self._count_members(
                partition, matches, groups.members[members], groups.weights[members], owner[members]
            )
            key, slot = torch.unique(keys, return_inverse=True)
            count = torch.zeros(len(key), dtype=torch.int64, device=device).index_add_(
                0, slot, counts
            )
            which = torch.div(key, max(1, partition.n_columns), rounding_mode="floor")
            mask = count >= groups.needed[which]
            parts.append((which[mask], (key - which * partition.n_columns)[mask], count[mask]))
        nothing = torch.zeros(0, dtype=torch.int64, device=device)
        which, column, count = (
            torch.cat(part) for part in zip((nothing,) * 3, *parts, strict=True)
        )
        return which, column, count

    def _count_members(
        self,
        partition: Partition,
        matches: Pairs,
        members: torch.Tensor,
        weights: torch.Tensor,
        owner: torch.Tensor,
    ) -> Couples:
        """Compute keys ``owner * C + column`` and the weights that members add, int64 each.

        A key may occur more than once.
        """
        parts: list[Couples] = [(members[:0], weights[:0])]
        begin = 0
        for some, some_weights in _runs_of_members(matches, members, weights):
            position, rows = _members_of(matches, some)
            position, column = _distinct_columns(partition, position, rows.long())
            keys = owner[begin : begin + len(some)][position] * partition.n_columns + column
            key, slot = torch.unique(keys, return_inverse=True)
            parts.append((key, torch.zeros_like(key).index_add_(0, slot, some_weights[position])))
            begin += len(some)
        keys, counts = (torch.cat(part) for part in zip(*parts, strict=True))
        return keys, counts

    def _decide(
        self, query: Query, queries: torch.Tensor, rows: torch.Tensor, stats: SearchStats
    ) -> torch.Tensor:
        partition, hit, tau = query.partition, rows < 0, query.threshold.tau
        band = difference_band(tau, partition.dimensions)
        chunk_size = max(1, CHUNK_SIZE // partition.dimensions)
        for part in torch.split(torch.nonzero(~hit)[:, 0], chunk_size):
            ours, theirs = query.vectors[queries[part]], partition.vectors[rows[part]].float()
            quick = (ours - theirs).square_().sum(1)
            stats.distances += len(part)
            stats.bytes_read += len(part) * partition.vector_bytes
            near = quick <= band.surely
            open_pairs = torch.nonzero(~near & (quick <= band.possibly))[:, 0]
            stats.defining_distances += len(open_pairs)
            near[open_pairs] = distances(ours[open_pairs], theirs[open_pairs]) <= tau
            hit[part] = near
        return hit


class Descent:
    def __init__(self, query: Query, stats: SearchStats) -> None:
        partition, threshold = query.partition, query.threshold
        self._blocks, self._map = partition.blocks, partition.map
        self._threshold, self._stats = threshold, stats
        self._points = pad_axes(query.mapped)
        self._accept = threshold.tau - threshold.slack
        upper, possible = partition.map.upper_points(query.mapped, self._accept)
        self._upper, self._possible = pad_axes(upper, partition.map.upper_fill), possible
        self._may_accept = bool(threshold.lemmas & MATCHING_LEMMAS) and bool(possible.any())

    def surviving_blocks(self) -> Iterator[Couples]:
        """Yield (query value, block) pairs that no box rules out (Lemmas 3 and 4)."""
        device, blocks = self._points.device, self._blocks
        first = torch.zeros(1, dtype=torch.int64, device=device)
        if not len(blocks) or not len(self._points):
            return
        every = torch.arange(len(self._points), device=device)
        box_elements = 2 * FANOUT * self._points.shape[1]
        chunk_size = max(1, min(FRONTIER // FANOUT, BOX_CHUNK_SIZE // box_elements))
        todo = [(0, (part, first.expand(len(part)))) for part in torch.split(every, chunk_size)]
        while todo:
            level, (queries, groups) = todo.pop()
            last = level + 1 == blocks.n_levels
            box = blocks.boxes[int(blocks.starts[level]) + groups]  # (p, A, 2, 16)
            self._stats.box_pairs += len(queries) * FANOUT
            self._stats.bytes_read += box.numel() * 4
            lower, upper = box[:, :, 0].transpose(1, 2), box[:, :, 1].transpose(1, 2)
            reach = self._threshold.reach(
                Lemma.VECTOR_CELL_FILTERING if last else Lemma.CELL_CELL_FILTERING
            )
            near = self._map.near_box(self._points[queries][:, None], lower, upper, reach)
            number = groups[:, None] * FANOUT + torch.arange(FANOUT, device=device)
            below = (
                len(blocks) if last else int(blocks.starts[level + 2] - blocks.starts[level + 1])
            )
            position, child = torch.nonzero(near & (number < below), as_tuple=True)
            queries, number = queries[position], number[position, child]
            if last:
                self._stats.candidate_pairs += len(queries)
                yield queries, number
                continue
            pieces = (torch.split(tensor, chunk_size) for tensor in (queries, number))
            todo += [(level + 1, piece) for piece in zip(*pieces, strict=True)]

    def rows_of(self, queries: torch.Tensor, numbers: torch.Tensor) -> Iterator[Couples]:
        """Yield (query value, row) pairs that mapped coordinates do not rule out (Lemma 1).

        The rows are those of the given blocks; rows that surely match are given as complements.
        """
        size, n_axes = self._blocks.size, self._points.shape[1]
        chunk_size = max(1, CHUNK_SIZE // (size * n_axes))
        for some, blocks in zip(
            torch.split(queries, chunk_size), torch.split(numbers, chunk_size), strict=True
        ):
            lower, upper = self._blocks.corners_of(blocks)
            if self._may_accept:
                sure = self._possible[some] & self._map.within_box(
                    self._upper[some], lower, upper, self._accept
                )
                yield self._all_rows(some[sure], blocks[sure])
                some, blocks, lower, upper = (
                    tensor[~sure] for tensor in (some, blocks, lower, upper)
                )
            codes = self._blocks.codes[blocks].transpose(1, 2).float()  # (p, B, A)
            step = ((upper - lower) / STEPS)[:, None]
            corner = lower[:, None] + codes * step
            reach = self._threshold.reach(Lemma.PIVOT_FILTERING)
            near = self._map.near_box(self._points[some][:, None], corner, corner + step, reach)
            rows = blocks[:, None] * size + torch.arange(size, device=blocks.device)
            near &= rows < self._blocks.n_rows
            self._stats.vectors_touched += int((rows < self._blocks.n_rows).sum())
            self._stats.bytes_read += codes.numel()
            position, row = torch.nonzero(near, as_tuple=True)
            yield some[position], rows[position, row]

    def _all_rows(self, queries: torch.Tensor, blocks: torch.Tensor) -> Couples:
        rows = blocks[:, None] * self._blocks.size + torch.arange(
            self._blocks.size, device=blocks.device
        )
        position, row = torch.nonzero(rows < self._blocks.n_rows, as_tuple=True)
        self._stats.matched_by_map += len(position)
        return queries[position], ~rows[position, row]


def _runs_of_members(
    pairs: Pairs, members: torch.Tensor, weights: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Cut members and their weights into runs of about as many pairs as are looked at together."""
    lengths = (
        [len(members)]
        if len(pairs) <= PAIRS_CHUNK_SIZE
        else run_lengths(pairs.sizes[members], PAIRS_CHUNK_SIZE)
    )
    return zip(torch.split(members, lengths), torch.split(weights, lengths), strict=True)


def _members_of(pairs: Pairs, members: torch.Tensor) -> Couples:
    """Return the pairs of some query values as positions in `members` and rows, int64 (p,) each."""
    position, pair = expand_ranges(pairs.offsets[members], pairs.sizes[members])
    return position, pairs.rows[pair].long()


def _plain(rows: torch.Tensor) -> torch.Tensor:
    return torch.where(rows < 0, ~rows, rows)


def _distinct_columns(partition: Partition, position: torch.Tensor, rows: torch.Tensor) -> Couples:
    csr, n_columns = partition.value_columns, partition.n_columns
    keys = [torch.zeros(0, dtype=torch.int64, device=partition.device)]
    for owner, posting in expand_ranges_in_chunks(
        csr.offsets[rows], csr.sizes_of(rows), CHUNK_SIZE
    ):
        keys.append(torch.unique(position[owner] * n_columns + csr.members[posting].long()))
    key = torch.unique(torch.cat(keys)) if len(keys) > 2 else keys[-1]
    column = key % max(1, n_columns)
    return torch.div(key - column, max(1, n_columns), rounding_mode="floor"), column


def _in_wanted_column(
    partition: Partition, rows: torch.Tensor, column_mask: torch.Tensor
) -> torch.Tensor:
    csr = partition.value_columns
    row_mask = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
    if len(rows) > len(csr.members):
        return any_in_rows(column_mask[csr.members.long()], csr.offsets)[rows]
    for owner, posting in expand_ranges_in_chunks(
        csr.offsets[rows], csr.sizes_of(rows), CHUNK_SIZE
    ):
        row_mask[owner[column_mask[csr.members[posting].long()]]] = True
    return row_mask


def _runs_of_groups(groups: Groups, matches: Pairs) -> list[tuple[int, int]]:
    """Cut the query columns into runs of about as many pairs as are sorted together."""
    pairs = offsets_of(matches.sizes[groups.members])[groups.offsets]
    bounds = [0, *itertools.accumulate(run_lengths(pairs[1:] - pairs[:-1], CHUNK_SIZE))]
    return list(itertools.pairwise(bounds))
