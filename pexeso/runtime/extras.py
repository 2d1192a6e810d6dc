"""Packages that the core does without, and the extra of pexeso that installs each."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from pexeso.errors import MissingPackageError

EXTRAS = {
    "torch": "vectors",
    "fasttext": "vectors",
    "gensim": "vectors",
    "sklearn": "vectors",
    "sentence_transformers": "sentence",
    "pyspark": "spark",
    "scipy": "plans",
    "sqlglot": "plans",
    "pandas": "pandas",
    "polars": "polars",
    "triton": "gpu",
    "faiss": "faiss",
    "matplotlib": "plot",
    "duckdb": "duckdb",
    "fastavro": "avro",
    "deltalake": "delta",
    "pyiceberg": "iceberg",
    "adbc_driver_postgresql": "postgresql",
    "fsspec": "s3",
    "s3fs": "s3",
    "starlette": "app",
    "uvicorn": "app",
    "python_multipart": "app",
    "mcp": "mcp",
    "xlsxwriter": "excel",
}


def installation(package: str) -> str:
    extra = EXTRAS.get(package)
    return f"pip install 'pexeso[{extra}]'" if extra else f"pip install {package}"


def lack_of(package: str, user: str, instead: str = "") -> str:
    """Return the sentence, without its full stop, on a missing package."""
    way_out = f"{installation(package)}, or {instead}" if instead else installation(package)
    return f"{user} needs the package {package}, which is not installed: {way_out}"


def require(package: str, user: str, *, instead: str = "") -> ModuleType:
    """Import a package of an extra.

    `user` is what needs it, the subject of a sentence, and `instead` what does without it.

    Raises
    ------
    MissingPackageError
        It is not installed, or cannot be imported.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(lack_of(package, user, instead)) from error
