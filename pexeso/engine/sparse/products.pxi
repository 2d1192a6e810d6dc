# All pairs of some words, or of some values, by the definition.
#
# The features of some words, the owners, are noted once: for each feature, which of them have it
# and how often. Features that many of them have are wide: a number for each owner, side by side, so
# that several owners are added to at once. The dot products of another word with all owners then
# take one step for each feature that it has, however often it has it.
#
# Whole numbers are held as float64, exact up to 2^53 in any order.

cdef enum:
    NARROW = 4  # a feature is wide where more than one in so many owners has it
    MANY = 16  # words of a value whose features are noted before they are compared with each other


cdef struct Count:
    int32_t feature
    int32_t owner
    int32_t times


cdef cppclass Features:
    """The features of u words.

    `names` and `numbers` are open addressing over a power of two of slots: the number of each
    feature, -1 where a slot is empty. ``owners[offsets[f]:offsets[f + 1]]`` are the words that have
    feature f where it is not wide, and `counts` what it counts in each. ``wide_rows[f]`` is its row
    of `wide`, (w, u), or -1. `times`, zeros, is room for how often another word has each feature,
    and `seen` for the features that it has.
    """

    vector[int64_t] names
    vector[int32_t] numbers
    vector[int64_t] offsets
    vector[int32_t] owners
    vector[double] counts
    vector[int64_t] wide_rows
    vector[double] wide
    vector[int64_t] times
    vector[int32_t] seen
    # While they are noted: keys of a word, what each feature counts in each word, the last of these
    # of each feature, how many words have it, and where its list ends.
    vector[int64_t] keys
    vector[Count] entries
    vector[int64_t] last_entry
    vector[int64_t] sizes
    vector[int64_t] ends


cdef inline int64_t name_of(int64_t key, int sort_of) noexcept nogil:
    """Return a feature of a key: its pair, or that with its block from the start or the end."""
    cdef int64_t name = (key >> BITS_OF_BLOCKS) << (BITS_OF_BLOCKS + 2)
    if sort_of == 0:
        return name
    if sort_of == 1:
        return name | 1 << BITS_OF_BLOCKS | (key & FIRST_BLOCK)
    return name | 2 << BITS_OF_BLOCKS | (key & LAST_BLOCK)


cdef void note_features(
    Values values, const int32_t* words, int64_t n_words, Features& features
) noexcept nogil:
    """Note the features of some words."""
    cdef const uint8_t* text = begin_of(values.text)
    cdef int64_t owner, word, before, position, name, slot, n_slots, entry, n_keys, longest = 0
    cdef int64_t room = 0, feature, n_features = 0, n_entries, n_wide = 0
    cdef int32_t number
    cdef int sort_of
    cdef bint is_wide
    cdef Count count
    for owner in range(n_words):
        n_keys = 2 * (values.starts[words[owner] + 1] - values.starts[words[owner]]) + 1
        longest, room = max(longest, n_keys), room + 3 * n_keys
    n_slots = slots_for(room)
    if <int64_t>features.keys.size() < longest:
        features.keys.resize(longest)
    features.names.resize(n_slots)
    features.numbers.assign(n_slots, -1)
    features.entries.clear()
    features.last_entry.clear()
    features.sizes.clear()
    for owner in range(n_words):
        word, before = words[owner], features.entries.size()
        n_keys = write_keys(
            text, values.starts[word], values.starts[word + 1], features.keys.data()
        )
        for position in range(n_keys):
            for sort_of in range(3):
                name = name_of(features.keys[position], sort_of)
                slot = slot_of(name, features.names.data(), features.numbers.data(), n_slots)
                number = features.numbers[slot]
                if number < 0:
                    number = <int32_t>n_features
                    features.names[slot], features.numbers[slot] = name, number
                    features.last_entry.push_back(-1)
                    features.sizes.push_back(0)
                    n_features += 1
                entry = features.last_entry[number]
                if entry < before:
                    entry = features.entries.size()
                    features.last_entry[number] = entry
                    features.sizes[number] += 1
                    count.feature, count.owner, count.times = number, <int32_t>owner, 0
                    features.entries.push_back(count)
                features.entries[entry].times += PAIR if sort_of == 0 else 1
    features.wide_rows.assign(n_features, -1)
    features.offsets.assign(n_features + 1, 0)
    for feature in range(n_features):
        is_wide = n_words >= 2 * NARROW and features.sizes[feature] * NARROW > n_words
        if is_wide:
            features.wide_rows[feature] = n_wide
            n_wide += 1
        features.offsets[feature + 1] = features.offsets[feature]
        if not is_wide:
            features.offsets[feature + 1] += features.sizes[feature]
    features.wide.assign(n_wide * n_words, 0.0)
    features.ends.assign(features.offsets.begin(), features.offsets.end())
    features.owners.resize(features.offsets[n_features])
    features.counts.resize(features.offsets[n_features])
    n_entries = features.entries.size()
    for entry in range(n_entries):
        count = features.entries[entry]
        if features.wide_rows[count.feature] >= 0:
            features.wide[features.wide_rows[count.feature] * n_words + count.owner] = count.times
        else:
            position = features.ends[count.feature]
            features.owners[position], features.counts[position] = count.owner, count.times
            features.ends[count.feature] += 1
    features.times.assign(n_features, 0)
    features.seen.resize(n_features)


