"""What is said of a failed Spark job."""

import os
import signal

import pytest
from py4j.protocol import Py4JNetworkError

from pexeso.build.spark.session import (
    EXECUTOR_LOST,
    JAVA_ENDED,
    JAVA_IS_FULL,
    WORKER_ENDED,
    plain_task_errors,
    reason_of_failure,
)
from pexeso.errors import SparkError


def test_a_killed_worker_is_one_sentence(spark):
    def die(batches):
        os.kill(os.getpid(), signal.SIGKILL)
        yield

    with pytest.raises(SparkError) as caught, plain_task_errors("building 'x.pexeso'", "free some"):
        spark.range(1).mapInArrow(die, "id long").collect()
    assert str(caught.value) == f"A Spark task failed while building 'x.pexeso': {WORKER_ENDED}."


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("empty")]
)
def test_a_killed_java_is_one_sentence(error):
    with pytest.raises(SparkError) as caught, plain_task_errors("building 'x.pexeso'", "free some"):
        raise error
    assert str(caught.value) == f"A Spark task failed while building 'x.pexeso': {JAVA_ENDED}."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Job aborted: x.OutException\n\tat a.B(C.scala)\nCaused by: java.lang.OutOfMemoryError: "
         "heap", JAVA_IS_FULL),
        ("Lost task 0.3 (1.2.3.4): ExecutorLostFailure (executor 1 exited) Reason: lost\n\tat "
         "a.b.SomeException(C)",
         EXECUTOR_LOST),
        ("o.a.s.SparkException: Job aborted.\n\tat o.a.Error$1.apply(Error.scala:3)\n\tat "
         "b.C(D)\n... 3 more",
         "o.a.s.SparkException: Job aborted"),
        ('Traceback:\n  File "worker.py", line 3, in Error\nValueError: why\n\n\tat '
         'o.PythonException(X.scala)',
         "ValueError: why"),
        ('An exception was thrown from the Python worker:\n  File "a.py", line 3, in b\n'
         'pyarrow.lib.ArrowInvalid: Invalid UTF8 sequence\n',
         "pyarrow.lib.ArrowInvalid: Invalid UTF8 sequence"),
        ("all went wrong", "all went wrong"),
        ("", "no reason given"),
    ],
)  # fmt: skip
def test_stack_frames_are_left_out(text, reason):
    assert reason_of_failure(Exception(text)) == reason
