"""Which package imports which, as docs/architecture.md says, and what may be loaded when."""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest
from processes import ran

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = ("embed", "partition", "pexeso")

SPARK_MODULES = {
    "embed.batches", "pexeso.build.job", "pexeso.build.source", "pexeso.build.spark_tables",
    "pexeso.build.workers", "pexeso.build.spark.java", "pexeso.build.spark.session",
    "pexeso.joins.graph.spark_tasks", "pexeso.joins.report", "pexeso.joins.spark",
    "pexeso.redundancy.containments", "pexeso.redundancy.lake_reading",
    "pexeso.redundancy.rebuilds", "pexeso.redundancy.search", "pexeso.redundancy.sampled",
    "pexeso.semantic.spark_executor",
}  # fmt: skip
"""What runs on Spark.

The session, what runs the tasks of builds there, batch search in tasks, and joins of Spark
DataFrames.
"""
ENGINE_PACKAGES = {"numpy", "torch", "pyarrow"}
KERNEL_PACKAGES = {
    **{
        f"pexeso.engine.kernels.triton.{name}": "triton"
        for name in (
            "boxes", "column", "counting", "distances", "kernel", "lists", "search", "values",
        )
    },
}  # fmt: skip
"""The modules that need more, each imported only when its kernel is chosen."""
STORE_PACKAGES = {"msgspec", "numpy", "pyarrow"}
HEAVY = (
    "torch", "pyspark", "fasttext", "faiss", "pandas", "pyarrow", "sklearn", "numpy", "clevercsv",
    "click",
)  # fmt: skip


NOT_AT_START = ("torch", "numba", "scipy", "sklearn", "pyspark")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.Module, module: str) -> set[str]:
    """Return the dotted names a module imports, wherever in it."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@cache
def modules() -> dict[str, set[str]]:
    """Return what each of our modules imports."""
    return {
        module_name(path): imported(ast.parse(path.read_text(encoding="utf-8")), module_name(path))
        for package in OURS
        for path in sorted((ROOT / package).rglob("*.py"))
    }


def lies_in(name: str, places: tuple[str, ...]) -> bool:
    return any(name == place or name.startswith(place + ".") for place in places)


def run_fresh(program: str) -> str:
    """Run a program in a new interpreter that finds our packages and return what it prints."""
    done = ran([sys.executable, "-c", program], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_layers_hold_and_no_circle_is_there():
    """Run the contracts in pyproject.toml."""
    lint = Path(sys.executable).with_name("lint-imports")
    done = ran([lint, "--no-cache"], cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def test_only_the_spark_modules_touch_spark():
    touching = {
        module
        for module, names in modules().items()
        if any(lies_in(name, ("pyspark", "py4j")) for name in names)
    }
    assert touching <= SPARK_MODULES
    assert "pexeso.build.spark.session" in touching


PARTS = ("composite", "redundancy", "semantic", "sets")
"""The packages that hold a part of an index."""


def test_only_its_capability_knows_a_part():
    """Builds, updates, checks and reports know the interface of parts alone."""
    knowing = {
        (module, part)
        for module, names in modules().items()
        for part in PARTS
        if any(lies_in(name, (f"pexeso.{part}.part",)) for name in names)
        and not lies_in(module, (f"pexeso.{part}",))
    }
    # An index opens the sets.
    asking = ("pexeso.index", "pexeso.semantic.open_index")
    assert knowing == {(module, "sets") for module in asking}


def test_packages_are_few():
    packages = {path.parent.name for path in (ROOT / "pexeso").glob("*/__init__.py")}
    assert len(packages) <= 14
    assert len([*(ROOT / "pexeso").glob("*.py")]) <= 11


def test_no_small_module_has_its_only_importer_next_to_it():
    """One that is imported within a function stays apart: a start goes without it."""
    paths = {
        module_name(path): path
        for package in OURS
        for path in (ROOT / package).rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py")
    }
    importers = {module: set() for module in paths}
    at_start = set()

    def n_lines(module: str) -> int:
        return len(paths[module].read_text(encoding="utf-8").splitlines())

    for importer, names in modules().items():
        for module in names_of_modules(names) & paths.keys():
            importers[module].add(importer)
    for importer, path in paths.items():
        statements = ast.parse(path.read_text(encoding="utf-8")).body
        imports = [node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
        names = names_of_modules(imported(ast.Module(imports, []), importer))
        at_start |= {(module, importer) for module in names & paths.keys()}
    apart = {
        module
        for module, others in importers.items()
        for importer in others
        if len(others) == 1 and (module, importer) in at_start
        if paths[module].parent == paths[importer].parent
        if n_lines(module) < 150 and n_lines(module) + n_lines(importer) <= 600
    }
    assert apart == set()


def names_of_modules(names: set[str]) -> set[str]:
    return names | {name.rpartition(".")[0] for name in names}


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("pexeso.engine", ENGINE_PACKAGES),
        ("pexeso.sets.overlap", ENGINE_PACKAGES),
        ("pexeso.store", STORE_PACKAGES),
    ],
)
def test_the_core_needs_few_packages(package, allowed):
    used = {
        (module, name.partition(".")[0])
        for module, names in modules().items()
        if lies_in(module, (package,)) and not lies_in(module, ("pexeso.store.io",))
        for name in names
    }
    others = {
        (module, name)
        for module, name in used
        if name not in {*allowed, *OURS, *sys.stdlib_module_names}
    }
    assert others <= set(KERNEL_PACKAGES.items())


def test_the_engine_searches_without_the_packages_of_its_kernel_for_gpus():
    program = """