cdef void add_common(
    Values others,
    int64_t word,
    vector[int64_t]& keys,
    Features& features,
    int64_t n_owners,
    double* products,
) noexcept nogil:
    """Compute the dot products C of a word of some values with those whose features were noted.

    `keys` is room for the keys of the word; `products` (n_owners,) are written.
    """
    cdef const int64_t* names = features.names.data()
    cdef const int32_t* numbers = features.numbers.data()
    cdef int64_t* times_of = features.times.data()
    cdef const double* wide
    cdef int64_t n_slots = features.names.size(), n_seen = 0, position, owner, entry
    cdef int64_t n_keys = write_keys(
        begin_of(others.text), others.starts[word], others.starts[word + 1], keys.data()
    )
    cdef int32_t number
    cdef int sort_of
    cdef double times
    for owner in range(n_owners):
        products[owner] = 0.0
    for position in range(n_keys):
        for sort_of in range(3):
            number = numbers[slot_of(name_of(keys[position], sort_of), names, numbers, n_slots)]
            if number < 0:
                if sort_of == 0:  # where no word has the pair, none has it with a block
                    break
                continue
            if times_of[number] == 0:
                features.seen[n_seen] = number
                n_seen += 1
            times_of[number] += 1
    for position in range(n_seen):
        number = features.seen[position]
        times, times_of[number] = <double>times_of[number], 0
        if features.wide_rows[number] >= 0:
            wide = &features.wide[features.wide_rows[number] * n_owners]
            for owner in range(n_owners):
                products[owner] += times * wide[owner]
        else:
            for entry in range(features.offsets[number], features.offsets[number + 1]):
                products[features.owners[entry]] += times * features.counts[entry]


cdef void add_similarities(
    Values values,
    const int32_t* words,
    vector[double]& squares,
    Values others,
    int64_t other_word,
    vector[int64_t]& keys,
    Features& features,
    double letters,
    vector[double]& similarities,
) noexcept nogil:
    """Compute s of a word of other values with each of some, whose features were noted.

    `squares` (u,) are those of `words`; `similarities` (u,) are written.
    """
    cdef double* alike = similarities.data()
    cdef const double* square = squares.data()
    cdef int64_t number, word, size, n_words = squares.size()
    cdef double own = <double>others.squares[other_word], count
    cdef bint same = False
    cdef const uint8_t* text
    cdef const uint8_t* other_text
    add_common(others, other_word, keys, features, n_words, alike)
    for number in range(n_words):
        same |= alike[number] == own
    if not same:
        for number in range(n_words):
            alike[number] = letters * (alike[number] / sqrt(square[number] * own))
        return
    text, other_text = begin_of(values.text), begin_of(others.text) + others.starts[other_word]
    size = others.starts[other_word + 1] - others.starts[other_word]
    for number in range(n_words):
        count, word = alike[number], words[number]
        alike[number] = letters * (count / sqrt(square[number] * own))
        if (
            count == own
            and count == square[number]
            and compare_text(
                text + values.starts[word],
                values.starts[word + 1] - values.starts[word],
                other_text,
                size,
            ) == 0
        ):
            alike[number] = 1.0


