"""A search that is stopped, at any point and in any way, goes on and ends as if it had not been."""

import json
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import polars as pl
import pytest

from sfumato import tune
from sfumato.core.measure import Score, Status
from sfumato.core.run import Progress, Run
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import Cancelled, ReadError, WriteError
from sfumato.tuning.candidate import RunScores
from sfumato.tuning.ledger import Ledger, fingerprint, keep_seed, kept_seed, private_half

KEYS = ("income", "tax")


def people(records=60):
    rows = range(records)
    frame = pl.DataFrame(
        {"income": [float(i * i % 97 + i) for i in rows], "tax": [float(7 * i % 31) for i in rows]}
    )
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in KEYS)))


ASKED = {
    "methods": ["mdav", "rank-swapping", "correlated-noise"],
    "utility": "column-emd",
    "trials": 11,
    "repeats": 2,
    "confirmations": 2,
}


def search(ledger=None, *, require="dbrl <= 0.2", seed=7, **more):
    return tune(people(), require, seed=seed, ledger=ledger, **{**ASKED, **more})


@pytest.fixture(scope="module")
def whole():
    """The search that nobody stopped."""
    return search().to_dict()


def rows(ledger):
    with sqlite3.connect(ledger) as file:
        return file.execute("SELECT stage, recipe, steps, result FROM results ORDER BY 1, 2").fetchall()


def test_a_ledger_changes_nothing_and_a_second_time_computes_nothing(whole, tmp_path, monkeypatch):
    ledger = tmp_path / "t.sqlite"
    assert search(ledger).to_dict() == whole
    before = rows(ledger)
    assert len(before) > 11

    def forbidden(*_, **__):
        raise AssertionError("nothing may be computed again")

    monkeypatch.setattr("sfumato.tuning.candidate.RecipeJudge.evaluate", forbidden)
    monkeypatch.setattr("sfumato.tuning.candidate.weakest", forbidden)
    again = search(ledger)
    assert again.to_dict() == whole
    assert again.found.replayed == len(before)
    assert rows(ledger) == before


class StopAfter:
    """Says stop once it was asked so many times."""

    def __init__(self, times):
        self.left = times

    def __call__(self):
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize(
    ("times", "workers"),
    [
        (0, 1),
        pytest.param(3, 3, marks=pytest.mark.slow),
        (40, 1),
        (150, 3),
        (237, 1),  # while a search settles in a hurry
        pytest.param(300, 1, marks=pytest.mark.slow),
    ],
)
def test_stopped_and_taken_up_again(whole, tmp_path, times, workers):
    ledger = tmp_path / "t.sqlite"
    with pytest.raises(Cancelled):
        search(ledger, run=Run(seed=7, progress=Progress(stopped=StopAfter(times))), workers=workers)
    assert search(ledger).to_dict() == whole


def test_stopped_again_and_again_it_still_comes_to_its_end(whole, tmp_path):
    ledger, stops = tmp_path / "t.sqlite", 0
    while True:
        try:
            found = search(ledger, run=Run(seed=7, progress=Progress(stopped=StopAfter(250))))
            break
        except Cancelled:
            stops += 1
    assert found.to_dict() == whole
    assert stops > 1


def test_a_larger_budget_uses_what_a_smaller_one_found(tmp_path):
    ledger = tmp_path / "t.sqlite"
    search(ledger)
    more = search(ledger, trials=16)
    assert more.found.replayed > 0
    assert more.to_dict() == search(trials=16).to_dict()


CHILD = """
import sys, time
sys.path.insert(0, {here!r})
import importlib.util
spec = importlib.util.spec_from_file_location("child_of", {file!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print("ready", flush=True)
print(module.json.dumps(module.search({ledger!r}).to_dict()))
"""


def test_killed_at_once_and_run_again(whole, tmp_path):
    """kill -9 leaves a ledger that goes on; where in the work it hits is left to chance, as in life."""
    ledger = tmp_path / "t.sqlite"
    code = textwrap.dedent(CHILD).format(here=str(Path(__file__).parent), file=__file__, ledger=str(ledger))
    kills = 0
    for delay in (0.05, 0.3):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        started = time.monotonic()
        while not ledger.exists() and time.monotonic() - started < 60:
            time.sleep(0.01)
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        kills += child.returncode == -signal.SIGKILL
    assert kills
    assert search(ledger).to_dict() == whole


