"""Totals, means and rounded counts beside a release: judged by brute force, and by an intruder who reads CSV."""

import csv
from collections import Counter
from itertools import product

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.recipes.parts import CountTable
from sfumato.recipes.plan import Plan
from sfumato.releasing import table_disclosure
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.count_tables import round_counts
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.table_disclosure import Publication
from sfumato.releasing.tabulate import Tabulation
from sfumato.releasing.verify import verify

KEY, NUMBER = {"kind": "nominal", "role": "key"}, {"kind": "continuous", "role": "other"}
COLUMNS = {"area": KEY, "sex": KEY, "ill": {"kind": "nominal", "role": "sensitive"}, "pay": NUMBER}


def planned(folder, frame, *tables, columns=None, requirements=("k >= 2",), steps=(), **output):
    frame.write_csv(folder / "people.csv")
    own = {**COLUMNS, **(columns or {})}
    spec = {
        "data": {"path": "people.csv"},
        "columns": {name: own[name] for name in frame.columns},
        "requirements": list(requirements),
        "steps": list(steps),
        "output": {"path": "out.csv", **output},
        "release": {"tables": [{"counts": "original", **each} for each in tables]},
    }
    return Plan.from_dict(spec, folder=folder)


def decided(plan, protect=None):
    outcome = carry_out(plan, Run(seed=LARGE + 1), protect=protect)
    return decide(outcome, subject="it"), outcome.parts[""]


def faults(plan, protect=None):
    decision, _ = decided(plan, protect)
    return " | ".join(each.message for each in decision.findings if each.rule == "counts-disclose")


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def people(*counts, pay=None):
    """So many people of each area, sex and illness."""
    rows = [row for *row, n in counts for _ in range(n)]
    frame = pl.DataFrame(rows, schema=["area", "sex", "ill"], orient="row")
    values = np.random.default_rng(1).uniform(1000, 2000, len(frame)).round(2) if pay is None else pay
    return frame.with_columns(pl.Series("pay", values))


EVEN = [(area, sex, ill, 10) for area in "ab" for sex in "fm" for ill in "xy"]


# Counts --------------------------------------------------------------------------------------------------


