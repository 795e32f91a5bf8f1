"""Synthesis: what is drawn, what is kept, rules, households and persons, and what is refused."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from sfumato.core.params import Columns, PerColumn
from sfumato.core.run import Progress, Run
from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import Cancelled, DataError, RefusedError
from sfumato.methods.gaussian_copula import GaussianCopula
from sfumato.methods.synthesis import Synthesis
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

KINDS = {
    "age": Kind.CONTINUOUS,
    "sex": Kind.NOMINAL,
    "born": Kind.DATE,
    "level": Kind.ORDINAL,
    "income": Kind.CONTINUOUS,
}


def people(n=400, *, rules=(), extra=(), seed=0, **columns):
    """Mixed columns: income follows age and is missing for children, sex is missing at random."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, n)
    income = np.where(age < 16, np.nan, age * 100 + rng.lognormal(5, 1, n).round(2))
    frame = pl.DataFrame(
        {
            "age": age,
            "sex": pl.Series(rng.choice(["f", "m"], n)).set(pl.Series(rng.random(n) < 0.1), None),
            "born": [date(2000, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 900, n)],
            "level": rng.integers(0, 4, n),
            "income": pl.Series(income, nan_to_null=True),
            **columns,
        }
    )
    kinds = tuple(Column(name, kind, Role.KEY) for name, kind in KINDS.items())
    return Table(frame, Schema((*kinds, *extra), rules=tuple(Rule(rule) for rule in rules)))


def drawn(table, method=None, columns=tuple(KINDS), seed=1, **step):
    return Recipe((Step(method or Synthesis(), tuple(columns), **step),)).apply(table, Run(seed=seed))


def test_a_whole_table_is_nobodys_and_follows_the_original():
    table = people()
    release = drawn(table)
    assert release.synthetic
    assert release.source_rows is None
    after = release.table.frame
    assert after.schema == table.frame.schema
    assert after.filter(pl.col("age") < 16)["income"].null_count() == after.filter(pl.col("age") < 16).height
    adults = after.filter(pl.col("age") >= 20)
    assert adults["income"].null_count() <= 2
    assert np.corrcoef(adults.drop_nulls()["age"], adults.drop_nulls()["income"])[0, 1] > 0.9
    assert 0.03 < after["sex"].null_count() / len(after) < 0.2


@pytest.mark.parametrize("by", ["cart", "regression", "sample"])
def test_every_way_draws_every_kind(by):
    table = people()
    after = drawn(table, Synthesis(by=by, smoothing=False)).table.frame
    for name in KINDS:
        assert after[name].is_in(table.frame[name].unique().implode(), nulls_equal=True).all()
    told = np.corrcoef(after.drop_nulls()["age"], after.drop_nulls()["income"])[0, 1]
    assert told < 0.3 if by == "sample" else told > 0.8


def test_rare_numbers_are_moved_and_common_ones_stay():
    """An income is written in two decimals and had by one person; 0 is had by many."""
    table = people().with_values("income", pl.Series([0.0] * 100 + [1000.25 + 7 * i for i in range(300)]))
    after = drawn(table).table.frame["income"]
    rare = after.filter(after != 0)
    assert rare.is_in(table.frame["income"].implode()).mean() < 0.05
    assert (after == 0).sum() > 50
    assert rare.round(2).equals(rare)
    assert rare.min() >= 500
    assert rare.max() <= table.frame["income"].max()


DAYS = [date(1950, 1, 1) + timedelta(days=11 * i) for i in range(400)]


