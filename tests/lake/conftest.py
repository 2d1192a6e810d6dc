import pytest


@pytest.fixture
def write(tmp_path):
    """A function that writes a file, text as UTF-8 or bytes, and returns its path."""

    def write_file(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file
