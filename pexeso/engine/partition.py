"""One partition of an index: the arrays it consists of, as tensors on a device.

Parts of mapped arrays that a search will read are requested before it reads them. A page of a
mapped file that is not in memory is read when it is touched, and the search waits for it: some 100
microseconds on a solid-state disk, for 4 KiB. A disk answers many questions in hardly more time
than one. So where pages turn out to be missing, the blocks and vectors that are about to be read
are requested together. Nothing else is: a search that looks into few blocks must not read a
partition.
"""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from pexeso.engine.arrays import Csr, as_tensor, expand_ranges
from pexeso.engine.blocks import Blocks
from pexeso.engine.lists import Lists
from pexeso.engine.maps import PivotMap, ProjectionMap, map_of, slack
from pexeso.engine.options import LENGTH_ERROR, Metric, PartitionLayoutOptions
from pexeso.engine.published.grid import Grid, GridCells, Level
from pexeso.engine.validation import require_shapes
from pexeso.errors import IndexCorruptError
from pexeso.runtime.threads import available_threads

if TYPE_CHECKING:
    from pexeso.engine.kernel import Kernel, Pairs, Query, Threshold
    from pexeso.engine.vector_space import Lemma


LEVEL_ARRAYS = ("codes", "first", "count", "lower", "upper")
PLAUSIBLE_ROWS = 16  # stored rows that are examined, evenly spread

_ROWS_CHUNK_SIZE = 1 << 20


class Pages(Protocol):
    def missing(self) -> bool:
        """Return whether parts that were read lately were not in memory."""

    def want(self, name: str, rows: torch.Tensor) -> None:
        """Request rows of an array, int64, ascending.

        The call returns immediately and never fails because rows are missing.
        """


