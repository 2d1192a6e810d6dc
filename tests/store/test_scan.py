"""What a copied partition takes, as the manifest has it."""

from pathlib import Path

from pexeso.semantic.partition_loader import copied_bytes
from pexeso.store.local.reader import open_store


def test_the_bytes_of_arrays_are_those_of_their_files(tmp_path: Path, build_index) -> None:
    build_index(tmp_path / "lake.pexeso", n_partitions=2)
    store = open_store(tmp_path / "lake.pexeso")
    assert copied_bytes(store, 0, ["vectors"]) == 128 + 7 * 3 * 4
    files = store.manifest.partitions[0].files
    assert copied_bytes(store, 0) == sum(
        file.n_bytes for file in files if file.path.endswith(".npy")
    )
    assert copied_bytes(store, 1, []) == 0
