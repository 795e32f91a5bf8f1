import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli import _exit_code
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError, RefusedError
from sfumato.front import protect
from sfumato.methods.sampling import Sampling
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step


def _table(n, *, weight=None, household=None, person=None):
    rng = np.random.default_rng(n)
    columns = [Column("job", Kind.NOMINAL, Role.KEY), Column("area", Kind.NOMINAL, Role.KEY)]
    frame = pl.DataFrame({"job": [f"v{i % 5}" for i in range(n)], "area": rng.integers(0, 3, n)})
    for name, values, role in (
        ("w", weight, "weight"),
        ("h", household, "household"),
        ("p", person, "person"),
    ):
        if values is not None:
            columns.append(Column(name, Kind.CONTINUOUS if role == "weight" else Kind.NOMINAL, Role(role)))
            frame = frame.with_columns(pl.Series(name, values))
    return Table(frame, Schema(tuple(columns)))


DESIGNS = st.sampled_from(["simple", "systematic"])


@given(st.integers(1, 60), st.floats(0.5, 100), DESIGNS, st.booleans(), st.integers(0, 99))
def test_weights_sum_to_the_population_in_every_stratum(n, share, design, stratified, seed):
    table = _table(n)
    step = Step(Sampling(share=share, design=design), ("job",), within=("area",) if stratified else ())
    release = Recipe((step,)).apply(table, Run(seed=seed))
    sample = release.table
    assert sample.schema["weight"].role is Role.WEIGHT
    assert sample.frame["weight"].sum() == pytest.approx(n)
    if stratified:
        sums = sample.frame.group_by("area").agg(pl.col("weight").sum()).sort("area")["weight"].to_list()
        assert sums == pytest.approx(table.frame["area"].value_counts().sort("area")["count"].to_list())
    else:
        assert len(sample) == min(n, max(1, int(share * n / 100 + 0.5)))
    assert sample.frame.drop("weight").equals(table.take(release.source_rows).frame)
    assert len(np.unique(release.source_rows)) == len(sample)


@given(st.lists(st.sampled_from([1, 2, 3, 4, None]), min_size=1, max_size=25), DESIGNS, st.floats(1, 100))
def test_a_household_is_drawn_as_a_whole(numbers, design, share):
    table = _table(len(numbers), household=pl.Series(numbers, dtype=pl.Int64))
    release = protect(table, Sampling(by="household", share=share, design=design), columns=["job"])
    drawn = set(release.source_rows.tolist())
    for number in {1, 2, 3, 4} & set(numbers):
        members = {row for row, each in enumerate(numbers) if each == number}
        assert members <= drawn or not members & drawn
    n_units = len({each for each in numbers if each is not None}) + numbers.count(None)
    n_drawn = min(n_units, max(1, int(share * n_units / 100 + 0.5)))
    assert release.table.frame["weight"].to_numpy() == pytest.approx(n_units / n_drawn)


def test_weights_that_are_there_are_divided_by_the_chance():
    table = _table(8, weight=[1, 2, 3, 4, 5, 6, 7, 8])
    release = protect(table, Sampling(share=25), columns=["job"], seed=1)
    assert release.table.frame["w"].to_list() == [(row + 1) * 4.0 for row in release.source_rows]
    assert "weight" not in release.table.names


@pytest.mark.parametrize("design", ["simple", "systematic"])
def test_totals_are_unbiased_and_everyone_has_the_same_chance(design):
    table = _table(7).aimed_at(["job"])
    seen = np.zeros(7)
    for seed in range(800):
        seen[Sampling(share=40, design=design).protect(table, Run(seed=seed)).source_rows] += 1
    share = 3 / 7
    assert np.abs(seen / 800 - share).max() < 4 * np.sqrt(share * (1 - share) / 800)


def test_a_systematic_sample_spreads_over_the_file():
    release = protect(_table(100), Sampling(share=10, design="systematic"), columns=["job"], seed=5)
    assert set(np.diff(release.source_rows).tolist()) == {10}


def test_the_name_of_a_new_column_is_free():
    table = Table(pl.DataFrame({"weight": ["a", "b"]}), Schema((Column("weight", Kind.NOMINAL, Role.KEY),)))
    assert protect(table, Sampling(share=50), seed=1).table.names == ("weight", "sampling_weight")


def test_households_that_nobody_tells_are_refused():
    with pytest.raises(RefusedError, match="column with the role household"):
        protect(_table(5), Sampling(by="household"), columns=["job"])


def test_one_value_for_a_household_is_refused():
    with pytest.raises(PlanError, match="cannot be used with `together`, got: `h`"):
        Recipe((Step(Sampling(), ("job",), together="h"),)).apply(
            _table(4, household=[1, 1, 2, 2]), Run(seed=1)
        )


def test_persons_are_drawn_whole_by_default():
    table = _table(40, person=[i // 4 for i in range(40)])
    release = protect(table, Sampling(share=50), columns=["job"], seed=2)
    assert release.table.frame["p"].value_counts()["count"].to_list() == [4] * 5


def test_on_the_command_line(tmp_path, capfd):
    out = tmp_path / "sample.csv"
    words = [
        "protect",
        "sampling",
        "builtin:patients?n=200",
        "--share",
        "20",
        "--within",
        "sex",
        "--unjudged",
        "--drop",
        "oshpd_id",
    ]
    assert _exit_code([*words, "-o", str(out)]) == 0, capfd.readouterr()
    assert pl.read_csv(out)["weight"].sum() == pytest.approx(200)
