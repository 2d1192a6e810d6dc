"""Commits on other storage by one conditional write of the manifest.

Of two concurrent builds one wins, and the other learns that it has lost.

Only S3 and what is compatible with it has such writes, and not every such server does them: that is
tried out before anything is uploaded.
"""

import secrets

from pexeso.errors import OutputError, PlaceError, StoredIndexError
from pexeso.store.io.location import Location
from pexeso.store.manifest import MAX_MANIFEST_BYTES, Manifest
from pexeso.store.paths import BUILDING, MANIFEST


def require_safe_commits(location: Location) -> None:
    """Require that builds can commit safely at a place.

    The check writes an object below ``.building/`` and removes it.
    """
    if not location.has_conditions:
        is_s3 = location.protocol in ("s3", "s3a")
        why = (
            "was given as a filesystem that does not offer them, so give its URL"
            if is_s3
            else "is neither"
        )
        raise _unsafe(location, f"'{location}' {why}")
    probe = location.joined(f"{BUILDING}/probe-{secrets.token_hex(8)}")
    try:
        try:
            works = _does_conditions(probe)
        finally:
            probe.remove()
    except PlaceError as error:
        raise _unsafe(location, f"it could not be tried out at '{location}' ({error})") from error
    if not works:
        raise _unsafe(
            location,
            f"the server of '{location}' writes where the condition of a write does not hold",
        )


def commit_manifest(location: Location, data: bytes, expected: str | None) -> str:
    """Make a manifest the current one at a place unless another build has committed there.

    Parameters
    ----------
    data
        The bytes of the manifest; every file that it lists is there already.
    expected
        The version of the manifest that is replaced; None where there was none.
    """
    file = location.joined(MANIFEST)
    try:
        version = file.put_if(data, expected)
        contents = file.read() if version is not None or file.look() is not None else b""
    except PlaceError as error:
        raise PlaceError(
            f"It is not known whether the index was put in place at '{location}', look at it "
            f"there: {error}"
        ) from error
    if contents == data:
        # Also where the condition did not hold: an answer was lost, and what was asked again had
        # been done.
        return version or _version(file)
    if version is not None and _follows(contents, data):
        return version
    raise OutputError(
        f"Another build has committed to '{location}' since this one began, so this one was not "
        "put in place: build again "
        "from what is there now."
    )


def _does_conditions(probe: Location) -> bool:
    """Try out all four cases: nothing there or not, the right version or not."""
    version = probe.put_if(b"first", None)
    if version is None or probe.put_if(b"second", None) is not None:
        return False
    if probe.put_if(b"third", f'"{"0" * 32}"') is not None or probe.read() != b"first":
        return False
    return probe.put_if(b"fourth", version) is not None and probe.read() == b"fourth"


def _version(file: Location) -> str:
    entry = file.look()
    return entry.version or "" if entry is not None else ""


def _follows(contents: bytes, data: bytes) -> bool:
    """Return whether a manifest is of a later commit, made on top of the one of `data`."""
    try:
        later = Manifest.from_bytes(contents[: MAX_MANIFEST_BYTES + 1])
    except StoredIndexError:
        return False
    return later.generation > Manifest.from_bytes(data).generation


def _unsafe(location: Location, why: str) -> OutputError:
    return OutputError(
        "An index can be written to a local folder, and to S3 or what is compatible with it "
        "where conditional writes "
        f"work; {why}. Build the index in a local folder, and copy that folder there while "
        "nobody reads it."
    )
