# Hashes of texts, and signatures of sets.

cdef uint64_t P1 = 0x9E3779B185EBCA87
cdef uint64_t P2 = 0xC2B2AE3D27D4EB4F
cdef uint64_t P3 = 0x165667B19E3779F9
cdef uint64_t P4 = 0x85EBCA77C2B2AE63
cdef uint64_t P5 = 0x27D4EB2F165667C5


cdef inline uint64_t rotated(uint64_t number, int bits) noexcept nogil:
    return (number << bits) | (number >> (64 - bits))


cdef inline uint64_t rounded(uint64_t lane, uint64_t word) noexcept nogil:
    return rotated(lane + word * P2, 31) * P1


cdef inline uint64_t four_bytes(const uint8_t[::1] text, int64_t at) noexcept nogil:
    """Return four bytes as a number, the first the lowest."""
    return (
        <uint32_t>text[at]
        | <uint32_t>text[at + 1] << 8
        | <uint32_t>text[at + 2] << 16
        | <uint32_t>text[at + 3] << 24
    )


cdef inline uint64_t eight_bytes(const uint8_t[::1] text, int64_t at) noexcept nogil:
    return four_bytes(text, at) | four_bytes(text, at + 4) << 32


def hash_texts(
    const uint8_t[::1] text, const int64_t[::1] ends, uint64_t seed, uint64_t[::1] hashes
):
    """Hash texts by xxHash64.

    Parameters
    ----------
    ends : int64 (n + 1,)
        Text i is ``text[ends[i]:ends[i + 1]]``.
    hashes : uint64 (n,)
        Written.
    """
    cdef int64_t row, at, end
    cdef uint64_t state, one, two, three, four
    with nogil:
        for row in range(hashes.shape[0]):
            at, end = ends[row], ends[row + 1]
            state = seed + P5
            if end - at >= 32:
                one, two, three, four = seed + P1 + P2, seed + P2, seed, seed - P1
                while at + 32 <= end:
                    one = rounded(one, eight_bytes(text, at))
                    two = rounded(two, eight_bytes(text, at + 8))
                    three = rounded(three, eight_bytes(text, at + 16))
                    four = rounded(four, eight_bytes(text, at + 24))
                    at += 32
                state = rotated(one, 1) + rotated(two, 7) + rotated(three, 12) + rotated(four, 18)
                state = (state ^ rounded(0, one)) * P1 + P4
                state = (state ^ rounded(0, two)) * P1 + P4
                state = (state ^ rounded(0, three)) * P1 + P4
                state = (state ^ rounded(0, four)) * P1 + P4
            state += <uint64_t>(ends[row + 1] - ends[row])
            while at + 8 <= end:
                state = rotated(state ^ rounded(0, eight_bytes(text, at)), 27) * P1 + P4
                at += 8
            if at + 4 <= end:
                state = rotated(state ^ (four_bytes(text, at) * P1), 23) * P2 + P3
                at += 4
            while at < end:
                state = rotated(state ^ (<uint64_t>text[at] * P5), 11) * P1
                at += 1
            state = (state ^ (state >> 33)) * P2
            state = (state ^ (state >> 29)) * P3
            hashes[row] = state ^ (state >> 32)


def sort_distinct(uint64_t[::1] hashes, const int64_t[::1] offsets, int64_t[::1] ends):
    """Sort each run of hashes, and keep one of equal ones, at the front of the array.

    Parameters
    ----------
    offsets, ends : int64 (s + 1,)
        Where the runs are, and where what is left of them ends: written, but for the first.
    """
    cdef int64_t n = 0, row, begin, end, i
    with nogil:
        for row in range(offsets.shape[0] - 1):
            begin, end = offsets[row], offsets[row + 1]
            for i in range(begin + 1, end):
                if hashes[i] < hashes[i - 1]:  # most callers bring sets in order: one look
                    sort(&hashes[begin], &hashes[begin] + (end - begin))
                    break
            for i in range(begin, end):
                # What is written lies at or before what is read, so nothing unread is lost.
                if i == begin or hashes[i] != hashes[n - 1]:
                    hashes[n] = hashes[i]
                    n += 1
            ends[row + 1] = n


cdef extern from *:
    """
    #include <cstdint>

    #define LOWER_MINIMA \\
        for (int64_t k = 0; k < m; k++) { \\
            uint64_t number = token ^ seeds[k]; \\
            number = (number ^ (number >> 30)) * UINT64_C(0xBF58476D1CE4E5B9); \\
            number = (number ^ (number >> 27)) * UINT64_C(0x94D049BB133111EB); \\
            number ^= number >> 31; \\
            minima[k] = number < minima[k] ? number : minima[k]; \\
        }

    static inline void lower_anywhere(
        uint64_t token, const uint64_t* seeds, uint64_t* minima, int64_t m
    ) {
        LOWER_MINIMA
    }

    // A product of 64 bits is one step of AVX-512, and ten of AVX2: three times as fast.
    #if defined(__GNUC__) && defined(__x86_64__)
    __attribute__((target("avx512f,avx512dq"))) static void lower_by_avx512(
        uint64_t token, const uint64_t* seeds, uint64_t* minima, int64_t m
    ) {
        LOWER_MINIMA
    }

    static void lower_minima(uint64_t token, const uint64_t* seeds, uint64_t* minima, int64_t m) {
        static const bool known = __builtin_cpu_supports("avx512dq");
        (known ? lower_by_avx512 : lower_anywhere)(token, seeds, minima, m);
    }
    #else
    #define lower_minima lower_anywhere
    #endif
    """
    void lower_minima(
        uint64_t token, const uint64_t* seeds, uint64_t* minima, int64_t m
    ) noexcept nogil


def add_minima(
    uint32_t[:, ::1] signatures,
    const uint64_t[::1] hashes,
    const int64_t[::1] offsets,
    const uint64_t[::1] seeds,
):
    """Lower signatures, (s, m), to the minima of m hash functions over the tokens of s sets."""
    cdef int64_t m = seeds.shape[0], row, at, k
    cdef vector[uint64_t] room
    cdef uint64_t* minima
    cdef const uint64_t* seed
    if not m:
        return
    with nogil:
        room.resize(m)
        minima, seed = room.data(), &seeds[0]
        for row in range(offsets.shape[0] - 1):
            for k in range(m):
                minima[k] = 0xFFFFFFFFFFFFFFFF
            for at in range(offsets[row], offsets[row + 1]):
                lower_minima(hashes[at], seed, minima, m)
            for k in range(m):
                signatures[row, k] = min(signatures[row, k], <uint32_t>(minima[k] >> 32))
