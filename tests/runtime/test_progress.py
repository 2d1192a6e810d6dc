"""Progress bars in Python, and how much is told: bars and the level of the log."""

import logging
import sys
import textwrap
from inspect import signature

import pytest
from processes import ran

import pexeso
from pexeso.errors import InputError
from pexeso.runtime.progress import counted_bar, log_event, stage_bar, with_bar


@pytest.fixture
def restored():
    yield
    pexeso.set_verbosity("normal")


@with_bar(lambda: stage_bar(["list", "commit"]))
def staged(progress=None):
    """Stand for a build."""
    if progress is not None:
        progress("list")
        progress("commit")
    return progress


@pytest.mark.parametrize("verbosity", ["quiet", "normal"])
def test_without_being_asked_no_bar_is_shown(restored, capsys, verbosity):
    pexeso.set_verbosity(verbosity)
    assert staged() is None
    assert capsys.readouterr() == ("", "")


def test_bars_are_shown_where_they_are_asked_for(restored, capsys):
    pexeso.set_verbosity("verbose")
    assert staged() is not None
    written = capsys.readouterr()
    assert written.out == ""
    assert "list" in written.err
    assert "1/2" in written.err


def test_progress_that_is_given_is_told_and_no_bar_is_shown(restored, capsys):
    pexeso.set_verbosity("verbose")
    stages = []
    assert staged(stages.append) == staged(progress=stages.append) == stages.append
    assert stages == ["list", "commit"] * 2
    assert capsys.readouterr() == ("", "")


def test_the_level_of_the_log_follows(restored):
    logger = logging.getLogger("pexeso")
    levels = {}
    for verbosity in ("quiet", "verbose", "normal"):
        pexeso.set_verbosity(verbosity)
        levels[verbosity] = logger.level
    assert levels == {
        "quiet": logging.ERROR,
        "verbose": logging.INFO,
        "normal": logging.NOTSET,
    }


def test_a_call_stays_what_it_was():
    assert staged.__doc__ == "Stand for a build."
    assert str(signature(staged)) == "(progress=None)"
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        staged(other=1)


def test_a_build_an_update_and_a_check_show_bars(restored, small_lake, tmp_path, capsys):
    pexeso.set_verbosity("verbose")
    index = pexeso.build_index(small_lake, tmp_path / "lake.pexeso", model="hashing", dimensions=64)
    assert "catalog" in capsys.readouterr().err
    index.append()
    assert "changes" in capsys.readouterr().err
    assert [problem for problem in index.check() if problem.is_failure] == []
    assert "checking" in capsys.readouterr().err
    index.append(progress=lambda stage: None)
    assert capsys.readouterr().err == ""


def in_new_process(program, warnings="error"):
    done = ran([sys.executable, "-W", warnings, "-c", textwrap.dedent(program)])
    assert done.returncode == 0, done.stderr
    return done


def test_events_are_told_on_stderr_where_the_program_has_no_handlers():
    done = in_new_process(
        """
        import pexeso
        from pexeso.runtime.progress import log_event
        log_event("before")
        pexeso.set_verbosity("verbose")
        pexeso.set_verbosity("verbose")
        log_event("stage", stage="list")
        pexeso.set_verbosity("normal")
        log_event("after")
        """
    )
    assert (done.stdout, done.stderr) == ("", "pexeso: stage (stage=list)\n")


def test_handlers_of_the_program_are_left_to_it(restored, caplog, capsys):
    pexeso.set_verbosity("verbose")
    log_event("stage", stage="list")
    assert caplog.messages == ["stage"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("verbosity", ["loud", "", None, 1, ["quiet"]])
def test_what_is_no_verbosity_is_refused(verbosity):
    with pytest.raises(InputError, match=r"must be one of quiet, normal, verbose\. Got"):
        pexeso.set_verbosity(verbosity)


def test_a_bar_of_counts(capsys):
    with counted_bar("checking", unit="B") as report:
        report(1, 4)
        report(4, 4)
    assert "checking" in capsys.readouterr().err


def test_a_notebook_without_widgets_gets_text_and_no_warning():
    """What tqdm asks IPython for is stood in for, and ipywidgets is refused."""
    done = in_new_process(
        """
        import sys, types
        shell = types.SimpleNamespace(config={"IPKernelApp": {}})
        sys.modules["IPython"] = types.ModuleType("IPython")
        sys.modules["IPython"].get_ipython = lambda: shell
        sys.modules["IPython.display"] = types.ModuleType("IPython.display")
        sys.modules["IPython"].display = sys.modules["IPython.display"]
        sys.modules["IPython.display"].display = print
        sys.modules["ipykernel.zmqshell"] = types.ModuleType("ipykernel.zmqshell")
        sys.modules["ipywidgets"] = None
        from pexeso.runtime.progress import stage_bar
        with stage_bar(["list", "commit"]) as report:
            report("list")
            report("commit")
        import tqdm.auto, tqdm.autonotebook
        print(tqdm.autonotebook.tqdm.__module__)
        """,
        warnings="always",  # tqdm passes over a warning that is an error
    )
    assert "commit" in done.stderr
    assert "Warning" not in done.stderr
    assert done.stdout.strip() == "tqdm.std"