@pytest.mark.parametrize(
    "born",
    [
        pl.Series(DAYS),
        pl.Series(DAYS).cast(pl.String),
        pl.Series(DAYS).cast(pl.Datetime("ns")) + timedelta(hours=7, minutes=3),
        pl.Series(DAYS).cast(pl.Datetime("ms", "Asia/Tokyo")),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", [Synthesis(), Synthesis(by="sample"), GaussianCopula()], ids=repr)
def test_a_date_that_one_person_has_is_not_drawn_and_a_common_one_is(born, method):
    """Days stay days, and minutes minutes; 200 share a date, 200 have one of their own."""
    born = pl.concat([born[200:], *[born[:1]] * 200])
    table = people(born=born)
    after = drawn(table, method).table.frame["born"]
    assert after.dtype == born.dtype
    shared = after == born[-1]
    assert 120 < shared.sum() < 280
    rare = after.filter(~shared)
    assert rare.is_in(born.implode()).mean() < 0.15  # one in eleven by chance, where days are meant
    assert born.min() <= rare.min() <= rare.max() <= born.max()
    if born.dtype.is_temporal():
        moments = pl.select(rare.cast(pl.Datetime("us"))).to_series().dt.epoch("us").to_numpy()
        unit = (
            86_400_000_000 if born.dtype == pl.Date else 3_600_000_000 if born.dtype.time_zone else 60_000_000
        )
        assert not (moments % unit).any()


def test_dates_that_rules_bind_keep_them_though_they_move():
    table = people(
        left=pl.Series(DAYS), rules=("left >= born",), extra=(Column("left", Kind.DATE, Role.KEY),)
    )
    table = table.with_values("born", table.frame["left"] - timedelta(days=3))
    made = drawn(table, columns=(*KINDS, "left")).table.frame
    assert (made["left"] >= made["born"]).all()


def test_a_kept_column_stays_with_its_record_and_can_be_told_of():
    table = people(800)
    told = drawn(table, Synthesis(given=Columns(["age"])), ["income", "sex"])
    alone = drawn(table, Synthesis(), ["income", "sex"])
    for release in (told, alone):
        assert not release.synthetic
        np.testing.assert_array_equal(release.source_rows, np.arange(800))
        assert release.table.frame["age"].equals(table.frame["age"])
    gap = [
        abs(
            each.table.frame.filter(pl.col("age") < 16)["income"].null_count()
            - table.frame["income"].null_count()
        )
        for each in (told, alone)
    ]
    assert gap[0] <= 3 < gap[1]


@pytest.mark.parametrize("records", [7, 400, 1234])
def test_any_number_of_records(records):
    assert len(drawn(people(), Synthesis(records=records)).table) == records
    partial = drawn(people(), Synthesis(records=records), ["income"])
    assert len(partial.source_rows) == len(partial.table) == records


def test_strata_are_drawn_apart():
    region = pl.Series(["north"] * 200 + ["south"] * 200)
    table = people(region=region, extra=(Column("region", Kind.NOMINAL, Role.KEY),))
    frame = table.frame.with_columns(income=pl.when(region == "north").then(1.0).otherwise(2.0))
    after = drawn(Table(frame, table.schema), within=("region",)).table.frame
    assert after.group_by("region").agg(pl.col("income").n_unique())["income"].to_list() == [1, 1]


def families():
    """Families of one to four: the rent is the family's, the birth year the person's, who has one to three records."""
    rng = np.random.default_rng(5)
    home = np.repeat(np.arange(150), rng.integers(1, 5, 150))
    person = np.repeat(np.arange(len(home)), rng.integers(1, 4, len(home)))
    home = home[person]
    rent, year = rng.integers(300, 900, 150)[home], rng.integers(1940, 2020, person.max() + 1)[person]
    frame = pl.DataFrame(
        {
            "home": home,
            "person": person,
            "rent": rent,
            "year": year,
            "cost": rent + rng.integers(0, 9, len(home)),
        }
    )
    schema = Schema(
        (
            Column("home", Kind.NOMINAL, Role.HOUSEHOLD),
            Column("person", Kind.NOMINAL, Role.PERSON),
            *(Column(name, Kind.CONTINUOUS, Role.KEY) for name in ("rent", "year", "cost")),
        )
    )
    return Table(frame, schema)


def test_households_and_persons_are_drawn_together():
    table = families()
    release = drawn(table, columns=["rent", "year", "cost"])
    after = release.table.frame
    assert release.synthetic
    assert after.group_by("home").agg(pl.col("rent").n_unique())["rent"].max() == 1
    assert after.group_by("person").agg(pl.col("year", "home").n_unique()).select("year", "home").max().row(
        0
    ) == (1, 1)
    assert after.group_by("person").agg(pl.col("cost").n_unique())["cost"].max() > 1
    sizes = [frame.group_by("home").len()["len"].mean() for frame in (table.frame, after)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.2)
    assert np.corrcoef(after["rent"], after["cost"])[0, 1] > 0.9
    assert abs(len(after) - len(table)) <= 12
    kept = drawn(table, columns=["rent", "cost"])  # the year stays: so do the numbers
    assert kept.table.frame["home"].equals(table.frame["home"])
    assert kept.table.frame.group_by("home").agg(pl.col("rent").n_unique())["rent"].max() == 1


def test_identifiers_do_not_stay_beside_nobody():
    table = people(
        ssn=pl.Series([f"n{i}" for i in range(400)]), extra=(Column("ssn", Kind.NOMINAL, Role.IDENTIFIER),)
    )
    assert drawn(table).table.frame["ssn"].null_count() == 400


def test_rules_hold_of_every_record():
    rules = ("age >= 16 OR income IS NULL", "level <> 3 OR sex = 'f'")
    table = people(2000)
    frame = table.frame.with_columns(sex=pl.when(pl.col("level") == 3).then(pl.lit("f")).otherwise("sex"))
    table = Table(frame, Schema(table.schema.columns, rules=tuple(Rule(rule) for rule in rules)))
    release = drawn(table, Synthesis(by="sample"))
    assert release.figures["redrawn_records"] > 100
    assert [rule.violations(release.table.frame) for rule in table.schema.rules] == [0, 0]


@pytest.mark.parametrize("by", ["sample", "regression"])
def test_rules_cost_no_group_its_people(by):
    """Children break the rules most often: of columns drawn alone, whole records drawn again left 2.5 % of 21 %."""
    rng = np.random.default_rng(5)
    age = np.where(rng.random(2000) < 0.2, rng.integers(0, 15, 2000), rng.integers(15, 60, 2000))
    status = np.where(rng.random(2000) < 0.5, "single", "married")
    work = np.where(age < 15, "none", np.where(rng.random(2000) < 0.7, "yes", "no"))
    frame = pl.DataFrame({"age": age, "status": status, "work": work}).with_columns(
        status=pl.when(pl.col("age") >= 15).then("status")
    )
    rules = (
        "age >= 15 OR (status IS NULL AND work = 'none')",
        "age < 15 OR (status IS NOT NULL AND work <> 'none')",
    )
    kinds = {"age": Kind.CONTINUOUS, "status": Kind.NOMINAL, "work": Kind.NOMINAL}
    columns = tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items())
    table = Table(frame, Schema(columns, rules=tuple(Rule(rule) for rule in rules)))
    made = drawn(table, Synthesis(by=by), columns=frame.columns).table.frame
    assert [rule.violations(made) for rule in table.schema.rules] == [0, 0]
    assert (made["age"] < 15).mean() == pytest.approx((age < 15).mean(), abs=0.04)


def test_records_drawn_as_a_whole_again_are_told_of():
    """The first column alone breaks the rule: nothing of such a record can stay."""
    frame = pl.DataFrame({"a": [0, 1] * 100, "b": [0.5 * (i % 40) for i in range(200)]})
    columns = tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame.columns)
    table = Table(frame, Schema(columns, rules=(Rule("a = 0 OR b > 100"),))).aimed_at(["a", "b"])
    release = Synthesis().apply(table, Run(seed=1))
    assert set(release.table.frame["a"]) == {0}
    assert "whole records were drawn again" in release.notes[0]


