"""Benchmarks keep their rows, say when a lead has fallen, and the pages show what is kept. Nothing is timed here."""

import importlib
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
ROW = {"cpu": 2.0, "peer": "a sort", "peer_cpu": 1.0, "at_most": 3, "date": "2026-01-01"}


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def kept(load, tmp_path, monkeypatch):
    """A file of kept rows in place of that of the repository."""
    place = tmp_path / "ratios.json"
    monkeypatch.setattr(load("ratios"), "KEPT", place)
    monkeypatch.setenv("SFUMATO_BENCH_KEEP", str(place))
    monkeypatch.setattr("sys.argv", ["bench_toy.py"])
    return place


def test_pages_show_what_is_kept(load):
    """`python benchmarks/run.py --pages` writes them anew."""
    for path, text in load("ratio_pages").texts(load("ratios").read()).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is not that of ratios.json"


def test_every_benchmark_has_a_small_run(load):
    found = dict(load("run").benchmarks())
    assert set(found) == set(FOLDER.glob("bench_*.py"))
    assert all(small is None or isinstance(small, str) for small in found.values())


def test_a_row_is_kept_and_a_fall_is_said(load, kept, capsys):
    ratios = load("ratios")
    assert ratios.beside("sorting", 1000, 2.0, "a sort", 1.0, at_most=3)
    assert "FELL" not in capsys.readouterr().out
    assert not ratios.beside("sorting", 1000, 4.0, "a sort", 1.0, at_most=3)
    out = capsys.readouterr().out
    assert "FELL by 50%" in out
    assert "at most 3: FAILS" in out
    row = json.loads(kept.read_text())["toy"]["sorting"]["1000"]
    assert (row["cpu"], row["peer_cpu"], row["before"]) == (4.0, 1.0, "2 × a sort")


def test_a_row_of_another_size_is_no_fall(load, kept, capsys):
    ratios = load("ratios")
    ratios.beside("sorting", 1000, 2.0, "a sort", 1.0)
    ratios.beside("sorting", 2000, 9.0, "a sort", 1.0)
    assert "FELL" not in capsys.readouterr().out


def test_why_a_row_was_not_run_is_kept_until_it_is(load, kept):
    ratios, pages = load("ratios"), load("ratio_pages")
    ratios.skip("peer", "it is not installed")
    found = ratios.read(kept)["toy"]["peer"]
    assert "not run: it is not installed" in pages.lines_of("peer", found)[0]
    ratios.beside("peer", 10, 1.0, "it", 5.0, at_least=2)
    assert set(ratios.read(kept)["toy"]["peer"]) == {"10"}


def test_a_claim_that_fails_stays_and_is_marked(load):
    lines_of = load("ratio_pages").lines_of
    assert lines_of("row", {"1000": {**ROW, "cpu": 4.0}})[0][3:5] == ("4 × a sort", "at most 3, **fails**")
    assert lines_of("row", {"1000": ROW})[0][4] == "at most 3"
    assert lines_of("row", {"1000": {**ROW, "cpu": 4.0, "small": True}})[0][4] == "at most 3"


def test_memory_beyond_what_was_measured_is_computed(load):
    cells, each = load("ratio_pages").to_many({10**5: {"memory": 200}, 10**6: {"memory": 290}})
    assert each == pytest.approx(100)  # 90 MB for 900,000 records more
    assert cells == ["290 MB", "1,190 MB", "10,190 MB"]


def test_a_benchmark_leaves_rows(load, kept):
    load("bench_chance").main(2000)
    rows = load("ratios").read(kept)["toy"]
    assert "k of text, sfumato.assess" in rows
    assert all(row["peer"] and row["peer_cpu"] >= 0 for sizes in rows.values() for row in sizes.values())
