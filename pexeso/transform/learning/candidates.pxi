# Operators that explain a piece of every example's key.

cdef enum:
    PLAIN = 0  # the casings, in the order of `CASINGS`
    SMALL = 1
    LARGE = 2
    TITLE = 3
    N_CASINGS = 4


cdef class Letters:
    """The letters of the parts of examples, and of their keys.

    Parameters
    ----------
    plain, small, large : uint32 (c,)
    is_letter : bool (c,)
    at, size : int32 (e, b)
        Where the part by each extractor begins for each example, and its letters.
    goal, goal_at : uint32 (g,), int32 (b + 1,)
        Letters of the keys, and where each begins.
    lines : int32 (l, 4)
        Extractor, casing, 1 where the start counts from the end, and start.
    groups : int64
        Where the lines of extractors with no split or replacement begin, with one, and so on.
    """

    cdef readonly const uint32_t[::1] plain, small, large, goal
    cdef readonly const uint8_t[::1] is_letter
    cdef readonly const int32_t[:, ::1] at, size, lines
    cdef readonly const int32_t[::1] goal_at
    cdef readonly const int64_t[::1] groups

    def __init__(self, plain, small, large, is_letter, at, size, goal, goal_at, lines, groups):
        self.plain, self.small, self.large, self.is_letter = plain, small, large, is_letter
        self.at, self.size, self.goal, self.goal_at = at, size, goal, goal_at
        self.lines, self.groups = lines, groups


cdef inline int32_t agreeing(
    const int32_t* before, int32_t* after, const uint32_t* goal, int64_t size, uint32_t letter
) noexcept nogil:
    """Write how many letters from a letter on are in the goal at each place; return the most."""
    cdef int32_t longest = 0, count
    cdef int64_t position
    for position in range(size):
        count = before[position + 1] + 1 if goal[position] == letter else 0
        after[position] = count
        longest = max(longest, count)
    return longest


cdef void add_reach(
    Letters letters, int64_t at, int64_t size, int64_t low, int64_t high, vector[int32_t]& reach
) noexcept nogil:
    """For each letter of a text, the letters from it on that are somewhere in the goal.

    By casing; in title case a text that begins at the letter.
    """
    cdef int64_t wide = high - low, stride = wide + 1, n_letters = letters.plain.shape[0], letter
    cdef vector[int32_t] rows, new_rows  # letters that agree from a place of the goal on
    cdef const uint32_t* goal
    cdef const int32_t* before
    cdef int32_t* after
    cdef uint32_t head, tail
    if wide <= 0:
        return
    goal = &letters.goal[low]
    rows.resize(N_CASINGS * stride)
    new_rows.resize(N_CASINGS * stride)
    for letter in range(at + size - 1, at - 1, -1):
        head = letters.large[letter] if letters.is_letter[letter] else letters.plain[letter]
        tail = head
        if letters.is_letter[letter] and letter > at and letters.is_letter[letter - 1]:
            tail = letters.small[letter]
        before, after = rows.data(), new_rows.data()
        reach[PLAIN * n_letters + letter] = agreeing(
            before, after, goal, wide, letters.plain[letter]
        )
        reach[SMALL * n_letters + letter] = agreeing(
            before + SMALL * stride, after + SMALL * stride, goal, wide, letters.small[letter]
        )
        reach[LARGE * n_letters + letter] = agreeing(
            before + LARGE * stride, after + LARGE * stride, goal, wide, letters.large[letter]
        )
        before, after = before + TITLE * stride, after + TITLE * stride
        reach[TITLE * n_letters + letter] = agreeing(before, after, goal, wide, head)
        if tail != head:
            agreeing(before, after, goal, wide, tail)
        rows.swap(new_rows)


cdef inline uint32_t written(
    Letters letters, int64_t casing, int64_t begin, int64_t position
) noexcept nogil:
    """Return a letter in a casing, of a text that begins at `begin`."""
    if casing == PLAIN or (casing == TITLE and not letters.is_letter[position]):
        return letters.plain[position]
    if casing == SMALL:
        return letters.small[position]
    if casing == LARGE or position == begin or not letters.is_letter[position - 1]:
        return letters.large[position]
    return letters.small[position]


