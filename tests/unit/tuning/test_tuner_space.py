"""The search space: which columns belong together, which methods take them, and what of these is searched."""

import numpy as np
import polars as pl
import pytest

from sfumato.core import registry
from sfumato.core.measure import Score, Status
from sfumato.core.method import Gives, Method, Randomness
from sfumato.core.params import PerColumn, Requirements, Resource, param
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.study.evaluate import EvaluationCase
from sfumato.tuning import derive_space
from sfumato.tuning.candidate import Candidate, RecipeJudge, RecipeResult, RunScores
from sfumato.tuning.derive_space import Scope, derive, unprotected_keys_note
from sfumato.tuning.pruning import Pruning
from sfumato.tuning.search_space import ParameterAxis


def table(records=30):
    frame = pl.DataFrame(
        {
            "income": np.arange(float(records)),
            "age": np.arange(records) % 7,
            "grade": [["low", "high"][i % 2] for i in range(records)],
            "town": [["a", "b", "c"][i % 3] for i in range(records)],
            "illness": [["x", "y"][i % 2] for i in range(records)],
            "charge": np.arange(float(records))[::-1],
            "name": [f"n{i}" for i in range(records)],
        }
    )
    columns = (
        Column("income", Kind.CONTINUOUS, Role.KEY),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("grade", Kind.ORDINAL, Role.KEY, order=("low", "high")),
        Column("town", Kind.NOMINAL, Role.KEY),
        Column("illness", Kind.NOMINAL, Role.SENSITIVE),
        Column("charge", Kind.CONTINUOUS, Role.SENSITIVE),
        Column("name", Kind.NOMINAL, Role.IDENTIFIER),
    )
    return Table(frame, Schema(columns))


class Toy(Method):
    """Takes numbers only."""

    name = "toy"
    title = "Toy"
    kinds = frozenset({Kind.CONTINUOUS})

    amount: float = param(1.0, "How much.", gt=0, le=9, tune=(0.5, 8), log=True, drive=True)
    size: int = param(3, "How many.", ge=1, le=50, tune=(2, 20))
    weight: PerColumn[float] = param(1.0, "By column.", gt=0, le=5, tune=(1, 5))
    style: str = param("plain", "Not searched: any text.")
    flag: bool = param(False, "Not searched.")

    def protect(self, table, run):
        raise NotImplementedError


class AnyKind(Toy):
    name = "any-kind"
    kinds = frozenset(Kind)

    def drive_range(self, table):
        return (1.0, float(len(table.chosen)))


class Categories(Toy):
    name = "categories"
    kinds = frozenset({Kind.NOMINAL, Kind.ORDINAL})


class Needy(Toy):
    name = "needy"
    source: Resource = param(Resource("population"), "A table.", holds="table")


class Unrepeatable(Toy):
    name = "unrepeatable"
    randomness = Randomness(replay=False)


class Refusing(Toy):
    name = "refusing"

    def refuses(self, table):
        return "refusing must be given nothing, got: something"


class Pairwise(Toy):
    name = "pairwise"
    cost = "n² d"


class Enforcing(Toy):
    name = "enforcing"
    also: Requirements = param(Requirements(), "What must hold besides.")


def space(*methods, requirements=(), resources=(), sensitive=True, **scope):
    return derive(
        table(), Scope(methods=methods, **scope), requirements=requirements, resources=resources, sensitive=sensitive
    )  # fmt: skip


def test_groups_are_what_methods_can_take_and_the_widest_comes_last():
    found = space(Toy, AnyKind, Categories)
    assert {group.name: group.columns for group in found.groups} == {
        "nominal sensitive columns": ("illness",),
        "continuous sensitive columns": ("charge",),
        "sensitive columns": ("illness", "charge"),
        "nominal, ordinal keys": ("grade", "town"),
        "continuous keys": ("income", "age"),
        "keys": ("income", "age", "grade", "town"),
    }
    sizes = [len(group.columns) for group in found.groups]
    assert sizes[-1] == max(sizes)
    by_name = {group.name: [option.name for option in group.options] for group in found.groups}
    assert by_name["continuous keys"] == ["any-kind", "toy"]
    assert by_name["nominal, ordinal keys"] == ["any-kind", "categories"]
    assert by_name["keys"] == ["any-kind"]


