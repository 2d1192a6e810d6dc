"""An update is killed at a random moment, and a rerun finishes; and the test of that can fail."""

from pathlib import Path

import kill_run
import pytest
from kill_operations import OPERATIONS
from kill_run import KILLS, SEED, SHARES, SHORT_KILLS, KillTest, choose_operations, summary
from long_runs import long_but


@pytest.mark.slow
@pytest.mark.parametrize("operation", long_but(["delete"], ["append", "delete"]))
def test_what_is_killed_is_as_before_or_as_after_and_a_rerun_finishes(
    tmp_path: Path, monkeypatch, operation: str
) -> None:
    test = KillTest(tmp_path, [operation], SEED)
    [kill] = test.run()
    assert (kill.operation, kill.failure) == (operation, "")
    assert summary([kill], 1.0).startswith(f"1 kills (1 {operation}), 0 failures: ")

    place = tmp_path / "trial0"
    path = kill_run.start_state(tmp_path, OPERATIONS[operation].before, place)
    monkeypatch.setattr(kill_run, "answers", lambda path: [["nothing like before or after"]])
    verdict = test._look(operation, path)
    assert (verdict.outcome, "neither those before nor those after" in verdict.failure) == (
        "failed",
        True,
    )


def test_every_operation_has_its_share_of_the_kills() -> None:
    assert set(SHARES) == set(OPERATIONS)
    for n_kills in (SHORT_KILLS, KILLS):
        chosen = choose_operations(n_kills, None, SEED)
        assert len(chosen) == n_kills
        assert set(chosen) == set(OPERATIONS)
    assert choose_operations(3, "append", SEED) == ["append"] * 3