cdef int64_t measure_lines(
    Letters letters,
    const int32_t[::1] low,
    vector[int32_t]& reach,
    vector[int32_t]& fixed,
    vector[int32_t]& to_end,
) noexcept nogil:
    """Write the longest length of each line, and the letters that it writes to the end, or 0.

    Return the most letters of all keys together that any line writes.
    """
    cdef int64_t n_examples = low.shape[0], n_letters = letters.plain.shape[0], max_letters = 0
    cdef int64_t line, extractor, casing, backward, start, longest, total, example, length, begin
    cdef int64_t n_agreeing
    cdef bint none
    for line in range(letters.lines.shape[0]):
        extractor, casing = letters.lines[line, 0], letters.lines[line, 1]
        backward, start = letters.lines[line, 2], letters.lines[line, 3]
        longest = 0
        for example in range(n_examples):
            longest = max(longest, <int64_t>letters.size[extractor, example])
        total = 0
        none = False
        for example in range(n_examples):
            length = letters.size[extractor, example]
            begin = length - 1 - start if backward else start
            n_agreeing = reach[casing * n_letters + letters.at[extractor, example] + begin]
            none = none or n_agreeing == 0
            if n_agreeing == length - begin:
                total += n_agreeing
                if backward:
                    longest = min(longest, n_agreeing)
            else:
                longest = min(longest, n_agreeing)
                total = -(1 << 30)
        if none:
            continue
        if total > 0:
            to_end[line] = <int32_t>total
            max_letters = max(max_letters, total)
        fixed[line] = <int32_t>longest
        total = 0
        for example in range(n_examples):
            length = letters.size[extractor, example]
            total += min(longest, length - (0 if backward else start))
        max_letters = max(max_letters, total)
    return max_letters


cdef void find_common(
    Letters letters, const int32_t[::1] low, const int32_t[::1] high, vector[int32_t]& common
) noexcept nogil:
    """Write the letters of the first key from each place on that are in all keys."""
    cdef int64_t size = common.size(), example, wide, position, other, first
    cdef int32_t longest
    cdef uint32_t letter
    cdef vector[int32_t] row
    for position in range(size):
        common[position] = <int32_t>(size - position)
    for example in range(1, low.shape[0]):
        wide = high[example] - low[example]
        first = letters.goal_at[example] + low[example]
        row.assign(wide + 1, 0)
        for position in range(size - 1, -1, -1):
            longest = 0
            letter = letters.goal[letters.goal_at[0] + low[0] + position]
            for other in range(wide):
                row[other] = row[other + 1] + 1 if letters.goal[first + other] == letter else 0
                longest = max(longest, row[other])
            common[position] = min(common[position], longest)


cdef class Found:
    """Pieces that were found: of each example where it is in the key, and its letters."""

    cdef int64_t n, n_examples
    cdef tuple arrays
    cdef int64_t[::1] lines, lengths
    cdef int64_t[:, ::1] positions, sizes
    cdef vector[uint32_t] piece

    def __cinit__(self, int64_t width, int64_t n_examples, int64_t n_letters):
        shape = width, n_examples
        lines, lengths = np.empty(width, np.int64), np.empty(width, np.int64)
        positions, sizes = np.empty(shape, np.int64), np.empty(shape, np.int64)
        self.lines, self.lengths, self.positions, self.sizes = lines, lengths, positions, sizes
        self.arrays = lines, lengths, positions, sizes
        self.n, self.n_examples = 0, n_examples
        self.piece.resize(n_letters)


