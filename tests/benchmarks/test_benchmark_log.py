"""The log of the benchmarks is one by date."""

import datetime
import re

from benchmarks.origin import ROOT

TEXT = (ROOT / "benchmarks" / "NOTES.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)


def test_every_entry_has_a_number_and_a_date_in_order():
    matches = [re.fullmatch(r"(\d+)\. \S.* \((\d{4}-\d\d-\d\d)\)", heading) for heading in HEADINGS]
    assert len(matches) >= 37
    assert [heading for heading, match in zip(HEADINGS, matches, strict=True) if not match] == []
    assert [int(match[1]) for match in matches] == list(range(1, len(matches) + 1))
    dates = [datetime.date.fromisoformat(match[2]) for match in matches]
    assert dates == sorted(dates)
