"""Vectors that cannot be used are refused with the value named, wherever a model gave them."""

import numpy as np
import pyarrow as pa
import pytest

from embed.batches import VALUE, embed_batch
from embed.protocol import require_unit_or_zero
from pexeso.build.spark.session import plain_task_errors
from pexeso.errors import EmbedderError
from pexeso.lake.normalise.normaliser import Normaliser
from pexeso.results.query import query_from_values
from pexeso.semantic.encoded_query import prepare


class Broken:
    """Gives one value a vector that cannot be used."""

    dimensions = 2

    def __init__(self, value: str, row: tuple[float, float]) -> None:
        self._value, self._row = value, row

    def embed(self, values) -> np.ndarray:
        return np.array(
            [self._row if value.as_py() == self._value else (0.6, 0.8) for value in values],
            np.float32,
        )


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((np.nan, 0.0), "that is not finite"),
        ((0.0, np.inf), "that is not finite"),
        ((-np.inf, np.inf), "that is not finite"),
        ((0.6, 0.7), "of length 0.921954, neither 0 nor 1"),
        ((1e-30, 0.0), "of length 1e-30, neither 0 nor 1"),
        ((3e38, 3e38), "of length 4.24264e+38, neither 0 nor 1"),
    ],
)
def test_a_vector_that_cannot_be_used_is_refused_with_its_value(row, reason):
    values = pa.array(["oslo", "new york", None, "rome"])
    vectors = np.array([[1.0, 0.0], row, [0.0, 0.0], row], np.float32)
    with pytest.raises(EmbedderError) as caught:
        require_unit_or_zero(values, vectors)
    assert str(caught.value) == (
        f"The model gave the value 'new york' a vector {reason} (2 of 4 values have such): use "
        "another model, or restore its files."
    )


def test_what_can_be_used_passes():
    vectors = np.float32([[1.0, 0.0], [0.6, -0.8], [0.0, 0.0], [1.0005, 0.0]])
    require_unit_or_zero(pa.array(["a", None, "", "d"]), vectors)
    require_unit_or_zero(pa.array([], pa.string()), vectors[:0])


def test_a_long_value_is_cut_and_stays_on_its_line():
    with pytest.raises(
        EmbedderError, match=r"^The model gave the value 'a\\nb{57}…' a vector that is not finite"
    ):
        require_unit_or_zero(pa.array(["a\n" + "b" * 500]), np.float32([[np.nan]]))


def test_a_batch_and_a_query_are_refused():
    broken = Broken("rome", (np.nan, 1.0))
    expected = r"the value 'rome' a vector that is not finite \(1 of 2 values"
    with pytest.raises(EmbedderError, match=expected):
        embed_batch(pa.array(["oslo", "rome"]), broken)
    with pytest.raises(EmbedderError, match=expected):
        prepare(query_from_values(["Oslo", "ROME", "Rome"]), Normaliser(), broken)


def embed_broken(batches):
    for batch in batches:
        yield embed_batch(batch.column(VALUE), Broken("rome", (np.inf, 0.0)))


def test_a_build_is_refused(spark):
    """A task that meets such a vector ends the build, with the sentence that names the value."""
    frame = spark.createDataFrame(
        pa.table({"value": ["oslo", "bern", "rome", "wien"]})
    ).repartition(2)
    with (
        pytest.raises(
            EmbedderError, match=r"^The model gave the value 'rome' a vector that is not finite"
        ),
        plain_task_errors("building 'x.pexeso'", "free some space."),
    ):
        frame.mapInArrow(embed_broken, "value string, vector array<float>").collect()
