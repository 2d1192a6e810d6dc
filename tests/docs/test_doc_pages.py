"""The helper that reads pages: blocks, commands, links, and what counts as the same output."""

import pytest
from doc_pages import Step, anchors, blocks, links, make_targets, same_line, same_output, steps

PAGE = """# A `first` page, of two

See [that](other.md#part) and [this](https://example.org), `make test`, not `[x](y)`.

```console
$ pexeso search a b > c.csv
3 columns in 41 ms (open 2.4)
$ pexeso info 'x y'
Error: no.
```

```jsonl file=in/queries.jsonl
[not](a-link.md)
```

    make me
"""


def test_blocks_and_steps():
    console, file = blocks(PAGE)
    first, second = steps(console)
    assert (first.line, first.arguments, first.redirected_to, first.fails) == (
        6,
        ["pexeso", "search", "a", "b"],
        "c.csv",
        False,
    )
    assert (second.line, second.arguments, second.shown, second.fails) == (
        8,
        ["pexeso", "info", "x y"],
        ("Error: no.",),
        True,
    )
    assert (file.kind, file.file, file.lines) == (
        "jsonl",
        "in/queries.jsonl",
        ("[not](a-link.md)",),
    )


@pytest.mark.parametrize(
    ("command", "arguments", "source", "target"),
    [
        ("pexeso keys - < a.csv", ["pexeso", "keys", "-"], "a.csv", None),
        ("pexeso keys - < a.csv > 'b c'", ["pexeso", "keys", "-"], "a.csv", "b c"),
        ("pexeso keys -", ["pexeso", "keys", "-"], None, None),
    ],
)
def test_redirections_are_no_arguments(command, arguments, source, target):
    step = Step(command, 1, ())
    assert (step.arguments, step.redirected_from, step.redirected_to) == (arguments, source, target)


def test_a_block_without_end_or_command_is_refused():
    with pytest.raises(ValueError, match="starts in line 1 has no end"):
        blocks("```console\n$ ls\n")
    with pytest.raises(ValueError, match="line 2: a console block must start with a command"):
        steps(blocks("```console\nls\n```\n")[0])


def test_links_anchors_and_targets():
    assert links(PAGE) == ["other.md#part"]
    assert anchors(PAGE) == {"a-first-page-of-two"}
    assert make_targets(PAGE + "```\nmake demo    # and more\nmake it so\n```\n") == {
        "test",
        "demo",
        "it",
        "so",
    }


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        ("a b", "a b  ", True),
        ("a b", "a  b", False),
        ("a  b", "a    b", True),
        ("3 columns in 41 ms (open 2.4, embed 3)", "3 columns in 1,002 ms (open 1)", True),
        ("3 columns in 41 ms (open 2.4)", "4 columns in 41 ms (open 2.4)", False),
        ("3 columns in 0.4 ms", "3 columns in 1,002 ms", True),
        ("3 columns in 0.4 ms", "2 columns in 0.4 ms", False),
        ("done in 1.2 s.", "done in 99.0 s.", True),
        ("x  0.086", "x  0.087", True),
        ("x  0.086", "x  0.088", False),
        ("x  0.000", "x  0.001", False),
        ("x  0.000", "x  0.000", True),
        ("(31.3 MB)", "(31.4 MB)", True),
        ("(31.3 MB)", "(33.4 MB)", False),
        ("0  71  5,078,593", "0  71  5,078,589", True),
        ("0  71  5,078,593", "0  71  5,178,593", False),
        ("5,078,593 values", "5,078,589 values", False),
        ("76.0 %", "76.1 %", False),
        ("12.04.2011", "12.05.2011", False),
        ("written 2026-11-20T18:44:44+00:00 by", "written 2027-01-02T00:00:00+00:00 by", True),
    ],
)
def test_lines_are_the_same_but_for_what_differs_with_each_run(shown, real, same):
    assert same_line(shown, real) is same


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        ("a b c", "a b c", True),
        ("a c", "a b c", False),
        ("a ... c", "a b b c", True),
        ("a ... c", "a c", True),
        ("a ... c", "a b", False),
        ("...", "", True),
        ("", "a", False),
        ("... b ... d", "a b b c d", True),
        ("... b ... d", "a b b c d e", False),
    ],
)
def test_three_dots_stand_for_any_lines(shown, real, same):
    assert same_output(shown.split(), real.split()) is same


def test_blank_lines_at_the_end_do_not_count():
    assert same_output(["a", ""], ["a"])
    assert not same_output(["a", "", "b"], ["a", "b"])
