"""The index on disk: names, bytes, checksums and arrays, and nothing of what they mean.

`local` and `remote` build and open it, `integrity` checks every byte; `manifest` says what it is
made of, and `arrays` and `texts` are its two kinds of large files.
"""
