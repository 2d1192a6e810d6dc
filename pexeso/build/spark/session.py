"""The Spark session that builds run on.

One context manager, :func:`spark_session`. On a laptop it starts Spark in this machine's own cores
(`local[*]`), quietly, and leaves nothing behind: no Java process, no `spark-warehouse`, no changed
environment. In a notebook or a job that has a session already, it uses that one and leaves it
running.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pexeso.errors
from pexeso.build.spark.java import Java, find_java
from pexeso.errors import OutputError, PexesoError, SparkError, failing_as
from pexeso.runtime.extras import require
from pexeso.runtime.system import available_processors
from pexeso.store.io.parquet import spark_path
from pexeso.store.io.temporary import temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


STOP_SECONDS = 20
_ENDING_SECONDS = 1
# Bytes for what Java says of itself; where it has no room for that, its start never ends.
_LEAST_ROOM = 1 << 16
# Tasks of a shuffle for each core. Spark merges small ones by itself, so a few more than cores cost
# next to nothing, and keep each task's share of a large lake small.
SHUFFLE_TASKS_PER_CORE = 4

# Hosts of a master address that mean this machine.
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")

_LOCAL_MASTER = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*\d+\s*)?\])?")
_SEPARATORS = (",", os.pathsep)
_TELLING_LINES = 3
_CHATTER = re.compile(
    r"at |\.\.\. \d+ more|WARN|Using Spark's|\S+/spark-class: line |Setting default|To adjust "
    r"logging|Picked up |\S+ \S+ (WARN|INFO) "
)
_CHANGED_BY_START = (
    "JAVA_HOME",
    "LC_ALL",
    "PYSPARK_PYTHON",
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
)
_LOCALE = "C.UTF-8"
_UTF8 = re.compile(r"utf-?8", re.IGNORECASE)


@contextmanager
def spark_session(
    master: str | None = None, *, conf: Mapping[str, Any] | None = None, app_name: str = "pexeso"
) -> Iterator[SparkSession]:
    """Return a Spark session for the length of a `with` block.

    A session that is active already is used as it is (none of the arguments applies to it) and is
    left running. Otherwise one is started, and stopped at the end of the block, also after Ctrl-C:
    `KeyboardInterrupt` reaches the caller, and the Java process is gone when it does.

    Parameters
    ----------
    master : str, optional
        `local[*]` (all cores of this machine; the default), `local[N]`, or the address of a
        cluster. Under `spark-submit` the default is what `spark-submit` was given. The workers of a
        cluster need this package and its dependencies installed, or sent to them by
        `spark.submit.pyFiles` or `spark.archives`, and lake and index at the same paths. Those of a
        standalone cluster on this machine (`spark://127.0.0.1:7077`) run this interpreter and
        import this package as it is.
    conf : mapping, optional
        Spark settings; they win over those made here, such as `spark.driver.memory` (2g in local
        mode). `spark.pyspark.python` names the interpreter of the workers.
    app_name : str, optional
        The name of the application in Spark's own pages and logs.

    Yields
    ------
    SparkSession
        The running session.

    Raises
    ------
    SparkError
        Spark cannot be started: no Java of version 17 or newer, a setting that Spark refuses, a
        cluster out of reach.
    MissingPackageError
        The package `pyspark` is not installed.

    Examples
    --------
    >>> with spark_session("local[2]") as spark:
    ...     spark.range(5).count()
    5
    """
    require("pyspark", "Spark")
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with (
        _preserved_process(),
        temporary_folder("pexeso-spark-", root=_folder_for_spark()) as folder,
    ):
        session, gateway = _start(master, conf or {}, app_name, folder)
        try:
            yield session
        finally:
            _stop(session, gateway)


def _folder_for_spark() -> Path:
    # Spark takes a name with separators for a list of several folders.
    usual = Path(tempfile.gettempdir())
    return Path("/tmp") if any(separator in str(usual) for separator in _SEPARATORS) else usual


def local_cores(master: str) -> int | None:
    """Return how many tasks a local master runs at a time, None for one that is not local."""
    match = _LOCAL_MASTER.fullmatch(master.strip())
    if match is None:
        return None
    if match.group(1) == "*":
        return available_processors()
    return int(match.group(1) or 1)


def is_on_this_machine(master: str) -> bool:
    """Return whether the tasks of a master run on this machine: also of a cluster at loopback."""
    if local_cores(master) is not None:
        return True
    address = urlsplit(master.strip())
    return address.scheme == "spark" and address.hostname in LOOPBACK_HOSTS


def session_settings(
    master: str | None, conf: Mapping[str, Any], app_name: str, folder: Path
) -> dict[str, str]:
    settings = {
        "spark.app.name": app_name,
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Tasks run side by side already: a pool of threads inside each would only make them wait
        # for one another.
        "spark.executorEnv.OMP_NUM_THREADS": "1",
    }
    if master is not None:
        settings["spark.master"] = master
        if is_on_this_machine(master):
            settings |= _local_settings(local_cores(master) or available_processors(), folder)
    return settings | {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in conf.items()
    }


def _local_settings(cores: int, folder: Path) -> dict[str, str]:
    # Workers are started without our working directory and import path, so they are given the
    # place of this package.
    packages = Path(pexeso.__file__).resolve().parent.parent
    if os.pathsep in str(packages):  # no import path can name it
        link = folder / "packages"
        link.symlink_to(packages)
        packages = link
    python_path = [str(packages), os.environ.get("PYTHONPATH", "")]
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": spark_path(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": str(cores * SHUFFLE_TASKS_PER_CORE),
        "spark.executorEnv.LC_ALL": _LOCALE,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, python_path)),
    }


def _start(
    master: str | None, conf: Mapping[str, Any], app_name: str, folder: Path
) -> tuple[SparkSession, Any]:
    """Return a new session and the gateway to its Java process; a failure leaves neither."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    under_submit = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not under_submit:
        master = str(conf.get("spark.master", "local[*]"))
    settings = session_settings(master, conf, app_name, folder)
    _name_the_interpreter(settings)
    java = None if under_submit or SparkContext._gateway else _use_java(folder)
    log = folder / "java.log"
    previous = signal.getsignal(signal.SIGINT)
    context = gateway = None
    with failing_as(
        SparkError,
        f"Spark could not be started: '{folder}' cannot be written",
        " Free some space there, or name another folder for temporary files in TMPDIR.",
    ):
        log.write_bytes(bytes(_LEAST_ROOM))
    try:
        spark_conf = SparkConf().setAll(list(settings.items()))
        if java is not None:
            with log.open("wb") as stream:
                gateway = launch_gateway(spark_conf, {"stdout": stream, "stderr": stream})
        context = SparkContext(conf=spark_conf, gateway=gateway)
        # Spark's own handler talks to Java from inside the interrupted call, on the same
        # connection. A plain KeyboardInterrupt that stops the whole session is both simpler and
        # sure.
        _set_interrupt_handler(previous)
        session = SparkSession(context)
        session.range(0)  # Spark reads its SQL settings on first use: a wrong one is refused here
        return session, gateway
    except BaseException as error:
        # While Java still runs and can answer.
        reason = _why_not_started(
            error, log, _java_process(error) if gateway is None else gateway.proc
        )
        # Frees what the frames of the failed start hold, among it the pipe whose closing ends the
        # Java process.
        traceback.clear_frames(error.__traceback__)
        _set_interrupt_handler(previous)
        _stop(context, gateway)
        if not isinstance(error, Exception):
            raise
        where = f" on Java {java.version} ({java.command})" if java is not None else ""
        raise SparkError(f"Spark could not be started{where}: {reason}") from error


