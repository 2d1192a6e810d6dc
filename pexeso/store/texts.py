"""Lists of texts on disk: one column in an Arrow IPC file, opened memory-mapped."""

from pathlib import Path

import pyarrow as pa

from pexeso.errors import IndexCorruptError, InputError
from pexeso.store.files import new_file
from pexeso.store.manifest import FileEntry

Texts = pa.StringArray | pa.LargeStringArray

_COLUMN = "text"
_TYPES = (pa.string(), pa.large_string())
_SCHEMAS = tuple(pa.schema([(_COLUMN, kind)]) for kind in _TYPES)


def write_texts(path: Path, texts: Texts | pa.ChunkedArray) -> FileEntry:
    """Write texts as one record batch of one column, and wait until the file is on the disk.

    Parameters
    ----------
    path
        The file; it must not exist yet.
    texts
        Arrow texts, nulls allowed, none at all allowed. Chunked texts are joined to one array, of ``large_string``
        where they are too long for ``string`` (2 GiB).

    Raises
    ------
    InputError
        `texts` is something else.
    OutputError
        The file exists, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "values.arrow"
    >>> entry = write_texts(path, pa.array(["oslo", "lima"]))
    >>> open_texts(path).to_pylist()
    ['oslo', 'lima']
    """
    array = _one_array(texts)
    schema = pa.schema([(_COLUMN, array.type)])
    batch = pa.record_batch([array], schema=schema)
    with new_file(path) as file, pa.ipc.new_file(pa.PythonFile(file, mode="w"), schema) as writer:
        writer.write_batch(batch)
    return file.entry(path.name)


def open_texts(path: Path) -> Texts:
    """Open texts memory-mapped; their bytes are read when they are used.

    Raises
    ------
    IndexCorruptError
        The file is missing, or not one that `write_texts` wrote.
    """
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path), "r"))
        if reader.schema not in _SCHEMAS or reader.num_record_batches != 1:
            raise pa.ArrowInvalid("it must hold one batch of one column of texts")
        texts = reader.get_batch(0).column(0)
        texts.validate()
    except (pa.ArrowException, OSError) as error:
        raise IndexCorruptError(f"'{path}' is not a list of texts that pexeso wrote: {error}.") from error
    return texts


def _one_array(texts: Texts | pa.ChunkedArray) -> Texts:
    if not isinstance(texts, pa.Array | pa.ChunkedArray) or texts.type not in _TYPES:
        got = texts.type if isinstance(texts, pa.Array | pa.ChunkedArray) else type(texts).__name__
        raise InputError(f"Texts must be an Arrow array of string or large_string. Got {got}.")
    if isinstance(texts, pa.Array):
        return texts
    if texts.type == pa.string() and texts.nbytes >= 2**31:
        texts = texts.cast(pa.large_string())
    joined = texts.combine_chunks()
    return joined if isinstance(joined, pa.Array) else joined.chunk(0)