cdef void squares_of(
    const int64_t[::1] squares, const int32_t* words, int64_t n_words, vector[double]& some
) noexcept nogil:
    """Write the dot products of some words with themselves."""
    cdef int64_t number
    some.resize(n_words)
    for number in range(n_words):
        some[number] = <double>squares[words[number]]


def value_distances(
    Values values not None,
    const int32_t[::1] words,
    const int64_t[::1] places,
    Values others not None,
    double letters,
    double[::view.strided, ::view.contiguous] distances,
):
    """Compute the distances of n values to m others.

    Parameters
    ----------
    words : numpy.ndarray of shape (u,), int32
        The words of the values.
    places : numpy.ndarray, int64
        Where each member of the values is in `words`, from their first offset on.
    distances : numpy.ndarray of shape (m, n), float64
        Written: fractions of the largest distance, infinite where a value has no words.
    """
    cdef int64_t n = values.norms.shape[0], n_words = words.shape[0], first_member, word, value
    cdef int64_t position, row
    cdef double nearness, weight, square
    cdef double* dots
    cdef const double* nearnesses
    cdef const double* norms
    cdef double[:, ::1] near = np.empty((others.weights.shape[0], n))
    cdef vector[double] squares, similarities
    cdef vector[int64_t] keys
    cdef Features features
    if not n or not others.norms.shape[0]:
        return
    with nogil:
        first_member, norms = values.offsets[0], &values.norms[0]
        if n_words:
            note_features(values, &words[0], n_words, features)
            squares_of(values.squares, &words[0], n_words, squares)
        similarities.resize(n_words)
        keys.resize(2 * longest_word(others.starts) + 1)
        for word in range(others.weights.shape[0]):
            if n_words:
                add_similarities(
                    values, &words[0], squares, others, word, keys, features, letters, similarities
                )
            for value in range(n):
                nearness = 0.0
                for position in range(values.offsets[value], values.offsets[value + 1]):
                    nearness += (
                        <double>values.weights[values.members[position]]
                        * similarities[places[position - first_member]]
                    )
                near[word, value] = nearness
        for row in range(others.norms.shape[0]):
            dots, square = &distances[row, 0], others.norms[row]
            for value in range(n):
                dots[value] = 0.0
            for position in range(others.offsets[row], others.offsets[row + 1]):
                weight = <double>others.weights[others.members[position]]
                nearnesses = &near[others.members[position], 0]
                for value in range(n):
                    dots[value] += weight * nearnesses[value]
            for value in range(n):
                dots[value] = sqrt(max(1.0 - dots[value] / sqrt(norms[value] * square), 0.0) * 0.5)
            for value in range(n):
                if not (square > 0.0 and norms[value] > 0.0):
                    dots[value] = INFINITY
                else:
                    dots[value] = with_marks(dots[value], values, value, others, row)


def keep_nearest(
    const double[::view.strided, ::view.contiguous] distances,
    const int64_t[::1] rows,
    const int64_t[::1] owners,
    double[::view.strided, ::view.contiguous] nearest,
):
    """Keep the least distance of each of n values, float64 (m, n), to the rows of each owner.

    `rows` and `owners`, int64, say which owner has which row; `nearest` float64 (r, n) is lowered.
    """
    cdef int64_t entry, value, n = distances.shape[1]
    cdef const double* mine
    cdef double* nearest_yet
    if not n:
        return
    with nogil:
        for entry in range(rows.shape[0]):
            mine, nearest_yet = &distances[rows[entry], 0], &nearest[owners[entry], 0]
            for value in range(n):
                nearest_yet[value] = min(nearest_yet[value], mine[value])