cdef void note_place(
    Found found,
    Letters letters,
    int64_t example,
    int64_t length,
    const int32_t[::1] low,
    const int32_t[::1] high,
) noexcept nogil:
    """Note where the piece is in the key of an example."""
    cdef int64_t goal_at = letters.goal_at[example], place = -1, position, same
    for position in range(goal_at + low[example], goal_at + high[example] - length + 1):
        same = 0
        while same < length and letters.goal[position + same] == found.piece[same]:
            same += 1
        if same == length:
            place = position
            break
    found.positions[found.n, example] = place - goal_at
    found.sizes[found.n, example] = length


cdef bint is_constant(Found found, Letters letters) noexcept nogil:
    """Return whether the last piece is the same for all examples."""
    cdef int64_t example, letter, one, other
    for example in range(1, found.n_examples):
        if found.sizes[found.n, example] != found.sizes[found.n, 0]:
            return False
        one = letters.goal_at[0] + found.positions[found.n, 0]
        other = letters.goal_at[example] + found.positions[found.n, example]
        for letter in range(found.sizes[found.n, 0]):
            if letters.goal[one + letter] != letters.goal[other + letter]:
                return False
    return True


cdef bint is_new(Found found, int64_t first) noexcept nogil:
    """Return whether no piece from `first` on is that of the last."""
    cdef int64_t other, example
    for other in range(first, found.n):
        for example in range(found.n_examples):
            if (
                found.positions[other, example] != found.positions[found.n, example]
                or found.sizes[other, example] != found.sizes[found.n, example]
            ):
                break
        else:
            return False
    return True


cdef int64_t length_for(
    Letters letters, int64_t extractor, int64_t n_letters, int64_t longest, int64_t start
) noexcept nogil:
    """Return the length with which pieces that may be shorter have so many letters, or -1."""
    cdef int64_t n_examples = letters.size.shape[1], total, example
    cdef int64_t length = (n_letters + n_examples - 1) // n_examples
    while length <= longest:
        total = 0
        for example in range(n_examples):
            total += min(length, letters.size[extractor, example] - start)
        if total == n_letters:
            return length
        if total > n_letters:
            return -1
        length += 1
    return -1


def best_operators(Letters letters, const int32_t[::1] low, const int32_t[::1] high, int64_t width):
    """Return the operators that write a piece of every key's range, the best first.

    Parameters
    ----------
    low, high : int32 (b,)
        The range of each key.
    width : int
        The most that are returned.

    Returns
    -------
    (int64 (n,), int64 (n,), int64 (n, b), int64 (n, b))
        The line of each, -1 for a constant; its length, -1 where it goes to the end; and of each
        example where the piece is in the key, and its letters.
    """
    cdef int64_t n_examples = low.shape[0], extractor, example, max_letters, n_letters, position
    cdef int64_t level, group, to_ends, line, casing, backward, start, most_of_each, whole, begin
    cdef int64_t length, letter
    cdef bint ends
    cdef vector[int32_t] reach, fixed, to_end, common
    cdef Found found = Found(width, n_examples, letters.goal.shape[0])
    with nogil:
        reach.resize(N_CASINGS * letters.plain.shape[0])
        for extractor in range(letters.at.shape[0]):
            for example in range(n_examples):
                add_reach(
                    letters,
                    letters.at[extractor, example],
                    letters.size[extractor, example],
                    <int64_t>letters.goal_at[example] + low[example],
                    <int64_t>letters.goal_at[example] + high[example],
                    reach,
                )
        fixed.resize(letters.lines.shape[0])
        to_end.resize(letters.lines.shape[0])
        max_letters = measure_lines(letters, low, reach, fixed, to_end)
        common.resize(max(high[0] - low[0], 0))
        find_common(letters, low, high, common)
        for length in common:
            max_letters = max(max_letters, length * n_examples)
        for n_letters in range(max_letters, n_examples - 1, -1):
            level = found.n
            for group in range(letters.groups.shape[0] - 1):
                for to_ends in range(2):
                    ends = to_ends == 0
                    for line in range(letters.groups[group], letters.groups[group + 1]):
                        if found.n == width:
                            break
                        if ends:
                            if to_end[line] != n_letters:
                                continue
                        elif fixed[line] * n_examples < n_letters:
                            continue
                        extractor, casing = letters.lines[line, 0], letters.lines[line, 1]
                        backward, start = letters.lines[line, 2], letters.lines[line, 3]
                        most_of_each = 0
                        if not ends:
                            most_of_each = length_for(
                                letters, extractor, n_letters, fixed[line], 0 if backward else start
                            )
                            if most_of_each < 0:
                                continue
                        for example in range(n_examples):
                            whole = letters.size[extractor, example]
                            begin = whole - 1 - start if backward else start
                            length = whole - begin
                            if not ends:
                                length = min(length, most_of_each)
                            begin += letters.at[extractor, example]
                            for letter in range(length):
                                found.piece[letter] = written(
                                    letters, casing, begin, begin + letter
                                )
                            note_place(found, letters, example, length, low, high)
                        if is_constant(found, letters):
                            continue
                        if is_new(found, level):
                            found.lines[found.n] = line
                            found.lengths[found.n] = -1 if ends else most_of_each
                            found.n += 1
            if n_letters % n_examples == 0:
                length = n_letters // n_examples
                for position in range(<int64_t>common.size()):
                    if found.n == width:
                        break
                    if common[position] < length:
                        continue
                    begin = letters.goal_at[0] + low[0] + position
                    for letter in range(length):
                        found.piece[letter] = letters.goal[begin + letter]
                    for example in range(n_examples):
                        note_place(found, letters, example, length, low, high)
                    if is_new(found, level):
                        found.lines[found.n], found.lengths[found.n] = -1, -1  # a constant
                        found.n += 1
            if found.n == width:
                break
    return tuple([array[: found.n] for array in found.arrays])


