# How many keys are hit by chance.

cdef enum:
    DIGIT = 2  # a kind of letters, of `pexeso.transform.learning.chance`
    FOLLOWING_DIGITS = 2


def expected_hits(
    const int64_t[::1] codes,
    const int64_t[::1] offsets,
    const int8_t[::1] kinds,
    const int64_t[::1] forms,
    const uint8_t[::1] is_written,
    int64_t n_written,
    double scale,
    const int64_t[::1] n_texts,
    const int64_t[::1] first_place,
    const int64_t[::1] pairs,
    const int64_t[::1] n_of_pair,
    const int64_t[::1] n_kinds,
    const int64_t[::1] same_as,
    const int64_t[::1] n_varied,
    double following,
):
    """Return how many of the texts behind those that were written are hit by chance.

    See `pexeso.transform.learning.chance` for the arrays.
    """
    cdef double total = 0.0, one, share
    cdef int64_t key, text, form, itself, at, place, same, pair, position, count, others, kind, n_digits
    cdef int64_t n_pairs = pairs.shape[0]
    cdef const int64_t* known = &pairs[0] if n_pairs else NULL
    with nogil:
        for key in range(forms.shape[0] - n_written):
            text = n_written + key
            form = forms[text]
            if form >= n_texts.shape[0]:
                continue
            itself = 1 if is_written[key] else 0
            one, n_digits = <double>n_texts[form] * scale, 0
            for at in range(offsets[text], offsets[text + 1]):
                place = first_place[form] + at - offsets[text]
                same = same_as[place]
                if same != place:
                    if codes[offsets[text] + same - first_place[form]] != codes[at]:
                        one = 0.0
                    continue
                pair = place * kinds.shape[0] + codes[at]
                position = lower_bound(known, known + n_pairs, pair) - known
                count = 0
                if position < n_pairs and pairs[position] == pair:
                    count = n_of_pair[position]
                kind = kinds[codes[at]]
                if kind > 0 and (n_kinds[place] > 1 or n_texts[form] == 1):
                    others = n_texts[form] - itself + n_varied[kind]
                    share = <double>(count - itself + 1) / <double>others
                    if kind != DIGIT or n_digits < FOLLOWING_DIGITS:
                        share = share * following
                        n_digits += kind == DIGIT
                    if share < 1.0:
                        one = one * share
                elif count == 0:
                    one = 0.0
            total += 1.0 if one > 1.0 else one
    return total
