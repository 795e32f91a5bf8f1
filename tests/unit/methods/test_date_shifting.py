from datetime import date

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import kernels
from sfumato.cli import _exit_code
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, RefusedError
from sfumato.front import protect
from sfumato.methods.date_shifting import DateShifting


def _table(frame, **roles):
    columns = [
        Column(name, Kind.NOMINAL if name in roles else Kind.DATE, Role(roles.get(name, "key")))
        for name in frame.columns
    ]
    return Table(frame, Schema(tuple(columns)))


NUMBERS = st.lists(st.sampled_from([1, 2, 3, None]), min_size=1, max_size=20)


@given(NUMBERS, st.integers(1, 400), st.sampled_from([1, 7]), st.integers(0, 99), st.booleans())
def test_intervals_of_a_person_stay_and_every_date_moves(numbers, days, step, seed, as_text):
    rng = np.random.default_rng(seed)
    step = min(step, days)
    dates = pl.Series((18_000 + rng.integers(0, 900, len(numbers))).astype(np.int32)).cast(pl.Date)
    later = dates.dt.offset_by("5d")
    who = pl.Series(numbers, dtype=pl.Int64)
    frame = pl.DataFrame({"a": dates.set(pl.Series(rng.random(len(numbers)) < 0.2), None), "b": later})
    frame = frame.with_columns(who=who.cast(pl.String) if as_text else who)
    table = _table(frame, who="person")
    after = protect(table, DateShifting(days=days, step=step), columns=["a", "b"], seed=seed).table.frame
    assert after["a"].is_null().equals(frame["a"].is_null())
    shifts = (after["b"] - frame["b"]).dt.total_days()
    assert ((after["a"] - frame["a"]).dt.total_days() == shifts).drop_nulls().all()
    assert (shifts != 0).all()
    assert (shifts.abs() <= days).all()
    assert (shifts % step == 0).all()
    by_person = pl.DataFrame({"who": who, "shift": shifts}).drop_nulls().group_by("who").n_unique()
    assert (by_person["shift"] == 1).all()


def test_all_shifts_are_as_likely():
    frame = pl.DataFrame({"a": [date(2026, 1, 1)] * 40_000, "who": range(40_000)})
    after = protect(_table(frame, who="person"), DateShifting(days=5), columns=["a"], seed=3).table.frame
    counts = (after["a"] - frame["a"]).dt.total_days().value_counts()["count"].cast(pl.Int64).to_numpy()
    assert len(counts) == 10
    assert np.abs(counts - 4_000).max() < 5 * np.sqrt(4_000)


def test_a_person_moves_alike_in_every_table_and_otherwise_in_every_replicate():
    one = _table(pl.DataFrame({"a": [date(2026, 1, 1)] * 9, "who": range(9)}), who="person")
    other = _table(
        pl.DataFrame({"b": [date(2020, 5, 1)] * 9, "who": [str(i) for i in range(9)]}), who="person"
    )

    def shifts(table, name, run):
        after = protect(table, DateShifting(), columns=[name], run=run).table.frame[name]
        return (after - table.frame[name]).dt.total_days().to_list()

    run = Run(seed=5)
    assert shifts(one, "a", run.at("table", "x")) == shifts(other, "b", run.at("table", "y"))
    assert shifts(one, "a", run) != shifts(one, "a", run.at("replicate", 1))


def test_times_of_day_and_time_zones_stay():
    when = pl.Series(["2026-03-01T13:45"] * 3).str.to_datetime()
    frame = pl.DataFrame({"a": when.dt.cast_time_unit("ms"), "b": when.dt.replace_time_zone("UTC")})
    after = protect(_table(frame), DateShifting(days=9), seed=1).table.frame
    assert after.schema == frame.schema
    assert after["a"].dt.time().equals(frame["a"].dt.time())


def test_dates_in_text_stay_text():
    frame = pl.DataFrame({"a": ["2026-03-01", None, "2026-03-05"], "who": [1, 1, 1]})
    after = protect(_table(frame, who="person"), DateShifting(days=3), columns=["a"], seed=1).table.frame
    first, none, last = after["a"].to_list()
    assert none is None
    assert date.fromisoformat(last) - date.fromisoformat(first) == date(2026, 3, 5) - date(2026, 3, 1)


def test_households_move_together():
    frame = pl.DataFrame({"a": [date(2026, 1, 1)] * 4, "who": [1, 2, 3, 4], "home": [7, 7, 8, 8]})
    table = _table(frame, who="person", home="household")
    after = protect(table, DateShifting(by="household"), columns=["a"], seed=2).table.frame["a"].to_list()
    assert after[0] == after[1] != after[2] == after[3]


def test_what_cannot_be_is_refused():
    frame = pl.DataFrame({"a": [date(2026, 1, 1)]})
    with pytest.raises(RefusedError, match="at most `days`"):
        protect(_table(frame), DateShifting(days=3, step=7))
    with pytest.raises(RefusedError, match="column with the role household"):
        protect(_table(frame), DateShifting(by="household"))
    with pytest.raises(RefusedError, match="must be given records, got: none"):
        protect(_table(frame.clear()), DateShifting())
    edge = pl.DataFrame({"a": pl.Series([2**31 - 3] * 60).cast(pl.Int32).cast(pl.Date)})
    with pytest.raises(DataError, match="exceed the range of their type"):
        protect(_table(edge), DateShifting())


def test_siphash_gives_the_published_vector():
    """Aumasson and Bernstein (2012), the 8-byte message of the reference vectors under the key 00 … 0f."""
    first, second = np.frombuffer(bytes(range(16)), dtype=np.uint64)
    message = np.frombuffer(bytes(range(8)), dtype=np.uint64)
    assert kernels.siphash.keyed_words(message, first, second).tolist() == [0x93F5F5799A932462]


def test_on_the_command_line(tmp_path, capfd):
    source, out = tmp_path / "stays.csv", tmp_path / "out.csv"
    source.write_text(
        "who,came,gone\n" + "".join(f"{i // 2},2026-03-0{i + 1},2026-04-0{i + 1}\n" for i in range(8))
    )
    words = ["protect", "date-shifting", str(source), "-c", "came,gone", "-r", "who=person", "--unjudged"]
    words += ["--override", "numbers of a test"]
    assert _exit_code([*words, "-o", str(out)]) == 0, capfd.readouterr()
    shown = pl.read_csv(out, try_parse_dates=True)
    assert ((shown["gone"] - shown["came"]).dt.total_days() == 31).all()
