"""Recoding at given levels and at the best: what is shown, what is suppressed, what is fitted."""

from collections import Counter
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.release import FittedMethod, Release
from sfumato.core.run import Run
from sfumato.data.hierarchy.build import from_prefix, from_tree
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, PlanError, RefusedError, UnreachableError
from sfumato.methods._recoding import search as recoding_search
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.methods.mondrian import Mondrian
from sfumato.methods.recoding import Recoding
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

TOWNS = Hierarchy.from_levels(
    pl.DataFrame(
        {
            "0": ["Kern", "Kings", "Lake", "Marin", "Napa"],
            "1": ["south", "south", "north", "north", "north"],
            "2": ["*"] * 5,
        }
    ),
    name="towns",
)
JOBS = Hierarchy.from_levels(
    pl.DataFrame({"0": ["cook", "baker", "nurse"], "1": ["food", "food", "care"]}), name="jobs"
)
RUN = Run(seed=1, resources={"towns": TOWNS, "jobs": JOBS})


def town(name="town", **more):
    return Column(name, Kind.NOMINAL, Role.KEY, hierarchy="towns", **more)


def table_of(values, column=None, **more):
    column = column or town()
    series = pl.Series(column.name, values)
    columns = (column, *(each for _, each in more.values()))
    frame = pl.DataFrame([series, *(pl.Series(name, given) for name, (given, _) in more.items())])
    return Table(frame, Schema(columns), targets=(column.name,))


# Fixed levels ---------------------------------------------------------------------------------------------


def test_names_become_labels_that_say_what_they_cover():
    release = Recoding(levels=1).apply(table_of(["Kern", "Lake", None, "Napa"]), RUN)
    assert release.table.frame["town"].to_list() == ["south", "north", None, "north"]
    nodes = release.table.nodes["town"]
    assert nodes.members_of(nodes.labels.to_list().index("north")).to_list() == ["Lake", "Marin", "Napa"]
    assert release.source_rows.tolist() == [0, 1, 2, 3]


def test_level_0_changes_nothing_and_a_level_above_the_root_is_the_root():
    table = table_of(["Kern", None])
    assert Recoding(levels=0).apply(table, RUN).table.frame.equals(table.frame)
    assert Recoding(levels=9).apply(table, RUN).table.frame["town"].to_list() == ["*", "*"]


def test_a_root_with_a_name_does_not_stand_for_missing_values():
    hierarchy = Hierarchy.from_levels(pl.DataFrame({"0": ["f", "m"], "1": ["person", "person"]}))
    table = table_of(["f", None, "m"], Column("sex", Kind.NOMINAL, Role.KEY, hierarchy="sexes"))
    release = Recoding(levels=1).apply(table, Run(seed=1, resources={"sexes": hierarchy}))
    assert release.table.frame["sex"].to_list() == ["person", None, "person"]


def test_numbers_become_the_ranges_that_labels_state():
    ages = Hierarchy.from_levels(
        pl.DataFrame({"0": ["21", "24", "38"], "1": ["[20;29]", "[20;29]", "[30;39]"], "2": ["*"] * 3})
    )
    table = table_of([21, 38, None, 24], Column("age", Kind.CONTINUOUS, Role.KEY, hierarchy="ages"))
    run = Run(seed=1, resources={"ages": ages})
    shown = Recoding(levels=1).apply(table, run).table.frame["age"].to_list()
    twenties = {"lo": 20, "hi": 29}
    assert shown == [twenties, {"lo": 30, "hi": 39}, None, twenties]
    assert Recoding(levels=2).apply(table, run).table.frame["age"].to_list() == [{"lo": None, "hi": None}] * 4


def test_labels_that_state_no_range_span_their_values():
    ages = Hierarchy.from_levels(
        pl.DataFrame({"0": ["21", "24", "38"], "1": ["young", "young", "old"], "2": ["*"] * 3})
    )
    table = table_of([21, 38], Column("age", Kind.CONTINUOUS, Role.KEY, hierarchy="ages"))
    shown = Recoding(levels=1).apply(table, Run(seed=1, resources={"ages": ages})).table.frame["age"]
    assert shown.to_list() == [{"lo": 21, "hi": 24}, {"lo": 38, "hi": 38}]


