"""Statements inside and outside the grammar, what chance makes of them, and what none may be."""

import sqlglot
from sqlglot import exp

from pexeso.redundancy.statements import FUNCTIONS, MAX_DEPTH, MAX_SELECTS, MAX_TABLES

ALLOWED = {
    "select town from t": "SELECT `town` FROM `t`",
    "SELECT * FROM `t` -- all": "SELECT * FROM `t`",
    "/* a */ SELECT DISTINCT `a`, `b``c` AS d FROM t WHERE FALSE": (
        "SELECT DISTINCT `a`, `b``c` AS `d` FROM `t` WHERE FALSE"
    ),
    "SELECT u.*, u.a.b FROM t AS u": "SELECT `u`.*, `u`.`a`.`b` FROM `t` AS `u`",
    "SELECT a FROM t UNION ALL SELECT b FROM t UNION SELECT c FROM t": (
        "(SELECT `a` FROM `t`) UNION ALL (SELECT `b` FROM `t`) UNION (SELECT `c` FROM `t`)"
    ),
    "SELECT a FROM t UNION (SELECT b FROM t UNION ALL SELECT c FROM t)": (
        "(SELECT `a` FROM `t`) UNION ((SELECT `b` FROM `t`) UNION ALL (SELECT `c` FROM `t`))"
    ),
    "SELECT * FROM t x JOIN t y ON x.a = y.b LEFT SEMI JOIN t z USING (a), t": (
        "SELECT * FROM `t` AS `x` INNER JOIN `t` AS `y` ON (`x`.`a` = `y`.`b`) "
        "LEFT SEMI JOIN `t` AS `z` USING (`a`) CROSS JOIN `t`"
    ),
    "SELECT a, COUNT(*), count(DISTINCT b), Sum(c) FROM t GROUP BY a HAVING max(b) > 1.5e3": (
        "SELECT `a`, count(*), count(DISTINCT `b`), sum(`c`) FROM `t` GROUP BY `a` "
        "HAVING (max(`b`) > 1.5e3)"
    ),
    "SELECT 1 - 2 - 3 * -a % 4 DIV 5 FROM t": (
        "SELECT (1 - 2 - (((3 * (- `a`)) % 4) DIV 5)) FROM `t`"
    ),
    "SELECT a + b / 2 FROM t WHERE a < 1 OR a <= 2 OR a >= 3 OR a <> 4 OR a != 5 OR a = 6": (
        "SELECT (`a` + (`b` / 2)) FROM `t` WHERE ((`a` < 1) OR (`a` <= 2) OR (`a` >= 3) OR "
        "(`a` <> 4) OR (`a` <> 5) OR (`a` = 6))"
    ),
    "SELECT CASE a WHEN 1 THEN 'x' ELSE NULL END, CASE WHEN a THEN b END, if(a, b, c) FROM t": (
        "SELECT CASE `a` WHEN 1 THEN 'x' ELSE NULL END, CASE WHEN `a` THEN `b` END, "
        "if(`a`, `b`, `c`) FROM `t`"
    ),
    "SELECT CAST(a AS DECIMAL(10, 2)), TRY_CAST(b AS int), c::string, DATE'2020-01-02' FROM t": (
        "SELECT CAST(`a` AS DECIMAL(10, 2)), TRY_CAST(`b` AS INT), CAST(`c` AS STRING), "
        "CAST('2020-01-02' AS DATE) FROM `t`"
    ),
    "SELECT a FROM t WHERE a IS NOT NULL AND NOT b IN (1, 'x') OR c BETWEEN 1 AND 2 OR d <=> e": (
        "SELECT `a` FROM `t` WHERE (((NOT (`a` IS NULL)) AND (NOT (`b` IN (1, 'x')))) OR "
        "(`c` BETWEEN 1 AND 2) OR (`d` <=> `e`))"
    ),
    "SELECT left(a, 2) || upper(b), year(date) FROM t WHERE c LIKE 'x%'": (
        "SELECT (left(`a`, 2) || upper(`b`)), year(`date`) FROM `t` WHERE (`c` LIKE 'x%')"
    ),
    # Spark would take the name for a function where there is no such column.
    "SELECT user, `Current_Date` FROM t u": "SELECT `u`.`user`, `u`.`Current_Date` FROM `t` AS `u`",
    "SELECT 1": "SELECT 1",
}

