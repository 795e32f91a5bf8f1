"""Whose each record is comes back from a trail as it was, as text or as Parquet; a later version is told so."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.cli import cli
from sfumato.releasing import trail
from sfumato.releasing.trail import pack_rows, read_rows, source_rows_of_file


@given(st.lists(st.integers(-1, 2**40), max_size=50), st.sampled_from([0, 10, 100_000]))
def test_rows_come_back(rows, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trail, "_MAX_ROWS_AS_TEXT", limit)
        packed = pack_rows(np.array(rows, dtype=np.int64))
        assert packed.startswith("parquet:") == (len(rows) > limit)
        found = read_rows({"rows": packed})
    assert found.dtype == np.int64
    assert found.tolist() == rows


def test_many_rows_take_less_room_than_their_text():
    rows = np.random.default_rng(1).permutation(200_000)
    assert len(pack_rows(rows)) < len(" ".join(map(str, rows)))


@pytest.mark.parametrize("damaged", ["parquet:", "parquet:%%%", "parquet:AAAA", "1 x"])
def test_damaged_rows_are_a_fault(damaged):
    with pytest.raises(ValueError, match=r"damaged|invalid literal"):
        read_rows({"rows": damaged})


def test_a_release_of_many_records_is_measured_with_its_trail(tmp_path, monkeypatch):
    monkeypatch.setattr(trail, "_MAX_ROWS_AS_TEXT", 10)
    rng, source, place = np.random.default_rng(3), tmp_path / "original.csv", tmp_path / "release.csv"
    pl.DataFrame({"age": rng.integers(20, 60, 200), "pay": rng.lognormal(3, 1, 200)}).write_csv(source)
    roles = {"age": "key", "pay": "sensitive"}
    words = [word for name, role in roles.items() for word in ("--role", f"{name}={role}")]
    done = CliRunner().invoke(
        cli, ["protect", "rank-swapping", str(source), "--columns", "age", "--out", str(place), *words,
              "--override", "a test"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    kept = json.loads((tmp_path / "release.private.json").read_text())
    assert kept["rows"].startswith("parquet:")
    original = sfumato.read(source, roles=roles)
    rows, synthetic = source_rows_of_file(place, original)
    assert not synthetic
    assert sorted(rows.tolist()) == list(range(200))
    assert (pl.read_csv(place)["pay"] == original.frame["pay"].gather(rows)).all()
