"""Looking at the machine."""

import importlib
import importlib.util
import shutil
import sys
from collections import namedtuple

import pytest

from pexeso.build.diagnostics import doctor
from pexeso.build.diagnostics.doctor import Finding, diagnose
from pexeso.errors import SparkError

NAMES = [
    *(
        "Python",
        "pyarrow",
        "torch",
        "CUDA",
        "pyspark",
        "Java",
        "fastText",
        "sentence-transformers",
        "s3fs",
    ),
    *("cores", "memory", "disk"),
]


def finding(name, folder=".") -> Finding:
    return next(one for one in diagnose(folder) if one.name == name)


def test_this_machine_has_what_is_needed(tmp_path):
    findings = diagnose(tmp_path)
    assert [one.name for one in findings] == NAMES
    assert [one for one in findings if one.ok is False] == []
    assert all(bool(one.way_out) == (one.ok is not True) for one in findings)
    assert all(one.detail and "\n" not in one.detail + one.way_out for one in findings)


def test_looking_starts_no_spark(tmp_path):
    diagnose(tmp_path)
    from pyspark import SparkContext

    before = SparkContext._gateway
    diagnose(tmp_path)
    assert SparkContext._gateway is before


def test_an_unfit_python_is_named(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 15, 0, "final", 0))
    check = doctor._python()
    assert check.ok is False
    assert check.way_out == "Use Python 3.11 to 3.14."


def test_a_needed_package_that_does_not_load_is_a_failure(monkeypatch):
    monkeypatch.setitem(sys.modules, "fasttext", None)
    check = finding("fastText")
    assert check.ok is False
    assert check.detail.startswith("cannot be imported: ")
    assert "pip install pexeso" in check.way_out


def test_a_package_that_breaks_while_loading_does_not_stop_the_rest(monkeypatch):
    def broken(name):
        raise OSError(f"{name}: libcudart.so.12: cannot open\nshared object file")

    monkeypatch.setattr(importlib, "import_module", broken)
    assert (
        finding("torch").detail
        == "cannot be imported: torch: libcudart.so.12: cannot open shared object file"
    )
    assert finding("CUDA").ok is None


def test_a_missing_extra_is_no_failure(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check = finding("s3fs")
    assert (check.ok, check.detail) == (None, "not installed (optional)")
    assert check.way_out == "To use it: pip install 'pexeso[s3]'."


def test_no_java_is_a_failure_with_its_way_out(monkeypatch):
    def none_found():
        raise SparkError("Spark needs Java 17 or newer: none was found. Install a Java runtime.")

    monkeypatch.setattr(doctor, "find_java", none_found)
    assert finding("Java") == Finding(
        "Java", False, "Spark needs Java 17 or newer: none was found", "Install a Java runtime."
    )


@pytest.mark.parametrize(("free", "ok"), [(10**12, True), (10**9, None)])
def test_scarce_disk_space_is_told(monkeypatch, tmp_path, free, ok):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**13, 0, free))
    check = finding("disk", tmp_path)
    assert check.ok is ok
    assert check.detail == f"{free / 10**9:.1f} GB free in {tmp_path}"


def test_a_folder_that_is_not_there_is_a_failure(tmp_path):
    check = finding("disk", tmp_path / "gone")
    assert check.ok is False
    assert str(tmp_path / "gone") in check.detail


@pytest.mark.parametrize(("available", "ok"), [(3 * 10**9, None), (8 * 10**9, True), (None, None)])
def test_scarce_memory_is_told(monkeypatch, available, ok):
    monkeypatch.setattr(doctor, "available_memory", lambda: available)
    assert doctor._memory().ok is ok


def test_cuda_devices_are_listed_with_their_memory(monkeypatch):
    torch = importlib.import_module("torch")
    card = namedtuple("card", "name total_memory")("Some GPU", 80 * 10**9)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda i: card)
    check = finding("CUDA")
    assert (check.ok, check.detail) == (True, "cuda:0 Some GPU 80.0 GB, cuda:1 Some GPU 80.0 GB")
