"""The statements that may rebuild a table: queries of one table, by pure functions of its cells.

A statement is data: the plan or the file that holds it may come from anywhere. It is parsed, each
node of its tree is looked up in the grammar below, and what Spark runs is written again from those
nodes: the statement's own text never reaches Spark. What the grammar does not have is refused, also
where a later parser or a later Spark knows more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import NoReturn

import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from pexeso.errors import InputError
from pexeso.redundancy.transformations import literal, quoted

MAX_BYTES = 1 << 20  # Of a statement.
MAX_TOKENS = 100_000
MAX_DEPTH = 20  # Levels of queries within each other, and of operators and functions.
_MAX_PARENTHESES = 2 * MAX_DEPTH + 4  # what is written has one for each level

AGGREGATES = frozenset({"avg", "count", "max", "min", "sum"})
# None of them makes a text that is longer than its arguments together, or reads anything else.
_OF_CELLS = """
    abs add_months btrim ceil ceiling char_length character_length coalesce concat contains date_add
    date_sub date_trunc datediff day dayofmonth dayofweek dayofyear endswith floor greatest hour if
    ifnull initcap instr isnan isnotnull isnull last_day least left length locate lower ltrim minute
    mod month nanvl nullif nvl nvl2 pmod quarter reverse right round rtrim second sign signum
    startswith substr substring trim trunc upper weekofyear year
