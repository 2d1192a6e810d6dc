"""The reconciliation service: its documents as the protocol has them, and what it refuses."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import quote

import pytest
from app_clients import app_of

import pexeso
from pexeso.faces.app import reconcile
from pexeso.faces.app.entities import names_of, type_id
from pexeso.faces.service.verbs import ServedIndex

CITY = "geo%2Fcities.csv/city"
CITIES = [
    ("Oslo", "Norway", "709037"),
    ("Rome", "Italy", "2748109"),
    ("Rome", "United States", "37713"),
    ("København", "Denmark", "1366301"),
    ("<b>Bold</b>", "Nowhere", ""),
    ("New York City", "United States", "8335897"),
    ("Vienna", "Austria", "2005760"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reconcile")
    (folder / "lake" / "geo").mkdir(parents=True)
    rows = "".join(f"{','.join(row)}\n" for row in CITIES)
    (folder / "lake/geo/cities.csv").write_text(f"city,country,<i>people\n{rows}", "utf-8")
    codes = "".join(f"AB-{n:04},part {n}\n" for n in range(1, 30))
    (folder / "lake/parts.csv").write_text(f"code,name\n{codes}", "utf-8")
    rules = pexeso.ColumnRules(min_rows=1, min_distinct=2)
    pexeso.build_index(folder / "lake", folder / "lake.pexeso", rules=rules)
    return folder / "lake.pexeso"


@contextmanager
def client_of(path):
    with app_of(path) as client:
        client.root = client.access.reconcile_path
        yield client


@pytest.fixture(scope="module")
def client(index):
    with client_of(index) as client:
        yield client


def ask(client, queries, status=200):
    answer = client.post(client.root, data={"queries": json.dumps(queries)})
    assert answer.status_code == status, answer.text
    return answer.json()


def best(client, text, **fields):
    (result,) = ask(client, {"q": {"query": text, "type": CITY, **fields}}).values()
    return result["result"]


def test_the_manifest_names_what_there_is(client):
    answer = client.get(client.root)
    manifest = answer.json()
    assert manifest["versions"] == ["0.1", "0.2"]
    assert manifest["name"] == "pexeso: lake"
    assert manifest["identifierSpace"].startswith("urn:")
    assert manifest["schemaSpace"].startswith("urn:")
    assert "{{id}}" in manifest["preview"]["url"]
    assert manifest["preview"]["url"].startswith(f"http://testserver{client.root}/")
    for service in (*manifest["suggest"].values(), manifest["extend"]["propose_properties"]):
        url = service["service_url"] + service["service_path"]
        assert client.get(url, params={"type": CITY}).status_code == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "set-cookie" not in answer.headers


def test_candidates_come_best_first_and_equal_ones_match(client):
    (first, *others) = best(client, "copenhagen kobenhavn")
    assert first["name"] == "København"
    assert first["id"] == f"{CITY}/K%C3%B8benhavn"
    assert 0 < first["score"] < 100
    assert first["match"] is False
    assert first["type"] == [{"id": CITY, "name": "city (geo/cities.csv)"}]
    assert [one["score"] for one in others] == sorted((o["score"] for o in others), reverse=True)
    assert [(o["name"], o["score"], o["match"]) for o in best(client, "KOBENHAVN")][:1] == [
        ("København", 100, True)
    ]
    assert best(client, "Xyzzy") == []


def test_scores_are_those_of_all_pairs(client, index):
    opened = pexeso.open_index(index)
    draw = random.Random(5)
    letters = [name for name, *_ in CITIES] + ["Olso", "Rom", "new york", "Wien", "vienna city"]
    queries = [draw.choice(letters) + draw.choice(["", " ", "a", " the"]) for _ in range(60)]
    batch = {f"q{n}": {"query": text, "type": CITY} for n, text in enumerate(queries)}
    answers = ask(client, batch)
    pairs = opened.explain(queries, "geo/cities.csv", "city", max_distance=0.4).match.pairs()
    expected = {}
    for pair in pairs:
        expected.setdefault(pair.query, {})[pair.value] = round(100 * (1 - pair.distance), 2)
    for n, text in enumerate(queries):
        result = answers[f"q{n}"]["result"]
        assert {one["name"]: one["score"] for one in result} == expected.get(text, {})


def test_batches_do_not_change_answers_and_limits_hold(client):
    texts = ["Rome", "Oslo", "vienna", "", "New York", "Rome"]
    batch = {str(n): {"query": text, "type": CITY} for n, text in enumerate(texts)}
    together = ask(client, batch)
    assert list(together) == list(batch)
    for name, query in batch.items():
        assert ask(client, {name: query}) == {name: together[name]}
    assert together["3"] == {"result": []}
    assert len(best(client, "New York", limit=1)) == 1
    assert best(client, "New York", limit=0) == best(client, "New York")


def test_near_codes_are_others(client):
    codes = {"queries": json.dumps({"q": {"query": "ab-0007", "type": "parts.csv/code"}})}
    (answer,) = client.get(client.root, params=codes).json().values()
    assert [(one["name"], one["match"]) for one in answer["result"]] == [("AB-0007", True)]


def test_without_a_type_the_columns_that_join_are_proposed(client):
    sample = ["Oslo", "Rome", "Vienna", "New York City", "Kobenhavn"]
    answers = ask(client, {f"q{n}": {"query": text, "limit": 3} for n, text in enumerate(sample)})
    types = [answer["result"][0]["type"][0]["id"] for answer in answers.values()]
    assert types == [CITY] * len(sample)
    assert ask(client, {"q": {"query": "Xyzzy"}}) == {"q": {"result": []}}
    both = {"q": {"query": "oslo", "type": ["parts.csv/name", CITY]}}
    assert [one["name"] for one in ask(client, both)["q"]["result"]] == ["Oslo"]


def test_properties_count_as_much_as_the_name(client):
    country = [{"pid": "geo%2Fcities.csv/country", "v": ["norway", {"id": "x", "name": "y"}]}]
    (one,) = best(client, "Oslo", properties=country)
    assert (one["score"], one["match"]) == (100, True)
    elsewhere = [{"pid": "geo%2Fcities.csv/country", "v": "Italy"}]
    (one,) = best(client, "Oslo", properties=elsewhere)
    assert (one["score"], one["match"]) == (50, False)
    (one,) = best(client, "Oslo", properties=[{"pid": "parts.csv/name", "v": 3}])
    assert (one["score"], one["match"]) == (50, False)


def extend(client, ids, properties, status=200):
    query = json.dumps({"ids": ids, "properties": properties})
    answer = client.post(client.root, data={"extend": query})
    assert answer.status_code == status, answer.text
    return answer.json()


def test_further_columns_are_fetched(client):
    proposed = client.get(f"{client.root}/properties", params={"type": CITY}).json()
    assert proposed == {
        "type": CITY,
        "properties": [
            {"id": "geo%2Fcities.csv/country", "name": "country"},
            {"id": "geo%2Fcities.csv/%3Ci%3Epeople", "name": "\u2039i\u203apeople"},
        ],
    }
    country, people = (one["id"] for one in proposed["properties"])
    settings = {"limit": "1"}
    document = extend(
        client,
        [f"{CITY}/Rome", f"{CITY}/K%C3%B8benhavn"],
        [{"id": country}, {"id": people, "settings": settings}, {"id": "parts.csv/code"}],
    )
    assert document["meta"] == [
        {"id": country, "name": "country"},
        {"id": people, "name": "\u2039i\u203apeople"},
        {"id": "parts.csv/code", "name": "code"},
    ]
    assert document["rows"] == {
        f"{CITY}/Rome": {
            country: [{"str": "Italy"}, {"str": "United States"}],
            people: [{"str": "2748109"}],
            "parts.csv/code": [],
        },
        f"{CITY}/K%C3%B8benhavn": {
            country: [{"str": "Denmark"}],
            people: [{"str": "1366301"}],
            "parts.csv/code": [],
        },
    }
    limited = client.get(f"{client.root}/properties", params={"type": CITY, "limit": 1}).json()
    assert limited["properties"] == proposed["properties"][:1]


def test_types_properties_and_entities_are_suggested(client):
    best(client, "Oslo")

    def suggested(kind, prefix, **more):
        url = f"{client.root}/suggest/{kind}"
        return client.get(url, params={"prefix": prefix, **more}).json()["result"]

    assert suggested("type", "cit") == [
        {"id": CITY, "name": "city", "description": "geo/cities.csv"},
        {"id": "geo%2Fcities.csv/country", "name": "country", "description": "geo/cities.csv"},
    ]
    assert [one["name"] for one in suggested("property", "people")] == ["\u2039i\u203apeople"]
    (new_york,) = suggested("entity", "new y")
    assert new_york["id"] == f"{CITY}/New%20York%20City"
    assert new_york["notable"] == [{"id": CITY, "name": "city (geo/cities.csv)"}]
    assert suggested("entity", new_york["id"]) == [new_york]
    assert suggested("entity", "new y", cursor=1) == []
    assert [one["name"] for one in suggested("entity", "part 1", type="parts.csv/name")][:1] == [
        "part 1"
    ]


def test_a_preview_shows_cells_as_text_and_runs_nothing(client):
    answer = client.get(
        f"{client.root}/preview", params={"id": f"{CITY}/{quote('<b>Bold</b>', '')}"}
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"] == "default-src 'none'"
    assert "&lt;b&gt;Bold&lt;/b&gt;" in answer.text
    assert "<b>" not in answer.text
    assert "<i>" not in answer.text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "'queries' is not the JSON"),
        ("[]", "'queries' is not the JSON"),
        ('{"q": 3}', "'queries' is not the JSON"),
        ('{"q": {"query": 3}}', "'queries' is not the JSON"),
        ("[" * 100_000, "'queries' is not the JSON"),
        ('{"q": {"query": "a", "type": "nothing"}}', "a column is TABLE/COLUMN"),
        ('{"q": {"query": "a", "type": "no.csv/city"}}', "no.csv"),
        ('{"q": {"query": "a", "type": "..%2F..%2Fetc%2Fpasswd/x"}}', "passwd"),
        ('{"q": {"query": "a", "type": "geo%2Fcities.csv/town"}}', "town"),
    ],
)
def test_wrong_queries_are_refused_in_a_sentence(client, text, sentence):
    answer = client.post(client.root, data={"queries": text})
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]
    assert answer.headers["access-control-allow-origin"] == "*"


def test_large_batches_and_bodies_are_refused(client, monkeypatch):
    many = {str(n): {"query": "a", "type": CITY} for n in range(reconcile.BATCH_SIZE + 1)}
    assert "at most 1,000 queries" in ask(client, many, 413)["error"]
    assert "at most 1,000 ids" in extend(client, [f"{CITY}/Oslo"] * 1001, [], 413)["error"]
    answer = client.post(client.root, content="&".join(f"a{n}=1" for n in range(20)))
    assert answer.status_code == 400
    monkeypatch.setattr(reconcile, "MAX_BODY", 100)
    answer = client.post(client.root, data={"queries": "x" * 200})
    assert answer.status_code == 413


@pytest.mark.parametrize("entity", ["", "a/b", f"{CITY}/Paris", "no.csv/a/b", "//"])
def test_unknown_entities_are_refused(client, entity):
    answer = client.get(f"{client.root}/preview", params={"id": entity})
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")
    assert extend(client, [entity], [], 400)["error"].endswith(".")


def test_a_limit_that_is_no_number_is_refused(client):
    for limit in (-1, "many", "9" * 5000, [1]):
        one = [{"id": "geo%2Fcities.csv/country", "settings": {"limit": limit}}]
        said = extend(client, [f"{CITY}/Oslo"], one, 400)["error"]
        assert said.startswith("limit must be a whole number.")
    assert client.get(f"{client.root}/suggest/nothing").status_code == 400
    wrong = client.get(f"{client.root}/suggest/type", params={"cursor": "-1"})
    assert (wrong.status_code, wrong.json()["error"][:6]) == (400, "cursor")


@pytest.mark.parametrize("safe", ["", "/;,:@&=+$!*'()#?"])
def test_ids_pass_through_the_addresses_that_clients_make(client, safe):
    """Old versions of OpenRefine encode an address as a whole, newer ones the id alone."""
    (one,) = best(client, "<b>Bold</b>", limit=1)
    url = client.get(client.root).json()["view"]["url"].replace("{{id}}", quote(one["id"], safe))
    assert "Nowhere" in client.get(url).text


def test_who_lacks_the_key_gets_nothing(client):
    for path in ("/reconcile", "/reconcile/guessed", f"{client.root}x", "/reconcile/é"):
        assert client.get(path).status_code == 403
    assert client.get("/lake").status_code == 403


def test_pages_of_other_sites_may_reconcile_with_the_key_alone(client):
    foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:3333"}
    assert client.get(client.root, headers=foreign).status_code == 200
    assert client.post(client.root, data={"queries": "{}"}, headers=foreign).json() == {}
    assert client.get("/reconcile/guessed", headers=foreign).status_code == 403
    assert client.get(client.root, headers={"Host": "evil.example"}).status_code == 400


def test_the_lake_page_names_the_service(index):
    with client_of(index) as visitor:
        assert f"http://testserver{visitor.root}" in visitor.enter().get("/lake").text


def test_hidden_columns_are_no_types_and_no_properties(index, write, monkeypatch):
    visible = write("visible.csv", "table,column\ngeo/cities.csv,city\nparts.csv,name\n")
    monkeypatch.setenv("PEXESO_VISIBLE", str(visible))
    with client_of(index) as visitor:
        assert best(visitor, "Oslo")[0]["name"] == "Oslo"
        proposed = visitor.get(f"{visitor.root}/properties", params={"type": CITY}).json()
        assert proposed["properties"] == []
        hidden = "geo%2Fcities.csv/country"
        assert extend(visitor, [f"{CITY}/Oslo"], [{"id": hidden}])["rows"] == {
            f"{CITY}/Oslo": {hidden: []}
        }
        ask(visitor, {"q": {"query": "Norway", "type": hidden}}, 400)
        (one,) = best(visitor, "Oslo", properties=[{"pid": hidden, "v": "Norway"}])
        assert one["score"] == 50
        shown = visitor.get(f"{visitor.root}/preview", params={"id": f"{CITY}/Oslo"}).text
        assert "Norway" not in shown
        assert "country" not in shown
        types = visitor.get(f"{visitor.root}/suggest/type", params={"prefix": ""}).json()
        assert [one["name"] for one in types["result"]] == ["city", "name"]


def test_columns_that_are_kept_are_bounded(index, monkeypatch):
    monkeypatch.setattr(reconcile, "VALUES_KEPT", 10)
    service = reconcile.Reconciler(ServedIndex(str(index)))
    for one in (CITY, "parts.csv/name", CITY, "parts.csv/name"):
        query = json.dumps({"q": {"query": "Oslo", "type": one}})
        service.reconcile(query)
        assert [text for _, text in service._kept] == [one]
    monkeypatch.setattr(reconcile, "VALUES_KEPT", 1_000)
    service.reconcile(json.dumps({"q": {"query": "Oslo", "type": CITY}}))
    assert len(service._kept) == 2
    monkeypatch.setattr(reconcile, "BYTES_KEPT", 1)
    service.preview("parts.csv/name/part%201")
    service.reconcile(json.dumps({"q": {"query": "Oslo", "type": CITY}}))
    assert [text for _, text in service._kept] == [CITY]


def test_ids_hold_any_name():
    for names in (("a/b.csv", "c:d"), ("ü.csv#x", "%2F"), ("a", " ")):
        assert names_of(type_id(*names), 2) == names


def test_random_requests_are_answered_or_refused_in_a_sentence(client):
    draw = random.Random(11)
    types = [CITY, "parts.csv/code", "a/b", "", None, ["x"], [CITY, CITY], 3]
    texts = ["Oslo", "", "\u0000", "\u202e", "<i>", "'; DROP", "a" * 3000, "🙂", None, 7]
    ids = [f"{CITY}/Oslo", f"{CITY}/%00", "%zz/%ff/a", "///", "", None]
    values = [3, None, True, 1e300, -1, "1", [], {}, ["Norway"], {"id": 3}]
    for _ in range(300):
        queries = {
            draw.choice(["q", "", "\n"]): {
                "query": draw.choice(texts),
                "type": draw.choice(types),
                "limit": draw.choice(values),
                "properties": [{"pid": draw.choice([CITY, "a"]), "v": draw.choice(values)}],
            }
            for _ in range(draw.randrange(3))
        }
        extension = {
            "ids": draw.choices(ids, k=draw.randrange(3)),
            "properties": [{"id": CITY, "settings": draw.choice([None, {"limit": 1}, 3])}],
        }
        name, document = draw.choice([("queries", queries), ("extend", extension)])
        text = json.dumps(document)
        if draw.random() < 0.3:
            cut = draw.randrange(len(text))
            text = text[:cut] + draw.choice(["", "\x00", "{", '"']) + text[cut + 1 :]
        answer = client.post(client.root, data={name: text})
        assert answer.status_code in (200, 400), text
        assert answer.status_code == 200 or answer.json()["error"]


def test_many_clients_at_once_get_the_answers_of_one(index):
    service = reconcile.Reconciler(ServedIndex(str(index)))
    batches = [
        json.dumps({str(n): {"query": f"{name} {n % 3}", "type": kind} for n in range(5)})
        for name, kind in (("Oslo", CITY), ("part", "parts.csv/name"), ("Rome", CITY))
        for _ in range(4)
    ]
    expected = [reconcile.Reconciler(ServedIndex(str(index))).reconcile(one) for one in batches]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(service.reconcile, batches)) == expected


def test_after_a_reload_the_newest_state_answers(tmp_path):
    (tmp_path / "lake").mkdir()
    file = tmp_path / "lake" / "a.csv"
    file.write_text("city\nOslo\nRome\nLima\nBern\nParis\n", encoding="utf-8")
    index = pexeso.build_index(tmp_path / "lake", tmp_path / "lake.pexeso")
    served = ServedIndex(str(tmp_path / "lake.pexeso"))
    service = reconcile.Reconciler(served)
    query = json.dumps({"q": {"query": "Vienna", "type": "a.csv/city"}})
    assert service.reconcile(query) == {"q": {"result": []}}
    file.write_text("city\nOslo\nRome\nLima\nBern\nVienna\n", encoding="utf-8")
    index.append()
    assert service.reconcile(query) == {"q": {"result": []}}
    served.reload()
    assert [one["name"] for one in service.reconcile(query)["q"]["result"]] == ["Vienna"]
