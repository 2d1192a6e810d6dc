# What tells values apart beside their words; `pexeso/engine/sparse/marks.py` defines it.

cdef bint has_member(Values values, int64_t value, int64_t mark) noexcept nogil:
    """Return whether a value has the member of a mark, whatever the group."""
    cdef int64_t position
    for position in range(values.mark_offsets[value], values.mark_offsets[value + 1]):
        if (values.marks[position] ^ mark) << (64 - BITS_OF_MEMBER) == 0:
            return True
    return False


cdef bint are_apart(Values values, int64_t value, Values others, int64_t other) noexcept nogil:
    """Return whether the marks of two values tell them apart; strict ones, if letters differ."""
    cdef int64_t mine = values.mark_offsets[value], my_end = values.mark_offsets[value + 1]
    cdef int64_t its = others.mark_offsets[other], its_end = others.mark_offsets[other + 1]
    cdef int64_t group, my_mark, its_mark
    cdef bint i_have_more, it_has_more, have_same_letters = (
        values.letters[value] == others.letters[other] and values.letters[value] != 0
    )
    if mine == my_end and its == its_end:
        return False
    while mine < my_end or its < its_end:
        group = min(
            values.marks[mine] if mine < my_end else INT64_MAX,
            others.marks[its] if its < its_end else INT64_MAX,
        ) >> BITS_OF_MEMBER
        if group == LETTERS_GROUP:
            break
        i_have_more = it_has_more = False
        while True:
            my_mark = its_mark = 0
            if mine < my_end and values.marks[mine] >> BITS_OF_MEMBER == group:
                my_mark = values.marks[mine]
            if its < its_end and others.marks[its] >> BITS_OF_MEMBER == group:
                its_mark = others.marks[its]
            if my_mark == 0 and its_mark == 0:
                break
            if my_mark == its_mark:
                mine += 1
                its += 1
            elif its_mark == 0 or (my_mark != 0 and my_mark < its_mark):
                i_have_more |= group != EDGE or not has_member(others, other, my_mark)
                mine += 1
            else:
                it_has_more |= group != EDGE or not has_member(values, value, its_mark)
                its += 1
        if (i_have_more and it_has_more) or (
            group >= STRICT_GROUPS and (i_have_more or it_has_more) and not have_same_letters
        ):
            return True
    return False


cdef bint differ_in_a_letter(
    Values values, int64_t value, Values others, int64_t other
) noexcept nogil:
    """Return whether two values have a mark of letters in common."""
    cdef int64_t mine = values.mark_offsets[value + 1] - 1, my_first = values.mark_offsets[value]
    cdef int64_t its = others.mark_offsets[other + 1] - 1, its_first = others.mark_offsets[other]
    while mine >= my_first and its >= its_first:
        if values.marks[mine] >> BITS_OF_MEMBER != LETTERS_GROUP:
            break
        if values.marks[mine] == others.marks[its]:
            return True
        if values.marks[mine] > others.marks[its]:
            mine -= 1
        else:
            its -= 1
    return False


cdef inline double factor_of(int64_t sounds, int64_t others) noexcept nogil:
    """Return what the distance of two values is multiplied with, given what they sound like."""
    cdef int64_t differ = sounds ^ others, n_consonants
    if sounds == 0 or others == 0 or differ >> BITS_BELOW_CONSONANTS != 0:
        return 1.0
    if differ & OTHER_SCRIPT == 0:
        return 1.0
    n_consonants = (sounds >> BITS_BELOW_CONSONANTS) & NUMBER_OF_CONSONANTS
    if differ == OTHER_SCRIPT:
        return FACTORS_OF_SOUNDS[n_consonants]
    return FACTORS_OF_CONSONANTS[n_consonants]


cdef double with_marks(
    double distance, Values values, int64_t value, Values others, int64_t other
) noexcept nogil:
    """Return the distance of two values, given that of their words."""
    if are_apart(values, value, others, other):
        return max(distance, 1.0)
    if values.forms[value] == others.forms[other]:
        return distance
    if distance < SAME_WORDS:
        return DISTANCE_OF_TURNED
    distance *= factor_of(values.sounds[value], others.sounds[other])
    if values.letters[value] == others.letters[other] and values.letters[value] != 0:
        return min(distance, DISTANCE_OF_REGROUPED)
    if distance > DISTANCE_OF_ONE_LETTER and differ_in_a_letter(values, value, others, other):
        return DISTANCE_OF_ONE_LETTER
    return distance
