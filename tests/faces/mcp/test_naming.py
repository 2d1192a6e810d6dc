"""References to columns."""

import pytest

from pexeso.faces.mcp.tool_call import LONGEST, reference
from pexeso.runtime.formatting import is_hidden


def test_plain_names_are_written_out():
    assert reference("a/b.csv", "città 漢字") == "a/b.csv:città 漢字"


@pytest.mark.parametrize("column", ["a\nb", "\u202ea", "x" * LONGEST, "a\u200bb"])
def test_other_names_are_codes(column):
    code = reference("a.csv", column)
    assert code[0] == "~"
    assert len(code) == 17
    assert not any(map(is_hidden, code))
    assert code != reference("b.csv", column)


def test_a_name_like_a_code_is_a_code():
    assert reference("~0123456789abcdef", "a") != "~0123456789abcdef:a"