REFUSED = [
    # (statement, line, column)
    ("SELECT TRANSFORM(a) USING 'bash -c id' AS (a string) FROM t", 1, 8),
    ("SELECT\n  IDENTIFIER('ref' || 'lect')('java.lang.System', 'exit', 1) FROM t", 2, 3),
    ("SELECT * FROM IDENTIFIER('t')", 1, 15),
    ("SELECT a.reflect('a') FROM t", 1, 10),
    ("SELECT `reflect`('java.lang.System', 'exit', 1)", 1, 8),
    ("SELECT Try_Reflect('a', 'b')", 1, 8),
    ("SELECT/**/java_method/**/('a', 'b')", 1, 11),
    ("SELECT input_file_name() FROM t", 1, 8),
    ("SELECT current_user FROM t a, t b", 1, 8),
    ("SELECT `current_user`", 1, 8),
    ("SELECT `_metadata`.file_path FROM t", 1, 8),
    ("SELECT * FROM csv.`/etc/passwd`", 1, 15),
    ("SELECT * FROM `parquet`.`/etc/passwd`", 1, 15),
    ("SELECT * FROM u", 1, 15),
    ("SELECT * FROM T", 1, 15),
    ("SELECT * FROM a.b.t", 1, 15),
    ("SELECT * FROM range(10)", 1, 15),
    ("SELECT * FROM TABLE(t)", 1, 15),
    ("SELECT * FROM VALUES (1)", 1, 23),
    ("SELECT * FROM t TABLESAMPLE (1 ROWS)", 1, 30),
    ("SELECT * FROM t LATERAL VIEW explode(a) x AS y", 1, 30),
    ("SELECT * FROM t, LATERAL (SELECT 1)", 1, 34),
    ("SELECT * FROM (SELECT * FROM t) x", 1, 23),
    ("SELECT (SELECT 1) FROM t", 1, 16),
    ("SELECT a FROM t WHERE a IN (SELECT b FROM t)", 1, 36),
    ("SELECT a FROM t WHERE EXISTS (SELECT 1)", 1, 38),
    ("WITH t AS (SELECT 1) SELECT * FROM t", 1, 1),
    ("SELECT /*+ BROADCAST(t) */ * FROM t", 1, 8),
    ("SELECT explode(a) FROM t", 1, 8),
    ("SELECT stack(2, 1, 2)", 1, 8),
    ("SELECT transform(a, x -> x) FROM t", 1, 8),
    ("SELECT upper(x -> x) FROM t", 1, 14),
    ("SELECT regexp_replace(a, '(a+)+', '') FROM t", 1, 8),
    ("SELECT a FROM t WHERE a RLIKE '(a+)+'", 1, 23),
    ("SELECT repeat(a, 1000000000) FROM t", 1, 8),
    ("SELECT a LIKE b FROM t", 1, 8),
    ("SELECT rand() FROM t", 1, 8),
    ("SELECT row_number() OVER (ORDER BY a) FROM t", 1, 8),
    ("SELECT upper(a) OVER (ORDER BY a) FROM t", 1, 8),
    ("SELECT upper(a AS b) FROM t", 1, 14),
    ("SELECT count(b => 1) FROM t", 1, 19),
    ("SELECT concat(*) FROM t", 1, 15),
    ("SELECT sum(a) FILTER (WHERE b) FROM t", 1, 8),
    ("SELECT * EXCEPT (a) FROM t", 1, 18),
    ("SELECT a[0] FROM t", 1, 8),
    ("SELECT a FROM t LIMIT 1", 1, 23),
    ("SELECT a FROM t ORDER BY a", 1, 26),
    ("SELECT a FROM t GROUP BY ROLLUP(a)", 1, 33),
    ("SELECT * FROM t NATURAL JOIN t u", 1, 30),
    ("SELECT a FROM t EXCEPT SELECT b FROM t", 1, 8),
    ("SELECT :a, ? FROM t", 1, None),
    ("SELECT ${a} FROM t", 1, None),
    ("SELECT CAST(a AS ARRAY<INT>) FROM t", 1, 13),
    ("SELECT INTERVAL 1 DAY FROM t", 1, None),
    ("SELECT 'a' 'b' FROM t", 1, None),
    ("SELECT 1; DROP VIEW t", 1, 9),
    ("SELECT 1 FROM t;", 1, 16),
    ("DROP VIEW t", 1, 1),
    ("SET spark.sql.runSQLOnFiles = true", 1, 1),
    ("ADD JAR '/none.jar'", 1, 1),
    ("CREATE TABLE x AS SELECT 1", 1, 1),
    ("INSERT INTO x SELECT 1", 1, 1),
    ("VALUES (1)", 1, 1),
    ("SELECT a FROM", 1, None),
    ("SELECT \u2019a\u2019\u2019 b c FROM t", 1, None),
    (f"SELECT {'(' * 200}1{')' * 200}", 1, None),
    (f"SELECT {'- ' * (MAX_DEPTH + 2)}a FROM t", 1, None),
    (f"SELECT {'- ' * 5000}a FROM t", 1, None),
    (f"SELECT {'NOT ' * 5000}a FROM t", 1, None),
    (f"SELECT {'CASE WHEN ' * 3000}a FROM t", 1, None),
    (" UNION ALL ".join(["SELECT 1"] * (MAX_SELECTS + 1)), 1, None),
    ("SELECT 1 FROM t" + ", t" * MAX_TABLES, 1, None),
]