"""
FUNCTIONS = AGGREGATES.union(_OF_CELLS.split())

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_CALLED = FUNCTIONS | {"cast", "try_cast"}
_ALLOWED = (
    "Allowed are SELECT, JOIN, UNION, WHERE, GROUP BY and HAVING on the table {table!r}, "
    "comparisons, arithmetic, CASE, CAST, and pure functions of cells."
)


def parsed(sql: str, table: str) -> exp.Expr:
    """Return the tree of the one query that a text is, which may hold anything that a query can."""
    tokens = _tokens(sql, table)
    try:
        roots = _parser_class()(dialect="spark").parse(tokens, sql)
    except ParseError as error:
        where = error.errors[0] if error.errors else {}
        raise refusal(sql, _offset(sql, where), "it is no query from here on", table) from error
    except RecursionError as error:
        raise refusal(sql, 0, "its parts are nested too deeply", table) from error
    except Exception as error:  # whatever a parser raises on a text that nobody has foreseen
        raise refusal(sql, 0, f"it cannot be parsed ({type(error).__name__})", table) from error
    if len(roots) != 1 or roots[0] is None:
        raise refusal(sql, 0, "it is not one query", table)
    return roots[0]


def _tokens(sql: str, table: str) -> list[Token]:
    """Return the tokens of a statement, within the bounds, beginning as a query does."""
    try:
        n_bytes = len(sql.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InputError("A statement must be of whole characters, and has half of one.") from error
    if n_bytes > MAX_BYTES:
        raise InputError(f"A statement has at most {MAX_BYTES:,} bytes, and this has {n_bytes:,}.")
    try:
        tokens = Spark().tokenize(sql)
    except (TokenError, ValueError, RecursionError) as error:
        raise InputError("The statement is no query: a quoted part of it has no end.") from error
    if len(tokens) > MAX_TOKENS:
        raise InputError(
            f"A statement has at most {MAX_TOKENS:,} words and signs, and this has {len(tokens):,}."
        )
    depth = 0
    for position, token in enumerate(tokens):
        kind = token.token_type
        if position == 0 and kind not in (TokenType.SELECT, TokenType.L_PAREN):
            raise refusal(
                sql, token.start, f"{shown_name(token.text)} does not begin a query", table
            )
        if kind in (TokenType.HINT, TokenType.SEMICOLON):
            raise refusal(
                sql, token.start, f"{shown_name(token.text or ';')} is not allowed", table
            )
        calls = position + 1 < len(tokens) and tokens[position + 1].token_type == TokenType.L_PAREN
        if calls and kind in _NAMES and token.text.lower() not in _CALLED:
            what = f"a statement may not name {shown_name(token.text)}"
            raise refusal(sql, token.start, what, table)
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth > _MAX_PARENTHESES:
            what = f"more than {_MAX_PARENTHESES} parentheses are open"
            raise refusal(sql, token.start, what, table)
    if not tokens:
        raise InputError("A statement is a query, and this one is empty.")
    return tokens


@cache
def _parser_class() -> type:
    """Return the parser of Spark SQL to which all functions but CAST and CASE are but names."""
    base = Spark.Parser
    return type(
        "StatementParser",
        (base,),
        {
            "FUNCTIONS": {},
            "FUNCTION_PARSERS": {
                "CAST": lambda parser: parser._parse_cast(True),
                "TRY_CAST": lambda parser: parser._parse_cast(False, safe=True),
            },
            "NO_PAREN_FUNCTIONS": {},
            "NO_PAREN_FUNCTION_PARSERS": {"CASE": base.NO_PAREN_FUNCTION_PARSERS["CASE"]},
            "STRICT_CAST": True,
        },
    )


def start_of(node: exp.Expr) -> int:
    """Return where a node is: the first of its parts whose place is known, or what it is in."""
    above: exp.Expr | None = node
    while above is not None:
        starts = [part.meta["start"] for part in above.walk() if "start" in part.meta]
        if starts:
            return min(starts)
        above = above.parent
    return 0


def _offset(sql: str, where: Mapping[str, object]) -> int:
    """Return where a parser failed: it counts lines from 1 and gives the end of the word."""
    line, column, word = (where.get(name) for name in ("line", "col", "highlight"))
    if not isinstance(line, int) or not isinstance(column, int):
        return 0
    before = sum(len(text) + 1 for text in sql.split("\n")[: line - 1])
    return max(0, min(before + column - len(str(word or "")), len(sql)))


def refusal(sql: str, offset: int, what: str, table: str) -> InputError:
    """Return the error that refuses what is at an offset; both counts begin with 1."""
    line = sql.count("\n", 0, offset) + 1
    column = offset - (sql.rfind("\n", 0, offset) + 1) + 1
    allowed = _ALLOWED.format(table=table)
    return InputError(f"At line {line}, column {column} of the statement: {what}. {allowed}")


def shown_name(text: str) -> str:
    if text.isidentifier() and len(text) <= 60:
        return text
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}..."


MAX_SELECTS = 200
MAX_TABLES = 8  # Tables that one SELECT joins.

_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_Kind = exp.DType
_TYPES = {
    _Kind.TINYINT: "TINYINT",
    _Kind.SMALLINT: "SMALLINT",
    _Kind.INT: "INT",
    _Kind.BIGINT: "BIGINT",
    _Kind.FLOAT: "FLOAT",
    _Kind.DOUBLE: "DOUBLE",
    _Kind.DECIMAL: "DECIMAL",
    _Kind.BOOLEAN: "BOOLEAN",
    _Kind.TEXT: "STRING",
    _Kind.BINARY: "BINARY",
    _Kind.DATE: "DATE",
    _Kind.TIMESTAMPTZ: "TIMESTAMP",
    _Kind.TIMESTAMPNTZ: "TIMESTAMP_NTZ",
}
_NO_PARENTHESES = """
    current_catalog current_database current_date current_path current_schema current_time
    current_timestamp current_user grouping__id localtime localtimestamp session_user user
