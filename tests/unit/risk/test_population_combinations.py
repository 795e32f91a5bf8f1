"""Rules of statistical offices: combinations of keys in a population, by people or by counts, and columns that leave."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.text_forms import parse_nodes
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.recipes.profile import Profile
from sfumato.risk.anonymity import KMap
from sfumato.risk.population_combinations import PopulationCombinations, ReleasedColumns
from sfumato.risk.presence import DeltaPresence
from sfumato.risk.reidentification import JournalistRisk

RUN = Run(seed=1)


def table_of(columns, roles=None, nodes=None):
    frame = pl.DataFrame(columns, strict=False)

    def kind(series):
        return Kind.CONTINUOUS if series.dtype.is_numeric() or series.dtype.is_nested() else Kind.NOMINAL

    schema = Schema(tuple(Column(s.name, kind(s), (roles or {}).get(s.name, Role.KEY)) for s in frame))
    return Table(frame, schema, nodes=nodes or {})


def score(measure, table, population, **more):
    return measure.score(Evidence(table, resources={"p": population}, **more), RUN)


def rows(rng, n):
    return {
        "sex": [["f", "m", None][at] for at in rng.integers(0, 3, n)],
        "town": [["Bonn", "Kiel", "Ulm", None][at] for at in rng.integers(0, 4, n)],
        "age": [[1, 2, None][at] for at in rng.integers(0, 3, n)],
    }


def count(frame):
    return frame.group_by(frame.columns).agg(pl.len().cast(pl.Int64).alias("population_count"))


@examples(300)
@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from(["category", "any", "worst"]))
def test_by_brute_force(seed, dimension, missing):
    rng = np.random.default_rng(seed)
    people, drawn = rows(rng, 30), rows(rng, int(rng.integers(1, 8)))
    who = [int(each) for each in rng.integers(0, 4, len(drawn["sex"]))]
    table = table_of({**drawn, "who": who}, {"who": Role.PERSON})

    def alike(own, other):
        if missing == "any":
            return own is None or other is None or own == other
        return own == other

    fewest = np.inf
    for subset in combinations(drawn, min(dimension, 3)):
        for i in range(len(who)):
            found = sum(all(alike(drawn[c][i], people[c][j]) for c in subset) for j in range(30))
            if missing == "worst" and any(drawn[c][i] is None for c in subset):
                found = 1
            fewest = min(fewest, found)
    measure = PopulationCombinations(population="p", dimension=dimension, missing=missing)
    one_by_one = table_of(people)
    counted = table_of(count(one_by_one.frame))
    found = score(measure, table, one_by_one)
    assert (found.value, found.status) == (fewest, Status.OK)
    assert found.by_record.min() == fewest
    assert score(measure, table, counted).value == fewest


@examples(200)
@given(st.integers(0, 2**32), st.sampled_from(["category", "any", "worst"]))
def test_a_table_of_counts_is_as_good_as_its_people(seed, missing):
    """Of exact, ranged and grouped keys, for all measures that take a population."""
    rng = np.random.default_rng(seed)
    drawn = rows(rng, 5)
    people = table_of({name: [*values, *drawn[name]] for name, values in rows(rng, 25).items()})
    lows = pl.Series(rng.integers(0, 2, 5))
    towns, nodes = parse_nodes(
        pl.Series("town", rng.choice(["Bonn", "{Bonn|Kiel}", "*", "{Kiel|Ulm}"], 5)), ["Bonn", "Kiel", "Ulm"]
    )
    ranged = table_of({**drawn, "age": intervals(lows, lows + 1), "town": towns}, nodes={"town": nodes})
    counted = table_of(count(people.frame))
    for measure in (KMap, JournalistRisk, DeltaPresence):
        for table in (table_of(drawn), ranged):
            first, second = (
                score(measure(population="p", missing=missing), table, each) for each in (people, counted)
            )
            assert (first.status, first.details) == (second.status, second.details)
            assert first.value == second.value or np.isnan([first.value, second.value]).all()


@pytest.mark.parametrize(
    ("low", "high", "people"),
    [(20, 29, 100), (20, 39, 300), (25, 35, 0), (20, 20, 0), (None, None, 307), (80, None, 7), (95, None, 0)],
)
def test_bands_of_a_population_count_where_all_of_them_is_covered(low, high, people):
    bands = intervals(pl.Series([20, 30, 90]), pl.Series([29, 39, None], dtype=pl.Int64))
    population = table_of({"age": bands, "population_count": [100, 200, 7]})
    ends = (pl.Series([each], dtype=pl.Int64) for each in (low, high))
    assert score(KMap(population="p"), table_of({"age": intervals(*ends)}), population).value == people


@pytest.mark.parametrize(
    ("columns", "roles", "word"),
    [
        ({"sex": ["f", "m"], "population_count": [3, -1]}, {}, "whole numbers"),
        ({"sex": ["f", "m"], "population_count": [3, 1.5]}, {}, "whole numbers"),
        ({"sex": ["f", "m"], "population_count": [3, None]}, {}, "whole numbers"),
        ({"sex": ["f", "m"], "population_count": ["3", "many"]}, {}, "whole numbers"),
        ({"sex": ["f", "f"], "population_count": [3, 2]}, {}, "one row for each"),
        (
            {"sex": ["f", "m"], "population_count": [3, 2], "who": [1, 2]},
            {"who": Role.PERSON},
            "beside `who`",
        ),
    ],
)
def test_what_is_no_table_of_counts_is_refused(columns, roles, word):
    """A household's number of people must not be taken for so many of them."""
    found = score(KMap(population="p"), table_of({"sex": ["f"]}), table_of(columns, roles))
    assert found.status is Status.REFUSED
    assert word in found.reason


