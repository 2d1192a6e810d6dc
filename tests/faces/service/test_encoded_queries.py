"""Columns that are asked with again are encoded once, and found as at the first time."""

import shutil

import pyarrow as pa

import pexeso
from pexeso.faces.service import verbs as encoded_queries
from pexeso.faces.service.requests import SearchRequest
from pexeso.faces.service.verbs import EncodedQueries, Service


class Column:
    def __init__(self, n_values):
        self.values = pa.nulls(n_values, pa.string())


def test_a_column_is_encoded_once_until_others_push_it_out():
    kept, made = EncodedQueries(), []

    def get(key):
        return kept.get((key,), lambda: made.append(key) or Column(3))

    first = get(0)
    assert get(0) is first
    for key in range(1, encoded_queries.KEPT):
        get(key)
    get(0)
    get("new")  # the oldest is now 1
    assert get(0) is first
    get(1)
    assert made == [*range(encoded_queries.KEPT), "new", 1]
    assert len(kept) == encoded_queries.KEPT


def test_a_long_column_is_not_kept(monkeypatch):
    monkeypatch.setattr(encoded_queries, "MAX_VALUES", 5)
    kept = EncodedQueries()
    assert len(kept.get(("a",), lambda: Column(6)).values) == 6
    assert len(kept) == 0
    kept.get(("b",), lambda: Column(5))
    assert len(kept) == 1


def document_of(response):
    document = response.to_dict()
    return {name: value for name, value in document.items() if name != "stats"}


def test_answers_are_those_of_a_search_alone(small_index, write):
    path = write("places.csv", "place\nOslo\nrome\nMADRID\nXyzzyx\nViena\n")
    service, encoded = Service(keep_open=True, follow=False), EncodedQueries()
    for distance in (0.1, 0.4, 0.2, 0.6):
        request = SearchRequest.of(
            index=str(small_index), query=f"{path}:place", max_distance=distance, explain=True
        )
        kept = service.run(request, encoded=encoded)
        assert document_of(kept) == document_of(Service().run(request))
    assert len(encoded) == 1
    [query] = encoded._kept.values()
    assert query.similarities


def test_another_state_of_the_index_is_encoded_for_anew(small_index, tmp_path):
    index, file = tmp_path / "lake.pexeso", tmp_path / "a.csv"
    shutil.copytree(small_index, index)
    file.write_text("city\nOslo\nRome\nMadrid\n", encoding="utf-8")
    service, encoded = Service(keep_open=True, follow=False), EncodedQueries()
    request = SearchRequest.of(index=str(index), query=f"{file}:city")
    before = document_of(service.run(request, encoded=encoded))
    pexeso.open_index(index).delete(["cities.csv"])
    service.reload(str(index))
    after = document_of(service.run(request, encoded=encoded))
    assert len(encoded) == 2
    assert after == document_of(Service().run(request))
    assert after != before