def _name_the_interpreter(settings: Mapping[str, str]) -> None:
    # Only `spark-submit` reads this setting by itself.
    interpreter = settings.get("spark.pyspark.python")
    if interpreter is None and is_on_this_machine(settings.get("spark.master", "")):
        interpreter = sys.executable  # the `python3` of PATH may lack the required packages
    if interpreter is not None:
        os.environ["PYSPARK_PYTHON"] = interpreter


def _use_java(folder: Path) -> Java:
    # Java takes file names for UTF-8 only under a locale of it; the first variable set decides.
    variables = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    if not _UTF8.search(next(filter(None, variables), "")):
        os.environ["LC_ALL"] = _LOCALE
    java = find_java()
    home = java.home(folder)
    if home is None:
        os.environ.pop("JAVA_HOME", None)
    else:
        os.environ["JAVA_HOME"] = str(home)
    return java


def _java_process(error: BaseException) -> subprocess.Popen[bytes] | None:
    """Return the process that a failed `launch_gateway` had started: only its frame holds it."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen):
            return process
    return None


def _why_not_started(error: BaseException, log: Path, java: subprocess.Popen[bytes] | None) -> str:
    if java is not None and isinstance(error, Exception) and _has_ended(java):
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        return " ".join(_telling_lines(text).split()) or how_it_ended(java.returncode)
    reason = ""
    with suppress(Exception):
        java_exception = getattr(error, "java_exception", None)
        reason = _root_cause(str(java_exception.toString() if java_exception else error))
    return " ".join(reason.split()) or type(error).__name__


def _has_ended(java: subprocess.Popen[bytes]) -> bool:
    try:
        java.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def how_it_ended(code: int) -> str:
    """Return in one sentence how a Java process that said nothing ended."""
    number = -code if code < 0 else code - 128  # a shell around it adds 128
    if number in {known_signal.value for known_signal in signal.Signals}:
        cause = (
            ", most often for want of memory" if signal.Signals(number).name == "SIGKILL" else ""
        )
        return f"Java was killed by {signal.Signals(number).name} and said nothing{cause}."
    return f"Java ended with exit code {code} and said nothing."


def _root_cause(trace: str) -> str:
    """Return the message at the bottom of a Java stack trace, without the name of its class."""
    causes = re.findall(r"^\s*Caused by: (.+)", trace, re.MULTILINE)
    message = causes[-1] if causes else trace.strip().partition("\n")[0]
    return re.sub(r"^[\w.$]+(Exception|Error): ", "", message)


def _telling_lines(log: str) -> str:
    """Return the first lines of Java's output that are no warning and no stack trace."""
    lines = (line.strip() for line in log.splitlines())
    telling = [line.removesuffix(".") for line in lines if line and not _CHATTER.match(line)]
    return "; ".join(telling[:_TELLING_LINES]) + "." if telling else ""