_PIECES = """
reflect( java_method( IDENTIFIER( TRANSFORM( USING explode( LATERAL VIEW input_file_name() range(
csv.`/etc/passwd` `parquet`.`x` /*+ */ -- ; ' " ` \\' '' ( ) , . * :: => -> [ ] { } ? :x @x $x ${x}
WITH t AS SELECT FROM JOIN UNION ALL WHERE GROUP BY HAVING ORDER LIMIT IN EXISTS BETWEEN CASE END
WHEN VALUES TABLE OVER FILTER LIKE ESCAPE NOT AND OR IS NULL DISTINCT CAST AS INT STRUCT<a:INT> t b
upper( count( concat( 1 1.5 'x' 1e3 0x1F X'41' r'a' INTERVAL DAY DATE \u2019 \x00 \U0001f600
"""
PIECES = _PIECES.split()


def mutated(draw, seeds):
    """Return a statement made of others: parts spliced, doubled, left out and put within others."""
    sql = draw.choice(seeds)
    for _ in range(draw.randint(0, 4)):
        parts = sql.split(" ")
        begin = draw.randrange(len(parts))
        end = min(len(parts), begin + draw.randint(0, 4))
        other = draw.choice(seeds).split(" ")
        at = draw.randrange(len(other))
        change = draw.randrange(5)
        if change == 0:
            parts[begin:end] = [draw.choice(PIECES)]
        elif change == 1:
            parts[begin:end] = other[at : at + draw.randint(1, 5)]
        elif change == 2:
            parts[begin:end] = []
        elif change == 3:
            parts[begin:end] = ["(", *parts[begin:end], ")"]
        else:
            parts[begin:begin] = parts[begin:end]
        sql = " ".join(parts)
    return sql


def harmless_nodes():
    """Return the nodes of the queries above and of each function, as the whole parser has them."""
    calls = [f"{name}({arguments})" for name in FUNCTIONS for arguments in ("a", "a, b", "a, b, c")]
    nodes = set()
    for sql in [*ALLOWED.values(), *(f"SELECT {call} FROM t" for call in calls)]:
        try:
            [tree] = sqlglot.parse(sql, read="spark")
        except sqlglot.ParseError:  # a function of other arguments
            continue
        nodes |= {type(node) for node in tree.walk()}
    return frozenset(nodes - {exp.Subquery}) | {exp.Anonymous}


HARMLESS = harmless_nodes()


def require_harmless(sql, table="t"):
    """Raise unless a query, read by the whole parser, has harmless nodes and one table alone."""
    [tree] = sqlglot.parse(sql, read="spark")
    for node in tree.walk():
        if isinstance(node, exp.Subquery):
            assert isinstance(node.parent, exp.Union), sql
            continue
        assert type(node) in HARMLESS, (type(node), sql)
        assert not isinstance(node, exp.Anonymous) or node.name.lower() in FUNCTIONS, sql
        if isinstance(node, exp.Table):
            assert isinstance(node.this, exp.Identifier), sql
            assert (node.name, node.db, node.catalog) == (table, "", ""), sql
