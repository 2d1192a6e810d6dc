"""What the package computes, in plain Python, slow and short."""

import unicodedata
from collections import Counter
from itertools import permutations

PAPER = "0123456789abcdefghijklmnopqrstuvwxyz "


def xash(text, bits=128, ones=6):
    """XASH as an integer."""
    if not text:
        return 0
    areas = (bits - 1) // 37
    region, length = 37 * areas, len(text)
    places = {}
    for place, letter in enumerate(text, 1):
        places.setdefault(letter, []).append(place)

    def segment(letter):
        if letter in PAPER:
            return PAPER.index(letter)
        category = unicodedata.ucd_3_2_0.category(letter)
        return ord(letter) % 37 if category[0] in "LN" else None

    ranked = sorted(places, key=lambda letter: (len(places[letter]), letter))
    ranked = [letter for letter in ranked if segment(letter) is not None]
    mask = 1 << (region + length % (bits - region))
    for letter in ranked[: ones - 1]:
        here = places[letter]
        area = -(-sum(here) * areas // (len(here) * length))
        bit = segment(letter) * areas + area
        mask |= 1 << ((region - bit + length % region) % region)
    return mask


def murmur3(data, seed):
    """Murmur3 of 32 bits."""
    mask = 0xFFFFFFFF

    def turned(word, n):
        return ((word << n) | (word >> (32 - n))) & mask

    state = seed
    for at in range(0, len(data), 4):
        word = int.from_bytes(data[at : at + 4], "little")
        state ^= turned(word * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
        if len(data) - at >= 4:
            state = (turned(state, 13) * 5 + 0xE6546B64) & mask
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    return state ^ state >> 16


def bloom(text, bits, n_hashes):
    """Return the bits of a text in a Bloom filter, as an integer."""
    mask = 0
    for seed in range(n_hashes if text else 0):
        mask |= 1 << murmur3(text.encode(), seed) % bits
    return mask


def as_integers(hashes):
    """Return hashes in words as integers."""
    integers = []
    for words in hashes.tolist():
        number = 0
        for word in words:
            number = number << 64 | word
        integers.append(number)
    return integers


def keys_of(query):
    """Return the distinct keys of query rows, with how many rows have each."""
    return Counter(tuple(row) for row in query if all(row))


def joined(table, columns, keys):
    """Return the rows of a table whose values in some columns are a key, and that key."""
    pairs = []
    for row, cells in enumerate(table):
        key = tuple(cells[column] for column in columns)
        if key in keys:
            pairs.append((row, key))
    return pairs


def best_mapping(table, keys):
    """Return the most keys that a table joins, and the first mapping that joins as many."""
    width, m = (len(table[0]) if table else 0), len(next(iter(keys)))
    best = (0, None)
    for columns in permutations(range(width), m):
        n = len({key for _, key in joined(table, columns, keys)})
        if n > best[0]:
            best = (n, columns)
    return best


def search(tables, query, k=None, at_least=1, excluded=()):
    """Search tables, lists of rows, for the keys of a query, by trying every mapping of each."""
    keys = keys_of(query)
    matches = []
    for number, table in enumerate(tables):
        n, columns = best_mapping(table, keys) if keys else (0, None)
        if n < at_least or number in excluded:
            continue
        pairs = joined(table, columns, keys)
        rows = Counter(key for _, key in pairs)
        matches.append(
            {
                "table": number,
                "keys": n,
                "columns": columns,
                "rows": len(pairs),
                "query_rows": sum(keys[key] for key in rows),
                "joined_rows": sum(keys[key] * n_rows for key, n_rows in rows.items()),
                "rows_a_key": max(rows.values()),
                "query_rows_a_key": max(keys[key] for key in rows),
            }
        )
    matches.sort(key=lambda one: (-one["keys"], one["table"]))
    return matches[:k]