def test_sensitive_columns_are_left_alone_when_no_requirement_looks_at_them():
    assert [group.name for group in space(Toy, sensitive=False).groups] == ["continuous keys"]


def test_named_columns_and_groups_are_what_is_protected():
    assert [group.columns for group in space(Toy, columns=("age", "charge")).groups] == [("age", "charge")]
    named = space(Toy, AnyKind, groups={"money": ["charge", "income"], "all": ["@key"]})
    assert {group.name: group.columns for group in named.groups} == {
        "money": ("charge", "income"),
        "all": ("income", "age", "grade", "town"),
    }
    assert unprotected_keys_note(named, table().schema) == ""
    assert (
        unprotected_keys_note(space(Toy), table().schema)
        == "no step of this search protects the keys `grade`, `town`"
    )
    with pytest.raises(ParameterError, match="only one of `columns` and `groups`"):
        space(Toy, columns=("age",), groups={"a": ["age"]})
    with pytest.raises(PlanError, match="the group `a` must name at least one column"):
        space(Toy, groups={"a": ["@date"]})


def test_axes_are_the_declared_ranges_and_words():
    (group,) = space(Toy, columns=("income", "age")).groups
    axes = {axis.name: axis for axis in group.options[0].axes}
    assert axes["amount"] == ParameterAxis("amount", 0.5, 8.0, log=True, drive=True)
    assert axes["size"] == ParameterAxis("size", 2, 20, whole=True)
    assert axes["weight"] == ParameterAxis("weight", 1.0, 5.0)
    assert set(axes) == {"amount", "size", "weight"}
    wide = next(g for g in space(AnyKind).groups if g.name == "keys")
    assert (wide.options[0].axes[0].low, wide.options[0].axes[0].high) == (1.0, 4.0)


def test_words_that_a_method_refuses_here_are_no_choice():
    (group,) = space("mdav", columns=("town", "income")).groups
    axes = {axis.name: axis for axis in group.options[0].axes}
    mdav = registry.method("mdav")
    aimed = table().aimed_at(("town", "income"))
    fitting = [c for c in mdav.parameter("centre").choices if mdav(centre=c).refuses(aimed) is None]
    assert list(axes["centre"].meanings) == fitting
    assert axes["nominal"].meanings == {"frequency": "frequency", "equal": "equal"}


def test_requirements_that_classes_tell_can_be_enforced():
    asked = [Requirement.parse("l >= 2"), Requirement.parse("dbrl <= 0.1")]
    option = space(Enforcing, requirements=asked, columns=("age",)).groups[0].options[0]
    also = next(axis for axis in option.axes if axis.name == "also")
    assert also.meanings["as it is"] == Requirements()
    assert [Requirement.parse(text) for text in also.meanings["as required"]] == asked[:1]
    without = space(Enforcing, requirements=asked[1:], columns=("age",)).groups[0].options[0]
    assert "also" not in {axis.name for axis in without.axes}


def test_what_cannot_be_searched_is_left_out_with_the_reason(monkeypatch):
    found = space(Toy, Needy, Unrepeatable, Refusing, Categories, Pairwise, columns=("income",))
    assert found.left_out == {
        "categories": "it protects none of the groups of columns",
        "needy": "it needs a table as the resource `population`",
        "refusing": "refusing must be given nothing, got: something",
        "unrepeatable": "its noise cannot be repeated, and tuning a parameter on the data would void its guarantee",
    }
    assert [option.name for option in found.groups[0].options] == ["pairwise", "toy"]
    assert not space(Needy, resources=["population"], columns=("income",)).left_out
    monkeypatch.setattr(derive_space, "MOST_RECORDS_FOR_PAIRS", 29)
    every = derive(table(), Scope())
    slow = [name for name, cls in registry.methods().items() if cls.cost.startswith("n²")]
    assert slow
    assert all("all pairs of 30 records" in every.left_out[name] for name in slow)
    assert not derive(table(), Scope(methods=("mdav",))).left_out
    with pytest.raises(ParameterError, match="no method can protect these columns") as caught:
        space(Refusing)
    assert "refusing: refusing must be given nothing" in caught.value.hint


