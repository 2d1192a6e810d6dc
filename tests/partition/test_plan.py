import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partition.balance import fixed_limits, size_limits
from partition.options import PlanOptions
from partition.plan import PartitionPlan, PartitionSize, PlanSummary, plan_notes
from pexeso.errors import IndexCorruptError, IndexNotFoundError, IndexVersionError, InputError, OutputError


def _summary(*n_columns):
    sizes = tuple(PartitionSize(n, 10 * n, 5000 * n, 0.125) for n in n_columns)
    return PlanSummary(PlanOptions(dimensions=8, n_partitions=len(sizes)), sizes, 20_000, 7, True, ("A note.",))


def _plan():
    return PartitionPlan(np.array([2, 5, 9]), np.array([1, 0, 1], dtype=np.int32), _summary(1, 2))


def test_a_plan_survives_being_written_and_read(tmp_path):
    _plan().write(tmp_path / "deep" / "plan")
    back = PartitionPlan.read(tmp_path / "deep" / "plan")
    assert back.column_ids.tolist() == [2, 5, 9]
    assert back.partitions.tolist() == [1, 0, 1]
    assert back.summary == _summary(1, 2)
    assert (back.summary.n_partitions, back.summary.n_columns) == (2, 3)
    assert sorted(path.name for path in (tmp_path / "deep" / "plan").iterdir()) == ["columns.parquet", "plan.json"]


def test_a_plan_in_several_files_is_read_in_order_of_the_columns(tmp_path):
    _plan().write(tmp_path)
    whole = pq.read_table(tmp_path / "columns.parquet")
    (tmp_path / "columns.parquet").unlink()
    (tmp_path / "columns.parquet").mkdir()
    for number, rows in enumerate((whole.slice(1), whole.slice(0, 1))):
        pq.write_table(rows, tmp_path / "columns.parquet" / f"part-{number}.parquet")
    assert PartitionPlan.read(tmp_path).column_ids.tolist() == [2, 5, 9]


def test_a_plan_is_never_written_over(tmp_path):
    _plan().write(tmp_path)
    with pytest.raises(OutputError, match="holds a partition plan already"):
        _plan().write(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made"):
        _plan().write(tmp_path / "file")


def test_damage_is_found(tmp_path):
    with pytest.raises(IndexNotFoundError, match="There is no partition plan"):
        PartitionPlan.read(tmp_path)
    _plan().write(tmp_path)
    text = (tmp_path / "plan.json").read_text()
    (tmp_path / "plan.json").write_text(text.replace('"format_version": 1', '"format_version": 9'))
    with pytest.raises(IndexVersionError, match="format version 9; this version reads 1"):
        PartitionPlan.read(tmp_path)
    for broken in ("", "[]", "{}", text.replace('"n_columns"', '"columns"'), text.replace('"jensen', '"jonson')):
        (tmp_path / "plan.json").write_text(broken)
        with pytest.raises(IndexCorruptError, match="Make the plan again"):
            PartitionPlan.read(tmp_path)
    (tmp_path / "plan.json").write_text(text.replace('"n_columns": 2', '"n_columns": 3'))
    with pytest.raises(IndexCorruptError, match=r"not the list that plan\.json describes"):
        PartitionPlan.read(tmp_path)
    (tmp_path / "plan.json").write_text(text)
    for table in (pa.table({"column_id": [1]}), pa.table({"column_id": ["a"], "partition": [0]})):
        pq.write_table(table, tmp_path / "columns.parquet")
        with pytest.raises(IndexCorruptError, match=r"not the list that plan\.json describes"):
            PartitionPlan.read(tmp_path)
    (tmp_path / "columns.parquet").write_bytes(b"PAR1 cut short")
    with pytest.raises(IndexCorruptError, match=r"not the list that plan\.json describes"):
        PartitionPlan.read(tmp_path)


@pytest.mark.parametrize(
    ("column_ids", "partitions", "message"),
    [
        ([1, 2, 2], [0, 1, 1], "rising order, each once"),
        ([1, 2], [0, 1, 1], r"Got shapes \(2,\) and \(3,\)"),
        ([1, 2, 3], [0, 0, 1], "those that its summary counts"),
        ([1, 2, 3], [0, 1, 2], "those that its summary counts"),
        ([1, 2, 3], [1, -1, 1], "those that its summary counts"),
        ([], [], "those that its summary counts"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(column_ids, partitions, message):
    with pytest.raises(InputError, match=message):
        PartitionPlan(np.array(column_ids, np.int64), np.array(partitions, np.int32), _summary(1, 2))


def test_the_summary_is_plain_json():
    fields = json.loads(_summary(4).to_json())
    assert fields["partitions"] == [{"n_columns": 4, "n_values": 40, "n_bytes": 20000, "divergence": 0.125}]
    assert fields["options"]["method"] == "jensen-shannon"


def test_notes_tell_what_could_not_be_met():
    sizes = (PartitionSize(1, 9, 900, 0.0), PartitionSize(2, 5, 500, 0.0), PartitionSize(2, 1, 100, 0.0))
    fixed = PlanOptions(dimensions=8, n_partitions=3, max_imbalance=1.5)
    notes = plan_notes(fixed, sizes, size_limits(400, 5, 1500))
    assert notes[0].startswith("1 column(s) are larger than the limit of 400 bytes (the largest has 900)")
    assert notes[1].startswith("1 partition(s) are larger than the limit of 400 bytes")
    fewer = plan_notes(PlanOptions(dimensions=8, n_partitions=7), sizes, fixed_limits(3, 5, 1500))
    assert fewer == ("7 partitions were asked for; there are 3, one for each column of the lake.",)
    assert plan_notes(fixed, sizes, size_limits(1000, 5, 1500)) == ()


def test_importing_the_package_imports_nothing_heavy():
    modules = "partition, partition.plan, partition.clustering, partition.codebook, partition.spark"
    heavy = "{'pyspark', 'sklearn', 'torch', 'pandas', 'scipy'}"
    code = f"import sys, {modules}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
