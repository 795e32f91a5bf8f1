"""Engines by their names, limits of memory, and scratch folders that leave nothing behind."""

import os
import subprocess
import sys

import polars as pl
import pytest

import sfumato
from sfumato.core.run import Run
from sfumato.engines.interface import active_engine
from sfumato.engines.opening import bytes_of, scratch_folder
from sfumato.engines.stream import StreamEngine, memory_in_use
from sfumato.errors import MemoryLimitError, ParameterError


@pytest.mark.parametrize(
    ("text", "amount"), [("4GB", 4 * 10**9), ("1.5 gib", 3 * 2**29), ("500mb", 5 * 10**8), ("1000", 1000)]
)
def test_amounts_of_memory(text, amount):
    assert bytes_of(text) == amount


@pytest.mark.parametrize("text", ["", "GB", "4 furlongs", "-1GB", "0GB", "nan"])
def test_what_is_no_amount(text):
    with pytest.raises(ParameterError, match="such as 4GB"):
        bytes_of(text)


def test_runs_work_on_the_active_engine(tmp_path):
    with sfumato.engine("stream", memory="8GB", scratch=tmp_path) as engine:
        assert Run(1).engine is engine is active_engine()
        assert isinstance(engine, StreamEngine)
        assert [each.stat().st_mode & 0o777 for each in tmp_path.iterdir()] == [0o700]
    assert active_engine() is None
    assert not list(tmp_path.iterdir())


def test_the_plainest_engine_takes_no_limit():
    with pytest.raises(ParameterError, match="neither"), sfumato.engine("memory", memory="1GB"):
        pass
    with sfumato.engine("memory") as engine:
        assert Run(1).engine is engine


@pytest.mark.parametrize("name", ["strem", "local:0", "local:x", "tcp://host:1"])
def test_unknown_engines(name, tmp_path):
    with pytest.raises(ParameterError), sfumato.engine(name, scratch=tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_cluster_needs_certificates(tmp_path):
    with (
        pytest.raises(ParameterError, match="certificates"),
        sfumato.engine("tls://localhost:1", scratch=tmp_path),
    ):
        pass


def test_a_scratch_folder_must_exist(tmp_path):
    with pytest.raises(ParameterError, match="does not exist"), scratch_folder(tmp_path / "none"):
        pass


def test_what_a_kill_left_is_removed_by_the_next_run(tmp_path):
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    left = tmp_path / f"sfumato-scratch-{int(gone.stdout)}-abc"
    running = tmp_path / f"sfumato-scratch-{os.getpid()}-abc"
    other = tmp_path / "sfumato-scratch-notes"
    for each in (left, running, other):
        each.mkdir()
    with scratch_folder(tmp_path):
        assert not left.exists()
        assert running.exists()
        assert other.exists()


def test_more_memory_than_allowed_is_a_sentence():
    assert memory_in_use() > 10**6
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(MemoryLimitError, match="more memory than it may use"):
        sfumato.protect(frame, "mdav(k=2)", run=Run(1, engine=StreamEngine(memory=1)))