def test_totals_are_summed_and_what_cannot_be_kept_is_refused():
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"a": rng.random(200).round(2), "b": rng.random(200).round(2)})
    frame = frame.with_columns(total=pl.col("a") + pl.col("b"))
    columns = tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame.columns)
    table = Table(frame, Schema(columns, rules=(Rule("total = a + b"),)))
    assert table.schema.rules[0].violations(drawn(table, columns=frame.columns).table.frame) == 0
    more = frame.with_columns(all=pl.col("total") + 1)
    nested = (Rule("all = total + 1"), Rule("total = a + b"))  # a total that is part of another
    deep = Table(more, Schema((*columns, Column("all", Kind.CONTINUOUS, Role.KEY)), rules=nested))
    made = drawn(deep, columns=more.columns).table.frame
    assert [rule.violations(made) for rule in nested] == [0, 0]
    bound = Table(frame, Schema(columns, rules=(Rule("a * 7 = b * 3 + 1000"),)))
    with pytest.raises(DataError, match="violate the rules"):
        drawn(bound, columns=frame.columns)
    kept = drawn(bound, columns=["a"])  # it was broken before: an error of the data belongs to the data
    assert len(kept.table) == 200


def test_visit_and_predictors_by_column():
    table = people(800)
    method = Synthesis(visit="income+age", predictors=PerColumn("", (("age", "income"), ("sex", "income"))))
    after = drawn(table, method, ["age", "income", "sex"]).table.frame.drop_nulls()
    assert np.corrcoef(after["age"], after["income"])[0, 1] > 0.8
    late = Synthesis(visit="income+age", predictors=PerColumn("", (("income", "age"),)))
    with pytest.raises(DataError, match="known before"):
        drawn(table, late)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (Synthesis(visit="income+nobody"), "nobody"),
        (Synthesis(predictors=PerColumn("", (("age", "age"),))), "itself"),
        (Synthesis(predictors=PerColumn("", (("age", "other"),))), "other"),
        (Synthesis(leaf=500), "500 records"),
    ],
)
def test_what_is_refused(method, said):
    with pytest.raises(RefusedError, match=said):
        drawn(people(), method)