def test_every_registered_method_is_in_or_out_with_a_reason():
    found = derive(table(), Scope())
    inside = {option.name for group in found.groups for option in group.options}
    assert inside | set(found.left_out) == set(registry.methods())
    assert not inside & set(found.left_out)
    assert all(found.left_out.values())
    assert "mdav" not in derive(table(), Scope(without=("mdav",))).to_dict()["groups"]["keys"]["methods"]


def test_singles_stand_on_the_widest_groups_each_method_takes():
    found = [(step.method.name, step.columns) for step in space(Toy, AnyKind, sensitive=False).singles()]
    assert found == [("any-kind", ("income", "age", "grade", "town")), ("toy", ("income", "age"))]
    apart = space(Toy, groups={"x": ["income"], "y": ["age"]}).singles()
    assert [step.columns for step in apart] == [("age",), ("income",)]


def test_a_step_is_a_point_and_back():
    found = space(Toy, AnyKind)
    step = Step(Toy(amount=2.5, size=7, weight=3.0), ("income", "age"))
    point = found.point_of(step)
    assert found.recipe(point) == Recipe((step,))
    assert found.structure(point) == (("continuous keys", "toy"),)
    outside = [
        Step(Toy(amount=0.1), ("income", "age")),
        Step(Toy(), ("income",)),
        Step(Toy(flag=True), ("income", "age")),
        Step(Toy(weight={"age": 2.0}), ("income", "age")),
    ]
    assert all(found.point_of(each) is None for each in outside)


def test_a_step_is_divided_into_narrower_ones():
    found = space(AnyKind, Toy, Categories, sensitive=False)
    start = found.point_of(Step(AnyKind(amount=2.0), ("income", "age", "grade", "town")))
    recipe = found.recipe(found.split_step(start, np.random.default_rng(0)))
    assert [(step.method, step.columns) for step in recipe.steps] == [
        (AnyKind(amount=2.0), ("grade", "town")),
        (AnyKind(amount=2.0), ("income", "age")),
    ]
    single = found.point_of(Step(Toy(), ("income", "age")))
    assert found.split_step(single, np.random.default_rng(0)) == single


def test_points_along_a_drive():
    found = space(Toy, columns=("income",))
    start = found.point_of(Step(Toy(amount=2.0), ("income",)))
    amounts = [found.recipe(p).steps[0].method.amount for p in found.along(start, 0, (-0.5, 0.25, 9.0))]
    assert amounts == pytest.approx([0.5, 4.0, 8.0])  # a half and a quarter of the axis 0.5 … 8, in powers
    assert len(list(found.nudges(start))) == 2


def test_a_whole_number_moves_by_at_least_one():
    axis = ParameterAxis("k", 2, 500, log=True, whole=True)
    assert axis.shift_choice(3, 0.001) == 4
    assert axis.shift_choice(3, -0.001) == 2
    assert axis.shift_choice(2, -0.001) == 2
    assert axis.shift_choice(3, 0.0) == 3


# ----------------------------------------------------------------------------------------------- pruning


def result(loss):
    return RecipeResult((RunScores((), (Score(loss),)),))


def judged(number, loss, *, feasible=True):
    recipe = Recipe((Step(Toy(amount=1 + number / 100), ("income",)),))
    return Candidate(recipe, "search", result(loss), (loss,), (0.0 if feasible else 1.0,))


