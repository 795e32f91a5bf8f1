"""Steps that were taken before are not taken again, unless anything that they depend on is another."""

import pytest
from polars.testing import assert_frame_equal

from sfumato.core.run import Run
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.recipes.step_memory import StepMemory
from toys import Rounding, numbers_table


@pytest.fixture
def taken(monkeypatch):
    """The names of the steps that are taken."""
    names, apply = [], Step.apply
    monkeypatch.setattr(Step, "apply", lambda step, *a: names.append(step.method.name) or apply(step, *a))
    return names


def recipe(*windows):
    return Recipe(tuple(Step(RankSwapping(window=each)) for each in windows))


def test_only_what_comes_after_a_change_is_taken_again(taken):
    table, memory, run = numbers_table(40), StepMemory(), Run(seed=1)
    for windows, n_taken in [
        ((5, 6, 7), 3),
        ((5, 6, 8), 1),
        ((5, 9, 8), 2),
        ((5, 9, 8), 0),
        ((5,), 0),
        ((6,), 1),
    ]:
        taken.clear()
        release = recipe(*windows).apply(table, run, memory)
        assert len(taken) == n_taken
        assert_frame_equal(release.table.frame, recipe(*windows).apply(table, run).table.frame)
        assert len(release.steps) == len(windows)


def test_another_table_chance_or_basis_begins_anew(taken):
    table, memory = numbers_table(40), StepMemory()
    recipe(5).apply(table, Run(seed=1), memory)
    for change in ("table", "chance", "basis"):
        taken.clear()
        memory.basis = change if change == "basis" else memory.basis
        seed = 1 if change == "table" else 2
        recipe(5).apply(table.take(range(30)) if change == "table" else table, Run(seed=seed), memory)
        assert len(taken) == 1, change


def test_no_step_is_the_unchanged_table(taken):
    table, memory = numbers_table(40), StepMemory()
    release = Recipe().apply(table, Run(seed=1), memory)
    assert_frame_equal(release.table.frame, table.frame)
    assert memory.is_empty
    assert not taken


def test_a_step_whose_chance_is_never_the_same_is_taken_each_time(taken, monkeypatch):
    table, memory, run = numbers_table(40), StepMemory(), Run(seed=1)
    steps = Recipe((Step(Rounding()), Step(RankSwapping(window=5)), Step(RankSwapping(window=6))))
    from dataclasses import replace

    monkeypatch.setattr(RankSwapping, "randomness", replace(RankSwapping.randomness, replay=False))
    for n_taken in (3, 2):
        taken.clear()
        steps.apply(table, run, memory)
        assert len(taken) == n_taken