def _stop(session: Any, gateway: Any) -> None:
    """Stop a session or context that was started here, and its Java process; either may be None."""

    def stop() -> None:
        with suppress(Exception):
            session.stop()

    if session is not None:
        # On a thread of its own, which has its own connection to Java: after Ctrl-C the connection
        # of this thread may still hold the answer to the call that was interrupted.
        stopper = threading.Thread(target=stop, name="pexeso-stop-spark", daemon=True)
        stopper.start()
        stopper.join(STOP_SECONDS)
    if gateway is not None:
        _end_java(gateway)


def _end_java(gateway: Any) -> None:
    """End the Java process behind a gateway, so that a later session starts a fresh one."""
    from pyspark import SparkContext

    if SparkContext._gateway is gateway:
        SparkContext._gateway = None
        SparkContext._jvm = None
    with suppress(Exception):
        gateway.shutdown()
    process: subprocess.Popen[bytes] = gateway.proc
    with suppress(OSError):
        process.stdin.close()  # Java ends itself, with its clean-up, when this pipe closes
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _set_interrupt_handler(handler: Any) -> None:
    if threading.current_thread() is threading.main_thread() and handler is not None:
        signal.signal(signal.SIGINT, handler)


def _not_from_gateway(record: logging.LogRecord) -> bool:
    return Path(record.pathname).name != "java_gateway.py"


