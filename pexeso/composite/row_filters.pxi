# Hashes of texts for super keys: XASH and Bloom filters.

ctypedef fused Offset:
    int32_t
    int64_t

cdef enum:
    NO_SLOT = -1


def xash(
    const Offset[::1] offsets,
    const uint8_t[::1] data,
    const int8_t[::1] segments,
    int64_t bits,
    int64_t n_letters,
    uint64_t[:, ::1] hashes,
):
    """Hash texts by XASH; see `pexeso.composite.row_filters`.

    Parameters
    ----------
    offsets : int32 or int64 (n + 1,)
        Text i is ``data[offsets[i]:offsets[i + 1]]``, in UTF-8.
    segments : int8
        Of each code point, -1 for one that sets no bit.
    hashes : uint64 (n, bits / 64)
        Bits are set in it.
    """
    cdef int64_t areas = (bits - 1) // 37, region, length_bits, rotation, row, at, end, length, n
    cdef int64_t longest = 0, slot, best, segment, whole, area, bit, turn
    cdef int32_t code
    # Of the distinct characters of a text: code point, count and sum of places from 1 on.
    cdef vector[int32_t] codes, slot_of
    cdef vector[int64_t] counts, sums
    with nogil:
        region = 37 * areas
        length_bits = bits - region
        for row in range(hashes.shape[0]):
            longest = max(longest, <int64_t>offsets[row + 1] - offsets[row])
        codes.resize(longest)
        counts.resize(longest)
        sums.resize(longest)
        slot_of.assign(0x110000, -1)
        for row in range(hashes.shape[0]):
            at, end = offsets[row], offsets[row + 1]
            if at == end:
                continue
            length, n = 0, 0
            while at < end:
                code = code_point(data, &at, end)
                length += 1
                segment = NO_SLOT
                if code < segments.shape[0]:
                    segment = segments[code]
                if segment == NO_SLOT:
                    continue
                slot = slot_of[code]
                if slot < 0:
                    slot = n
                    slot_of[code] = <int32_t>n
                    codes[n], counts[n], sums[n] = code, 0, 0
                    n += 1
                counts[slot] += 1
                sums[slot] += length
            for slot in range(n):
                slot_of[codes[slot]] = -1
            rotation = length % region
            for turn in range(min(n_letters, n)):
                best = 0
                for slot in range(1, n):
                    if counts[slot] < counts[best] or (
                        counts[slot] == counts[best] and codes[slot] < codes[best]
                    ):
                        best = slot
                whole = counts[best] * length
                area = (sums[best] * areas + whole - 1) // whole
                bit = region - (segments[codes[best]] * areas + area)
                set_bit(hashes, row, (bit + rotation) % region)
                n -= 1
                codes[best], counts[best], sums[best] = codes[n], counts[n], sums[n]
            set_bit(hashes, row, region + length % length_bits)


cdef inline void set_bit(uint64_t[:, ::1] hashes, int64_t row, int64_t bit) noexcept nogil:
    """Set a bit of a hash, counted from the least significant one."""
    hashes[row, hashes.shape[1] - 1 - (bit >> 6)] |= <uint64_t>1 << (bit & 63)


cdef inline int32_t code_point(
    const uint8_t[::1] data, int64_t* at, int64_t end
) noexcept nogil:
    """Return the character of UTF-8 bytes that begins at a place, and step behind it."""
    cdef int32_t code = data[at[0]]
    cdef int64_t n_more, i
    if code < 0x80:
        at[0] += 1
        return code
    n_more = 1 if code < 0xE0 else 2 if code < 0xF0 else 3
    code &= 0x3F >> n_more
    for i in range(1, n_more + 1):
        if at[0] + i < end:
            code = (code << 6) | (data[at[0] + i] & 0x3F)
    at[0] += n_more + 1
    return min(code, <int32_t>0x10FFFF)


def bloom(
    const Offset[::1] offsets,
    const uint8_t[::1] data,
    int64_t bits,
    int64_t n_hashes,
    uint64_t[:, ::1] hashes,
):
    """Set the bits of a Bloom filter that each text has, in ``hashes``: uint64 (n, bits / 64)."""
    cdef int64_t row, seed
    with nogil:
        for row in range(hashes.shape[0]):
            if offsets[row] == offsets[row + 1]:
                continue
            for seed in range(n_hashes):
                set_bit(
                    hashes,
                    row,
                    <int64_t>murmur3(data, offsets[row], offsets[row + 1], <uint32_t>seed) % bits,
                )


cdef uint32_t murmur3(
    const uint8_t[::1] data, int64_t begin, int64_t end, uint32_t seed
) noexcept nogil:
    """Return Murmur3 of 32 bits (A. Appleby, public domain) of the bytes from `begin` to `end`."""
    cdef uint32_t state = seed, word
    cdef int64_t at, i, n
    for at in range(begin, end, 4):
        n, word = min(<int64_t>4, end - at), 0
        for i in range(n):
            word |= <uint32_t>data[at + i] << (8 * i)
        word *= <uint32_t>0xCC9E2D51
        word = (word << 15) | (word >> 17)
        state ^= word * <uint32_t>0x1B873593
        if n == 4:
            state = (state << 13) | (state >> 19)
            state = state * 5 + <uint32_t>0xE6546B64
    state ^= <uint32_t>(end - begin)
    state ^= state >> 16
    state *= <uint32_t>0x85EBCA6B
    state ^= state >> 13
    state *= <uint32_t>0xC2B2AE35
    return state ^ (state >> 16)
