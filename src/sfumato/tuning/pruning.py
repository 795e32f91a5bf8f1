"""A sample of the persons: what loses clearly too much on few records is not tried on all of them.

On a sample it is harder to be one of several alike, and easier to be found: who meets the requirements there
mostly does so with everybody. It tells whom to try first, never that a requirement is met. Recipes of several
steps are pruned by utility alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from sfumato.core.run import Run
from sfumato.data.persons import sample_by_person
from sfumato.recipes.recipe import Recipe
from sfumato.study.evaluate import EvaluationCase
from sfumato.tuning.candidate import Candidate, RecipeJudge, RecipeResult

#: The sample has so many records at least and at most, and so large a share of them.
_MIN_RECORDS: Final = 500
_MAX_RECORDS: Final = 2000
_SHARE: Final = 8

#: Recipes that must have been tried on both before anything is pruned.
_MIN_RECIPES_TRIED: Final = 6

#: It takes so many feasible recipes that are better: the best of them may fail its confirmation.
_BETTER: Final = 3


class Pruning:
    """Tries recipes on a subsample, and learns by how much that flatters them or the reverse.

    A subsample is harder on a method that makes groups of k than on one that moves ranks. So a recipe is
    pruned only if it would still lose too much though the full data helped it as much as they helped any.
    """

    def __init__(self, case: EvaluationCase, judge: RecipeJudge, run: Run) -> None:
        n = len(case.table)
        records = min(max(_MIN_RECORDS, n // _SHARE), _MAX_RECORDS)
        self.judge = RecipeJudge((), judge.utilities)
        self.case = case
        if 2 * records <= n:
            rows = sample_by_person(case.table, records, run.at("subsample", case.table).rng("rows"))
            self.case = replace(case, table=case.table.take(rows))
        self.records = len(self.case.table) if 2 * records <= n else 0
        self.pairs: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {}
        self.best: Sequence[Candidate] = ()

    def evaluate(self, recipe: Recipe, run: Run) -> RecipeResult:
        """What a recipe loses on the subsample, in one run."""
        return self.judge.evaluate(recipe, self.case, run.at("subsample"), replicates=1)

    def learn(self, small: RecipeResult, candidate: Candidate) -> None:
        """Remember what a recipe loses on the subsample and on the full data."""
        losses = self.judge.losses(small)
        if candidate.is_judged and candidate.losses is not None and losses is not None and min(losses) > 0:
            self.pairs[candidate.recipe.digest] = (losses, candidate.losses)

    def clearly_worse(self, small: RecipeResult) -> bool:
        """Whether a recipe would lose too much by every utility, however much the full data may help it."""
        losses = self.judge.losses(small)
        if losses is None or len(self.pairs) < _MIN_RECIPES_TRIED or len(self.best) < _BETTER:
            return False
        parts, wholes = (np.array(side) for side in zip(*self.pairs.values(), strict=True))
        helped = (wholes / parts).min(axis=0)
        limit = np.max([each.losses or () for each in self.best[:_BETTER]], axis=0)
        return bool((np.array(losses) * helped > limit).all())
