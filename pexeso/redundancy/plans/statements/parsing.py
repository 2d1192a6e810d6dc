"""Texts of statements, parsed within bounds, and where in them a part stands."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from pexeso.errors import InputError

MAX_BYTES = 1 << 20
"""Of a statement."""
MAX_TOKENS = 100_000
MAX_DEPTH = 20
"""Levels of queries within each other, and of operators and functions."""
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
    """Return where a node stands: the first of its parts whose place is known, or what it is in."""
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
    """Return the error that refuses what stands at an offset; both counts begin with 1."""
    line = sql.count("\n", 0, offset) + 1
    column = offset - (sql.rfind("\n", 0, offset) + 1) + 1
    allowed = _ALLOWED.format(table=table)
    return InputError(f"At line {line}, column {column} of the statement: {what}. {allowed}")


def shown_name(text: str) -> str:
    """Return a name for a message, cut where it is long."""
    if text.isidentifier() and len(text) <= 60:
        return text
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}..."
