"""What may not be seen comes back in no answer, page, export or error, whoever asks for what."""

import random

import pyarrow as pa
import pytest

from pexeso.errors import InputError, PexesoError
from pexeso.faces.mcp.tool_call import Desk
from pexeso.index import build_index, open_index
from pexeso.lake.catalog import Catalog
from tests.faces.app.app_clients import app_of
from tests.faces.mcp.conftest import caller
from tests.house.tracked_files import ROOT, tracked_files
from tests.long_runs import EVERYTHING

N_REQUESTS = 10_000 if EVERYTHING else 500

HIDDEN = "zq"
"""What the names and some values of all that is hidden hold, and nothing else does."""

N_ROWS = 12
PARTS = ["overlap", "containment", "composite", "redundancy"]


class Lake:
    """Tables of which half of the columns are hidden, some whole tables among them."""

    def __init__(self, folder):
        chance = random.Random(56)
        (folder / "lake").mkdir()
        self.seen, self.hidden = [], []
        for number in range(12):
            is_hidden = number % 4 == 3
            name = f"{HIDDEN if is_hidden else 't'}{number}.csv"
            columns = {}
            for position in range(4):
                hides = is_hidden or position in (1, number % 3 + 1)
                label = f"{HIDDEN if hides else 'c'}_{position}"
                word = chance.randrange(3)
                own = f"{HIDDEN}{{}}v{{}}" if hides and position % 2 else "town {} {}"
                cells = [f"town {word} {row}" for row in range(N_ROWS // 2)]
                columns[label] = cells + [own.format(number, row) for row in range(N_ROWS // 2)]
                (self.hidden if hides else self.seen).append((name, label))
            lines = zip(*columns.values(), strict=True)
            text = "\n".join([",".join(columns), *map(",".join, lines)])
            (folder / "lake" / name).write_text(text + "\n")
        self.rights = folder / "visible.csv"
        lines = [f"{table},{label}\n" for table, label in self.seen]
        self.rights.write_text("".join(["table,column\n", *lines]))
        self.index = build_index(folder / "lake", folder / "ix", parts=PARTS).path
        self.query = folder / "read"
        self.query.mkdir()
        (self.query / "mine.csv").write_text("town,n\n" + "".join(self.lines()))

    def lines(self):
        return [f"town {n % 3} {n % 6},{n}\n" for n in range(9)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return Lake(tmp_path_factory.mktemp("rights"))


@pytest.fixture
def restricted(lake, monkeypatch):
    monkeypatch.setenv("PEXESO_VISIBLE", str(lake.rights))
    return lake


class Requests:
    """Random requests of the three faces; each returns all that is said."""

    def __init__(self, lake, client, seed):
        self.lake, self.client, self.chance = lake, client, random.Random(seed)
        self.index = open_index(lake.index)
        self.call = caller(Desk.of(str(lake.index), allow_read=[str(lake.query)]))
        self.given = client.give("mine.csv", "town,n\n" + "".join(lake.lines()))
        self.echoed = []

    def column(self):
        table, label = self.chance.choice([*self.lake.seen, *self.lake.hidden])
        if self.chance.random() < 0.2:
            table = self.chance.choice([self.lake.hidden[0][0], f"{HIDDEN}99.csv", "t0.csv"])
        if self.chance.random() < 0.2:
            label = f"#{self.chance.randrange(4)}"
        self.echoed += [table, label]
        return table, label

    def values(self):
        word = self.chance.choice(["town {} {}", f"{HIDDEN}{{}}v{{}}"])
        values = [word.format(self.chance.randrange(12), row) for row in range(6)]
        self.echoed += values
        return [*values, *(f"town {self.chance.randrange(3)} {row}" for row in range(4))]

    def search(self):
        method = self.chance.choice(["semantic", "overlap", "containment", "all"])
        matches = self.index.search(self.values(), k=20, method=method)
        return matches.to_dict()

    def details(self):
        answer = []
        values = self.values()
        for match in self.index.search(values, k=3, fold_copies=False):
            joined = match.join(pa.table({"town": values}), on="town")
            answer += [match.to_dict(), joined.to_pydict(), match.unmatched(), match.kinds()]
        return answer

    def sql(self):
        return [match.sql(on="town") for match in self.index.search(self.values(), k=1)]

    def explain(self):
        return self.index.explain(self.values(), *self.column()).to_dict()

    def composite(self):
        (table, _), n = self.column(), self.chance.randrange(2)
        mine = pa.table({"a": self.values(), "b": self.values()})
        if n:
            return self.index.explain_composite(mine, ["a", "b"], table).to_dict()
        return self.index.search_composite(mine, ["a", "b"]).to_dict()

    def whole(self):
        ask = self.chance.choice(
            [
                lambda: self.index.info().to_dict(),
                lambda: self.index.left_out().to_dict(),
                lambda: self.index.notes().to_dict(),
                lambda: self.index.graph().to_dict(),
                lambda: self.index.acquire(pa.table({"town": self.values()})).to_dict(),
                lambda: self.index.table_of(self.lake.index.parent / "lake" / self.column()[0]),
                lambda: self.index.append(),
                lambda: self.index.check(),
                lambda: self.index.delete([self.column()[0]]),
            ]
        )
        return ask()

    def tool(self):
        table, label = self.column()
        query = self.chance.choice(
            [
                {"values": self.values()},
                {"column": f"{table}:{label}"},
                {"file": f"{self.lake.query}/mine.csv:town"},
                {"file": f"{self.lake.index.parent}/lake/{table}:{label}"},
            ]
        )
        other = "{}:{}".format(*self.column())
        name, arguments = self.chance.choice(
            [
                ("find_joins", query),
                ("explain_match", {**query, "lake_column": other}),
                ("preview_join", {**query, "lake_column": other}),
                ("join_sql", {**query, "lake_column": other}),
                ("learn_transformation", {**query, "lake_column": other}),
                ("find_composite_joins", {"table": table, "key": [label, "c_0"]}),
                ("find_redundancy", {}),
                ("describe_lake", {"what": self.chance.choice(["tables", "columns", "left_out"])}),
                ("describe_lake", {"what": "columns", "table": table}),
                ("describe_lake", {"what": "columns", "text": label}),
            ]
        )
        return self.call(name, **arguments)

    def page(self):
        (table, label), given = self.column(), self.given
        named = {"lake_column": f"{table}:{label}", "column": "town", "table": table}
        path, parameters = self.chance.choice(
            [
                *(("/", {}), ("/lake", {"text": label}), ("/lake/table", {"name": table})),
                *(("/lake/table", {"table": table}), ("/lake/left-out", {})),
                *(("/graph", {"run": "on"}), ("/redundancy", {"run": "on"})),
                (f"{given}/search", {"column": "town"}),
                *((f"{given}/{step}", named) for step in ("match", "join", "joined.csv")),
            ]
        )
        end = self.chance.choice(["", ".json"]) if path not in ("/", f"{given}/joined.csv") else ""
        return self.client.get(f"{path}{end}", params=parameters).text

    def kinds(self):
        return [
            self.search,
            self.details,
            self.sql,
            self.explain,
            self.composite,
            self.tool,
        ] * 3 + [*(self.page, self.page, self.page, self.whole)]

    def leak(self):
        """Ask something; return what is said of it that is hidden and was not in the request."""
        self.echoed.clear()
        kind = self.chance.choice(self.kinds())
        try:
            said = str(kind())
        except (PexesoError, ValueError) as error:
            said = str(error)
        for text in sorted(self.echoed, key=len, reverse=True):
            said = said.replace(text, "")
        at = said.find(HIDDEN)
        return kind.__name__, said[max(0, at - 80) : at + 40] if at >= 0 else ""


@pytest.mark.slow
def test_nothing_hidden_is_said(restricted):
    with app_of(restricted.index) as client:
        requests = Requests(restricted, client.enter(), seed=1)
        n_said = dict.fromkeys((kind.__name__ for kind in requests.kinds()), 0)
        for number in range(N_REQUESTS):
            kind, leaked = requests.leak()
            n_said[kind] += 1
            assert not leaked, (number, kind)
    assert min(n_said.values()) >= N_REQUESTS // 100


def test_what_may_be_seen_is_found(lake, monkeypatch):
    values = [f"town {word} {row}" for word in range(3) for row in range(N_ROWS // 2)]
    options = {"k": 99, "fold_copies": False, "min_joinability": 0.01}
    with monkeypatch.context() as patched:
        patched.setenv("PEXESO_VISIBLE", str(lake.rights))
        index = open_index(lake.index)
        some = {(m.table, m.column): m.matched for m in index.search(values, **options)}
        names = Catalog(index.store.catalog_files).columns(["table", "label"]).to_pylist()
        brief = index.overlap(values, k=99)
    every = {
        (m.table, m.column): m.matched for m in open_index(lake.index).search(values, **options)
    }
    assert {(row["table"], row["label"]) for row in names} == set(lake.seen)
    assert some == {name: n for name, n in every.items() if name in lake.seen}
    assert set(some) == set(lake.seen)
    assert {(match.table, match.column) for match in brief} <= set(lake.seen)
    assert set(every) - set(some) == set(lake.hidden)


def test_a_hidden_table_is_spoken_of_like_one_that_is_not_there(restricted):
    index = open_index(restricted.index)
    said = []
    for table in (f"{HIDDEN}3.csv", f"{HIDDEN}8.csv"):  # the second is not there
        with pytest.raises(InputError) as refused:
            index.explain(["town 0 1"], table, "c_0")
        said.append(str(refused.value).replace(table, "TABLE"))
    assert said[0] == said[1]


@pytest.mark.parametrize("text", [None, "", "table\nt0.csv\n", 'table,column\n"t0.csv', "\xff"])
def test_rights_that_cannot_be_read_show_nothing(lake, tmp_path, monkeypatch, text):
    path = tmp_path / "visible.csv"
    if text is not None:
        path.write_text(text, encoding="latin-1")
    monkeypatch.setenv("PEXESO_VISIBLE", str(path))
    with pytest.raises(InputError, match="cannot be read from"):
        open_index(lake.index)


def test_a_table_without_a_column_is_seen_whole(lake, tmp_path, monkeypatch):
    path = tmp_path / "visible.csv"
    path.write_text("table,column\nt0.csv,c_0\nt0.csv,\n")
    monkeypatch.setenv("PEXESO_VISIBLE", str(path))
    columns = open_index(lake.index).catalog.columns(["table", "label"]).to_pylist()
    assert {row["table"] for row in columns} == {"t0.csv"}
    assert len(columns) == 4


def test_an_index_is_opened_for_answers_in_one_place():
    """What opens a store otherwise writes it, or checks its bytes."""
    users = {
        path.relative_to(ROOT).as_posix()
        for path in tracked_files("pexeso/*.py")
        if "open_store_anywhere(" in path.read_text(encoding="utf-8")
    }
    assert users == {
        *("pexeso/build/updates.py", "pexeso/build/visible.py", "pexeso/store/opening.py"),
        "pexeso/build/diagnostics/info.py",
    }
