"""Loops of acquisition: hashes of join keys, products of counts, and entries of paths of joins."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

import numpy as np

# The tables of MD5 (RFC 1321): the sines of 1 to 64, the bits to turn by, and the words of a block.
cdef uint32_t[64] SINES = [
    0xD76AA478, 0xE8C7B756, 0x242070DB, 0xC1BDCEEE, 0xF57C0FAF, 0x4787C62A, 0xA8304613, 0xFD469501,
    0x698098D8, 0x8B44F7AF, 0xFFFF5BB1, 0x895CD7BE, 0x6B901122, 0xFD987193, 0xA679438E, 0x49B40821,
    0xF61E2562, 0xC040B340, 0x265E5A51, 0xE9B6C7AA, 0xD62F105D, 0x02441453, 0xD8A1E681, 0xE7D3FBC8,
    0x21E1CDE6, 0xC33707D6, 0xF4D50D87, 0x455A14ED, 0xA9E3E905, 0xFCEFA3F8, 0x676F02D9, 0x8D2A4C8A,
    0xFFFA3942, 0x8771F681, 0x6D9D6122, 0xFDE5380C, 0xA4BEEA44, 0x4BDECFA9, 0xF6BB4B60, 0xBEBFBC70,
    0x289B7EC6, 0xEAA127FA, 0xD4EF3085, 0x04881D05, 0xD9D4D039, 0xE6DB99E5, 0x1FA27CF8, 0xC4AC5665,
    0xF4292244, 0x432AFF97, 0xAB9423A7, 0xFC93A039, 0x655B59C3, 0x8F0CCC92, 0xFFEFF47D, 0x85845DD1,
    0x6FA87E4F, 0xFE2CE6E0, 0xA3014314, 0x4E0811A1, 0xF7537E82, 0xBD3AF235, 0x2AD7D2BB, 0xEB86D391,
]
cdef uint32_t[16] TURNS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21]


cdef void add_block(uint32_t* state, const uint32_t* words) noexcept nogil:
    """Bring a block of 16 words into the state of MD5."""
    cdef uint32_t a = state[0], b = state[1], c = state[2], d = state[3], mixed, total, turn
    cdef int64_t i, position
    for i in range(64):
        if i < 16:
            mixed, position = (b & c) | (~b & d), i
        elif i < 32:
            mixed, position = (d & b) | (~d & c), (5 * i + 1) & 15
        elif i < 48:
            mixed, position = b ^ c ^ d, (3 * i + 5) & 15
        else:
            mixed, position = c ^ (b | ~d), (7 * i) & 15
        total, turn = a + mixed + SINES[i] + words[position], TURNS[(i >> 4) * 4 + (i & 3)]
        a, d, c, b = d, c, b, b + ((total << turn) | (total >> (32 - turn)))
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d


def md5_digits(const uint8_t[::1] letters, const int64_t[::1] bounds):
    """Return the first 13 hexadecimal digits of the MD5 digests of texts as numbers.

    Parameters
    ----------
    letters : uint8
    bounds : int64 (n + 1,)
        Text i is ``letters[bounds[i]:bounds[i + 1]]``.

    Returns
    -------
    uint64 (n,)
    """
    digests = np.empty(bounds.shape[0] - 1, np.uint64)
    cdef uint64_t[::1] digests_view = digests
    cdef uint32_t[16] words
    cdef uint32_t[4] state
    cdef int64_t i, j, block, first, size
    cdef uint64_t byte
    with nogil:
        for i in range(digests_view.shape[0]):
            first, size = bounds[i], bounds[i + 1] - bounds[i]
            state[0], state[1], state[2], state[3] = 0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476
            # A byte 0x80 and the number of bits in 8 bytes follow the text, to blocks of 64.
            for block in range(0, size + 9, 64):
                for j in range(16):
                    words[j] = 0
                for j in range(block, min(block + 64, size + 1)):
                    byte = letters[first + j] if j < size else 0x80
                    words[(j - block) >> 2] |= <uint32_t>(byte << (8 * (j & 3)))
                if block + 64 >= size + 9:
                    words[14] = <uint32_t>(8 * <uint64_t>size)
                    words[15] = <uint32_t>((8 * <uint64_t>size) >> 32)
                add_block(state, words)
            # The digest is the state as bytes, the lowest first; 52 bits of it are 6.5 bytes.
            byte = 0
            for j in range(7):
                byte = (byte << 8) | ((state[j >> 2] >> (8 * (j & 3))) & 255)
            digests_view[i] = byte >> 4
    return digests


cdef void order_by(
    const int64_t[::1] numbers, int64_t n, int64_t* begins, int64_t* order
) noexcept nogil:
    """Write where each of n numbers begins in an array that is ordered by them, and the order."""
    cdef int64_t at, number
    cdef vector[int64_t] ends
    for number in range(n + 1):
        begins[number] = 0
    for at in range(numbers.shape[0]):
        begins[numbers[at] + 1] += 1
    for number in range(n):
        begins[number + 1] += begins[number]
    ends.assign(begins, begins + n)
    for at in range(numbers.shape[0]):
        number = numbers[at]
        order[ends[number]] = at
        ends[number] += 1


def ordered(const int64_t[::1] numbers, int64_t n):
    """Return where each of n numbers begins in an array that is ordered by them, and the order.

    Returns
    -------
    (int64 (n + 1,), int64 (len(numbers),))
    """
    begins, order = np.empty(n + 1, np.int64), np.empty(numbers.shape[0], np.int64)
    cdef int64_t[::1] begins_view = begins, order_view = order
    cdef int64_t* order_data = &order_view[0] if numbers.shape[0] else NULL
    with nogil:
        order_by(numbers, n, &begins_view[0], order_data)
    return begins, order


cdef class Columns:
    """The rows, columns and counts of a product, as they are found."""

    cdef vector[int64_t] rows, columns
    cdef vector[double] counts

    cdef tuple arrays(self):
        cdef int64_t n = self.rows.size(), at
        rows, columns, counts = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
        cdef int64_t[::1] rows_view = rows, columns_view = columns
        cdef double[::1] counts_view = counts
        with nogil:
            for at in range(n):
                rows_view[at] = self.rows[at]
                columns_view[at] = self.columns[at]
                counts_view[at] = self.counts[at]
        return rows, columns, counts


def multiplied(left, right, sizes):
    """Return the product of two sparse matrices, ordered by row and column.

    Parameters
    ----------
    left : (int64 (l,), int64 (l,), float64 (l,))
        Rows, keys and counts above 0; what repeats is added up.
    right : (int64 (r,), int64 (r,), float64 (r,))
        The same of columns.
    sizes : (int, int)
        Numbers of rows and of columns.

    Returns
    -------
    (int64 (p,), int64 (p,), float64 (p,))
        Row, column, and the products added up over the keys.
    """
    cdef const int64_t[::1] left_rows = left[0], left_keys = left[1]
    cdef const int64_t[::1] right_columns = right[0], right_keys = right[1]
    cdef const double[::1] left_counts = left[2], right_counts = right[2]
    cdef int64_t n_rows = sizes[0], n_columns = sizes[1], n_keys = 0
    cdef int64_t at, row, key, column, one, other, entry, partner, n_met
    cdef double count, held
    cdef vector[int64_t] row_begins, by_row, key_begins, by_key, met
    cdef vector[double] sums
    cdef Columns product = Columns()
    with nogil:
        for at in range(left_keys.shape[0]):
            n_keys = max(n_keys, left_keys[at] + 1)
        for at in range(right_keys.shape[0]):
            n_keys = max(n_keys, right_keys[at] + 1)
        row_begins.resize(n_rows + 1)
        by_row.resize(left_rows.shape[0])
        order_by(left_rows, n_rows, row_begins.data(), by_row.data())
        key_begins.resize(n_keys + 1)
        by_key.resize(right_keys.shape[0])
        order_by(right_keys, n_keys, key_begins.data(), by_key.data())
        sums.resize(n_columns)
        for row in range(n_rows):
            met.clear()
            for entry in range(row_begins[row], row_begins[row + 1]):
                one = by_row[entry]
                key, count = left_keys[one], left_counts[one]
                for partner in range(key_begins[key], key_begins[key + 1]):
                    other = by_key[partner]
                    column = right_columns[other]
                    held = sums[column]
                    if held == 0:
                        met.push_back(column)
                    sums[column] = held + count * right_counts[other]
            sort(met.begin(), met.end())
            for column in met:
                product.rows.push_back(row)
                product.columns.push_back(column)
                product.counts.push_back(sums[column])
                sums[column] = 0.0
    return product.arrays()


def end_of_block(
    const int64_t[::1] x,
    const int64_t[::1] rows,
    const int64_t[::1] near,
    const int64_t[::1] begins,
    int64_t begin,
    int64_t max_entries,
):
    """Return where the entries of some whole x end that make so many of the next table, or one.

    Parameters
    ----------
    x, rows : int64 (e,)
        Of the entries, by x.
    near, begins : int64
        The key of each row, -1 for none, and where the rows of the next table of each key begin.
    begin : int
        The first of the entries.
    """
    cdef int64_t n = 0, end = begin, size, at, key
    with nogil:
        while end < x.shape[0]:
            size, at = 0, end
            while at < x.shape[0] and x[at] == x[end]:
                key = near[rows[at]]
                if key >= 0:
                    size += begins[key + 1] - begins[key]
                at += 1
            if end > begin and n + size > max_entries:
                break
            n, end = n + size, at
    return end


def counted_pairs(
    const int64_t[::1] x,
    const int64_t[::1] rows,
    const double[::1] weights,
    const double[::1] counts,
    const int64_t[::1] y_codes,
    int64_t n_codes,
    int64_t n_few,
):
    """Return the counts of pairs of x and y, and of y, or how often each of them is there.

    Of counts below `n_few` it is how often each is there, and the first array is empty.

    Parameters
    ----------
    x, rows, weights : int64 (e,), int64 (e,), float64 (e,)
        Entries, by x; weights are above 0.
    counts, y_codes : float64 (n,), int64 (n,)
        Of each row how often it counts, and its y, below `n_codes`.

    Returns
    -------
    (float64, int64 (n_few,), float64, int64 (n_few,))
        Of the pairs, then of y.
    """
    cdef int64_t size = x.shape[0], at = 0, value, code, n = 0, row
    cdef double held
    cdef bint are_few = True, are_few_of_y = True
    pairs, times = np.empty(size), np.zeros(n_few, np.int64)
    sums, times_of_y = np.zeros(n_codes), np.zeros(n_few, np.int64)
    cdef double[::1] pairs_view = pairs, sums_view = sums
    cdef int64_t[::1] times_view = times, times_of_y_view = times_of_y
    cdef vector[int64_t] met
    with nogil:
        while at < size:
            value = x[at]
            met.clear()
            while at < size and x[at] == value:
                code = y_codes[rows[at]]
                held = sums_view[code]
                if held == 0:
                    met.push_back(code)
                sums_view[code] = held + weights[at]
                at += 1
            for code in met:
                held = sums_view[code]
                pairs_view[n] = held
                n += 1
                sums_view[code] = 0.0
                if held < n_few:
                    times_view[<int64_t>held] += 1
                else:
                    are_few = False
        for row in range(y_codes.shape[0]):
            sums_view[y_codes[row]] += counts[row]
        for code in range(n_codes):
            held = sums_view[code]
            if held >= n_few:
                are_few_of_y = False
            elif held > 0:
                times_of_y_view[<int64_t>held] += 1
    return (
        pairs[: 0 if are_few else n],
        times,
        sums[: 0 if are_few_of_y else n_codes],
        times_of_y,
    )