import sys
sys.modules.update(dict.fromkeys(("triton", "pyspark", "fasttext", "pandas", "sklearn", "click")))
import importlib.util
import numpy as np, torch
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "triton" else find(name, *rest)
from pexeso.engine.dense.building import build_partition
from pexeso.engine.options import PartitionLayoutOptions
from pexeso.engine.partition import Partition
from pexeso.engine.dense.search import Goal, search_partition
from pexeso.engine.stats import SearchStats
options = PartitionLayoutOptions(map="auto")
arrays, _ = build_partition(np.eye(4, dtype=np.float32), np.array([0, 2, 4]), np.arange(4), options)
partition = Partition.from_arrays(arrays, options)
found = search_partition(partition, torch.eye(4)[:1], torch.ones(1, dtype=torch.int64), 1, \
Goal(0.06), SearchStats())
print(*found[0].tolist(), *found[1].tolist())
"""
    assert run_fresh(program) == "0 1"


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import pexeso; pexeso.SparkError", HEAVY),
        # What starts a process. Torch takes over a second: a search imports it when the engine
        # does, a reading task never.
        *(
            (f"import {module}", (*NOT_AT_START, "pandas", "clevercsv"))
            for module in ("pexeso.index", "pexeso.faces.cli.main", "pexeso.build.source")
        ),
        # The app's first page and `pexeso info` need no compiled loops, which take a third of a
        # second.
        (
            f"import {', '.join(f'pexeso.{name}.part' for name in PARTS)}; "
            "import pexeso.semantic.part.info, pexeso.build.diagnostics.info; "
            "import pexeso.faces.app.lake",
            NOT_AT_START,
        ),
    ],
)
def test_a_start_loads_nothing_heavy(statement, heavy):
    shown = f"print(*[name for name in {heavy!r} if name in sys.modules])"
    assert run_fresh(f"import sys; {statement}; {shown}") == ""


def test_the_engine_runs_where_only_its_own_packages_are():
    names = sorted(
        name for name in modules() if lies_in(name, ("pexeso.engine",)) and ".kernels" not in name
    )
    program = f"""
import importlib, importlib.abc, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {{"pyspark", "py4j", "fasttext", "faiss", "pandas", \
"sklearn", "scipy", "click", "tqdm"}}:
            raise ModuleNotFoundError(f"refused: {{name}}", name=name)

sys.meta_path.insert(0, Refuse())
for name in {names!r}:
    importlib.import_module(name)
print("done")
"""
    assert run_fresh(program) == "done"