"""
# Where no column has such a name, Spark takes it for a function, also in back-ticks.
_CALLED_WITHOUT_PARENTHESES = frozenset(_NO_PARENTHESES.split())
_HIDDEN = "_metadata"  # A column that Spark adds to those of files: their paths and times.
_BETWEEN_TWO: Mapping[type[exp.Expr], str] = {
    exp.And: "AND",
    exp.Or: "OR",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "DIV",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.Like: "LIKE",
}
_JOINS = {
    ("", ""): "INNER JOIN",
    ("", "INNER"): "INNER JOIN",
    ("", "CROSS"): "CROSS JOIN",
    **{
        (side, kind): f"{side} OUTER JOIN"
        for side in ("LEFT", "RIGHT", "FULL")
        for kind in ("", "OUTER")
    },
    **{("LEFT", kind): f"LEFT {kind} JOIN" for kind in ("SEMI", "ANTI")},
}
# What the parser notes of its own dialects, which changes nothing that is written here.
_NOTES = frozenset({"nested", "typed", "safe"})


def checked_statement(sql: str, table: str) -> str:
    """Return a statement as it may be run: parsed, looked up in the grammar, and written again."""
    return _Writer(sql, table).query(parsed(sql, table), 0)


class _Writer:
    """Writes the tree of a statement as text, and refuses each node that the grammar lacks."""

    def __init__(self, sql: str, table: str) -> None:
        self._sql, self._table = sql, table
        self._n_selects = 0
        self._qualifiers: list[str] = []  # of the tables of this SELECT
        self._values: Mapping[type, Callable[[exp.Expr, int], str]] = {
            **dict.fromkeys(_BETWEEN_TWO, self._between_two),
            exp.Anonymous: self._function,
            exp.Between: self._between,
            exp.Boolean: lambda node, _: "TRUE" if node.this else "FALSE",
            exp.Case: self._case,
            exp.Cast: self._cast,
            exp.Column: lambda node, _: self._column(node),
            exp.In: self._in,
            exp.Is: self._is,
            exp.Literal: lambda node, _: self._literal(node),
            exp.Neg: lambda node, depth: f"(- {self._one(node, depth)})",
            exp.Not: lambda node, depth: f"(NOT {self._one(node, depth)})",
            exp.Null: lambda node, _: "NULL",
            exp.Paren: lambda node, depth: self._value(self._only(node, "this").this, depth),
            exp.TryCast: self._cast,
        }

    def query(self, node: exp.Expr, depth: int) -> str:
        self._require_depth(node, depth)
        if type(node) is exp.Subquery:
            return self.query(self._only(node, "this").this, depth + 1)
        if type(node) is exp.Select:
            return self._select(node)
        links = []
        while type(node) is exp.Union:
            links.append(self._only(node, "this", "expression", "distinct"))
            node = node.this
        if not links:
            self._refuse(node)
        text = f"({self.query(node, depth + 1)})"
        for link in reversed(links):
            word = "UNION" if link.args.get("distinct") else "UNION ALL"
            text += f" {word} ({self.query(link.expression, depth + 1)})"
        return text

    def _select(self, node: exp.Expr) -> str:
        self._n_selects += 1
        if self._n_selects > MAX_SELECTS:
            self._refuse(node, f"more than {MAX_SELECTS} SELECT")
        self._only(node, "distinct", "expressions", "from_", "joins", "where", "group", "having")
        text = "SELECT "
        if (distinct := node.args.get("distinct")) is not None:
            self._only(distinct)
            text += "DISTINCT "
        if not node.expressions:
            self._refuse(node, "a SELECT without columns")
        source, joins = node.args.get("from_"), node.args.get("joins") or []
        self._qualifiers, read = [], ""
        if source is not None:
            read += f" FROM {self._from(self._only(source, 'this').this)}"
            if len(joins) >= MAX_TABLES:
                self._refuse(joins[-1], f"a SELECT of more than {MAX_TABLES} tables")
            read += "".join(self._join(join) for join in joins)
        elif joins:
            self._refuse(joins[0])
        text += ", ".join(self._selected(item) for item in node.expressions) + read
        if (where := node.args.get("where")) is not None:
            text += f" WHERE {self._one(where, 0)}"
        if (group := node.args.get("group")) is not None:
            keys = self._only(group, "expressions").expressions
            text += f" GROUP BY {', '.join(self._value(key, 0) for key in keys)}"
        if (having := node.args.get("having")) is not None:
            text += f" HAVING {self._one(having, 0)}"
        return text

    def _selected(self, node: exp.Expr) -> str:
        if type(node) is exp.Alias:
            value = self._value(self._only(node, "this", "alias").this, 0)
            return f"{value} AS {self._name(node.args['alias'])}"
        return self._star(node) or self._value(node, 0)

    def _star(self, node: exp.Expr) -> str | None:
        if type(node) is exp.Star:
            self._only(node)
            return "*"
        if type(node) is exp.Column and type(node.this) is exp.Star:
            self._only(node.this)
            self._only(node, "this", "table")
            return f"{self._name(node.args['table'])}.*"
        return None

    def _from(self, node: exp.Expr) -> str:
        if type(node) is not exp.Table or type(node.this) is not exp.Identifier:
            self._refuse(node, "reading from what is no table")
        if node.args.get("db") is not None or node.args.get("catalog") is not None:
            self._refuse(node, f"the table {shown_name(node.sql(dialect='spark'))}")
        self._only(node, "this", "alias")
        if node.this.this != self._table:
            self._refuse(node, f"the table {shown_name(str(node.this.this))}")
        text = name = self._name(node.this)
        if (alias := node.args.get("alias")) is not None:
            name = self._name(self._only(alias, "this").this)
            text += f" AS {name}"
        self._qualifiers.append(name)
        return text

    def _join(self, node: exp.Expr) -> str:
        self._only(node, "this", "side", "kind", "on", "using")
        on, using = node.args.get("on"), node.args.get("using")
        side, kind = (str(node.args.get(name) or "").upper() for name in ("side", "kind"))
        words = _JOINS.get((side, kind))
        if words is None:
            self._refuse(node, f"a join of the kind {f'{side} {kind}'.strip()}")
        if on is None and not using:
            if side or kind == "INNER":
                self._refuse(node, "a join without a condition")
            return f" CROSS JOIN {self._from(node.this)}"
        text = f" {words} {self._from(node.this)}"
        if on is not None:
            return f"{text} ON {self._value(on, 0)}"
        names = [column.this if type(column) is exp.Column else column for column in using or ()]
        return f"{text} USING ({', '.join(map(self._name, names))})"

    def _value(self, node: exp.Expr, depth: int) -> str:
        self._require_depth(node, depth)
        write = self._values.get(type(node))
        if write is None:
            self._refuse(node)
        return write(node, depth)

    def _one(self, node: exp.Expr, depth: int) -> str:
        return self._value(self._only(node, "this").this, depth + 1)

    def _between_two(self, node: exp.Expr, depth: int) -> str:
        kind, parts = type(node), []
        if kind is exp.Like and not _is_text(node.expression):
            self._refuse(node, "LIKE with a pattern that is no text")
        left: exp.Expr = node
        while type(left) is kind:  # a chain as long as it may be is one level
            self._only(left, "this", "expression")
            parts.append(self._value(left.expression, depth + 1))
            left = left.this
        parts.append(self._value(left, depth + 1))
        return f"({f' {_BETWEEN_TWO[kind]} '.join(reversed(parts))})"

    def _function(self, node: exp.Expr, depth: int) -> str:
        name = node.this.lower() if isinstance(node.this, str) else ""
        if name not in FUNCTIONS:
            shown = node.this if isinstance(node.this, str) else node.name
            raise refusal(
                self._sql,
                start_of(node),
                f"a statement may not name {shown_name(shown)}",
                self._table,
            )
        arguments = self._only(node, "this", "expressions").expressions
        word = ""
        if name in AGGREGATES and len(arguments) == 1:
            [argument] = arguments
            if name == "count" and type(argument) is exp.Star:
                return f"count({self._star(argument)})"
            if type(argument) is exp.Distinct:
                word, arguments = "DISTINCT ", self._only(argument, "expressions").expressions
        values = ", ".join(self._value(argument, depth + 1) for argument in arguments)
        return f"{name}({word}{values})"

    def _between(self, node: exp.Expr, depth: int) -> str:
        self._only(node, "this", "low", "high")
        value, low, high = (
            self._value(node.args[name], depth + 1) for name in ("this", "low", "high")
        )
        return f"({value} BETWEEN {low} AND {high})"

    def _case(self, node: exp.Expr, depth: int) -> str:
        self._only(node, "this", "ifs", "default")
        text = "CASE"
        if (value := node.args.get("this")) is not None:
            text += f" {self._value(value, depth + 1)}"
        for branch in node.args["ifs"]:
            self._only(branch, "this", "true")
            when, then = (self._value(branch.args[name], depth + 1) for name in ("this", "true"))
            text += f" WHEN {when} THEN {then}"
        if (default := node.args.get("default")) is not None:
            text += f" ELSE {self._value(default, depth + 1)}"
        return f"{text} END"

    def _cast(self, node: exp.Expr, depth: int) -> str:
        self._only(node, "this", "to")
        word = "CAST" if type(node) is exp.Cast else "TRY_CAST"
        return f"{word}({self._value(node.this, depth + 1)} AS {self._type(node.args['to'])})"

    def _type(self, node: exp.Expr) -> str:
        kind = _TYPES.get(node.this) if type(node) is exp.DataType else None
        if kind is None or node.args.get("nested"):
            self._refuse(node, "this type")
        digits = [param.this for param in self._only(node, "this", "expressions").expressions]
        if not digits:
            return kind
        if kind != "DECIMAL" or not all(
            type(number) is exp.Literal and not number.is_string and number.this.isdecimal()
            for number in digits
        ):
            self._refuse(node, "this type")
        return f"{kind}({', '.join(str(int(number.this[:9])) for number in digits)})"

    def _in(self, node: exp.Expr, depth: int) -> str:
        values = self._only(node, "this", "expressions").expressions
        if not values:
            self._refuse(node)
        listed = ", ".join(self._value(value, depth + 1) for value in values)
        return f"({self._value(node.this, depth + 1)} IN ({listed}))"

    def _is(self, node: exp.Expr, depth: int) -> str:
        self._only(node, "this", "expression")
        if type(node.expression) not in (exp.Null, exp.Boolean):
            self._refuse(node)
        value, what = (self._value(part, depth + 1) for part in (node.this, node.expression))
        return f"({value} IS {what})"

    def _column(self, node: exp.Expr) -> str:
        self._only(node, "this", "table", "db", "catalog")
        parts = [node.args.get(name) for name in ("catalog", "db", "table", "this")]
        names = [self._name(part) for part in parts if part is not None]
        plain = {name.strip("`").lower() for name in names}
        if _HIDDEN in plain:
            self._refuse(node, f"the column {_HIDDEN!r}")
        if len(names) == 1 and plain & _CALLED_WITHOUT_PARENTHESES:
            if len(self._qualifiers) != 1:
                self._refuse(node, f"the name {names[0]} without that of its one table")
            names[:0] = self._qualifiers
        return ".".join(names)

    def _literal(self, node: exp.Expr) -> str:
        self._only(node, "this", "is_string")
        if node.args["is_string"]:
            return literal(node.this, pa.string())
        if not _NUMBER.fullmatch(str(node.this)):
            self._refuse(node, f"the number {shown_name(str(node.this))}")
        return str(node.this)

    def _name(self, node: exp.Expr) -> str:
        if type(node) is not exp.Identifier:
            self._refuse(node)
        name = str(self._only(node, "this", "quoted").this)
        if not name:
            self._refuse(node, "an empty name")
        return quoted(name)

    def _only(self, node: exp.Expr, *names: str) -> exp.Expr:
        """Return a node that has nothing else than what is written of it."""
        for name, part in node.args.items():
            if name not in names and name not in _NOTES and part not in (None, False, [], ""):
                first = part[0] if isinstance(part, list) else part
                self._refuse(first if isinstance(first, exp.Expr) else node)
        return node

    def _require_depth(self, node: exp.Expr, depth: int) -> None:
        if depth > MAX_DEPTH:
            self._refuse(node, f"more than {MAX_DEPTH} levels of parts within each other")

    def _refuse(self, node: exp.Expr, what: str | None = None) -> NoReturn:
        what = f"{what or _words(type(node))} is not allowed"
        raise refusal(self._sql, start_of(node), what, self._table)


def _is_text(node: exp.Expr) -> bool:
    return type(node) is exp.Literal and bool(node.args.get("is_string"))


def _words(kind: type) -> str:
    """Return how a sentence names a node: LateralView as LATERAL VIEW."""
    if kind is exp.Concat:  # of the function there is but the name
        return "a text next to a text"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).upper()
