"""Errors of pexeso: one class for each kind of problem that a caller may want to tell apart.

::

    PexesoError
    ├── InputError (ValueError)        an argument, option or query is not one of those allowed
    │   ├── ColumnNotFoundError        the table has no such column
    │   └── QueryError                 a query column or a line of a batch file cannot be used
    ├── TableReadError                 a file cannot be read as a table
    ├── LakeError                      a lake cannot be indexed: absent, or without a usable column
    ├── EmbedderError                  a model is missing, unreadable, or another than the index's
    ├── MissingPackageError            an optional package is needed for what was asked
    ├── SparkError                     Spark or the Java it needs cannot be started
    ├── BuildError                     a process or a task of a build did not end well
    ├── OutputError                    a result cannot be written: one is there, no space, no right
    ├── PlaceError                     a remote store cannot be reached, or refuses to read or write
    ├── DeviceError                    the device is not there, or its memory does not suffice
    └── StoredIndexError               a folder is not an index that this version can search
        ├── IndexNotFoundError         there is no index
        ├── IndexVersionError          written by another format version
        └── IndexCorruptError          a file of the index is missing, cut short or changed

Messages are one sentence or two: what, where, what is allowed, what was got, the way out.
All of them survive pickling, so that a failure in a worker process arrives whole.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class PexesoError(Exception):
    """Base of every error that pexeso raises on purpose."""


class InputError(PexesoError, ValueError):
    """An argument, option or query is not one of those allowed."""


class ColumnNotFoundError(InputError):
    """The table has no such column."""


class QueryError(InputError):
    """A query column or a line of a batch file cannot be used."""


class TableReadError(PexesoError):
    """A file cannot be read as a table."""


class LakeError(PexesoError):
    """A lake cannot be indexed: it is not there, or no usable column is in it."""


class EmbedderError(PexesoError):
    """A model is missing, unreadable, or not the one the index was built with."""


class MissingPackageError(PexesoError):
    """An optional package is needed for what was asked."""


class SparkError(PexesoError):
    """Spark, or the Java it needs, cannot be started."""


class BuildError(PexesoError):
    """A process or a task of a build did not end well."""


class OutputError(PexesoError):
    """A result cannot be written where it was asked to go."""


class PlaceError(PexesoError):
    """A storage elsewhere cannot be reached, or refuses to read or write."""


class DeviceError(PexesoError):
    """The device asked for is not there, or its memory does not suffice."""


class StoredIndexError(PexesoError):
    """A folder is not an index that this version can search."""


class IndexNotFoundError(StoredIndexError):
    """There is no index at the path."""


class IndexVersionError(StoredIndexError):
    """The index was written by another format version."""


class IndexCorruptError(StoredIndexError):
    """A file of the index is missing, cut short or changed."""


@contextmanager
def failing_as(kind: type[PexesoError], what: str, way_out: str = "") -> Iterator[None]:
    """Raise an error of a kind where the system fails: what cannot be done, and why it says so."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror or error}.{way_out}") from error