def worlds(seed, n=6):
    """A small table by two columns, a release that shows ranges of one of them, and two published tables."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"a": rng.integers(0, 3, n), "b": rng.integers(0, 2, n)})
    number = Schema((Column("a", Kind.CONTINUOUS, Role.KEY), Column("b", Kind.CONTINUOUS, Role.KEY)))
    original = Table(frame, number)
    ranges = frame["a"].replace_strict({0: "[0, 1]", 1: "[0, 1]", 2: "[1, 2]"}, return_dtype=pl.String)
    return original, ranges, [CountTable("t1", ("a",), "original"), CountTable("t2", ("b",), "original")]


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_told_of_few_persons_is_what_all_originals_that_fit_have_in_common(
    monkeypatch, seed, rounded
):
    """Every original is tried: each record in its released range, with the same published tables."""
    original, ranges, asked = worlds(seed)
    spans = {"[0, 1]": (0, 1), "[1, 2]": (1, 2)}
    cover = np.array([[a in spans[each] for a in range(3)] for each in ("[0, 1]", "[1, 2]")])
    code = (ranges == "[1, 2]").cast(pl.Int64).to_numpy()
    present = np.unique(original.frame["a"])

    def column_cover(_original, _released, _rows, name):
        if name == "a":
            return code, cover[:, present]
        return np.zeros(len(code), dtype=np.int64), np.ones((1, original.frame["b"].n_unique()), dtype=bool)

    monkeypatch.setattr(table_disclosure, "_column_cover", column_cover)
    tables = [Publication(Tabulation.of(original, each), 2) for each in asked]
    tables = [round_counts(each, 3) for each in tables] if rounded else tables
    found = table_disclosure._worlds_of(tables, original, Release.unchanged(original))
    atoms = list(product(present.tolist(), np.unique(original.frame["b"]).tolist()))
    order = {atom: place for place, atom in enumerate(sorted(set(original.frame.rows())))}
    for atom in atoms:
        order.setdefault(atom, len(order))
    fits = set()
    for world in product(*[[at for at in atoms if cover[each, at[0]]] for each in code]):
        if all(published(each, column, world) for each, column in zip(tables, (0, 1), strict=True)):
            fits.add(tuple(sorted(Counter(world).items())))
    counts = [dict(each) for each in fits]
    assert counts
    for atom, place in order.items():
        if place >= found.members.shape[1]:
            assert not any(each.get(atom) for each in counts)
            continue
        seen = [each.get(atom, 0) for each in counts]
        at = found.places == place
        assert [each[at].sum() for each in found.extremes(at)] == [min(seen), max(seen)]


def published(table, column, world):
    """Whether a world has the published counts, and sums, of a table by one column."""
    own, made = Counter(row[column] for row in world), table.made
    values = made.table.frame[made.asked.columns[0]][made.firsts].to_list()
    shown = made.counts if table.rounded is None else table.rounded
    slack = max(table.base - 1, 0)
    near = all(abs(own[value] - int(n)) <= slack for value, n in zip(values, shown, strict=True))
    return near and abs(len(world) - int(shown.sum())) <= slack


def test_two_tables_whose_difference_is_one_person_are_refused(tmp_path):
    """All ill people but one are of sex f: illness by sex is fine in each table, their difference is not."""
    frame = people(("a", "f", "x", 12), ("a", "m", "y", 12), ("a", "f", "y", 5), ("a", "m", "x", 1))
    by_ill, by_sex = {"name": "ill", "columns": ["ill"]}, {"name": "sex", "columns": ["sex"]}
    women = {"name": "both", "columns": ["ill", "sex"], "otherwise": "leave out"}
    assert "1 cell of fewer than 2" in faults(planned(tmp_path, frame, {**women, "otherwise": "refuse"}))
    decision, part = decided(planned(tmp_path, frame, by_ill, by_sex, women))
    assert decision.may_leave
    assert set(part.beside.tables) == {"ill", "sex"}
    assert "`both` is left out" in part.beside.notes[0]


def hidden_ill(rows):
    """Protect by suppressing the illness of some records."""

    def protect(table, _run):
        gone = np.isin(np.arange(len(table)), rows)
        series = (
            table.frame["ill"].to_frame().with_columns(pl.when(pl.Series(~gone)).then("ill").alias("ill"))
        )
        return Release.of(table.with_values("ill", series["ill"]), source_rows=np.arange(len(table)))

    return protect


def test_a_table_less_the_released_file_tells_a_suppressed_value_and_is_refused(tmp_path):
    frame, asked = people(*EVEN), {"name": "ill", "columns": ["ill"]}
    plan = planned(tmp_path, frame, asked)
    assert not faults(plan)
    assert "1 group of fewer than 2 persons by difference" in faults(plan, hidden_ill([3]))
    shown = Counter(frame["ill"].to_list()) - Counter(frame["ill"].gather_every(1)[4:].to_list())
    assert shown["x"] == 4  # what the intruder subtracts
    assert not faults(plan, hidden_ill([0, 1, 10, 11]))  # two of each illness: 2 are not fewer than 2


def test_small_cells_areround_counts_and_the_file_hides_which_are_empty(tmp_path):
    frame = people(*EVEN, ("c", "f", "x", 2), ("c", "m", "x", 1), ("d", "f", "y", 7))
    asked = {"name": "area", "columns": ["area", "sex"], "otherwise": "round", "least": 5}
    plan = planned(tmp_path, frame, asked, drop=["area"])
    decision, part = decided(plan)
    write_release(decision, Destination(plan))
    rows = read_csv(tmp_path / "out.area.csv")
    true = Counter(frame.select("area", "sex").rows())
    shown = {(row["area"], row["sex"]): int(row["records"]) for row in rows}
    assert all(n % 5 == 0 and n > 0 for n in shown.values())
    assert all(abs(shown.get(cell, 0) - n) < 5 for cell, n in true.items())
    for place in (0, 1):
        sums = Counter()
        for cell, n in true.items():
            sums[cell[place]] += shown.get(cell, 0) - n
        assert all(abs(n) < 5 for n in sums.values())
    assert "rounded to multiples of 5" in part.beside.sentences["area"]


def test_a_base_below_the_least_count_still_tells_few_persons(tmp_path):
    frame = people(*EVEN, ("c", "f", "x", 3), ("c", "m", "x", 3))
    asked = {"name": "area", "columns": ["area", "sex"], "otherwise": "round", "least": 10, "base": 3}
    assert "fewer than 10 persons by difference" in faults(planned(tmp_path, frame, asked, drop=["area"]))
    assert not faults(planned(tmp_path, frame, {**asked, "base": 10}, drop=["area"]))


# Totals and means ----------------------------------------------------------------------------------------


def test_totals_and_means_are_those_of_the_records(tmp_path):
    frame = people(*EVEN)
    asked = {"name": "pay", "columns": ["area"], "totals": ["pay"], "means": ["pay"]}
    plan = planned(tmp_path, frame, asked)
    decision, _ = decided(plan)
    decision.require_leave()
    write_release(decision, Destination(plan))
    expected = {key: rows["pay"].to_list() for (key,), rows in frame.group_by("area")}
    for row in read_csv(tmp_path / "out.pay.csv"):
        own = expected[row["area"]]
        assert float(row["total of pay"]) == pytest.approx(sum(own), rel=1e-12)
        assert float(row["mean of pay"]) == pytest.approx(sum(own) / len(own), rel=1e-12)
        assert int(row["records"]) == len(own)
    assert verify(tmp_path / "out.private.json", Run()).files["out.pay.csv"] == "identical"
    assert Plan.from_dict(plan.to_dict(), folder=tmp_path) == plan


PAY = {"name": "pay", "columns": ["area"], "means": ["pay"]}


@pytest.mark.parametrize(
    ("pay", "why"),
    [
        ([1e6] + [1000.0 + i for i in range(79)], "an amount of somebody in 1 cell"),  # (1, k) and p %
        (
            [1000.0] * 40 + [1000.0 + i for i in range(40)],
            "an amount of somebody in 1 cell",
        ),  # all at the least
        (
            [1.0] * 39 + [0.0] * 41,
            "an amount of somebody in 2 cells",
        ),  # a mean that is a count of 1, and of 0
        ([float(i % 2) for i in range(80)], ""),
        ([1000.0 + i for i in range(80)], ""),
    ],
)
def test_a_mean_that_one_dominates_or_that_tells_everyone_is_refused(tmp_path, pay, why):
    found = faults(planned(tmp_path, people(*EVEN, pay=pay), PAY))
    assert (why in found) if why else not found


def hidden_pay(gone):
    def protect(table, _run):
        shown = np.where(np.isin(np.arange(len(table)), gone), np.nan, table.numbers("pay"))
        series = pl.Series("pay", shown).fill_nan(None)
        return Release.of(table.with_values("pay", series), source_rows=np.arange(len(table)))

    return protect


def test_a_total_less_the_released_amounts_is_the_suppressed_one(tmp_path):
    plan = planned(tmp_path, people(*EVEN), {**PAY, "totals": ["pay"], "means": []})
    _, part = decided(plan, hidden_pay([7]))
    total = part.beside.tables["pay"].frame.row(0)[-1]
    left = part.release.first.frame.filter(pl.col("area") == "a")["pay"].sum()
    assert total - left == pytest.approx(part.original.frame["pay"][7])
    assert "an amount of somebody in 1 cell" in faults(plan, hidden_pay([7]))
    assert not faults(plan, hidden_pay(range(80)))


def test_a_mean_of_one_table_less_that_of_another_is_one_persons(tmp_path):
    """Area c is area a's neighbour in the second table, by one person."""
    frame = people(*EVEN).with_columns(pl.Series("part", ["a"] * 39 + ["b"] * 41))
    more = {"part": KEY}
    finer = {"name": "part", "columns": ["part"], "means": ["pay"]}
    plan = planned(tmp_path, frame, PAY, finer, columns=more, drop=["pay"])
    assert "by difference" in faults(plan)
    even = frame.with_columns(part=pl.when(pl.col("sex") == "f").then(pl.lit("a")).otherwise(pl.lit("b")))
    assert not faults(planned(tmp_path, even, PAY, finer, columns=more, drop=["pay"]))