def test_people_may_be_a_key():
    """Where the release knows a number of people, each record of the population is one person."""
    population = table_of({"population_count": [1, 1, 2]})
    assert score(KMap(population="p"), table_of({"population_count": [1, 2]}), population).value == 1


CENSUS = {
    "city": ["Bonn", "Bonn", "Ulm", "Ulm"],
    "sex": ["f", "m", "f", "m"],
    "population_count": [60, 50, 9, 8],
}


def test_regions_are_told_by_their_names_or_named():
    census, file = table_of(CENSUS), table_of({"city": ["Bonn", "Ulm"], "sex": ["f", "m"]})
    alone = PopulationCombinations(population="p", dimension=1, of="places")
    found = score(alone, file, census)
    assert (found.value, dict(found.by_column), found.details["rarest"]) == (17, {"city": 17}, "`city`")
    assert score(PopulationCombinations(population="p", dimension=2, of="places"), file, census).value == 8
    unnamed = [each.frame.rename({"city": "x"}) for each in (file, census)]
    file, census = (table_of(frame) for frame in unnamed)
    assert "no place among the keys" in score(alone, file, census).reason
    named = PopulationCombinations(population="p", dimension=1, of="places", regions=("x",))
    assert score(named, file, census).value == 17


def test_without_a_population_there_is_no_number():
    table = table_of({"city": ["Bonn"]})
    for measure in (PopulationCombinations(), PopulationCombinations(population="elsewhere")):
        assert score(measure, table, table).status is Status.REFUSED


def test_columns_that_leave():
    names = ["age", "region", "state", "nationality", "birth_country", "income", "weight", "gone"]
    roles = {"income": Role.SENSITIVE, "weight": Role.WEIGHT}
    table = table_of({name: [1, 2] for name in names}, roles)
    release = Release.of(
        table.with_values("gone", pl.Series([None, None], dtype=pl.Int64)), source_rows=np.arange(2)
    )

    def columns(of, **more):
        found = ReleasedColumns(of=of).score(Evidence(table, release, **more), RUN)
        assert (found.value, found.status) == (len(found.by_column), Status.OK)
        return set(found.by_column)

    assert columns("keys") == set(names[:5])
    assert columns("keys", scenario=Scenario("a few", ("age", "region"))) == {"age", "region"}
    assert columns("places") == {"region", "state", "birth_country"}
    assert columns("origins") == {"nationality", "birth_country"}
    assert columns("sensitive") == {"income"}
    assert columns("weights") == {"weight"}


SCHEMA = Schema((Column("sex", Kind.NOMINAL, Role.KEY), Column("town", Kind.NOMINAL, Role.KEY)))


def test_profiles_of_an_office_ask_for_a_population_that_nobody_has_given_yet():
    public = [str(each) for each in Profile.load("netherlands-public").requirements(SCHEMA)]
    assert public[:2] == [
        "population-combinations(population=population, dimension=1) >= 200000",
        "population-combinations(population=population) >= 1000",
    ]
    assert len(public) == 7
    researchers = Profile.load("netherlands-researchers")
    assert len(researchers.requirements(SCHEMA)) == 2
    assert len(researchers.requirements(SCHEMA, in_series=True)) == 3
    without = researchers.left_out(SCHEMA.select(["sex"]))
    assert len(without) == 1
    assert "no place" in without[0]
