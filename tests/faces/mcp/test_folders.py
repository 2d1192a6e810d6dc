"""What may be read and written, and how columns are named."""

import os

import pytest

from pexeso.errors import InputError, OutputError
from pexeso.faces.mcp.tool_call import (
    LONGEST,
    folder_of,
    readable_spec,
    reference,
    writable_file,
)
from pexeso.runtime.formatting import is_hidden


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "inside"
    (inside / "below").mkdir(parents=True)
    (inside / "a.csv").write_text("a\n1\n")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (inside / "link.csv").symlink_to(tmp_path / "secret.csv")
    (inside / "out").symlink_to(tmp_path)
    return inside


def test_files_inside_are_read(folder):
    assert readable_spec("a.csv", [folder]) == str(folder / "a.csv")
    assert readable_spec(f"{folder / 'a.csv'}:a", [folder]) == f"{folder / 'a.csv'}:a"


def test_a_name_that_means_another_file_once_links_are_followed_is_not_read(folder):
    (folder / "linked.csv").symlink_to(folder / "a.csv")
    (folder / "a.csv:b").write_text("c\n1\n")
    assert readable_spec("a.csv:a:b", [folder]) == f"{folder / 'a.csv'}:a:b"
    with pytest.raises(InputError, match="There is no file"):
        readable_spec("linked.csv:b:c", [folder])


@pytest.mark.parametrize(
    "spec",
    ["../secret.csv", "link.csv", "link.csv:a", "out/secret.csv", "nowhere.csv", "a\0.csv", ""],
)
def test_files_outside_are_not_read(folder, spec):
    if spec == "":
        assert readable_spec(spec, [folder]) == str(folder)  # no file: what reads it says so
        return
    with pytest.raises(InputError, match="There is no file"):
        readable_spec(spec, [folder])


def test_links_in_a_circle_and_names_too_long_are_told(folder):
    (folder / "round.csv").symlink_to("round.csv")
    for name in ("round.csv", f"{'x' * 300}.csv"):
        with pytest.raises(InputError, match="There is no file"):
            readable_spec(f"../{name}", [folder])
        with pytest.raises(InputError, match="is no folder"):
            folder_of(folder / name)
    assert readable_spec("round.csv", [folder]) == str(folder / "round.csv")  # which reading tells
    with pytest.raises(OutputError, match="is a link"):
        writable_file("round.csv", folder, overwrite=True)
    long = f"{'x' * 300}.csv"  # which writing tells
    assert writable_file(long, folder, overwrite=False) == folder / long


def test_no_folder_no_file():
    with pytest.raises(InputError, match="--allow-read FOLDER"):
        readable_spec("a.csv", [])


def test_files_inside_are_written(folder):
    assert writable_file("b.csv", folder, overwrite=False) == folder / "b.csv"
    assert writable_file("b c é.PARQUET", folder, overwrite=False).parent == folder
    assert writable_file("a.csv", folder, overwrite=True) == folder / "a.csv"


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("../b.csv", InputError, "inside"),
        ("out/b.csv", InputError, "inside"),
        ("/tmp/b.csv", InputError, "inside"),
        ("b.txt", InputError, "as .csv or .parquet"),
        ("b\0.csv", InputError, "as .csv or .parquet"),
        ("below/b.csv", InputError, "without separators"),
        ("nowhere/b.csv", InputError, "without separators"),
        ("./b.csv", InputError, "leading dots"),
        (".b.csv", InputError, "leading dots"),
        (".csv", InputError, "leading dots"),
        ("..\\b.csv", InputError, "leading dots"),
        ("below\\b.csv", InputError, "without separators"),
        ("C:b.csv", InputError, "colons"),
        ("a.csv:b.csv", InputError, "colons"),
        ("a\nb.csv", InputError, "control characters"),
        ("a\x85b.csv", InputError, "control characters"),
        ("a\ud800.csv", InputError, "plain names"),
        ("CON.csv", InputError, "devices"),
        ("nul.parquet", InputError, "devices"),
        ("Com1.x.csv", InputError, "devices"),
        ("lpt9 .csv", InputError, "devices"),
        ("pipe.csv", OutputError, "is a link or a folder"),
        ("link.csv", OutputError, "is a link"),
        ("a.csv", OutputError, "exists already"),
    ],
)
def test_nothing_outside_is_written(folder, name, error, said):
    os.mkfifo(folder / "pipe.csv")
    overwrite = name in ("link.csv", "pipe.csv")
    with pytest.raises(error, match=said):
        writable_file(name, folder, overwrite=overwrite)


def test_a_folder_that_became_a_link_is_not_written_to(folder, tmp_path):
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path)
    with pytest.raises(OutputError, match="no longer exists"):
        writable_file("b.csv", folder, overwrite=False)


def test_a_folder_must_be_there(tmp_path):
    with pytest.raises(InputError, match="is no folder"):
        folder_of(tmp_path / "nowhere")


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
