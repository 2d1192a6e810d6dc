"""Shared test setup: the one Spark session, the shared real lakes, settings of hypothesis."""

import gc
import os
import signal
import sys
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from browsers import started_browser
from hypothesis import HealthCheck, settings
from long_runs import EVERYTHING
from process_watch import watch_over_this_process
from s3_server import bucket, s3_process, s3_server  # noqa: F401  (fixtures)

ROOT = Path(__file__).resolve().parent.parent

# The same examples on every run and every machine; no time limit on a single one, since machines
# are shared.
settings.register_profile(
    "house",
    max_examples=100 if EVERYTHING else 30,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")

# Ten thousand tests are collected, and nothing of them is garbage: looking for it again and again
# would take a third of the time.
gc.disable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests of the measuring code unless they are named: `make test-benchmarks`."""
    measuring = ROOT / "tests" / "benchmarks"
    named = [Path(config.invocation_params.dir, arg.partition("::")[0]) for arg in config.args]
    if collection_path == measuring and not any(
        path.resolve().is_relative_to(measuring) for path in named
    ):
        return True
    return None


def pytest_collection_finish() -> None:
    """Look for garbage from now on, and only among what comes after.

    Less often than usual, since looking at all that a test loads takes a twentieth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Let what was collected go."""
    gc.unfreeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what asks for the session of Spark, itself or by another fixture."""
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker("spark")


def pytest_configure() -> None:
    """Leave no process behind, however this run ends, and do not wait for the disk.

    Hundreds of builds wait a hundred times each until their files would outlast a power cut; tests
    that ask whether they do have an `os.fsync` of their own.
    """
    # Where Python may not keep what it compiles, hundreds of processes would compile all modules.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.fsync = lambda descriptor: None
    # Behind a shell Ctrl-C is ignored, here and in every process that a test starts to stop it so.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    watch_over_this_process()


def pytest_report_header() -> str | None:
    """Return the line that names what is left out."""
    return None if EVERYTHING else "tests marked long are left out; make test-all runs all"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long tests unless all are to run or they are named, and begin with slow files.

    If two processes share the work, neither has a long file left at the end.
    """
    if not EVERYTHING and not any("::" in argument for argument in config.args):
        left_out = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session", autouse=True)
def builds_here():
    """Let builds run in this process, where no other way is named.

    They would take the session of Spark that other tests have started, or start processes, for
    seconds each. `test_engines` compares the bytes that all three leave. The machine is measured
    for the first estimate alone, which takes a second.
    """
    from pexeso.build import job
    from pexeso.build.parts import sample
    from pexeso.build.workers import Needs

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job, "has_session", lambda: False)
        patched.setattr(job, "Needs", lambda n_bytes, alone: Needs(n_bytes))
        patched.setattr(sample, "machine_factor", cache(sample.machine_factor))
        yield


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that writes a file, with the folders it lies in, and gives its path."""

    def write_text(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


@pytest.fixture(scope="module")
def browser():
    """Start the browser of this machine once for a module; no loop of asyncio runs beside it."""
    with started_browser() as started:
        yield started


@pytest.fixture(scope="session")
def spark():
    """One small Spark session for all tests that need one: starting it takes several seconds."""
    from pexeso.build.job import SMALL_LAKE_SETTINGS
    from pexeso.build.spark.session import spark_session

    conf = {
        **SMALL_LAKE_SETTINGS,
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": 2,
        # Compiling a class for each stage takes longer than running it over a few rows.
        "spark.sql.codegen.wholeStage": "false",
        # Functions defined in test modules are sent to workers by name, so workers must find those
        # modules.
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }
    with spark_session("local[2]", conf=conf, app_name="pexeso tests") as session:
        yield session


@pytest.fixture(scope="session")
def shared_lakes() -> Path:
    """Return the folder of the real lakes, which lies next to the repository, not in it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the shared real lakes (../shared/data) are not on this machine")
    return folder


@pytest.fixture(scope="session")
def lake_folder(
    shared_lakes: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return a function that unpacks a shared lake once and returns the folder of its tables."""
    unpacked: dict[str, Path] = {}

    def unpack(name: str) -> Path:
        if name not in unpacked:
            archives = ("tables.tar.gz", "versions.tar.gz")
            paths = [shared_lakes / name / file_name for file_name in archives]
            archive = next((path for path in paths if path.is_file()), paths[0])
            if not archive.is_file():
                pytest.skip(
                    f"the shared lake {name} (../shared/data/{name}/tables.tar.gz) is not on "
                    "this machine"
                )
            folder = tmp_path_factory.mktemp(name)
            with tarfile.open(archive) as tables:
                tables.extractall(folder, filter="data")
            unpacked[name] = folder
        return unpacked[name]

    return unpack


SMALL_LAKE = {
    "cities.csv": "city,country,people\nOslo,Norway,717710\nRome,Italy,2746984\n"
    "Madrid,Spain,3332035\nVienna,Austria,2014614\n"
    "Lisbon,Portugal,567131\nDublin,Ireland,592713\nHelsinki,Finland,674500\nAthens,Greece,643452\n",
    "nested/capitals.tsv": "Capital\tSeat since\nOSLO\t1814\nROME\t1871\nMADRID\t1561\n"
    "VIENNA\t1919\nBERN\t1848\nPRAGUE\t1993\n",
    "nested/companies.csv": "name;place;;\nNordlys Energi;Oslo;a;x\nFratelli "
    "Conti;Rome;b;y\nCasa del Sol;Madrid;c;z\n"
    "Donau Metall;Vienna;d;u\nTejo Vidros;Lisbon;e;v\n",
    "numbers.csv": "id,amount\n1,10\n2,20\n3,30\n4,40\n5,50\n",
    "short.csv": "city\nOslo\nRome\n",
    "broken.parquet": "PAR1 and nothing more",
    "notes.txt": "not a table",
}


@pytest.fixture(scope="session")
def small_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a lake of a few tiny tables, one of them broken; return its folder."""
    lake = tmp_path_factory.mktemp("small") / "lake"
    for name, text in SMALL_LAKE.items():
        path = lake / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return lake


@pytest.fixture(scope="session")
def told_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Index a lake whose settings say how a table is read, in another way than it would be found.

    Its columns would be called town and when, and a name of a city would be another one.
    """
    from pexeso.index import build_index

    lake = tmp_path_factory.mktemp("told") / "lake"
    (lake / "sub").mkdir(parents=True)
    cities = ("Århus", "Rome", "Madrid", "Vienna", "Lisbon")
    rows = "".join(f"{city}~{1900 + at}\n" for at, city in enumerate(cities))
    (lake / "sub" / "told.csv").write_bytes(f"town~when\ncity~year\n{rows}".encode("cp850"))
    rows = "".join(f"{city},{1900 + at},x\n" for at, city in enumerate(cities))
    (lake / "cities.csv").write_text(f"name,year,what\n{rows}", encoding="utf-8")
    (lake / "lake.toml").write_text(
        '[[files]]\npattern = "sub/*.csv"\n'
        'delimiter = "~"\nencoding = "cp850"\nskip-rows = 1\nheader = 1\n'
    )
    path = tmp_path_factory.mktemp("told_index") / "lake.pexeso"
    parts = ["containment", "composite"]
    return build_index(lake, path, model="hashing", dimensions=64, parts=parts).path


@pytest.fixture(scope="session")
def small_index(small_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Index the small lake with a model that needs no training; return the index folder.

    The index is built once for all tests.
    """
    from pexeso.index import build_index

    path = tmp_path_factory.mktemp("small_index") / "lake.pexeso"
    return build_index(small_lake, path, model="hashing", dimensions=64, parts=["containment"]).path
