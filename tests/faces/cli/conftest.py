"""What the tests of the command line share: a way to run it."""

import pytest
from click.testing import CliRunner, Result

from pexeso.faces.cli.main import cli


@pytest.fixture
def run():
    """Return a function that runs the command line in this process."""

    def invoke(*arguments: object, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(
            cli, [str(argument) for argument in arguments], input=input, prog_name="pexeso"
        )

    return invoke


@pytest.fixture
def fail(run):
    """Return a function that runs a command that must fail, and gives what it says on stderr."""

    def invoke(code: int, *arguments: object, **options: object) -> str:
        result = run(*arguments, **options)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result.stderr

    return invoke