@dataclass(frozen=True)
class Partition:
    """The arrays of one partition as tensors on a device.

    Shape letters: N stored vectors (distinct values), d dimensions, P mapped coordinates, C
    columns.

    Attributes
    ----------
    vectors : float32 or float16 (N, d)
        In the order of the cells. What is computed with them is computed in float32 or float64,
        which hold each float16 number as it is: so no band depends on how they are stored.
    cells : Blocks or GridCells
        Where they have a summary, coarse boxes stand for all that is below them. Only then can a
        search skip the partition by its summary, order query values by what they reach, and weigh
        products. Their `candidates` yield runs of query values, in order, with their pairs, or None
        where these are too many; there may be more than `max_pairs` where they take less than half
        of `pexeso.engine.vector_space.BYTES_A_PAIR`.
    pages : Pages, optional
        What brings parts of the arrays into memory, where they are mapped files.
    """

    options: PartitionLayoutOptions
    vectors: torch.Tensor
    map: PivotMap | ProjectionMap
    cells: Blocks | GridCells
    value_columns: Csr
    column_values: Csr
    pages: Pages | None = None

    @cached_property
    def n_values(self) -> int:
        """N: distinct values with a vector."""
        return len(self.vectors)

    @cached_property
    def n_columns(self) -> int:
        """C: columns, those without any vector included."""
        return len(self.column_values)

    @cached_property
    def column_lists(self) -> Lists:
        csr = self.column_values
        return Lists(csr.offsets.numpy(force=True), csr.members.numpy(force=True))

    @property
    def dimensions(self) -> int:
        return self.vectors.shape[1]

    @property
    def vector_bytes(self) -> int:
        return self.dimensions * self.vectors.element_size()

    def vectors_of(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the vectors of stored rows, int64 (n,), as float32 (n, d)."""
        # Row by row: indexing with a tensor goes number by number.
        return self.vectors.index_select(0, rows).float()

    @cached_property
    def device(self) -> torch.device:
        return self.vectors.device

    @cached_property
    def metric(self) -> Metric:
        return Metric(self.options.metric)

    @cached_property
    def blocks(self) -> Blocks:
        return self.cells.blocks

    @cached_property
    def lower_corner(self) -> list[float]:
        """The smallest value of each mapped coordinate, (P,); infinite where there is no vector."""
        n = self.map.n_coordinates
        return self.blocks.outer_corners()[0][:n].tolist() or [math.inf] * n

    @cached_property
    def thresholds(self) -> dict[tuple[float, frozenset[Lemma]], Threshold]:
        """Thresholds of earlier searches, by largest distance and lemmas."""
        return {}

    @cached_property
    def slack(self) -> float:
        return slack(*self.cells.outer_corners())

    @property
    def missing_pages(self) -> Pages | None:
        """The pages, where parts of the arrays turned out not to be in memory."""
        return self.pages if self.pages is not None and self.pages.missing() else None

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, np.ndarray],
        options: PartitionLayoutOptions,
        device: torch.device | str = "cpu",
        *,
        pages: Pages | None = None,
        copy: Callable[[Mapping[str, np.ndarray]], Mapping[str, torch.Tensor]] | None = None,
    ) -> Partition:
        """Create a partition from the arrays of `pexeso.engine.dense.building.build_partition`.

        On the CPU nothing is copied, and only the numbers of levels are read. A `copy` brings the
        arrays to the device.
        """
        require_shapes(arrays)
        if copy is None:
            tensors = {name: as_tensor(array, device) for name, array in arrays.items()}
        else:
            tensors = copy(arrays)
        partition = cls.from_tensors(tensors, options, pages)
        if partition.device.type != "cpu":
            # Programs of a device go where these numbers lead; compiled loops and tensor operations
            # check them on the way.
            partition.value_columns.require_sound(partition.n_columns)
            partition.column_values.require_sound(partition.n_values)
            # Those of the host serve as they are: nothing is copied back.
            lists = (arrays[f"column_values_{name}"] for name in ("offsets", "members"))
            partition.__dict__["column_lists"] = Lists(*map(np.asarray, lists))
        return partition

    @classmethod
    def from_tensors(
        cls,
        tensors: Mapping[str, torch.Tensor],
        options: PartitionLayoutOptions,
        pages: Pages | None = None,
    ) -> Partition:
        """View tensors of `pexeso.engine.dense.building.build_checked` where they are."""
        if "block_codes" in tensors:
            # Level numbers steer the host's loops: they stay there.
            starts, codes = tensors["box_starts"].cpu(), tensors["block_codes"]
            cells = Blocks(tensors["boxes"], starts, codes, len(tensors["vectors"]))
        else:
            bounds = [0, *torch.cumsum(tensors["level_sizes"], 0).tolist()]
            levels = tuple(
                Level(*(tensors[f"cell_{name}"][begin:end] for name in LEVEL_ARRAYS))
                for begin, end in itertools.pairwise(bounds)
            )
            corners = (tensors[name] for name in ("mapped", "origin", "extent"))
            cells = GridCells(Grid(levels), *corners)
        value_columns, column_values = (
            Csr(tensors[f"{name}_offsets"], tensors[f"{name}_members"])
            for name in ("value_columns", "column_values")
        )
        vectors, chosen = tensors["vectors"], map_of(tensors)
        return cls(options, vectors, chosen, cells, value_columns, column_values, pages)


def fetch_cells(query: Query, kernel: Kernel) -> None:
    partition = query.partition
    if partition.missing_pages is not None and len(query) and partition.n_values:
        partition.cells.fetch(query, kernel)


def fetch_postings(partition: Partition, pairs: Pairs) -> None:
    """Request the columns of all rows in candidate pairs."""
    if (pages := partition.missing_pages) is not None:
        rows = _distinct_rows(pairs.rows)
        pages.want("value_columns_offsets", rows)
        pages.want("value_columns_offsets", rows + 1)
        pages.want("value_columns_members", partition.value_columns.offsets[rows])


def fetch_vectors(
    partition: Partition, pairs: Pairs, members: torch.Tensor, possible: torch.Tensor, needed: int
) -> None:
    """Request the vectors of the candidates of some query values, int64 (m,).

    Only those in a column that can still be found, by its rows that may match, int64 (C,).
    """
    if (pages := partition.missing_pages) is None:
        return
    _, position = expand_ranges(pairs.offsets[members], pairs.sizes[members])
    candidates = pairs.rows[position]
    rows = _distinct_rows(candidates[candidates >= 0])
    csr = partition.value_columns
    requested = [rows[:0]]
    for some in torch.split(rows, _ROWS_CHUNK_SIZE):
        owner, posting = expand_ranges(csr.offsets[some], csr.sizes_of(some))
        alive = possible[csr.members[posting].long()] >= needed
        requested.append(some[torch.unique(owner[alive])])
    pages.want("vectors", torch.cat(requested))


def fetch_columns(partition: Partition, rows: torch.Tensor) -> None:
    if (pages := partition.missing_pages) is not None:
        pages.want("vectors", rows)


def _distinct_rows(candidates: torch.Tensor) -> torch.Tensor:
    """Return the distinct stored rows, int64; candidates that surely match are complements."""
    rows = candidates.long()
    return torch.unique(torch.where(rows < 0, ~rows, rows))


def require_plausible(partition: Partition, where: str, *, rows: bool) -> None:
    """Refuse a partition on the CPU whose vectors are not those that its cells were made for.

    `pexeso.engine.validation` reads and checks everything. What it would find is rarely
    subtle: vectors that were shuffled, zeroed or scaled, boxes that are not finite. A few rows and
    the coarse boxes show these in well under a millisecond, and a search would answer wrongly
    without a word. What is wrong in one place only is left to ``pexeso check``.

    rows: bool, check some vectors; else the boxes of the summary, which every search reads.
    """
    wrong = _implausible_rows(partition) if rows else None
    if not rows and partition.n_values and not partition.cells.is_finite():
        wrong = "Boxes are not finite, or the wrong way round"
    if wrong is not None:
        raise IndexCorruptError(
            f"{where} cannot be searched: {wrong}. It was changed; 'pexeso check' tells more."
        )


def _implausible_rows(partition: Partition) -> str | None:
    n = min(PLAUSIBLE_ROWS, partition.n_values)
    if not n:
        return None
    rows = torch.arange(n) * partition.n_values // n
    if partition.pages is not None:
        partition.cells.fetch_rows(partition.pages, rows)
    vectors = partition.vectors_of(rows)
    lengths = vectors.double().square().sum(1).sqrt()
    # Written so that NaN, which compares false with everything, is wrong.
    n_wrong = int((~((lengths - 1.0).abs() <= LENGTH_ERROR)).sum())
    if n_wrong:
        return f"Of {n} vectors looked at {n_wrong} are not of unit length"
    mapped = partition.map.map(vectors)
    lower, upper = (
        corner[:, : mapped.shape[1]] for corner in partition.cells.corners_of_rows(rows)
    )
    inside = (mapped >= lower - partition.slack) & (mapped <= upper + partition.slack)
    n_wrong = int((~inside.all(1)).sum())
    return f"Of {n} vectors looked at {n_wrong} do not lie in their cells" if n_wrong else None


# Of each of the two buffers on the host, which are held while a partition is copied.
STAGED_BYTES = 64 << 20

# Arrays begin at multiples of this. What lies between them is less than the headers of their files,
# so that a partition takes no more than its files.
ALIGNED_BYTES = 128


class DeviceStage:
    """Copies partitions to a device, one at a time.

    While one buffer is copied to the device, the threads of torch fill the other one from the
    arrays. All of it goes through a stream of its own, beside searches.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # Not what a search in another thread has set for the moment when a copy begins.
        self._n_threads = available_threads()
        self._lock = threading.Lock()
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def open(
        self,
        arrays: Mapping[str, np.ndarray],
        options: PartitionLayoutOptions,
        passing_bytes: int | None,
    ) -> Partition:
        """Copy a partition and check it on the device; it is there when this returns."""
        copy = partial(self._copied, passing_bytes=passing_bytes)
        with self._lock, self._beside_searches():
            partition = Partition.from_arrays(arrays, options, self._device, copy=copy)
        if self._stream is not None:
            # As soon as nobody holds the partition its memory may be filled again, and what was
            # asked of it last may still be at work.
            weakref.finalize(partition, self._wait_for_searches).atexit = False
        return partition

    @contextmanager
    def _beside_searches(self) -> Iterator[None]:
        """Take all threads for what fills buffers, and the stream of copies; wait for its end."""
        threads = torch.get_num_threads()
        torch.set_num_threads(self._n_threads)
        try:
            with nullcontext() if self._stream is None else torch.cuda.stream(self._stream):
                yield
        finally:
            torch.set_num_threads(threads)
            if self._stream is not None:
                # Nothing but this ever waits for copies: searches begin after it.
                self._stream.synchronize()

    def _wait_for_searches(self) -> None:
        """Let later copies wait for what searches have asked of the device until now."""
        with suppress(RuntimeError):  # of a device that failed nothing is asked any more
            self._stream.wait_stream(torch.cuda.current_stream(self._device))

    def _copied(
        self, arrays: Mapping[str, np.ndarray], passing_bytes: int | None
    ) -> dict[str, torch.Tensor]:
        """Copy arrays one behind the other into one piece of memory, and return views of it."""
        sources = {name: as_tensor(np.ascontiguousarray(array)) for name, array in arrays.items()}
        numbers = {name: source.reshape(-1).view(torch.uint8) for name, source in sources.items()}
        starts, end = {}, 0
        for name, source in numbers.items():
            starts[name] = end
            end += -(-len(source) // ALIGNED_BYTES) * ALIGNED_BYTES
        memory = self._memory(end, passing_bytes)
        self._fill(memory, end, [(starts[name], numbers[name]) for name in numbers])
        return {
            name: memory[starts[name] :][: source.nbytes].view(source.dtype).view(source.shape)
            for name, source in sources.items()
        }

    def _memory(self, n_bytes: int, passing_bytes: int | None) -> torch.Tensor:
        if passing_bytes is not None:
            return torch.empty(max(n_bytes, passing_bytes), dtype=torch.uint8, device=self._device)
        if self._stream is None:
            return torch.empty(n_bytes, dtype=torch.uint8, device=self._device)
        # Of other memory than those that pass, which must not be cut.
        searches = torch.cuda.default_stream(self._device)
        with torch.cuda.stream(searches):
            memory = torch.empty(n_bytes, dtype=torch.uint8, device=self._device)
        self._stream.wait_stream(searches)
        return memory

    def _fill(self, memory: torch.Tensor, end: int, placed: list[tuple[int, torch.Tensor]]) -> None:
        on_cuda = self._stream is not None
        buffers = [
            torch.empty(min(end, STAGED_BYTES), dtype=torch.uint8, pin_memory=on_cuda)
            for _ in range(2)
        ]
        copies = [torch.cuda.Event() if on_cuda else None for _ in buffers]
        for turn, begin in enumerate(range(0, end, STAGED_BYTES)):
            buffer, copy = buffers[turn % 2], copies[turn % 2]
            if copy is not None:
                copy.synchronize()  # the copy out of this buffer; at once where there was none
            piece = slice(begin, min(begin + STAGED_BYTES, end))
            for start, source in placed:
                first, last = max(piece.start, start), min(piece.stop, start + len(source))
                if first < last:
                    buffer[first - begin : last - begin].copy_(source[first - start : last - start])
            memory[piece].copy_(buffer[: piece.stop - begin], non_blocking=on_cuda)
            if copy is not None:
                copy.record()