def test_numbers_whose_groups_lie_between_each_other_keep_their_labels():
    odd = Hierarchy.from_levels(
        pl.DataFrame({"0": ["1", "2", "3"], "1": ["odd", "even", "odd"], "2": ["*"] * 3})
    )
    table = table_of([1, 2, 3], Column("x", Kind.CONTINUOUS, Role.KEY, hierarchy="odd"))
    release = Recoding(levels=1).apply(table, Run(seed=1, resources={"odd": odd}))
    assert release.table.frame["x"].to_list() == ["odd", "even", "odd"]
    assert "x" in release.table.nodes


@pytest.mark.parametrize(
    ("level", "first", "last"),
    [(1, date(2020, 5, 1), date(2020, 5, 31)), (2, date(2020, 4, 1), date(2020, 6, 30)),
     (3, date(2020, 1, 1), date(2020, 12, 31))],
)  # fmt: skip
def test_dates_become_months_quarters_and_years(level, first, last):
    days = [date(2020, 5, 17), date(2021, 2, 3), date(2020, 5, 2)]
    table = table_of(days, Column("day", Kind.DATE, Role.KEY))
    shown = Recoding(levels=level).apply(table, Run(seed=1)).table.frame["day"]
    assert shown[0] == {"lo": first, "hi": last}


def test_missing_codes_are_missing_values():
    table = table_of([21, 24, -9, 38], Column("age", Kind.CONTINUOUS, Role.KEY, missing=(-9,)))
    shown = Recoding(levels=1).apply(table, Run(seed=1)).table
    assert shown.missing("age").tolist() == [False, False, True, False]


def test_what_the_hierarchy_does_not_hold():
    table = table_of(["Kern", "Yolo"])
    with pytest.raises(DataError, match="1 value of `town`"):
        Recoding(levels=1).apply(table, RUN)
    for level, kern in ((0, "Kern"), (1, "south"), (2, "*")):
        release = Recoding(levels=level, unseen="root").apply(table, RUN)
        assert release.table.frame["town"].to_list() == [kern, "*"]


def test_refuses_ranges_and_resources_that_are_no_hierarchies():
    table = table_of(["Kern", "Napa"])
    coarse = Recoding(levels=1).apply(table, RUN).table
    with pytest.raises(RefusedError, match="must be given exact values"):
        Recoding(levels=1).apply(coarse, RUN)
    with pytest.raises(PlanError, match="must be a hierarchy"):
        Recoding().apply(table, Run(seed=1, resources={"towns": table}))


def test_a_grown_hierarchy_is_noted():
    release = Recoding(levels=1).apply(table_of([3, 4, 9], Column("x", Kind.CONTINUOUS)), Run(seed=1))
    assert release.notes == ("no hierarchy is declared for `x`: one was built from the values",)


# The best levels ------------------------------------------------------------------------------------------


def people(n=40, seed=3, **roles):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "town": rng.choice(TOWNS.levels[:, 0].to_list(), n, p=[0.4, 0.3, 0.2, 0.05, 0.05]),
            "job": rng.choice(["cook", "baker", "nurse"], n, p=[0.6, 0.1, 0.3]),
            "age": rng.integers(18, 60, n),
            "ill": rng.choice(["yes", "no"], n),
        }
    )
    columns = (
        town(),
        Column("job", Kind.NOMINAL, Role.KEY, hierarchy="jobs"),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    )
    for name, role in roles.items():
        frame = frame.with_columns(pl.Series(name, rng.integers(1, 6, n).astype(float)))
        columns += (Column(name, Kind.CONTINUOUS, role),)
    return Table(frame, Schema(columns), targets=("age", "job", "town"))