def ordered_lines(const int64_t[::1] groups, const int32_t[:, ::1] size):
    """Return the lines in their order, and where those of each group of extractors begin.

    Parameters
    ----------
    groups : int64 (g,)
        Where extractors with as many steps begin.
    size : int32 (e, b)
        Letters of the part by each extractor for each example.

    Returns
    -------
    (int32 (l, 4), int64 (g,))
        Extractor, casing, 1 where the start counts from the end, and start, of each line.
    """
    cdef int64_t n_extractors = size.shape[0], n_examples = size.shape[1], total = 0, line = 0
    cdef int64_t extractor, example, group, first, last, longest, backward, start, casing
    cdef vector[int64_t] shortest
    cdef vector[uint8_t] uneven
    shortest.resize(n_extractors)
    uneven.resize(n_extractors)
    for extractor in range(n_extractors):
        shortest[extractor] = size[extractor, 0]
        for example in range(n_examples):
            uneven[extractor] |= size[extractor, example] != size[extractor, 0]
            shortest[extractor] = min(shortest[extractor], <int64_t>size[extractor, example])
        total += shortest[extractor] * (2 if uneven[extractor] else 1) * N_CASINGS
    lines, begins = np.empty((total, 4), np.int32), np.zeros(groups.shape[0], np.int64)
    cdef int32_t[:, ::1] lines_view = lines
    cdef int64_t[::1] begins_view = begins
    with nogil:
        for group in range(groups.shape[0] - 1):
            begins_view[group] = line
            first, last = groups[group], groups[group + 1]
            longest = 0
            for extractor in range(first, last):
                longest = max(longest, shortest[extractor])
            for backward in range(2):
                for start in range(longest):
                    for casing in range(N_CASINGS):
                        for extractor in range(first, last):
                            # From the end it is another place only where texts differ in length.
                            if start < shortest[extractor] and (uneven[extractor] or not backward):
                                lines_view[line, 0] = <int32_t>extractor
                                lines_view[line, 1] = <int32_t>casing
                                lines_view[line, 2] = <int32_t>backward
                                lines_view[line, 3] = <int32_t>start
                                line += 1
        begins_view[groups.shape[0] - 1] = line
    return lines, begins