def pruning(records=2000):
    return Pruning(
        EvaluationCase(table(records)), RecipeJudge((), (parse_measure("column-emd"),)), Run(seed=1)
    )


def test_small_tables_have_no_subsample():
    assert pruning(999).records == 0
    assert pruning(1000).records == 500
    assert pruning(8000).records == 1000
    assert len(pruning(8000).case.table) == 1000


def test_only_what_would_lose_too_much_at_best_is_pruned():
    """Full data helped by half at most: 0.5 of the subsample's loss against the third best, 4."""
    found = pruning()
    for number, (small, full) in enumerate([(2, 2), (4, 4), (6, 3), (8, 8), (10, 9), (12, 12)]):
        assert not found.clearly_worse(result(1e9))  # not enough is known
        found.learn(result(float(small)), judged(number, float(full)))
    found.best = [judged(0, 2.0), judged(2, 3.0), judged(1, 4.0)]
    assert found.clearly_worse(result(8.1))
    assert not found.clearly_worse(result(8.0))
    assert not found.clearly_worse(RecipeResult(refused="it cannot"))
    found.best = found.best[:2]
    assert not found.clearly_worse(result(8.1))  # the two that are better might both fail


def test_what_has_no_number_teaches_nothing():
    found = pruning()
    found.learn(result(0.0), judged(0, 1.0))
    found.learn(RecipeResult(refused="no"), judged(1, 1.0))
    nothing = Candidate(Recipe(), "search", RecipeResult(), None, (1.0,), pruned=True)
    found.learn(result(1.0), nothing)
    bad = RecipeResult((RunScores((), (Score(float("nan"), status=Status.REFUSED, reason="r"),)),))
    found.learn(bad, judged(2, 1.0))
    assert not found.pairs


# --------------------------------------------------------------------------------------------- promising first


class Grouping(Toy):
    name = "a-grouping"
    amount: int = param(3, "How many alike.", ge=1, le=50, tune=(2, 20), symbol="k", drive=True)


class Settled(Toy):
    name = "a-settled"
    amount: float = param(1.0, "How much.", gt=0, le=9)


class Suppressing(Toy):
    name = "a-suppressing"
    gives = Gives(suppressed=True)


def order(*methods, requirements):
    found = space(*methods, requirements=requirements, groups={"money": ["income", "age"]})
    return [step.method.name for step in found.singles()]


def test_where_records_must_be_alike_what_enforces_it_comes_first():
    asked = [Requirement.parse("k >= 3"), Requirement.parse("l >= 2")]
    given = (Settled, Toy, Grouping, Enforcing)
    assert order(*given, requirements=asked) == ["enforcing", "a-grouping", "toy", "a-settled"]
    started = space(Enforcing, requirements=asked, groups={"money": ["income"]}).singles()[0].method
    assert [each.split("(")[0] for each in started.also] == ["k-anonymity", "l-diversity"]


def test_elsewhere_what_changes_values_comes_before_what_suppresses_them():
    asked = [Requirement.parse("dbrl <= 0.1")]
    assert order(Suppressing, Toy, Settled, requirements=asked) == ["toy", "a-suppressing", "a-settled"]


def test_what_compares_all_pairs_comes_last_where_there_are_many(monkeypatch):
    asked = [Requirement.parse("dbrl <= 0.1")]
    assert order(Toy, Pairwise, requirements=asked) == ["pairwise", "toy"]
    monkeypatch.setattr(derive_space, "MANY_FOR_PAIRS", 29)
    assert order(Toy, Pairwise, requirements=asked) == ["toy", "pairwise"]


def test_columns_that_nobody_decided_on_are_protected_too():
    from dataclasses import replace

    open_ = replace(table(), schema=table().schema.replace(Column("charge", Kind.CONTINUOUS)))
    found = derive(open_, Scope(methods=(AnyKind,)), sensitive=False)
    assert found.groups[-1].columns == ("income", "age", "grade", "town", "charge")
