"""An agent asks which declared joins still hold."""

import pytest

import pexeso
from pexeso.faces.mcp.tool_call import Desk
from tests.faces.mcp.conftest import CITIES, caller


@pytest.fixture
def folder(tmp_path, write):
    lake = write("lake/cities.csv", "city\n" + "".join(f"{city}\n" for city in CITIES)).parent
    for name in ("a", "b"):
        (lake / f"{name}.csv").write_text("town\n" + "".join(f"{city}\n" for city in CITIES))
        pexeso.record_join(
            lake / "joins.toml", f"{lake}/{name}.csv:town", f"{lake}/cities.csv:city"
        )
    pexeso.build_index(lake, tmp_path / "lake.pexeso")
    return tmp_path


def verified(folder, **given):
    desk = Desk.of(str(folder / "lake.pexeso"), allow_read=[str(folder / "lake")])
    return caller(desk)("verify_joins", **{"file": "joins.toml", **given})


def test_joins_hold_until_a_value_is_gone(folder):
    answer = verified(folder)
    assert (answer["ok"], answer["n_broken"], answer["total"]) == (True, 0, 2)
    (folder / "lake" / "b.csv").write_text("town\nXyzzyx\n")
    answer = verified(folder, limit=1)
    assert (answer["ok"], answer["n_broken"], answer["next_offset"]) == (False, 1, 1)
    [broken] = answer["joins"]
    assert (broken["left"], broken["ok"]) == ("b.csv:town", False)
    assert broken["broken"] == "no value matches"
    assert "Xyzzyx" in broken["new"]
    [other] = verified(folder, offset=1)["joins"]
    assert (other["left"], other["ok"]) == ("a.csv:town", True)


def test_no_other_file_and_no_hidden_column_is_read(folder, monkeypatch):
    (folder / "joins.toml").write_text("")
    with pytest.raises(ValueError, match="There is no file"):
        verified(folder, file="../joins.toml")
    visible = folder / "visible.csv"
    visible.write_text("table,column\ncities.csv,city\n")
    monkeypatch.setenv("PEXESO_VISIBLE", str(visible))
    with pytest.raises(ValueError, match="see the whole lake"):
        verified(folder)
