"""What may not be seen comes back in no answer, page, export or error, whoever asks for what."""

import copy
import json
import logging
import pickle
import random
import re
import warnings

import pyarrow as pa
import pytest
from click.testing import CliRunner

from pexeso.errors import InputError, PexesoError
from pexeso.faces.cli.main import cli
from pexeso.faces.mcp.tool_call import Desk
from pexeso.index import build_index, open_index
from pexeso.lake.catalog import Catalog
from pexeso.lake.judgements import Judgement, record_judgements
from pexeso.options import METHODS
from tests.faces.app.app_clients import app_of
from tests.faces.mcp.conftest import caller
from tests.house.tracked_files import ROOT, tracked_files
from tests.long_runs import EVERYTHING

N_REQUESTS = 10_000 if EVERYTHING else 200

MIN_ANSWERED = 0.8
"""Share of the requests that are answered, at least; the others are refused."""

HIDDEN = "zqhid"
"""What the names and some values of all that is hidden hold, and nothing else does."""

N_ROWS = 12
PARTS = ["overlap", "containment", "composite", "redundancy"]


class Lake:
    """Tables of which half of the columns are hidden, some whole tables among them."""

    def __init__(self, folder):
        chance = random.Random(56)
        self.folder = folder / "lake"
        self.folder.mkdir()
        self.seen, self.hidden, self.whole = [], [], []
        for number in range(12):
            is_hidden, is_whole = number % 4 == 3, number % 4 == 2
            name = f"{HIDDEN if is_hidden else 't'}{number}.csv"
            columns = {}
            for position in range(4):
                hides = is_hidden or (not is_whole and position in (1, number % 2 + 2))
                label = f"{HIDDEN if hides else 'c'}_{position}"
                word = chance.randrange(3)
                own = f"{HIDDEN}{{}}v{{}}" if hides else "town {} {}"
                cells = [f"town {word} {row}" for row in range(N_ROWS // 2)]
                columns[label] = cells + [own.format(number, row) for row in range(N_ROWS // 2)]
                (self.hidden if hides else self.seen).append((name, label))
            if not is_whole:
                columns[f"{HIDDEN}_none"] = [""] * N_ROWS  # left out
            lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
            if not is_whole:
                lines += ["", f"Source: the {HIDDEN} office."]  # which a note repeats
            (self.folder / name).write_text("\n".join(lines) + "\n")
            self.whole += [name] * is_whole
        (self.folder / f"{HIDDEN}broken.csv").write_bytes(b"\0\xff\0" * 99)
        self.rights = folder / "visible.csv"
        lines = [f"{table},{label}\n" for table, label in self.seen if table not in self.whole]
        lines += [f"{table},\n" for table in self.whole]
        self.rights.write_text("".join(["table,column\n", *lines]))
        self.index = build_index(self.folder, folder / "ix", parts=PARTS).path
        mine, hidden = ("mine.csv", "town"), self.hidden[0]
        rows = [Judgement(*hidden, *self.seen[0], verdict="yes")]
        rows += [Judgement(*mine, *hidden, f"{HIDDEN}1", f"{HIDDEN}2", "no")]
        rows += [Judgement("", "", "", "", f"{HIDDEN}1", f"{HIDDEN}2", "yes")]
        record_judgements(self.index, rows)
        self.query = folder / "read"
        self.query.mkdir()
        rows = [(f"town {n % 3} {n % 6}", n) for n in range(9)]
        rows += [(f"{HIDDEN}{n}v{n % 6}", n) for n in range(3)]
        self.lines = "town,n\n" + "".join(f"{town},{n}\n" for town, n in rows)
        self.mine = self.query / "mine.csv"
        self.mine.write_text(self.lines)
        self.own = [town for town, _ in rows]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return Lake(tmp_path_factory.mktemp("rights"))


@pytest.fixture
def restricted(lake, monkeypatch):
    monkeypatch.setenv("PEXESO_VISIBLE", str(lake.rights))
    return lake


class Records(logging.Handler):
    """What is written to logs."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))
        self.lines = []

    def emit(self, record):
        self.lines.append(self.format(record))


class Refusal(Exception):
    """A request was not answered; what was said instead."""


class Requests:
    """Random requests of all faces; each returns all that is said."""

    def __init__(self, lake, client, folder, seed):
        self.lake, self.client, self.chance = lake, client, random.Random(seed)
        self.index = open_index(lake.index)
        self.folder = folder
        read = [str(lake.query)]
        self.call = caller(Desk.of(str(lake.index), allow_read=read, allow_write=str(folder)))
        self.given = client.give("mine.csv", lake.lines)
        self.echoed = []
        self.records = Records()

    def column(self, *, whole=False):
        """Draw a column that may be seen; now and then one that may not be, or is not there."""
        seen = [name for name in self.lake.seen if not whole or name[0] in self.lake.whole]
        table, label = self.chance.choice(seen)
        if self.chance.random() < 0.06:
            table, label = self.chance.choice(self.lake.hidden)
        if self.chance.random() < 0.03:
            table = self.chance.choice([self.lake.hidden[-1][0], f"{HIDDEN}99.csv", "t0.csv"])
        if self.chance.random() < 0.03:
            label = f"#{self.chance.randrange(4)}"
        self.echoed += [table, label]
        return table, label

    def spec(self, **options):
        return "{}:{}".format(*self.column(**options))

    def values(self):
        """Draw values of what may be seen, and some of what may not."""
        number = self.chance.randrange(12)
        hidden = [f"{HIDDEN}{number}v{row}" for row in range(self.chance.randrange(4))]
        self.echoed += hidden
        return [*hidden, *(f"town {self.chance.randrange(3)} {row}" for row in range(6))]

    def search(self):
        method = self.chance.choice(METHODS)
        matches = self.index.search(self.values(), k=20, method=method)
        return matches.to_dict(), getattr(matches, "to_html", matches._repr_html_)()

    def details(self):
        values = self.values()
        match = self.chance.choice(self.index.search(values, k=9, fold_copies=False))
        joined = match.join(pa.table({"town": values}), on="town")
        return match.to_dict(), joined.to_pydict(), match.unmatched(), match.kinds()

    def sql(self):
        """Write statements for DuckDB, and let it run them."""
        import duckdb

        values = self.values()
        matches = self.index.search(values, k=99, fold_copies=False)
        match = self.chance.choice(matches)
        with duckdb.connect() as connection:
            connection.register("your_table", pa.table({"town": values}))
            names = self.index.duckdb(connection, match)
            statement = match.sql(on="town")
            return names, statement, connection.sql(statement).fetchall()

    def explain(self):
        explanation = self.index.explain(self.values(), *self.column())
        return explanation.to_dict(), repr(explanation)

    def composite(self):
        mine = pa.table({"a": self.values()[:6], "b": self.values()[:6]})
        if self.chance.random() < 0.5:
            table, _ = self.column(whole=True)
            return self.index.explain_composite(mine, ["a", "b"], table).to_dict()
        return self.index.search_composite(mine, ["a", "b"]).to_dict()

    def whole(self):
        mine = pa.table({"town": self.values()})
        ask = self.chance.choice(
            [
                lambda: self.index.info().to_dict(),
                lambda: self.index.left_out().to_dict(),
                lambda: self.index.notes().to_dict(),
                lambda: self.index.graph().to_dict(),
                lambda: self.index.acquire(mine, columns="town", max_tables=3).to_dict(),
                lambda: self.index.table_of(self.lake.folder / self.column()[0]),
                lambda: self.index.catalog.columns().to_pylist(),
                lambda: self.index.catalog.tables().to_pylist(),
                lambda: [self.index, self.index._repr_html_()],
            ]
        )
        return ask()

    def writing(self):
        """Try what needs the whole index, which is refused."""
        ask = self.chance.choice(
            [
                self.index.append,
                self.index.check,
                self.index.compact,
                lambda: self.index.delete([self.column()[0]]),
                lambda: self.command("check", self.lake.index, "--json"),
                lambda: self.command("append", self.lake.index, self.lake.folder),
            ]
        )
        return ask()

    def tool(self):
        query = self.chance.choice(
            [{"values": self.values()}, {"column": self.spec()}, {"file": f"{self.lake.mine}:town"}]
        )
        pair = {**query, "lake_column": self.spec()}
        way = {"how": self.chance.choice(["left", "inner"]), "aggregate": "first"}
        table, _ = self.column()
        what = self.chance.choice(["tables", "columns", "left_out"])
        name, arguments = self.chance.choice(
            [
                ("find_joins", query),
                ("find_joins", {**query, "method": "all"}),
                ("explain_match", pair),
                ("explain_match", {**pair, "what": "unmatched"}),
                ("preview_join", {**pair, **way}),
                ("write_join", {**pair, **way, "output": "out.csv", "overwrite": True}),
                ("join_sql", {**pair, "how": way["how"]}),
                ("judge_join", {**pair, "verdict": self.chance.choice(["yes", "no"])}),
                ("find_composite_joins", {"table": table, "key": ["c_0", "c_1"]}),
                ("find_redundancy", {"min_containment": self.chance.choice([0.3, 1.0])}),
                ("join_graph", self.chance.choice([{}, {"table": table}])),
                ("learn_transformation", pair),
                ("describe_lake", {"what": what}),
                ("describe_lake", {"what": "columns", "table": self.column()[0]}),
                ("describe_lake", {"what": "columns", "text": self.column()[1]}),
            ]
        )
        return self.call(name, **arguments), self.written()

    def page(self):
        (table, label), given = self.column(), self.given
        named = {"lake_column": f"{table}:{label}", "column": "town"}
        path, parameters = self.chance.choice(
            [
                *(("/", {}), ("/lake", {"text": label}), ("/lake/table", {"name": table})),
                *(("/lake", {}), ("/lake/left-out", {}), (given, {})),
                *(("/graph", {"run": "on"}), ("/redundancy", {"run": "on"}), ("/judge", {})),
                ("/graph.csv", {"run": "on"}),
                ("/acquire", {"have": self.spec(), "max_tables": "2"}),
                (f"{given}/search", {"column": "town", "k": "all"}),
                (f"{given}/search", {"column": "town", "method": "overlap"}),
                *((f"{given}/{step}", named) for step in ("match", "join", "joined.csv")),
            ]
        )
        end = self.chance.choice(["", ".json"]) if path != "/" and "." not in path else ""
        answer = self.client.get(f"{path}{end}", params=parameters)
        if answer.status_code != 200:
            raise Refusal(answer.text)
        return answer.text

    def command(self, *arguments):
        """Run a command of the terminal."""
        logs = ["--log-json"] if self.chance.random() < 0.3 else []
        result = CliRunner().invoke(cli, [*logs, *map(str, arguments)], prog_name="pexeso")
        said = result.stdout + result.stderr + self.written()
        if result.exit_code:
            raise Refusal(said)
        return said

    def written(self):
        """Return all that was written to files, and remove these."""
        said = []
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                said += [path.name, path.read_bytes().decode("latin-1")]
                path.unlink()
        return "\n".join(said)

    def terminal(self):
        choice, index, mine = self.chance.choice, self.lake.index, self.lake.mine
        own = f"{mine}:town"
        html = ["--html", self.folder / "page.html"]
        form = choice([["--json"], ["--csv"], [], [*html], ["--json", *html]])
        plain = choice([["--json"], [], ["--json", *html], html])
        query = choice([own, f"{self.lake.folder}/{self.spec()}"])
        method = ["--method", choice(METHODS)]
        edges = choice(["jsonl", "csv", "mmd", "graphml"])
        namespace = "files.default.lake"
        ways = [("mermaid", "mmd", []), ("graphml", "graphml", [])]
        ways.append(("openmetadata", "jsonl", ["--namespace", namespace]))
        kind, ending, more = choice(ways)
        export = ["export", kind, index, "-o", self.folder / f"all.{ending}", *more]
        joined = [
            *("join", index, own, self.spec(), "--aggregate", "first"),
            *("-o", self.folder / f"joined.{choice(['csv', 'arrow'])}"),
        ]
        arguments = choice(
            [
                lambda: ["search", index, query, *method, "-k", "9", *choice([["--json"], []])],
                lambda: ["search", index, query, "-k", "all", *form],
                lambda: ["search", index, query, "--explain", "--exclude-self", *form],
                lambda: ["search", index, mine, "--all-columns", *choice([["--json"], []])],
                lambda: ["explain", index, query, self.spec(), *form],
                lambda: ["search", index, own, "--auto", *choice([["--json"], html])],
                lambda: ["search", index, f"{mine}:town,n", *choice([["--json"], ["--csv"], []])],
                lambda: ["tune", index, self.labels(), *choice([["--json"], []])],
                lambda: ["tune", index],
                lambda: ["judge", index, "--json"],
                lambda: ["join", index, own, self.spec(), "--aggregate", "first"],
                lambda: [*joined, "--transform", "--accept-rule", "--many-to-one"],
                lambda: [*joined, "--conflicts", self.folder / "conflicts.csv"],
                lambda: [*joined, "--lineage", self.folder / "lineage.jsonl"],
                lambda: ["batch", index, self.queries(), "--explain"],
                lambda: ["batch", index, self.queries(), "-o", self.folder / "answers.jsonl"],
                lambda: ["keys", choice([mine, self.lake.folder / choice(self.lake.whole)])],
                lambda: ["graph", index, *choice([["--json"], ["--csv"], []])],
                lambda: ["graph", index, "-o", self.folder / f"edges.{edges}"],
                lambda: export,
                lambda: ["export", "dbt", index, "-o", self.folder / "models", "--overwrite"],
                lambda: ["acquire", index, "--have", choice([own, query, self.spec()]), *plain],
                lambda: ["redundancy", index, "--min-containment", "0.3", *plain],
                lambda: ["redundancy", index, "--plan", self.folder / "plan.json"],
                lambda: ["info", index, *choice([["--json"], []])],
                lambda: ["info", index, "--left-out", *choice([["--json"], []])],
                lambda: ["info", index, "--notes", *choice([["--json"], []])],
                lambda: ["info", index, "--report", *choice([["--json"], []])],
                lambda: ["rules", index],
            ]
        )
        return self.command(*arguments())

    def queries(self):
        """Write queries for a batch of them, by values and of a file."""
        path = self.lake.query / "queries.jsonl"
        table, label = self.column()
        lines = [{"values": self.values()}, {"file": str(self.lake.mine), "column": "town"}]
        lines.append({"file": f"{self.lake.folder}/{table}", "column": label})
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return path

    def labels(self):
        """Write labelled pairs to choose thresholds by."""
        path = self.lake.query / "labels.csv"
        pairs = [(town, other) for town in self.lake.own for other in [*self.values(), town]]
        lines = [f"{one},{other},{'yes' if one == other else 'no'}" for one, other in pairs]
        path.write_text("\n".join(["query_value,lake_value,same", *lines]) + "\n")
        return path

    def kinds(self):
        python = [self.search, self.details, self.sql, self.explain, self.composite, self.whole]
        faces = [self.tool] * 5 + [self.page] * 5 + [self.terminal] * 7
        return [*python, *faces, *(self.writing for _ in range(self.chance.random() < 0.3))]

    def leak(self):
        """Ask something; return its kind, whether it was answered, and what is said of the hidden.

        What was in the request itself is not counted.
        """
        self.echoed[:] = self.lake.own
        self.records.lines.clear()
        kind, answered = self.chance.choice(self.kinds()), True
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                said = str(kind())
            except (PexesoError, ValueError, Refusal) as error:
                said, answered = f"{error} {getattr(error, '__notes__', '')}", False
        said += "\n".join([*self.records.lines, *(str(warning.message) for warning in warned)])
        echoed = sorted({text.casefold() for text in self.echoed}, key=len, reverse=True)
        self.said = said
        rest = re.sub("|".join(rf"{re.escape(text)}(?!\d)" for text in echoed), "", said.casefold())
        at = rest.find(HIDDEN)
        return kind.__name__, answered, rest[max(0, at - 200) : at + 80] if at >= 0 else ""


@pytest.fixture
def requests(restricted, tmp_path):
    """Requests, with all that is logged meanwhile."""
    with app_of(restricted.index) as client:
        made = Requests(restricted, client.enter(), tmp_path, seed=1)
        logger, level = logging.getLogger(), logging.getLogger().level
        logger.addHandler(made.records)
        logger.setLevel(logging.DEBUG)
        yield made
        logger.setLevel(level)
        logger.removeHandler(made.records)


@pytest.mark.slow
def test_nothing_hidden_is_said(requests):
    n_said, n_answered = {}, 0
    for number in range(N_REQUESTS):
        kind, answered, leaked = requests.leak()
        n_said[kind] = n_said.get(kind, 0) + 1
        n_answered += answered
        assert not leaked, (number, kind)
    assert len(n_said) == len({kind.__name__ for kind in [*requests.kinds(), requests.writing]})
    assert n_answered >= MIN_ANSWERED * N_REQUESTS


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


def test_statements_join_with_what_may_be_seen(restricted):
    duckdb = pytest.importorskip("duckdb")
    index = open_index(restricted.index)
    mine = pa.table({"town": [f"town {word} {row}" for word in range(3) for row in range(6)]})
    matches = index.search(mine["town"], k=99, fold_copies=False, min_joinability=0.01)
    assert {(match.table, match.column) for match in matches} == set(restricted.seen)
    with duckdb.connect() as connection:
        connection.register("your_table", mine)
        index.duckdb(connection, matches)
        for match in matches:
            joined = match.join(mine, on="town", values="all", provenance=())
            statement = match.sql(on="town", values="all")
            rows = connection.sql(statement).to_arrow_table()
            assert sorted(map(str, rows.to_pylist())) == sorted(map(str, joined.to_pylist()))
            assert (match.table in restricted.whole) == (str(restricted.folder) in statement)


def test_a_join_with_a_partly_hidden_table_has_a_lineage(restricted, tmp_path):
    lineage = tmp_path / "lineage.jsonl"
    join = ["join", restricted.index, f"{restricted.mine}:town", "t0.csv:c_0"]
    files = ["--aggregate", "first", "-o", tmp_path / "joined.csv", "--lineage", lineage]
    assert CliRunner().invoke(cli, [*map(str, join + files)]).exit_code == 0
    assert str(restricted.folder / "t0.csv") in lineage.read_text()
    assert HIDDEN not in lineage.read_text()


def terminal(*arguments):
    return CliRunner().invoke(cli, [*map(str, arguments)], prog_name="pexeso")


def test_a_partly_hidden_table_is_a_query_of_what_may_be_seen(restricted, tmp_path):
    index, file = restricted.index, restricted.folder / "t0.csv"
    link = tmp_path / "link.csv"
    link.symlink_to(file)
    output = tmp_path / "joined.csv"
    join = ["--aggregate", "first", "-o", output]
    for path in (file, link):
        for arguments in (
            ["search", index, f"{path}:c_0", "--json"],
            ["search", index, f"{path}:#0", "--explain"],
            ["search", index, path, "--all-columns", "--method", "overlap", "--json"],
            ["explain", index, f"{path}:c_0", "t2.csv:c_0"],
            ["join", index, f"{path}:c_0", "t2.csv:c_0", *join, "--overwrite"],
            ["acquire", index, "--have", f"{path}:c_0", "--json"],
        ):
            done = terminal(*arguments)
            assert done.exit_code == 0, (arguments, done.output)
            assert HIDDEN not in done.output, arguments
        assert output.read_text().splitlines()[0].startswith("c_0,")
        assert HIDDEN not in output.read_text()
    done = terminal("search", index, f"{file}:{HIDDEN}_1")
    assert done.exit_code
    assert f"There is no column '{HIDDEN}_1'" in done.output
    for hidden in (f"{HIDDEN}3.csv", f"{HIDDEN}broken.csv"):
        done = terminal("search", index, f"{restricted.folder / hidden}:c_0")
        assert done.exit_code
        assert "lies in the lake, and is not among what may be seen" in done.output


def as_mapping(lake):
    tables = {table: None for table in lake.whole}
    for table, label in lake.seen:
        if table not in lake.whole:
            tables.setdefault(table, []).append(label)
    return tables


@pytest.mark.parametrize("form", ["path", "mapping"])
def test_a_program_says_what_may_be_seen(lake, monkeypatch, form, tmp_path):
    monkeypatch.setenv("PEXESO_VISIBLE", str(lake.rights))
    values = [f"town {word} {row}" for word in range(3) for row in range(N_ROWS // 2)]
    options = {"k": 99, "fold_copies": False, "min_joinability": 0.01}
    wanted = [match.to_dict() for match in open_index(lake.index).search(values, **options)]
    monkeypatch.delenv("PEXESO_VISIBLE")
    visible = lake.rights if form == "path" else as_mapping(lake)
    index = open_index(lake.index, visible=visible)
    for one in (
        index,
        copy.copy(index),
        pickle.loads(pickle.dumps(index)),
        index.with_model("lexical"),
        index.with_readings("leading-zeros"),
    ):
        assert [match.to_dict() for match in one.search(values, **options)] == wanted
        match = one.search(values, **options)[0]
        joined = match.join(pa.table({"town": values}), on="town", provenance=())
        assert HIDDEN not in str(joined.to_pydict().keys())
        assert HIDDEN not in str(match.sql(on="town"))
    file = lake.folder / "t0.csv"
    assert HIDDEN not in str(index.acquire(f"{file}:c_0", max_tables=2).to_dict())
    with pytest.raises(PexesoError, match="There is no column"):
        index.explain_composite(f"{file}:c_0,{HIDDEN}_1", None, "t2.csv")
    for write in (
        index.append,
        index.compact,
        index.check,
        lambda: index.delete(["t0.csv"]),
        lambda: index.add_parts(["bands"]),
        lambda: index.add_model("hashing"),
    ):
        with pytest.raises(InputError, match="needs all of the index, of which a part may be seen"):
            write()
    narrow = tmp_path / "narrow.csv"
    narrow.write_text("table,column\nt0.csv,c_0\nt1.csv,\n")
    monkeypatch.setenv("PEXESO_VISIBLE", str(narrow))
    matches = open_index(lake.index, visible=visible).search(values, **options)
    assert {match.table for match in matches} == {"t0.csv", "t1.csv"}
    assert HIDDEN not in str(matches.to_dict())


@pytest.mark.parametrize("visible", [7, ["t0.csv"], {"t0.csv": "c_0"}, {7: None}, {"t": [1]}, ""])
def test_rights_of_a_program_are_checked(lake, visible):
    with pytest.raises(InputError, match=r"visible is the path|cannot be read from '' \(visible\)"):
        open_index(lake.index, visible=visible)


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


def test_a_table_without_a_column_is_seen_whole(lake, write, monkeypatch):
    path = write("visible.csv", "table,column\nt0.csv,c_0\nt0.csv,\n")
    monkeypatch.setenv("PEXESO_VISIBLE", str(path))
    columns = open_index(lake.index).catalog.columns(["table", "label"]).to_pylist()
    assert {row["table"] for row in columns} == {"t0.csv"}
    assert len(columns) == 5


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
