"""What the tests of the command line share: a way to run it."""

import pytest
from click.testing import CliRunner, Result

from pexeso.faces.cli.main import cli


@pytest.fixture
def run():
    """Return a function that runs the command line in this process, to the end that `code` is."""

    def invoke(
        *arguments: object, input: str | bytes | None = None, code: int | None = 0
    ) -> Result:
        words = [str(argument) for argument in arguments]
        result = CliRunner().invoke(cli, words, input=input, prog_name="pexeso")
        assert code in (None, result.exit_code), result.output or result.exception
        return result

    return invoke


@pytest.fixture
def fail(run):
    """Return a function that runs a command that must fail, and gives what it says on stderr."""

    def invoke(code: int, *arguments: object, **options: object) -> str:
        said = run(*arguments, code=code, **options).stderr
        assert "Traceback" not in said
        return said

    return invoke