def test_a_write_that_was_cut_off_is_rolled_back(whole, tmp_path):
    """A transaction that never ended: the journal is there, the rows are not counted."""
    ledger = tmp_path / "t.sqlite"
    with pytest.raises(Cancelled):
        search(ledger, run=Run(seed=7, progress=Progress(stopped=StopAfter(150))))
    kept = rows(ledger)
    code = (
        "import os, sqlite3, sys\n"
        "file = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "file.execute('PRAGMA cache_size = 1')\n"
        "file.execute('BEGIN IMMEDIATE')\n"
        "for i in range(2000):\n"
        "    file.execute('INSERT INTO results VALUES (?, ?, ?, ?)', ('half', str(i), 'x' * 500, '{}'))\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(ledger)], check=False).returncode == 9
    assert ledger.with_name("t.sqlite-journal").exists()
    assert search(ledger).to_dict() == whole
    assert set(kept) <= set(rows(ledger))
    assert not any(stage == "half" for stage, *_ in rows(ledger))


# ------------------------------------------------------------------------------------------ whose ledger


@pytest.mark.parametrize(
    "other",
    [
        {"require": "dbrl <= 0.3"},
        {"utility": "il1s"},
        {"methods": ["mdav", "rank-swapping"]},
        {"seed": 8},
        {"groups": {"money": ["income"]}},
    ],
)
def test_the_ledger_of_another_search_is_refused(tmp_path, other):
    ledger = tmp_path / "t.sqlite"
    Ledger(ledger, "another").close()
    with pytest.raises(ReadError, match="is of another search"):
        search(ledger)
    ledger.unlink()
    with pytest.raises(Cancelled):
        search(ledger, run=Run(seed=7, progress=Progress(stopped=StopAfter(3))))
    with pytest.raises(ReadError, match="is of another search"):
        search(ledger, **other)


def test_another_hierarchy_of_the_same_name_is_another_search(tmp_path):
    def levels(*middle):
        parts = [[str(i) for i in range(97)], *middle, ["*"] * 97]
        return Hierarchy.from_levels(pl.DataFrame([pl.Series(str(i), part) for i, part in enumerate(parts)]))

    ledger = tmp_path / "t.sqlite"
    with pytest.raises(Cancelled):
        search(ledger, run=Run(seed=7, progress=Progress(stopped=StopAfter(3))), resources={"h": levels()})
    with pytest.raises(ReadError, match="is of another search"):
        search(ledger, resources={"h": levels([str(i % 9) for i in range(97)])})


def test_the_ledger_of_other_data_is_refused(tmp_path):
    ledger = tmp_path / "t.sqlite"
    with pytest.raises(Cancelled):
        search(ledger, run=Run(seed=7, progress=Progress(stopped=StopAfter(3))))
    with pytest.raises(ReadError, match="its data, requirements, methods or seed differ"):
        tune(people(61), "dbrl <= 0.2", seed=7, ledger=ledger, **ASKED)


def test_another_file_is_never_written_to(tmp_path):
    csv, base = tmp_path / "people.csv", tmp_path / "other.sqlite"
    csv.write_text("income\n1\n" * 600)
    with sqlite3.connect(base) as file:
        file.execute("CREATE TABLE results (a)")
    for path in (csv, base):
        before = path.read_bytes()
        with pytest.raises(ReadError, match="is not the ledger of a search"):
            search(path)
        assert path.read_bytes() == before
    with pytest.raises(WriteError, match="cannot write the ledger"):
        search(tmp_path)


# ---------------------------------------------------------------------------------------------- secrecy


def test_the_seed_stands_beside_the_ledger_and_never_in_it(tmp_path):
    ledger = tmp_path / "t.sqlite"
    seed = 0x0123456789ABCDEF0011223344556677
    with pytest.raises(Cancelled):
        tune(
            people(),
            "dbrl <= 0.2",
            ledger=ledger,
            run=Run(seed=seed, progress=Progress(stopped=StopAfter(60))),
            **ASKED,
        )
    content = ledger.read_bytes()
    for form in (f"{seed:032x}", str(seed)):
        assert form.encode() not in content
    for order in ("little", "big"):
        assert seed.to_bytes(16, order) not in content
    assert kept_seed(ledger) == seed
    for path in (ledger, private_half(ledger)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_a_seed_the_kept_one_goes_on(tmp_path):
    ledger = tmp_path / "t.sqlite"
    first = search(ledger, seed=None, trials=4)
    second = search(ledger, seed=None, trials=4)
    assert second.to_dict() == first.to_dict()
    assert second.found.replayed > 0


def test_a_private_half_that_is_none_is_told(tmp_path):
    ledger = tmp_path / "t.sqlite"
    assert kept_seed(ledger) is None
    private_half(ledger).write_text("{}")
    with pytest.raises(ReadError, match="private half"):
        kept_seed(ledger)
    keep_seed(ledger, Run(seed=3), given=True)
    assert json.loads(private_half(ledger).read_text()) == {"seed": f"{3:032x}", "seed_given": True}


def test_the_fingerprint_needs_the_seed():
    said = {"data": "d", "space": ["a"]}
    assert fingerprint(Run(seed=1), said) == fingerprint(Run(seed=1), dict(reversed(said.items())))
    assert fingerprint(Run(seed=1), said) != fingerprint(Run(seed=2), said)
    assert fingerprint(Run(seed=1), said) != fingerprint(Run(seed=1), {**said, "data": "e"})


def test_a_ledger_in_memory_reads_back_what_a_file_would(tmp_path):
    result = {"runs": [[[[0.1, "ok", ""]], [["nan", "refused", "why"]]]], "refused": ""}
    memory, file = Ledger(None, "f"), Ledger(tmp_path / "l", "f")
    for ledger in (memory, file):
        ledger.keep("s", "r", [], result)
    file.close()
    assert Ledger(tmp_path / "l", "f").get("s", "r") == memory.get("s", "r") == result
    assert memory.get("s", "other") is None


def test_what_a_requirement_relies_on_is_kept():
    """A proved interval stays proved, and an estimate an estimate of its confidence."""
    estimate = Score(0.1, Status.APPROXIMATE, (0.05, 0.2), confidence=95.0, reason="a model")
    proved = Score(0.1, Status.APPROXIMATE, (0.05, 0.2), interval_is_proved=True, bound=0.15)
    likely = Score(0.1, Status.APPROXIMATE, (0.05, 0.2))
    said = RunScores((estimate, proved), (likely, Score(0.5))).to_list()
    kept = RunScores.from_list(json.loads(json.dumps(said)))
    assert kept.demands == (estimate, proved)
    assert kept.utilities == (Score(0.1, Status.APPROXIMATE), Score(0.5))
    assert RunScores.from_list([[[0.1, "approximate", "", [0.05, 0.2]]], []]).demands[0].interval_is_proved