# Persons, weights, missing values ------------------------------------------------------------------------


def test_persons_count_once_and_weights_add_up(tmp_path):
    frame = people(*EVEN).with_columns(
        pl.Series("who", [f"p{i // 2}" for i in range(80)]), pl.Series("w", [2.0 + i % 3 for i in range(80)])
    )
    more = {"who": {"kind": "nominal", "role": "person"}, "w": {"kind": "continuous", "role": "weight"}}
    asked = {"name": "area", "columns": ["area"], "means": ["pay"]}
    made = Tabulation.of(
        carried(tmp_path, frame, more), CountTable(**{**asked, "columns": ("area",), "means": ("pay",)})
    )
    table = made.to_table().frame
    assert table["persons"].to_list() == [20, 20]
    totals = frame.group_by("area").agg(pl.col("pay").sum()).sort("area")["pay"]
    assert table["mean of pay"].to_list() == pytest.approx((totals / 20).to_list())
    weighted = Tabulation.of(
        made.table, CountTable("w", ("sex",), "original", totals=("pay",), weighted=True)
    )
    shown = weighted.to_table().frame
    expected = frame.sort("sex").group_by("sex", maintain_order=True).agg((pl.col("pay") * pl.col("w")).sum())
    assert shown["total of pay"].to_list() == pytest.approx(expected["pay"].to_list())
    first = frame.unique(["who", "sex"], keep="first").group_by("sex").agg(pl.col("w").sum()).sort("sex")
    assert shown["weighted"].to_list() == first["w"].to_list()