MEASURES = {
    "granularity": "generalised-information-loss",
    "precision": "precision-loss",
    "non-uniform-entropy": "non-uniform-entropy",
    "discernibility": "discernibility",
    "average-class-size": "average-class-size",
    "classification": "classification-metric",
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", sorted(MEASURES))
def test_what_is_minimised_is_what_is_measured(objective, weighted):
    table = people(120, **({"w": Role.WEIGHT} if weighted else {}))
    release = GlobalRecoding(k=2, objective=objective, suppression=15).apply(table, RUN)
    keys = ["age", "job", "town"]
    names = [*keys, *(("w",) if weighted else ()), *(("ill",) if objective == "classification" else ())]
    rows = np.arange(len(release.table))
    if objective == "discernibility":
        # The measure takes wildcards for a class, where the literature takes who is suppressed for alike to all:
        # it does so of those who are left out.
        stars = [
            [cell in ("*", {"lo": None, "hi": None}) for cell in release.table.frame[key]] for key in keys
        ]
        rows = np.flatnonzero(~np.array(stars).all(axis=0))
    released = Release.of(release.table.take(rows).select(names), source_rows=release.source_rows[rows])
    score = registry.measure(MEASURES[objective])().score(Evidence(table.select(names), released), RUN)
    told = next(note for note in release.notes if note.startswith(objective))
    assert told.startswith(f"{objective} {score.value:.4g} with ")
    # Some are suppressed, so that they are counted too.
    assert int(told.split()[3]) > 0


def test_the_geometric_mean_of_the_losses_by_hand():
    # Two towns of each kind of four records, one key of two levels above the values; nobody need be alone.
    table = table_of(["Kern", "Kings", "Lake", "Lake"])
    release = GlobalRecoding(k=2).apply(table, RUN)
    assert release.fitted.levels["town"] == 1
    # south covers two of five leaves, north three: (1 + 1 + 2 + 2) / 4 / 4 of four records
    assert "loss 0.375 with 0 records suppressed" in release.notes


def test_rare_records_are_covered_if_they_are_enough_and_left_out_if_not():
    many = ["Kern"] * 20 + ["Lake"] * 2 + ["Marin"] * 2
    release = GlobalRecoding(k=3, suppression=20).apply(table_of(many), RUN)
    assert Counter(release.table.frame["town"].to_list()) == {"Kern": 20, "*": 4}
    few = ["Kern"] * 20 + ["Lake"]
    release = GlobalRecoding(k=3, suppression=20).apply(table_of(few), RUN)
    assert release.source_rows.tolist() == list(range(20))
    assert (
        "1 suppressed record dropped: as a class of their own they do not meet the requirements"
        in release.notes
    )


def test_nodes_of_equal_loss_fewest_suppressed_first_then_lowest_then_by_name():
    both = Hierarchy.from_levels(pl.DataFrame({"0": ["0", "1"]}))
    frame = pl.DataFrame({"b": ["0", "0", "1", "1"], "a": ["0", "1", "0", "1"]})
    columns = tuple(Column(name, Kind.NOMINAL, Role.KEY, hierarchy="both") for name in "ba")
    table = Table(frame, Schema(columns))
    release = GlobalRecoding(k=2).apply(table, Run(seed=1, resources={"both": both}))
    assert (release.fitted.levels["a"], release.fitted.levels["b"]) == (0, 1)  # `a` comes first and stays


def test_fewer_records_than_k_is_an_error_and_no_release():
    for suppression in (0, 50, 100):
        with pytest.raises(UnreachableError, match="no combination of levels"):
            GlobalRecoding(k=4, suppression=suppression).apply(table_of(["Kern", "Kern", "Lake"]), RUN)
    assert len(GlobalRecoding(k=4).apply(table_of([], town()).take(np.arange(0)), RUN).table) == 0


def test_what_is_learnt_can_be_applied_to_other_tables():
    table = people(60)
    release = sfumato.protect(
        table, Step(GlobalRecoding(k=5), ("age", "job", "town")), resources=RUN.resources
    )
    other = people(30, seed=8)
    again = sfumato.protect(
        other, Step(release.fitted, ("age", "job", "town")), resources=release.resources
    ).table
    for name in ("job", "town"):
        hierarchy, level = RUN.resource(name + "s"), release.fitted.levels[name]
        wanted = hierarchy.climb(other.frame[name], level).cast(pl.String).to_list()
        assert again.frame[name].cast(pl.String).to_list() == wanted
    assert "hierarchy of age" in release.resources  # the one that was grown goes with it
    said = Recoding.from_dict(release.fitted.to_dict())
    assert said == release.fitted


def test_what_the_last_step_learnt_is_kept():
    first = Release.of(table_of(["Kern"]), source_rows=np.arange(1))
    fitted = Recoding(levels=1)
    taught = replace(first, fit=FittedMethod(fitted, {"towns": TOWNS}))
    assert first.then(taught).fitted == fitted
    assert taught.then(first).fitted == fitted
    assert taught.then(first).resources == {"towns": TOWNS}


def test_a_search_that_may_not_finish_says_how_good_its_answer_is():
    release = GlobalRecoding(k=5, budget=3).apply(people(200), RUN)
    note = next(note for note in release.notes if note.startswith("not proved"))
    best = float(next(note for note in release.notes if note.startswith("loss")).split()[1])
    low = float(note.split("at least ")[1].split(",")[0])
    exact = GlobalRecoding(k=5).apply(people(200), RUN)
    value = float(next(note for note in exact.notes if note.startswith("loss")).split()[1])
    assert not any(note.startswith("not proved") for note in exact.notes)
    assert low <= value <= best


@pytest.mark.parametrize("objective", ["loss", "discernibility"])
def test_a_lattice_too_large_to_mark_its_nodes_gives_the_same(monkeypatch, objective):
    table, method = people(150), GlobalRecoding(k=4, suppression=5, objective=objective)
    marked = method.apply(table, RUN)
    monkeypatch.setattr(recoding_search, "_MARKED", 0)
    listed = method.apply(table, RUN)
    assert listed.fitted == marked.fitted
    assert listed.notes == marked.notes


@pytest.mark.parametrize("suppression", [0, 5])
def test_what_one_or_two_keys_rule_out_is_no_better(monkeypatch, suppression):
    table, method = people(150), GlobalRecoding(k=4, suppression=suppression)
    usual = method.apply(table, RUN)
    monkeypatch.setattr(recoding_search, "_MANY_COMBINATIONS", 0)
    monkeypatch.setattr(recoding_search, "_KEPT_CLASSES", 10)
    assert method.apply(table, RUN).fitted == usual.fitted


def test_refuses_a_lattice_whose_nodes_cannot_be_numbered(monkeypatch):
    monkeypatch.setattr(recoding_search, "_COUNTABLE", 10)
    with pytest.raises(RefusedError, match="at most 2\\^62 nodes, got: 4"):
        GlobalRecoding(k=2).apply(people(), RUN)


def test_suppressed_records_are_recoded_among_themselves():
    rare = ["Lake"] * 2 + ["Marin"] + ["Kings"]
    table = table_of(["Kern"] * 20 + rare)
    plain = GlobalRecoding(k=3, suppression=25).apply(table, RUN)
    assert Counter(plain.table.frame["town"].to_list())["*"] == 4
    release = GlobalRecoding(k=3, suppression=25, local=True).apply(table, RUN)
    # Kings alone is left; it can neither be shown nor be a class of its own.
    assert Counter(release.table.frame["town"].to_list()) == {"Kern": 20, "north": 3}
    assert "3 suppressed records recoded among themselves" in release.notes


def test_records_of_one_person_count_once():
    who = (["p", "p", "q", "r"], Column("who", Kind.NOMINAL, Role.PERSON))
    table = table_of(["Kern", "Kern", "Kings", "Lake"], who=who)
    release = GlobalRecoding(k=2, suppression=30).apply(table, RUN)
    assert release.table.frame["town"].to_list() == ["south", "south", "south"]


@pytest.mark.parametrize(("policy", "shown"), [("category", 1), ("any", 0), ("worst", 2)])
def test_policies_for_missing_keys(policy, shown):
    # As a value of its own two missing ones are alike; as any they are like everyone; as the worst like nobody.
    table = table_of(
        ["Kern", "Kings", "Kern", "Kings", None, None] if policy != "any" else ["Kern", None, None]
    )
    release = GlobalRecoding(k=2 if policy == "any" else 3, missing=policy, suppression=0).apply(table, RUN)
    if policy == "category":
        assert release.fitted.levels["town"] == 2  # only two miss it: fewer than three
    else:
        assert release.fitted.levels["town"] == shown


def test_models_that_classes_do_not_tell():
    rng = np.random.default_rng(1)
    everyone = table_of(rng.choice(TOWNS.levels[:, 0].to_list(), 100, p=[0.4, 0.3, 0.2, 0.02, 0.08]).tolist())
    run = Run(seed=1, resources={**RUN.resources, "everyone": everyone})
    counts = Counter(everyone.frame["town"].to_list())
    table = table_of(["Kern", "Kings", "Lake", "Marin"])
    level = int(counts["Marin"] < 10)
    release = GlobalRecoding(k=1, also="k-map(population=everyone) >= 10").apply(table, run)
    assert release.fitted.levels["town"] == level


def test_the_objective_for_a_target_needs_one():
    with pytest.raises(RefusedError, match="`target` of global-recoding must name columns"):
        GlobalRecoding(objective="classification").apply(table_of(["Kern"] * 5), RUN)
    table = people(60)
    with pytest.raises(RefusedError, match="keys `job`"):
        GlobalRecoding(objective="classification", target=("job",)).apply(table, RUN)


def test_strata_are_recoded_apart():
    table = people(80)
    recipe = Recipe((Step(GlobalRecoding(k=3), ("age", "job", "town"), within=("ill",)),))
    release = recipe.apply(table, RUN)
    rows = release.table.frame.select("ill", "age", "job", "town").rows()
    assert min(Counter(map(str, rows)).values()) >= 3


def test_households_are_recoded_together_and_left_out_whole():
    homes = np.repeat(np.arange(23), 2)
    towns = np.array(["Kern"] * 10 + ["Lake"] * 10 + ["Napa"] * 2 + ["Kings"])[homes]
    frame = pl.DataFrame({"town": towns, "home": homes})
    schema = Schema((town(), Column("home", Kind.NOMINAL, Role.HOUSEHOLD)))
    step = Step(GlobalRecoding(k=4, suppression=20), ("town",), together="home")
    release = Recipe((step,)).apply(Table(frame, schema), RUN)
    # Three households are rare: fewer than four, so they are left out, two people each.
    assert Counter(release.table.frame["town"].to_list()) == {"Kern": 20, "Lake": 20}
    assert release.fitted.levels["town"] == 0


@pytest.mark.parametrize("method", [Recoding(levels=1), GlobalRecoding(k=2)], ids=lambda method: method.name)
@pytest.mark.parametrize(
    "values", [[21, 38, 24, 60], [date(2026, 1, day) for day in (1, 5, 9, 13)], list("abcd")]
)
def test_values_that_were_generalised_before_are_refused(method, values):
    kind = {int: Kind.CONTINUOUS, date: Kind.DATE, str: Kind.NOMINAL}[type(values[0])]
    coarse = Mondrian(k=2).apply(table_of(values, Column("a", kind, Role.KEY)), RUN).table
    with pytest.raises(RefusedError, match="must be given exact values, got: generalised ones in `a`"):
        method.apply(coarse, RUN)


def test_a_group_of_one_value_is_told():
    """In the east there is one postcode only: the group looks coarse and is not."""
    zips = ["A3721", "A3722", "B0115", "C0095", "C0097"]
    table = Table(
        pl.DataFrame({"zip": zips}), Schema((Column("zip", Kind.NOMINAL, Role.KEY, hierarchy="zips"),))
    )
    run = Run(seed=1, resources={"zips": from_tree({"west": zips[:2], "east": zips[2:3], "south": zips[3:]})})
    release = Recipe.of(Recoding(levels=1)).apply(table, run)
    (note,) = [note for note in release.provenance[0].notes if "one value only" in note]
    assert note.startswith("1 record with a group in `zip`")
    codes = Run(seed=1, resources={"zips": from_prefix(pl.Series("zip", zips), lengths=(3,))})
    release = Recipe.of(Recoding(levels=1)).apply(table, codes)  # B01** is more than B0115
    assert not [note for note in release.provenance[0].notes if "one value only" in note]


@pytest.mark.parametrize("population", [None, "everybody"])
@pytest.mark.parametrize("prices", [{}, {"loss": 900.0, "price": 60.0}, {"gain": 0.0}])
def test_the_payout_of_the_lattice_is_that_of_the_measure(prices, population):
    """Of the node that was found: one minus the measure, which the search has minimised."""
    table, keys = people(60), ["age", "job", "town"]
    everybody = people(400).select(keys).take(np.arange(15, 400))  # some of the table are not of it
    run = replace(RUN, resources={**RUN.resources, "everybody": everybody})
    release = GlobalRecoding(k=2, objective="payout", population=population, **prices).apply(table, run)
    released = Release.of(release.table.select(keys), source_rows=release.source_rows)
    knows = {} if population is None else {"knows": "population", "population": population}
    evidence = Evidence(table.select(keys), released, resources={"everybody": everybody})
    found = registry.measure("publisher-payout")(**prices, **knows).score(evidence, run)
    assert release.figures["payout_lost"] == pytest.approx(1 - found.value, abs=1e-9)
    assert f"payout {found.value:.4g} with" in " ".join(release.notes)
    assert not any("not proved" in note for note in release.notes)


def test_a_population_that_lacks_a_key_is_refused():
    run = replace(RUN, resources={**RUN.resources, "everybody": people(9).select(["age", "job"])})
    with pytest.raises(RefusedError, match="needs all keys in `everybody`, which lacks `town`"):
        GlobalRecoding(k=2, objective="payout", population="everybody").apply(people(9), run)


def test_the_payout_of_several_records_of_a_person_is_refused():
    frame = pl.DataFrame({"who": [1, 1, 2], "town": ["a", "b", "b"]})
    schema = Schema((Column("who", Kind.NOMINAL, Role.PERSON), Column("town", Kind.NOMINAL, Role.KEY)))
    with pytest.raises(RefusedError, match="several records of a person"):
        GlobalRecoding(objective="payout", k=1).apply(Table(frame, schema), RUN)
