"""What the tests of the command line share."""

import pytest

from sfumato.cli import _exit_code


@pytest.fixture
def run(capfd, monkeypatch, tmp_path):
    """Run the command line in an empty folder; give exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def go(*arguments):
        code = _exit_code([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return go
