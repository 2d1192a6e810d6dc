import datetime

import pyarrow as pa
import pytest

from pexeso.lake.typed.cells import cell_text, column_array

DAY = datetime.date(1850, 3, 1)
MOMENT = datetime.datetime(2020, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([], pa.null(), []),
        ([None, None], pa.null(), [None, None]),
        ([1.0, None, 12.0], pa.int64(), [1, None, 12]),
        ([1.0, 2.5], pa.float64(), [1.0, 2.5]),
        ([1, float("inf"), float("nan")], pa.float64(), [1.0, float("inf"), None]),
        ([2**63 - 1, 1], pa.int64(), [2**63 - 1, 1]),
        ([2**70, 1], pa.string(), [str(2**70), "1"]),
        ([2**60, 1.5], pa.string(), [str(2**60), "1.5"]),
        ([1e20, 1.0], pa.float64(), [1e20, 1.0]),
        ([True, None], pa.bool_(), [True, None]),
        ([True, 1], pa.string(), ["TRUE", "1"]),
        ([DAY, None], pa.date32(), [DAY, None]),
        ([DAY, MOMENT], pa.timestamp("us"), [datetime.datetime(1850, 3, 1), MOMENT]),
        ([1.0, "n/a", MOMENT], pa.string(), ["1", "n/a", "2020-01-02 03:04:00"]),
        (["a", "\ud800"], pa.string(), ["a", "?"]),
    ],
)
def test_a_column_has_the_one_type_of_its_values(values, kind, expected) -> None:
    array = column_array(values)
    assert (array.type, array.to_pylist()) == (kind, expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime.timedelta(hours=30, minutes=5), "30:05:00"),
        (datetime.timedelta(seconds=-61), "-0:01:01"),
        (datetime.time(3, 4), "03:04:00"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (-0.0, "0"),
    ],
)
def test_a_value_is_written_as_a_person_sees_it(value, text) -> None:
    assert cell_text(value) == text
