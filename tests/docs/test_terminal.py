"""Test of the terminal that plays on the first page: it shows what the commands print now."""

import importlib.util
import xml.etree.ElementTree as ElementTree
from pathlib import Path

PATH = Path(__file__).parents[2] / "docs" / "write_terminal.py"


def test_the_terminal_shows_what_the_commands_print():
    specification = importlib.util.spec_from_file_location("write_terminal", PATH)
    writer = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(writer)
    drawn = writer.PICTURE.read_text(encoding="utf-8")
    assert drawn == writer.picture(writer.scenes()), "run: python docs/write_terminal.py"
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn).iter()}
    assert tags == {"svg", "title", "style", "rect", "g", "text"}, "no script, and nothing to load"
