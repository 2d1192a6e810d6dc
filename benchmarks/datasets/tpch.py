"""The tables of TPC-H, made by tpchgen-cli (Apache-2.0)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pexeso.errors import InputError, MissingPackageError

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def write_tpch(folder: Path, scale: float, *, file_format: str = "parquet") -> None:
    """Write the eight tables of TPC-H, one file each, such as ``orders.parquet``."""
    if not scale > 0:
        raise InputError(f"The scale of TPC-H must be above 0, got {scale}.")
    if file_format not in ("parquet", "csv"):
        raise InputError(f"Tables are written as parquet or csv. Got {file_format!r}.")
    command = [_program(), file_format, "--scale-factor", str(scale), "--output-dir", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


def _program() -> str:
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    program = shutil.which("tpchgen-cli", path=beside)
    if program is None:
        raise MissingPackageError(
            "The tables of TPC-H are made by tpchgen-cli, which is not installed: "
            "pip install tpchgen-cli"
        )
    return program