@contextmanager
def _preserved_process() -> Iterator[None]:
    """Restore environment, import path and logging, which starting Spark changes."""
    before = {name: os.environ.get(name) for name in _CHANGED_BY_START}
    import_path = list(sys.path)
    # py4j, which talks to Java, logs Ctrl-C and a lost Java process with their stack traces, on its
    # own logger and on the root logger, and then raises what the caller sees anyway.
    root_logger, gateway_logger = logging.getLogger(), logging.getLogger("py4j")
    level = gateway_logger.level
    root_logger.addFilter(_not_from_gateway)
    gateway_logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        root_logger.removeFilter(_not_from_gateway)
        gateway_logger.setLevel(level)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        # Spark adds a folder that is gone by now.
        sys.path[:] = [entry for entry in sys.path if entry in import_path or Path(entry).exists()]


_FRAME = re.compile(r'at [\w.$<>/]+\(|File "|\.\.\. \d+ more')
_MESSAGE = re.compile(r"(Error|Exception|ArrowInvalid)\b")
_OWN_ERROR = re.compile(r"pexeso\.errors\.(\w+): ([^\n]+)")

JAVA_ENDED = (
    "the Java process of Spark ended before its work was done: it was killed, most often for "
    "want of memory. Give it less to do at a time (--spark-master 'local[2]') or use a machine "
    "with more"
)
WORKER_ENDED = (
    "a worker process ended before its work was done: it was killed, most often for want of "
    "memory. Run fewer at a time (--spark-master 'local[2]') or use a machine with more"
)
JAVA_IS_FULL = (
    "Java has too little memory. Give it more, such as --spark-conf spark.driver.memory=8g"
)
EXECUTOR_LOST = "a machine or process of the cluster was lost too often"


@contextmanager
def plain_task_errors(doing: str, if_full: str | None = None) -> Iterator[None]:
    """Convert Spark's error for a failed task into the pexeso error that the task raised.

    Without such an error, one sentence states the reason, and what the task was doing; `if_full`
    says what a full disk, also of this process, means.
    """
    try:
        yield
    except _spark_errors() as error:
        # After Ctrl-C Spark fails to send what nobody reads any more.
        before: BaseException | None = error
        while (before := before.__context__) is not None:
            if isinstance(before, KeyboardInterrupt):
                raise before from None
        text = str(error)
        if (task_error := error_in(text)) is not None:
            raise task_error from error
        if if_full and "No space left on device" in text:
            raise OutputError(f"The disk is full: {if_full}") from error
        raise SparkError(
            f"A Spark task failed while {doing}: {reason_of_failure(error)}."
        ) from error
    except OSError as error:
        # Arrow writes the tables of small lakes in the driver.
        if if_full and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutputError(f"The disk is full: {if_full}") from error
        if if_full and error.errno == errno.EFBIG:
            raise OutputError(f"A file is too large for the disk (ulimit -f): {if_full}") from error
        raise


def _spark_errors() -> tuple[type[Exception], ...]:
    if "pyspark.sql" not in sys.modules:  # whose import takes half a second
        return ()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError, ConnectionError)


def error_in(traceback: str) -> PexesoError | None:
    """Make the last error of pexeso in the text of a worker's traceback again."""
    for name, message in reversed(_OWN_ERROR.findall(traceback)):
        kind = getattr(pexeso.errors, name, None)
        if isinstance(kind, type) and issubclass(kind, PexesoError):
            return kind(message)
    return None


def reason_of_failure(error: BaseException) -> str:
    """Return why a job failed, in one sentence without stack frames and without a full stop."""
    from py4j.protocol import Py4JNetworkError

    text = str(error)
    if isinstance(error, ConnectionError | Py4JNetworkError):
        return JAVA_ENDED
    if "Python worker exited unexpectedly" in text:
        return WORKER_ENDED
    if "java.lang.OutOfMemoryError" in text:
        return JAVA_IS_FULL
    if "ExecutorLostFailure" in text:
        return EXECUTOR_LOST
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    plain_lines = [line for line in lines if not _FRAME.match(line)]
    messages = [line for line in plain_lines if _MESSAGE.search(line)]
    reason = (messages[-1:] or plain_lines or lines or ["no reason given"])[0]
    return reason.removeprefix("Caused by: ").rstrip(".")
