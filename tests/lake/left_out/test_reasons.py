"""Every reason that the product can write falls into a group that holds no name of a file."""

import ast
from pathlib import Path

import pytest

from pexeso.lake.choose import ColumnProfile, ColumnRules, reason_left_out
from pexeso.lake.left_out import grouped

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("pexeso/lake/**/*.py", "pexeso/build/*.py")
RAISED = ("TableReadError", "SkippedFile", "_skipped")
TABLE = "some folder/some table.csv"
FREE = "«free text»"
"""Stands for what a library says, and for names."""

NUMBERS = {
    "many": "7 rows",
    "_percent": "7 %",
    "lack_of": f"{TABLE} needs the package words, which is not installed",
}
"""What functions write that are called in reasons."""

OWN_WORDS = (
    "doing",
    "package",
    "kinds",
    "profile.kind",
    "what",
    "kind",
    "PACKED",
    "TABLE_EXTENSIONS",
)
"""Names of variables that hold words of our own, of which there are few."""


def reason_nodes(tree: ast.Module):
    """Yield the expressions of texts that say why something is left out."""
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if is_call and node.func.id in RAISED and node.args:
            yield node.args[-1]
        is_reason = isinstance(node, ast.FunctionDef) and (
            "reason" in node.name or node.name in ("_wrong_kind", "_table_of")
        )
        if is_reason:
            yield from (child.value for child in ast.walk(node) if isinstance(child, ast.Return))
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and "reason" in target.id.lower():
                    yield node.value


def texts_of(node: ast.AST | None):
    """Yield the texts that an expression may give, with samples for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from texts_of(node.body)
        yield from texts_of(node.orelse)
    elif isinstance(node, ast.JoinedStr):
        parts = node.values
        yield "".join(filled(part, is_first=part is parts[0]) for part in parts)


def filled(part: ast.AST, *, is_first: bool) -> str:
    if isinstance(part, ast.Constant):
        return part.value
    assert isinstance(part, ast.FormattedValue)
    if part.format_spec is not None:
        return "7"
    if is_first and ast.unparse(part.value).endswith(("shown", "file.table", "table")):
        return repr(TABLE) if part.conversion == ord("r") else TABLE
    said = ast.unparse(part.value)
    if isinstance(part.value, ast.Call):
        name = ast.unparse(part.value.func)
        if name in NUMBERS:
            return NUMBERS[name]
        if name.startswith("reason_"):  # another of these reasons
            return "words"
    return "words" if any(word in said for word in OWN_WORDS) else FREE


def all_reasons():
    reasons = []
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in reason_nodes(tree):
                reasons += [(path.name, node.lineno, text) for text in texts_of(node)]
    return sorted(set(reasons))


def test_no_reason_of_the_sources_has_free_text_in_its_group():
    reasons = all_reasons()
    assert len(reasons) > 30, "the reasons were not found"
    heads = {text: grouped(text, TABLE).head.written() for _, _, text in reasons}
    bad = {
        text: head
        for text, head in heads.items()
        if FREE in head or TABLE in head or not head or len(head) > 90
    }
    assert bad == {}, "write a reason as GROUP: DETAIL; WAY OUT, see pexeso.lake.left_out"
    said = "\n".join(heads)
    for known in ("is empty: it has no header row", "cannot be read as a table", "symbolic link"):
        assert known in said, "the search through the sources misses reasons"


def test_free_text_in_a_group_is_seen():
    tree = ast.parse('raise TableReadError(f"{shown} has {error}; try again.")')
    [node] = reason_nodes(tree)
    [text] = texts_of(node)
    assert grouped(text, TABLE).head.written() == f"has {FREE}"


@pytest.mark.parametrize(
    ("reason", "table", "head"),
    [
        ("a.csv is empty: it has no header row.", "a.csv", "empty"),
        ("a.csv is empty: it holds no JSON object.", "a.csv", "empty"),
        ("a: b; c.csv is empty: it has no header row.", "a: b; c.csv", "empty"),
        ("a.csv cannot be read: Permission denied.", "a.csv", "cannot be read"),
        ("a.csv cannot be read as a table: x (y).", "a.csv", "cannot be read as a table"),
        ("x.gz is a damaged gzip file (CRC: 0x1 != 0x2); write it.", "x.gz", "a damaged gzip file"),
        ("b.zip is refused: its members lie.", "b.zip/c/d.csv", "refused"),
        ("b.xlsx is encrypted.", "b.xlsx#Sheet 1", "encrypted"),
        ("'s3://b/a is x.csv' cannot be opened: no.", "a is x.csv", "cannot be opened"),
        (
            "'a\\n.csv' cannot be the name of a file: NUL.",
            "a\n.csv",
            "cannot be the name of a file",
        ),
        ("it cannot be looked at: no", "a.csv", "cannot be looked at"),
        ("hidden: its name starts with a dot", ".a", "hidden"),
        ("not a table by its extension; tables end in .csv", "not", "not a table by its extension"),
        ("a pexeso index", "a", "a pexeso index"),
        ("not a table: a web page; save its tables as CSV", "a.html", "not a table: a web page"),
        ("column 'a: b' (#3) is not text everywhere: no", "", "a column is not text everywhere"),
        ("not UTF-8: read as cp1252, a guess", "a.csv", "not UTF-8"),
        ("numbers: 62.5 % of the values, over 0.5", "", "numbers"),
        ("numbers: its type is int, and only text", "", "numbers"),
    ],
)
def test_the_group_of_a_reason(reason, table, head):
    assert grouped(reason, table).head.written() == head


def test_what_every_rule_says_has_one_group_whatever_its_numbers():
    rules = ColumnRules(max_missing_fraction=0.5)

    def keys(*profiles: ColumnProfile) -> set[tuple[str, ...]]:
        return {grouped(reason_left_out(profile, rules)).key for profile in profiles}

    few_rows = [ColumnProfile("text", n, 0, n, 0, 0, 1.0) for n in range(5)]
    few_values = [ColumnProfile("text", 9, 0, n, 0, 0, 1.0) for n in (0, 1)]
    numbers = [ColumnProfile("number", 9, 0, 9, 9, n, 1.0) for n in (7, 9)]
    long = [ColumnProfile("text", 9, 0, 9, 0, 0, n) for n in (12.5, 1e9)]
    gaps = [ColumnProfile("text", 90, n, 9, 0, 0, 1.0) for n in (50, 80)]
    every = [keys(*profiles) for profiles in (few_rows, few_values, numbers, long, gaps)]
    assert [len(group_keys) for group_keys in every] == [1] * 5
    assert len(set.union(*every)) == 5


def test_ranges_are_written_in_the_numbers_own_form():
    head = grouped("1 row, at least 5 needed").head
    assert head.written() == "1 row, at least 5 needed"
    many = grouped("1,200 rows, at least 5 needed").head
    for both in (head.widened(many), many.widened(head)):
        assert both.written() == "1 to 1,200 rows, at least 5 needed"
    head = grouped("UTF-8, 0x1f, cp1252, #3 and v2 hold 1e+06, 3.5").head
    assert head.lows == head.highs == ("1e+06", "3.5")


def test_a_sign_in_a_text_is_no_number():
    assert grouped("x # y").key != grouped("x 3 y").key