def carried(folder, frame, more):
    return decided(planned(folder, frame, columns=more))[1].original


def test_people_with_several_records_are_judged_as_persons(tmp_path):
    """Of ten records in a cell two persons have all: too few, though the records are enough."""
    frame = people(*EVEN).with_columns(who=pl.Series([f"p{i // 5}" for i in range(80)]))
    more = {"who": {"kind": "nominal", "role": "person"}}
    asked = {"name": "ill", "columns": ["area", "ill"], "least": 5}
    plan = planned(tmp_path, frame, asked, columns=more, drop=["who"])
    assert "4 cells of fewer than 5 persons" in faults(plan)
    _, part = decided(planned(tmp_path, frame, {**asked, "least": 2}, columns=more, drop=["who"]))
    assert part.beside.judgements  # with who is who and what is counted where


def test_missing_values_are_a_category_and_left_out_of_means(tmp_path):
    frame = people(*EVEN).with_columns(
        pl.when(pl.int_range(80) % 8 == 0).then(None).otherwise("area").alias("area"),
        pl.when(pl.int_range(80) % 5 == 0).then(None).otherwise("pay").alias("pay"),
    )
    plan = planned(tmp_path, frame, PAY)
    decision, part = decided(plan)
    assert not [each for each in decision.findings if each.rule == "counts-disclose"]
    table = part.beside.tables["pay"].frame
    assert table["area"].to_list() == ["a", "b", None]
    assert table["records"].sum() == 80
    means = frame.drop_nulls("pay").group_by("area").agg(pl.col("pay").mean()).sort("area", nulls_last=True)
    assert table["mean of pay"].to_list() == pytest.approx(means["pay"].to_list())


# What becomes of a table that may not leave --------------------------------------------------------------


def test_what_stays_goes_to_tau_argus_in_private(tmp_path):
    frame = people(*EVEN, ("c", "f", "x", 1))
    asked = {"name": "area", "columns": ["area"], "totals": ["pay"], "otherwise": "tau-argus"}
    plan = planned(tmp_path, frame, asked, drop=["area"])
    decision, _ = decided(plan)
    names = {path.name for path in write_release(decision, Destination(plan))}
    assert {"tau-argus.area.tab", "tau-argus.area.rda"} <= names
    assert "out.area.csv" not in names
    lines = (tmp_path / "tau-argus.area.tab").read_text(encoding="utf-8").splitlines()
    cells = {row[0]: row[1:] for row in csv.reader(lines)}
    assert set(cells) == {"a", "b", "c", "Total"}
    assert float(cells["Total"][0]) == pytest.approx(frame["pay"].sum())
    assert [cells[each][1] for each in ("a", "c", "Total")] == ["40", "1", "81"]
    assert float(cells["c"][2]) == frame["pay"][-1]
    described = (tmp_path / "tau-argus.area.rda").read_text(encoding="utf-8")
    assert all(
        tag in described for tag in ("<TOTCODE>", "<RESPONSE>", "<FREQUENCY>", "<MAXSCORE>", "<SEPARATOR>")
    )


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"means": ["ill"]}, "which is nominal"),
        ({"means": ["pay"], "otherwise": "round"}, "cannot be rounded"),
        ({"weighted": True}, "no column has the role"),
        ({"base": 1}, "must be 2 or more"),
        ({"otherwise": "hide"}, "otherwise"),
    ],
)
def test_a_table_that_cannot_be_made_is_a_fault_of_the_plan(tmp_path, table, why):
    with pytest.raises(PlanError, match=why):
        planned(tmp_path, people(*EVEN), {"name": "x", "columns": ["area"], **table})
