# Cells row by row, posting lists of their values, and super keys of rows.


def row_after_row(
    const int32_t[::1] by_column,
    const int64_t[::1] table_rows,
    const int64_t[::1] table_columns,
    int32_t[::1] cells,
):
    """Write the cells of tables, which stand column by column, row by row."""
    cdef int64_t at = 0, table, n, width, column, row
    with nogil:
        for table in range(table_rows.shape[0] - 1):
            n = table_rows[table + 1] - table_rows[table]
            width = table_columns[table + 1] - table_columns[table]
            for column in range(width):
                for row in range(n):
                    cells[at + row * width + column] = by_column[at + column * n + row]
            at += n * width


def count_postings(
    const int32_t[::1] cells,
    const int64_t[::1] table_rows,
    const int64_t[::1] widths,
    int64_t[::1] last_row,
    int64_t[::1] ends,
):
    """Count the rows of each value in `ends`, one place behind it; `last_row` is all -1."""
    cdef int64_t at = 0, end, table, row
    cdef int32_t value
    with nogil:
        for table in range(widths.shape[0]):
            for row in range(table_rows[table], table_rows[table + 1]):
                end = at + widths[table]
                while at < end:
                    value = cells[at]
                    at += 1
                    if value >= 0:  # without a branch for those met before
                        ends[value + 1] += last_row[value] != row
                        last_row[value] = row


def fill_postings(
    const int32_t[::1] cells,
    const int64_t[::1] table_rows,
    const int64_t[::1] widths,
    int64_t[::1] last_row,
    int64_t[::1] next_entry,
    int32_t[::1] posting_rows,
):
    """Write the rows of each value from its `next_entry` on; `last_row` is all -1."""
    cdef int64_t at = 0, end, table, row
    cdef int32_t value
    with nogil:
        for table in range(widths.shape[0]):
            for row in range(table_rows[table], table_rows[table + 1]):
                end = at + widths[table]
                while at < end:
                    value = cells[at]
                    at += 1
                    if value >= 0 and last_row[value] != row:
                        last_row[value] = row
                        posting_rows[next_entry[value]] = <int32_t>row
                        next_entry[value] += 1


def join_bits(
    const int32_t[::1] cells,
    const int64_t[::1] table_rows,
    const int64_t[::1] widths,
    const uint64_t[:, ::1] hashes,
    uint64_t[:, ::1] words,
):
    """Set in the super key of each row, uint64 (rows, w), the bits of its values."""
    cdef int64_t at = 0, end, table, row, word
    cdef int32_t value
    with nogil:
        for table in range(widths.shape[0]):
            for row in range(table_rows[table], table_rows[table + 1]):
                end = at + widths[table]
                while at < end:
                    value = cells[at]
                    at += 1
                    if value >= 0:
                        for word in range(hashes.shape[1]):
                            words[row, word] |= hashes[value, word]