def value_squares(Values values not None, double letters, double[::1] norms):
    """Compute the dot product of each value with itself, its norm; 0 without words."""
    cdef int64_t value, first, last, position, n_words, number, other, repeat
    cdef int32_t word
    cdef double weight, total, nearness, alike
    cdef Largest largest
    cdef Table table
    cdef Features features
    cdef vector[int32_t] words
    cdef vector[int64_t] times, counts
    cdef vector[double] squares, similarities
    with nogil:
        largest = largest_value(values, 0, norms.shape[0])
        make_table(largest.keys_of_word, largest.keys, table)
        words.resize(largest.words)
        times.resize(largest.words)
        counts.resize(largest.words)
        for value in range(norms.shape[0]):
            first, last = values.offsets[value], values.offsets[value + 1]
            if last - first == 1:
                weight = <double>values.weights[values.members[first]]
                norms[value] = weight * weight
                continue
            # A word that a value repeats is compared once, and added as often as it is there.
            n_words = 0
            for position in range(first, last):
                if position == first or values.members[position] != values.members[position - 1]:
                    words[n_words], times[n_words] = values.members[position], 0
                    n_words += 1
                times[n_words - 1] += 1
            if n_words >= MANY:
                norms[value] = square_of_many(
                    values, words.data(), times, n_words, table.keys, letters, features, squares,
                    similarities,
                )
                continue
            add_words(values, words.data(), n_words, table)
            total = 0.0
            for number in range(n_words):
                word = words[number]
                count_common(values, word, table, n_words, counts.data())
                nearness = 0.0
                for other in range(n_words):
                    if counts[other] == 0:
                        continue
                    alike = 1.0 if words[other] == word else similarity(
                        counts[other], values.squares[words[other]], values.squares[word], letters
                    )
                    for repeat in range(times[other]):
                        nearness += <double>values.weights[words[other]] * alike
                for repeat in range(times[number]):
                    total += <double>values.weights[word] * nearness
            clear_table(table)
            norms[value] = total


cdef double square_of_many(
    Values values,
    const int32_t* words,
    vector[int64_t]& times,
    int64_t n_words,
    vector[int64_t]& keys,
    double letters,
    Features& features,
    vector[double]& squares,
    vector[double]& similarities,
) noexcept nogil:
    """Return the dot product of a value of many words with itself.

    `words` and `times` are its distinct words, ascending, and how often it has each; `keys` is room
    for the keys of a word, and the last three are room as well.
    """
    cdef int64_t number, other, repeat
    cdef double total = 0.0, nearness
    note_features(values, words, n_words, features)
    squares_of(values.squares, words, n_words, squares)
    similarities.resize(n_words)
    for number in range(n_words):
        add_similarities(
            values, words, squares, values, words[number], keys, features, letters, similarities
        )
        nearness = 0.0
        for other in range(n_words):
            for repeat in range(times[other]):
                nearness += <double>values.weights[words[other]] * similarities[other]
        for repeat in range(times[number]):
            total += <double>values.weights[words[number]] * nearness
    return total


cdef cppclass Pairs:
    """Working memory for the distances of one value to others: keys of their words, its features.
    """

    vector[int64_t] keys
    vector[double] squares
    vector[double] similarities
    Features features


cdef void note_value(Values values, int64_t value, Pairs& pairs) noexcept nogil:
    """Note the words of a value, for its distances to others."""
    cdef int64_t first = values.offsets[value], n_words = values.offsets[value + 1] - first
    if n_words:
        note_features(values, &values.members[first], n_words, pairs.features)
        squares_of(values.squares, &values.members[first], n_words, pairs.squares)
    pairs.similarities.resize(n_words)


cdef double distance_of(
    Values values, int64_t value, Values others, int64_t row, double letters, Pairs& pairs
) noexcept nogil:
    """Return the distance of a value that was noted to another; infinite where one has no words."""
    cdef int64_t first = values.offsets[value], n_words = values.offsets[value + 1] - first
    cdef int64_t position, number
    cdef int32_t word
    cdef double total = 0.0, nearness
    cdef const int32_t* words
    if not (values.norms[value] > 0.0 and others.norms[row] > 0.0):
        return INFINITY
    words = &values.members[first]
    for position in range(others.offsets[row], others.offsets[row + 1]):
        word, nearness = others.members[position], 0.0
        add_similarities(
            values, words, pairs.squares, others, word, pairs.keys, pairs.features, letters,
            pairs.similarities,
        )
        for number in range(n_words):
            nearness += <double>values.weights[words[number]] * pairs.similarities[number]
        total += <double>others.weights[word] * nearness
    return distance_of_product(total, values, value, others, row)


