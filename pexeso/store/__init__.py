"""The index on disk: names, bytes, checksums and arrays, and nothing of what they mean.

`writer` builds it, `reader` opens it, `scan` goes through its partitions, `integrity` checks every
byte; `manifest` says what it is made of, and `arrays` and `texts` are its two kinds of large files.
"""
