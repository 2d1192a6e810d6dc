"""The fused kernel that multiplies two sets of vectors and writes only the pairs above a limit."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

FIRST_CAPACITY = 1 << 20
MOST_ROWS = 1 << 24
"""Listed rows that a launch may give, 72 bytes each at most; a wider search is cut into parts."""

UNPACKED_AT_ONCE = 1 << 20
WORD_BITS = 32

ALIGNMENT = 16
"""Bytes of which a row of vectors must be a multiple: what the copy engine of a GPU reads."""

FoundPairs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Rows of the queries, rows of the values, whether sure: int64 (p,) twice, bool (p,)."""


@triton.jit
def _packed(hit, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BITS: tl.constexpr):  # noqa: N803
    """Pack the bits of each row: int32 (rows, columns // bits)."""
    bit = (tl.arange(0, COLUMNS) % BITS)[None, :]
    words = tl.reshape(hit.to(tl.int32) << bit, (ROWS, COLUMNS // BITS, BITS))
    return tl.sum(words, 2)


@triton.jit(do_not_specialize=["n_values", "capacity", "query_tiles", "tiles"])
def _pairs_above_kernel(
    values,
    queries,
    lowest,
    low,
    high,
    found_rows,
    found_tiles,
    found_bits,
    sure_bits,
    counter,
    n_values,
    capacity,
    query_tiles,
    tiles,
    CHUNKS: tl.constexpr,  # noqa: N803
    BLOCK_VALUES: tl.constexpr,  # noqa: N803
    BLOCK_QUERIES: tl.constexpr,  # noqa: N803
    BLOCK_DIMENSIONS: tl.constexpr,  # noqa: N803
    BITS: tl.constexpr,  # noqa: N803
):
    """Multiply tiles of values with tiles of queries and list the pairs that reach their limit.

    Limits are those of the query; behind the last query they are infinite.

    A program takes one tile after the other, and the loads of the next are under way while one is
    multiplied: one loop goes over the chunks of all tiles. Tiles of queries change fastest, so that
    a tile of values is read from memory once and for the other query tiles from the L2 cache.

    Each row of a tile with a pair is listed once, with a bit for each query of the tile, so that
    nothing as large as the tile changes its layout. Slots come from one atomic addition a tile;
    beyond `capacity` rows are counted and not written.
    """
    program, programs = tl.program_id(0), tl.num_programs(0)
    tile, chunk = program - programs, CHUNKS - 1
    first_value, first_query = 0, 0
    n_words: tl.constexpr = BLOCK_QUERIES // BITS
    products = tl.zeros((BLOCK_VALUES, BLOCK_QUERIES), dtype=tl.float32)
    for _ in range(tl.cdiv(tiles - program, programs) * CHUNKS):
        chunk = tl.where(chunk == CHUNKS - 1, 0, chunk + 1)
        if chunk == 0:
            tile += programs
            first_value = (tile // query_tiles) * BLOCK_VALUES
            first_query = (tile % query_tiles) * BLOCK_QUERIES
        left = values.load([first_value, chunk * BLOCK_DIMENSIONS])
        right = queries.load([first_query, chunk * BLOCK_DIMENSIONS])
        # "ieee" matters for float32 operands alone: not rounded to TF32.
        products = tl.dot(left, right.T, products, input_precision="ieee")
        if chunk == CHUNKS - 1:
            # Limits of vectors of one length are alike, and few tiles have a pair: the lowest is
            # what every product is held against.
            if tl.max(tl.max(products, 1), 0) >= tl.load(lowest + tile % query_tiles):
                members = first_query + tl.arange(0, BLOCK_QUERIES)
                limit = tl.load(low + members)
                hit_bits = _packed(products >= limit[None, :], BLOCK_VALUES, BLOCK_QUERIES, BITS)
                rows = first_value + tl.arange(0, BLOCK_VALUES)
                # Values behind the last are zeros, which a low limit would take for values.
                listed = (tl.max((hit_bits != 0).to(tl.int32), 1) > 0) & (rows < n_values)
                base = tl.atomic_add(counter, tl.sum(listed.to(tl.int32), 0).to(tl.int64))
                start = tl.minimum(base, capacity).to(tl.int32)
                slot = start + tl.cumsum(listed.to(tl.int32), 0) - 1
                listed = listed & (slot < capacity)
                tl.store(found_rows + slot, rows, mask=listed)
                tl.store(found_tiles + slot, tile % query_tiles + tl.zeros_like(slot), mask=listed)
                words = slot[:, None] * n_words + tl.arange(0, n_words)[None, :]
                tl.store(found_bits + words, hit_bits, mask=listed[:, None])
                limit = tl.load(high + members)
                sure = _packed(products >= limit[None, :], BLOCK_VALUES, BLOCK_QUERIES, BITS)
                tl.store(sure_bits + words, sure, mask=listed[:, None])
            products = tl.zeros((BLOCK_VALUES, BLOCK_QUERIES), dtype=tl.float32)


INTERPRETED = not isinstance(_pairs_above_kernel, triton.JITFunction)
"""Whether Triton's interpreter runs the kernel, on any device."""


@dataclass(frozen=True)
class Configuration:
    """How the kernel cuts and schedules its work.

    Attributes
    ----------
    values, queries, dimensions : int
        Of a tile, powers of two.
    warps, stages : int
    programs : int
        Of one multiprocessor.
    """

    values: int
    queries: int
    dimensions: int
    warps: int
    stages: int
    programs: int


def configurations(n_queries: int, dtype: torch.dtype) -> list[Configuration]:
    """Return what suits a number of query values, the most likely first.

    Examples
    --------
    >>> configurations(17, torch.float16)[0].queries
    32
    """
    queries = min(128, max(16, triton.next_power_of_2(n_queries)))
    if dtype == torch.float32:
        return [Configuration(64, min(queries, 32), 32, 4, 2, 4)]
    if queries <= 64:
        # Reading the values is what takes time: many loads must be under way.
        cuts = ((128, 4, 4, 2), (128, 4, 3, 3), (64, 4, 6, 3), (256, 8, 4, 1), (128, 4, 6, 1))
        return [Configuration(rows, queries, 64, *rest) for rows, *rest in cuts]
    # Multiplying is: large tiles, which read less of the cache for each product.
    cuts = ((256, 128, 8, 4, 1), (128, 256, 8, 4, 1), (128, 128, 4, 3, 2), (256, 128, 8, 3, 1))
    cuts += ((128, 128, 8, 5, 1),)
    return [Configuration(rows, columns, 64, *rest) for rows, columns, *rest in cuts]


def aligned(vectors: torch.Tensor) -> torch.Tensor:
    """Return vectors whose rows are as long as the kernel needs, with zeros behind them.

    Examples
    --------
    >>> aligned(torch.ones((2, 50), dtype=torch.float16)).shape
    torch.Size([2, 56])
    """
    step = ALIGNMENT // vectors.itemsize
    missing = -vectors.shape[1] % step
    if missing:
        return torch.nn.functional.pad(vectors, (0, missing))
    return vectors.contiguous()


@dataclass(frozen=True)
class Prepared:
    """Query values as the kernel reads them, and their limits up to the end of the last tile.

    Attributes
    ----------
    queries : as the values (n, w)
    low, high : float32 (m,)
        Infinite behind the last query.
    lowest : float32 (tiles,)
        Lowest limit of each tile of queries.
    """

    queries: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    lowest: torch.Tensor


class PairFinder:
    """Finds pairs with a large inner product; its buffers grow with what is found and are kept.

    Parameters
    ----------
    values : float16 or float32 (N, d)
        Kept as it is where rows are a multiple of 16 bytes long, else copied (`aligned`).
    configuration : Configuration, optional
        By default the first one of `configurations` for the query values.
    """

    def __init__(self, values: torch.Tensor, configuration: Configuration | None = None) -> None:
        self._values, self._configuration = aligned(values), configuration
        device = values.device
        self._counter = torch.zeros(1, dtype=torch.int64, device=device)
        self._multiprocessors = (
            torch.cuda.get_device_properties(device).multi_processor_count
            if device.type == "cuda"
            else 1
        )
        nothing = torch.empty((0, 0), dtype=torch.int32, device=device)
        self._rows = self._tiles = self._hit_bits = self._sure = nothing

    def prepare(self, queries: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> Prepared:
        """Return what `launch` takes.

        Parameters
        ----------
        queries : as the values (n, d)
        low, high : float32 (n,)
            Products from which on a pair is found, and from which on it is sure.
        """
        width = self._configuration_for(len(queries)).queries
        missing = -len(low) % width
        low, high = (
            torch.nn.functional.pad(limits, (0, missing), value=torch.inf) for limits in (low, high)
        )
        return Prepared(aligned(queries), low, high, low.view(-1, width).amin(1))

    def find(self, queries: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> FoundPairs:
        """Return the pairs with a product of at least the query's limit.

        Parameters
        ----------
        queries, low, high
            As for `prepare`.
        """
        pairs = self._scan(self.prepare(queries, low, high), 0, len(self._values))
        rows, members, sure = (torch.cat(part) for part in zip(*pairs, strict=True))
        return rows, members, sure

    def launch(self, prepared: Prepared, begin: int = 0, end: int | None = None) -> None:
        """List the pairs of some rows, all by default, without waiting for them."""
        values, queries = self._values[begin:end], prepared.queries
        configuration = self._configuration_for(len(queries))
        chunk, cut = configuration.dimensions, (configuration.values, configuration.queries)
        self._allocate(FIRST_CAPACITY, cut[1])
        self._counter.zero_()
        if not len(values) or not len(queries):
            return
        query_tiles = triton.cdiv(len(queries), cut[1])
        tiles = triton.cdiv(len(values), cut[0]) * query_tiles
        _pairs_above_kernel[(min(tiles, configuration.programs * self._multiprocessors),)](
            TensorDescriptor.from_tensor(values, [cut[0], chunk]),
            TensorDescriptor.from_tensor(queries, [cut[1], chunk]),
            prepared.lowest,
            prepared.low,
            prepared.high,
            self._rows,
            self._tiles,
            self._hit_bits,
            self._sure,
            self._counter,
            len(values),
            len(self._rows),
            query_tiles,
            tiles,
            CHUNKS=triton.cdiv(values.shape[1], chunk),
            BLOCK_VALUES=cut[0],
            BLOCK_QUERIES=cut[1],
            BLOCK_DIMENSIONS=chunk,
            BITS=min(WORD_BITS, cut[1]),
            num_warps=configuration.warps,
            num_stages=configuration.stages,
        )

    def _configuration_for(self, n_queries: int) -> Configuration:
        return self._configuration or configurations(n_queries, self._values.dtype)[0]

    def _scan(self, prepared: Prepared, begin: int, end: int) -> list[FoundPairs]:
        self.launch(prepared, begin, end)
        count = int(self._counter)
        if count > MOST_ROWS and end - begin > 1:
            middle = (begin + end) // 2
            return self._scan(prepared, begin, middle) + self._scan(prepared, middle, end)
        width = self._configuration_for(len(prepared.queries)).queries
        if count > len(self._rows):
            self._allocate(triton.next_power_of_2(count), width)
            self.launch(prepared, begin, end)
        return [
            self._unpacked(first, min(first + UNPACKED_AT_ONCE, count), width, begin)
            for first in range(0, max(1, count), UNPACKED_AT_ONCE)
        ]

    def _unpacked(self, first: int, end: int, width: int, begin: int) -> FoundPairs:
        """Return the pairs of some listed rows."""
        hit_bits, sure = (_bits(words[first:end], width) for words in (self._hit_bits, self._sure))
        entry, member = torch.nonzero(hit_bits, as_tuple=True)
        queries = self._tiles[first:end].long()[entry] * width + member
        return queries, self._rows[first:end].long()[entry] + begin, sure[entry, member]

    def _allocate(self, capacity: int, width: int) -> None:
        """Make room for some listed rows of tiles of a width, where there is less."""
        words = max(1, width // WORD_BITS)
        if len(self._rows) >= capacity and self._hit_bits.shape[1:] == (words,):
            return
        device = self._values.device
        self._rows, self._tiles = (
            torch.empty(capacity, dtype=torch.int32, device=device) for _ in range(2)
        )
        self._hit_bits, self._sure = (
            torch.empty((capacity, words), dtype=torch.int32, device=device) for _ in range(2)
        )


def _bits(words: torch.Tensor, width: int) -> torch.Tensor:
    """Unpack words, int32 (n, w), into bool (n, width)."""
    n_bits = min(width, WORD_BITS)
    shifts = torch.arange(n_bits, dtype=torch.int32, device=words.device)
    return ((words[:, :, None] >> shifts) & 1).bool().view(len(words), width)