cdef double distance_of_product(
    double product, Values values, int64_t value, Values others, int64_t row
) noexcept nogil:
    """Return the distance of two values with words, given their dot product."""
    cdef double cosine = product / sqrt(values.norms[value] * others.norms[row])
    return with_marks(sqrt(max(1.0 - cosine, 0.0) * 0.5), values, value, others, row)


def pair_distances(
    Values values not None,
    const int64_t[:] left,
    Values others not None,
    const int64_t[:] right,
    double letters,
    double[::1] distances,
):
    """Compute the distance of each pair of a value and another, float64; infinite without words.

    Pairs of one value should follow each other: what a word of the others has in common with it is
    computed once.
    """
    cdef int64_t pair, value, row, position, first, number, n_words = 0, noted = -1
    cdef int32_t word
    cdef double total
    cdef const int32_t* words = NULL
    cdef Pairs pairs
    cdef vector[int64_t] noted_for
    cdef vector[double] nearness
    with nogil:
        pairs.keys.resize(2 * longest_word(others.starts) + 1)
        noted_for.assign(others.weights.shape[0], -1)
        nearness.resize(others.weights.shape[0])
        for pair in range(distances.shape[0]):
            value, row = left[pair], right[pair]
            if not (values.norms[value] > 0.0 and others.norms[row] > 0.0):
                distances[pair] = INFINITY
                continue
            if value != noted:
                note_value(values, value, pairs)
                first = values.offsets[value]
                n_words = values.offsets[value + 1] - first
                words = &values.members[first]
                noted = value
            total = 0.0
            for position in range(others.offsets[row], others.offsets[row + 1]):
                word = others.members[position]
                if noted_for[word] != value:
                    add_similarities(
                        values, words, pairs.squares, others, word, pairs.keys, pairs.features,
                        letters, pairs.similarities,
                    )
                    noted_for[word], nearness[word] = value, 0.0
                    for number in range(n_words):
                        nearness[word] += (
                            <double>values.weights[words[number]] * pairs.similarities[number]
                        )
                total += <double>others.weights[word] * nearness[word]
            distances[pair] = distance_of_product(total, values, value, others, row)


def unmatched_shares(
    Values values not None, Values others not None, double letters, double[::1] shares
):
    """Compute how much of each value and that of the same row is unmatched, float64; 0 without
    words.

    Of each side it is the share of the weights of its words, less what each has in common with the
    word of the other side that is the most like it; the lesser share counts.
    """
    cdef int64_t row, first, n_words, position, number
    cdef int32_t word
    cdef double weight, nearest, total, missing, my_total, my_missing
    cdef const int32_t* words
    cdef vector[int64_t] keys
    cdef vector[double] squares, similarities, my_nearest
    cdef Features features
    with nogil:
        keys.resize(2 * longest_word(others.starts) + 1)
        for row in range(shares.shape[0]):
            shares[row] = 0.0
            first = values.offsets[row]
            n_words = values.offsets[row + 1] - first
            if n_words == 0 or others.offsets[row] == others.offsets[row + 1]:
                continue
            words = &values.members[first]
            note_features(values, words, n_words, features)
            squares_of(values.squares, words, n_words, squares)
            similarities.resize(n_words)
            my_nearest.assign(n_words, 0.0)
            total = missing = my_total = my_missing = 0.0
            for position in range(others.offsets[row], others.offsets[row + 1]):
                word, nearest = others.members[position], 0.0
                add_similarities(
                    values, words, squares, others, word, keys, features, letters, similarities
                )
                for number in range(n_words):
                    nearest = max(nearest, similarities[number])
                    my_nearest[number] = max(my_nearest[number], similarities[number])
                weight = <double>others.weights[word]
                missing += weight * (1.0 - nearest)
                total += weight
            for number in range(n_words):
                weight = <double>values.weights[words[number]]
                my_missing += weight * (1.0 - my_nearest[number])
                my_total += weight
            shares[row] = min(missing / total, my_missing / my_total)
