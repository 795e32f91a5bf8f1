import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli import _exit_code
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, RefusedError
from sfumato.front import protect
from sfumato.methods.area_coarsening import AreaCoarsening

TOWNS = [*"abcdefgh"]
LEVELS = pl.DataFrame({"0": TOWNS, "1": [*"AABBCCDD"], "2": [*"XXXXYYYY"], "3": ["*"] * 8})
TREE = Hierarchy.from_levels(LEVELS, name="towns")
BELOW = {label: {row[0] for row in LEVELS.iter_rows() if label in row} for label in [*"abcdefghABCDXY*"]}


def _table(towns, *, weights=None, persons=None):
    frame = pl.DataFrame({"town": pl.Series(towns, dtype=pl.String)})
    columns = [Column("town", Kind.NOMINAL, Role.KEY, hierarchy="tree")]
    for name, values, kind, role in (
        ("w", weights, "continuous", "weight"),
        ("p", persons, "nominal", "person"),
    ):
        if values is not None:
            frame = frame.with_columns(pl.Series(name, values))
            columns.append(Column(name, Kind(kind), Role(role)))
    return Table(frame, Schema(tuple(columns)))


def _shown(table, people=None, **how):
    if people is not None:
        people = pl.DataFrame({"town": list(people), "population": list(people.values())})
    method = AreaCoarsening(population=None if people is None else "people", **how)
    release = protect(table, method, columns=["town"], resources={"tree": TREE, "people": people})
    return release.table.frame["town"].cast(pl.String).to_list(), release


PEOPLE = st.lists(st.integers(0, 50), min_size=8, max_size=8).map(lambda n: dict(zip(TOWNS, n, strict=True)))


@given(st.lists(st.sampled_from([*TOWNS, None]), min_size=1, max_size=20), PEOPLE, st.integers(1, 200))
def test_enough_people_live_in_what_is_shown_and_no_area_could_be_finer(towns, people, threshold):
    shown, _ = _shown(_table(towns), people, threshold=threshold)
    labels = {label for label in shown if label is not None}
    assert [label is None for label in shown] == [town is None for town in towns]
    for town, label in zip(towns, shown, strict=True):
        assert label is None or town in BELOW[label]
    for label in labels:
        assert label == "*" or sum(people[town] for town in BELOW[label]) >= threshold
        # What a label stands for is all of its area: nobody in it is shown by another.
        assert {other for town, other in zip(towns, shown, strict=True) if town in BELOW[label]} == {label}
        # One level down some area with a record would be too small.
        parts = next((below for below in ([*"XY"], [*"ABCD"], TOWNS) if label not in below and any(
            BELOW[part] < BELOW[label] for part in below)), [])  # fmt: skip
        held = [part for part in parts if BELOW[part] < BELOW[label] and BELOW[part] & set(towns)]
        assert (
            not parts
            or label in TOWNS
            or any(sum(people[t] for t in BELOW[part]) < threshold for part in held)
        )


def test_neighbours_climb_along():
    assert _shown(_table([*"abc"]), dict.fromkeys(TOWNS, 10) | {"a": 5}, threshold=10)[0] == ["A", "A", "c"]


def test_an_area_without_records_makes_nobody_climb():
    assert _shown(_table([*"ac"]), dict.fromkeys(TOWNS, 10) | {"b": 0}, threshold=10)[0] == [*"ac"]


def test_without_a_population_weights_count_and_then_persons():
    shown, release = _shown(_table([*"aab"], weights=[5, 5, 10]), threshold=10)
    assert shown == [*"aab"]
    assert not release.provenance[0].notes
    shown, release = _shown(_table([*"aab"], persons=[1, 1, 2]), threshold=2)
    assert shown == [*"AAA"]
    assert "no population was given: the persons of the file were counted" in release.provenance[0].notes


def test_too_few_people_everywhere_show_no_area():
    shown, release = _shown(_table(["a", None]), threshold=10)
    assert shown == ["*", None]
    assert any("no area is shown" in note for note in release.provenance[0].notes)


def test_nothing_climbs_where_all_are_large():
    shown, release = _shown(_table([*"ab"]), dict.fromkeys(TOWNS, 9), threshold=9)
    assert shown == [*"ab"]
    assert not release.table.nodes


@pytest.mark.parametrize(
    ("people", "says", "error"),
    [
        ({"a": 5}, "1 area without", DataError),
        (dict.fromkeys(TOWNS, -1), "0 or more", DataError),
    ],
)
def test_a_population_that_does_not_tell_is_an_error(people, says, error):
    with pytest.raises(error, match=says):
        _shown(_table([*"ab"]), people)


def test_a_population_without_its_columns_is_refused():
    with pytest.raises(RefusedError, match="population, town"):
        protect(
            _table([*"ab"]), AreaCoarsening(population="p"), columns=["town"],
            resources={"tree": TREE, "p": pl.DataFrame({"x": [1]})},
        )  # fmt: skip


def test_zip_codes_on_the_command_line(tmp_path, capfd):
    zips, out = tmp_path / "zip.csv", tmp_path / "out.csv"
    source = "builtin:patients?n=200"
    codes = np.unique(pl.read_csv(_written(tmp_path, source))["patzip"].to_numpy())
    zips.write_text("patzip,population\n" + "".join(f"{code},9000\n" for code in codes))
    words = ["protect", "area-coarsening", source, "-c", "patzip", "--population", "people", "--unjudged"]
    words += ["--drop", "oshpd_id"]
    assert _exit_code([*words, "--resource", f"people={zips}", "-o", str(out)]) == 0, capfd.readouterr()
    assert "*" in out.read_text()


def _written(folder, source):
    place = folder / "patients.csv"
    assert _exit_code(["convert", source, str(place)]) == 0
    return place


def test_nobody_lives_nowhere():
    frame = pl.DataFrame({"town": pl.Series([], dtype=pl.String)})
    table = Table(frame, Schema((Column("town", Kind.NOMINAL, Role.KEY),)))
    with pytest.raises(RefusedError, match="must be given records, got: none"):
        protect(table, AreaCoarsening(), columns=["town"], seed=1)
