"""Access to fsspec and pyarrow: the lower half of `pexeso.store.io.location`.

Their answers and errors are converted to those of pexeso.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pexeso.errors import InputError, MissingPackageError, PexesoError, PlaceError

S3_PROTOCOLS = ("s3", "s3a")

_PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*@")
_SECRET_NAME = re.compile(
    r"secret|token|passw|key|credential|signature|connection_string", re.IGNORECASE
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VERSION_FIELDS = ("ETag", "etag", "e_tag")
_TIME_FIELDS = ("LastModified", "last_modified", "mtime", "updated", "modified")
_MAX_MESSAGE = 300
_NOT_FOUND, _CONFLICT, _CONDITION_FAILED = 404, 409, 412
_ATTEMPTS = 6
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class PlaceEntry:
    """What a storage says about one name.

    Attributes
    ----------
    name
        The last part of the path; empty for a folder without a name, as the key ``a//b.csv`` makes
        one.
    kind
        ``file``, ``folder``, or ``other``.
    n_bytes
        Size in bytes; 0 where it is no file.
    modified
        When it was last changed, in nanoseconds since 1970; None where the storage does not say.
        Whole seconds where there is a version: some requests tell no more.
    version
        A text that changes whenever the bytes do (the ETag of S3); None where the storage has none.
    """

    name: str
    kind: Literal["file", "folder", "other"]
    n_bytes: int
    modified: int | None
    version: str | None


def as_fsspec(filesystem: Any) -> Any:
    """Return a filesystem of fsspec, one of pyarrow wrapped; None for anything else."""
    arrow, spec = sys.modules.get("pyarrow.fs"), sys.modules.get("fsspec.spec")
    if arrow is not None and isinstance(filesystem, arrow.FileSystem):
        import_fsspec()
        from fsspec.implementations.arrow import ArrowFSWrapper

        return ArrowFSWrapper(filesystem)
    return (
        filesystem if spec is not None and isinstance(filesystem, spec.AbstractFileSystem) else None
    )


def import_fsspec() -> Any:
    """Import fsspec, which is needed for other storages alone."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingPackageError(
            "To reach other storages needs fsspec: pip install 'pexeso[s3]'."
        ) from error
    return fsspec


def filesystem_class(protocol: str, shown: str) -> Any:
    """Return the fsspec class for a protocol; `shown` is the URL in messages."""
    fsspec = import_fsspec()
    try:
        return fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        way_out = "pip install 'pexeso[s3]'" if protocol in S3_PROTOCOLS else _one_line(error)
        raise MissingPackageError(f"A package is missing to reach '{shown}': {way_out}.") from error
    except ValueError as error:
        raise InputError(
            f"The protocol of '{shown}' is not known: give a path, or an URL such as "
            "s3://bucket/folder."
        ) from error


def shown_url(url: str) -> str:
    """Return a URL without its password, and a web address also without its query.

    The query of a web address may be a signature.
    """
    url = _PASSWORD.sub(r"\1@", url)
    return url.partition("?")[0] if url.startswith(("http:", "https:")) else url


def entry_of(info: Mapping[str, Any]) -> PlaceEntry:
    """Read what an fsspec filesystem says about one name."""
    kinds: dict[str, Literal["file", "folder"]] = {"file": "file", "directory": "folder"}
    kind = kinds.get(info.get("type", ""), "other")
    name = str(info["name"])
    last = name.rstrip("/") if kind == "folder" and not name.endswith("/") else name
    version = (
        next((str(info[key]) for key in _VERSION_FIELDS if info.get(key)), None)
        if kind == "file"
        else None
    )
    modified = next((_nanoseconds(info[key]) for key in _TIME_FIELDS if info.get(key)), None)
    if modified is not None and version is not None:
        modified -= modified % 10**9
    n_bytes = int(info.get("size") or 0) if kind == "file" else 0
    return PlaceEntry(last.rpartition("/")[2], kind, n_bytes, modified, version)


def put_object_if(filesystem: Any, path: str, data: bytes, expected: str | None) -> str | None:
    """Write an object through s3fs if the stored object has the expected version.

    With an expected version of None, the object is written only if there is none yet.

    Returns
    -------
    str or None
        The new version; None where the condition did not hold. Whoever asks again after a broken
        connection may find that a first request had been done: so None does not say that these very
        bytes are not there.
    """
    condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
    bucket, key, _ = filesystem.split_path(path)
    for attempt in range(_ATTEMPTS):
        try:
            answer = filesystem.call_s3(
                "put_object", Bucket=bucket, Key=key, Body=data, **condition
            )
            return str(answer["ETag"])
        except Exception as error:
            status = _status(error)
            if (
                status == _CONFLICT
            ):  # another request for this key is under way, and nothing has been decided
                time.sleep(_PAUSE_SECONDS * 2**attempt)
            elif status == _CONDITION_FAILED or (status == _NOT_FOUND and expected is not None):
                return None
            else:
                raise
    return None


def _status(error: BaseException | None) -> int | None:
    """Return the HTTP status behind an error of s3fs, which keeps botocore's as its cause."""
    while error is not None:
        answer = getattr(error, "response", None)
        if isinstance(answer, Mapping):
            return answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        error = error.__cause__
    return None


def _nanoseconds(moment: Any) -> int | None:
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1) * 1000
    return int(moment * 1e9) if isinstance(moment, int | float) else None


@contextmanager
def plain_errors(url: str, options: Mapping[str, Any], done: str) -> Iterator[None]:
    """Replace errors of storage packages in the block by one sentence without credentials.

    A storage package may raise any exception.
    """
    try:
        yield
    except (PexesoError, MemoryError):
        raise
    except ImportError as error:
        raise MissingPackageError(
            f"A package is missing to reach '{url}': {_one_line(error)}."
        ) from error
    except Exception as error:
        raise PlaceError(f"'{url}' cannot be {done}: {_reason(error, options)}.") from error


def is_refusal(error: PlaceError) -> bool:
    """Return whether the storage answered that a name is missing or must not be read.

    Any other error says nothing about the name: asked again, the storage may give it.
    """
    return isinstance(error.__cause__, FileNotFoundError | PermissionError)


def _reason(error: Exception, options: Mapping[str, Any]) -> str:
    text = _one_line(error)
    if isinstance(error, FileNotFoundError):
        return text[0].lower() + text[1:] if "bucket" in text else "there is no such file or folder"
    for secret in _secrets(options):
        text = text.replace(secret, "***")
    text = _PASSWORD.sub(r"\1@", text)
    return f"there is no permission ({text})" if isinstance(error, PermissionError) else text


def _one_line(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split()).rstrip(".")[:_MAX_MESSAGE]


def _secrets(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and len(value) > 2 and _SECRET_NAME.search(name):
            yield value
