"""What Spark says about a failed job, in one sentence."""

from __future__ import annotations

import re

_FRAME = re.compile(r'at [\w.$<>/]+\(|File "|\.\.\. \d+ more')
_MESSAGE = re.compile(r"(Error|Exception|ArrowInvalid)\b")

JAVA_ENDED = (
    "the Java process of Spark ended before its work was done: it was killed, most often for "
    "want of memory. "
    "Give it less to do at a time (--spark-master 'local[2]') or use a machine with more"
)
WORKER_ENDED = (
    "a worker process ended before its work was done: it was killed, most often for want of "
    "memory. "
    "Run fewer at a time (--spark-master 'local[2]') or use a machine with more"
)
JAVA_IS_FULL = (
    "Java has too little memory. Give it more, such as --spark-conf spark.driver.memory=8g"
)
EXECUTOR_LOST = "a machine or process of the cluster was lost too often"


def reason_of_failure(error: BaseException) -> str:
    r"""Return why a job failed, without stack frames and without a full stop."""
    from py4j.protocol import Py4JNetworkError

    if isinstance(error, ConnectionError | Py4JNetworkError):
        return JAVA_ENDED
    text = str(error)
    if "Python worker exited unexpectedly" in text:
        return WORKER_ENDED
    if "java.lang.OutOfMemoryError" in text:
        return JAVA_IS_FULL
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    plain_lines = [line for line in lines if not _FRAME.match(line)]
    reason = next(
        (line for line in reversed(plain_lines) if _MESSAGE.search(line)),
        (plain_lines or lines or ["no reason given"])[0],
    )
    if "ExecutorLostFailure" in text:
        return EXECUTOR_LOST
    return reason.removeprefix("Caused by: ").rstrip(".")