def test_sets_are_refused_as_such():
    table = people(sets=pl.Series([["x"]] * 400), extra=(Column("sets", Kind.SET, Role.KEY),))
    with pytest.raises(RefusedError, match=r"`sets` \(set\)"):
        Synthesis().apply(table.aimed_at(["age", "sets"]), Run(seed=1))
    with pytest.raises(RefusedError, match="sets in `sets`"):
        drawn(table, Synthesis(given=Columns(["sets"])), ["age"])


def test_more_in_a_leaf_keeps_less():
    table = people(2000)

    def told(leaf):
        after = drawn(table, Synthesis(leaf=leaf)).table.frame.drop_nulls()
        return np.corrcoef(after["age"], after["income"])[0, 1]

    assert told(5) > told(400) > told(1200)
    assert Synthesis().drive_range(table) == (3, 1000)
    assert Synthesis().drive_range(table.take(np.arange(20))) == (3, 10)


def test_who_stops_it_gets_nothing():
    events = []
    run = Run(seed=1, progress=Progress(report=events.append, stopped=lambda: len(events) > 3))
    with pytest.raises(Cancelled):
        Recipe((Step(Synthesis(), tuple(KINDS)),)).apply(people(), run)


def test_a_column_of_words_that_nobody_shares_takes_no_longer():
    """Twenty thousand words, told by another column: a loop over all of them in each node would take hours."""
    n = 20_000
    frame = pl.DataFrame({"group": np.arange(n) // 100, "word": [f"w{i}" for i in range(n)]})
    table = Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in frame.columns)))
    made = drawn(table, Synthesis(holders=1), frame.columns).table.frame
    own = made["word"].str.slice(1).cast(pl.Int64) // 100
    assert (own == made["group"]).mean() > 0.9
    safe = drawn(table, columns=frame.columns)
    assert safe.table.frame["word"].null_count() == n  # each is one person's
    assert ["`word`" in note for note in safe.provenance[0].notes] == [True]


def categories(values, *, kind=Kind.NOMINAL, order=(), **structure):
    roles = {"home": Role.HOUSEHOLD, "who": Role.PERSON}
    columns = [Column(name, Kind.NOMINAL, roles[name]) for name in structure]
    frame = pl.DataFrame({**structure, "sex": [i % 2 for i in range(len(values))], "job": values})
    job = Column("job", kind, Role.KEY, order=order)
    return Table(frame, Schema((*columns, Column("sex", Kind.NOMINAL, Role.KEY), job)))


@pytest.mark.parametrize("by", ["cart", "regression", "sample"])
@pytest.mark.parametrize(("kind", "order"), [(Kind.NOMINAL, ()), (Kind.ORDINAL, ("cook", "smith", "king"))])
def test_categories_of_few_are_not_drawn_unless_told(by, kind, order):
    table = categories(["cook"] * 60 + ["smith"] * 3 + ["king"] * 2 + [None] * 2, kind=kind, order=order)
    for fewest, shown in (
        (3, {"cook", "smith", None}),
        (1, {"cook", "smith", "king", None}),
        (4, {"cook", None}),
    ):
        made = drawn(table, Synthesis(by=by, records=3000, holders=fewest), ["sex", "job"]).table
        assert set(made.frame["job"].to_list()) == shown


def test_categories_of_few_are_counted_in_persons_and_households():
    jobs = ["cook"] * 60 + ["king"] * 5
    alone = categories(jobs, who=[*range(60), *[99] * 5])  # one king has five records
    assert "king" not in drawn(alone, Synthesis(records=3000), ["sex", "job"]).table.frame["job"]
    court = categories(jobs, home=[*range(60), *[99] * 5])  # five persons, whose household is one
    assert "king" not in drawn(court, Synthesis(records=3000), ["sex", "job"]).table.frame["job"]


def test_a_number_of_one_person_is_moved_however_many_records_they_have():
    table = categories(["cook"] * 66, who=[*range(60), *[99] * 6])
    pay = pl.Series([1000.25 + 7 * i for i in range(60)] + [9876543.21] * 6)
    frame = table.frame.with_columns(pay=pay)
    table = Table(frame, Schema((*table.schema.columns, Column("pay", Kind.CONTINUOUS, Role.KEY))))
    made = drawn(table, Synthesis(records=3000), ["sex", "job", "pay"]).table.frame["pay"]
    assert made.max() > 10_000
    assert 9876543.21 not in made
