"""From a lake on S3 to an index on S3 and to answers: the same as with both on this machine."""

import pandas as pd
import pytest
from s3_server import copied_to

import pexeso
from pexeso.build.diagnostics.info import last_report
from pexeso.errors import OutputError
from pexeso.store.io.location import Location

pytestmark = pytest.mark.slow
TOWNS = ["oslo", "Rome", "Madrid", "vienna", "Paris"]


@pytest.fixture
def reached(s3_server, monkeypatch, tmp_path):
    """Let this process and its children reach the server, with a cache in a test folder."""
    for name, value in {**s3_server.environment, "PEXESO_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def lake(bucket, small_lake) -> Location:
    return copied_to(bucket.joined("lake"), small_lake)


def answers(index) -> list[tuple]:
    result = index.search(TOWNS, min_joinability=0.2, max_distance=0.1)
    by_meaning = [
        (
            match.table,
            match.column,
            match.matched,
            match.total,
            [(p.query, p.value) for p in match.pairs()],
        )
        for match in result
    ]
    by_text = [*index.overlap(TOWNS), *index.contain(TOWNS, min_containment=0.2)]
    return [
        *by_meaning,
        *((match.table, match.column, match.overlap, match.shared()) for match in by_text),
    ]


def no_luck(*_: object, **__: object) -> None:
    raise OutputError("no luck")


def test_lake_and_index_elsewhere_answer_as_those_here(
    reached, lake, bucket, small_index, small_lake, tmp_path, monkeypatch
):
    here = pexeso.open_index(small_index, device="cpu")
    url = f"{bucket}/lake.pexeso"
    # The place itself, since the tasks of the shared session were started without the server's
    # environment.
    place = bucket.joined("lake.pexeso")
    with monkeypatch.context() as patched:
        patched.setattr("pexeso.store.remote.writer.publish", no_luck)
        with pytest.raises(OutputError, match="no luck"):
            pexeso.build_index(lake, place, model="hashing", dimensions=64, parts=["containment"])
    [vectors] = [name for name in place.find() if name.endswith("/vectors.npy")]
    place.joined(vectors).remove()
    built = pexeso.build_index(lake, place, model="hashing", dimensions=64, parts=["containment"])
    assert last_report(built.store).facts["taken_up"] == [
        "read",
        "catalog",
        "train",
        "embed",
        "partition",
        "divide",
        "tokens",
    ]
    assert answers(built) == answers(here)
    there = pexeso.open_index(url, device="cpu")
    assert answers(there) == answers(here)
    assert there.check() == []
    info = there.info()
    assert (info.path, info.tables, info.columns_indexed) == (
        url,
        here.info().tables,
        here.info().columns_indexed,
    )
    table = pd.DataFrame({"town": TOWNS})
    joined = [
        index.search(TOWNS, max_distance=0.1, k=1)[0].join(table, on="town")
        for index in (here, there)
    ]
    pd.testing.assert_frame_equal(*joined)
    with pytest.raises(OutputError, match="holds an index already"):
        pexeso.build_index(lake, url, model="hashing", dimensions=64)
    assert not list((tmp_path / "cache" / "builds").iterdir())
    assert there.delete(["cities.csv"]).committed
    left = {match.table for match in there.search(TOWNS, min_joinability=0.2)}
    assert left == {match.table for match in here.search(TOWNS, min_joinability=0.2)} - {
        "cities.csv"
    }


@pytest.mark.long
def test_updates_of_an_index_elsewhere_give_the_answers_of_those_here(
    reached, lake, bucket, small_index
):
    here = pexeso.open_index(small_index, device="cpu")
    url, place = f"{bucket}/lake.pexeso", bucket.joined("lake.pexeso")
    built = pexeso.build_index(lake, place, model="hashing", dimensions=64, parts=["containment"])
    lake.joined("more.csv").write(b"town,x\nOslo,1\nRome,2\nMadrid,3\nVienna,4\nParis,5\n")
    update = built.append(lake)
    assert (update.new, update.unchanged) == (1, 7)
    there = pexeso.open_index(url, device="cpu")
    assert "more.csv" in {table for table, *_ in answers(there)}
    assert there.delete(["more.csv"]).columns_deleted == 1
    assert answers(there) == answers(here)
    assert there.check() == []
    assert built.refresh()
    compacted = built.compact(everything=True)
    assert (compacted.committed, compacted.partitions_rewritten) == (True, 2)
    assert answers(built) == answers(here)
    assert built.check() == []
    built.add_model("lexical")
    other, same = (pexeso.open_index(place, device="cpu", model="lexical") for place in (url, url))
    assert [match.table for match in other.search(TOWNS, k=2)] == [
        match.table for match in same.search(TOWNS, k=2, exact=True)
    ]
    assert answers(built) == answers(here)
    assert built.check() == []
