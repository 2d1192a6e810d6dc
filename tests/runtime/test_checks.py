"""Options by name: unknown ones are refused, and those of numpy are as those of Python."""

import numpy as np
import pytest

from pexeso.errors import InputError
from pexeso.runtime.checks import named_options


@named_options("a search")
def search(query, *, k=20, exact=False):
    return query, k, exact


def test_options_are_plain():
    query, k, exact = search(np.int64(1), k=np.int64(3), exact=np.True_)
    assert (type(query), type(k), type(exact)) == (np.int64, int, bool)
    assert (k, exact) == (3, True)
    assert search(query="Oslo") == ("Oslo", 20, False)


def test_unknown_options_are_refused_with_those_there_are():
    with pytest.raises(InputError, match=r"^Options of a search are k, exact\. Got kk, x\.$"):
        search("Oslo", x=1, kk=2)
