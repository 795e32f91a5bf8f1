"""Pruning on a subsample: what loses clearly too much on few records is not tried on all of them.

Only utility is looked at. Risks that depend on the number of records (how many share a key, who is unique)
say nothing on a part of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from sfumato.core.run import Run
from sfumato.recipes.recipe import Recipe
from sfumato.study.evaluate import Case
from sfumato.tuning.candidate import Candidate, Judge, Result

#: The subsample has so many records at least, and so large a share of them.
_MIN_RECORDS: Final = 500
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

    def __init__(self, case: Case, judge: Judge, run: Run) -> None:
        n = len(case.table)
        records = max(_MIN_RECORDS, n // _SHARE)
        self.records = records if 2 * records <= n else 0
        self.judge, self.run = Judge((), judge.utilities), run.at("subsample")
        if self.records:
            rows = self.run.at(case.table.digest).rng("rows").choice(n, self.records, replace=False)
            self.case = replace(case, table=case.table.take(np.sort(rows)))
        self.pairs: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {}
        self.best: Sequence[Candidate] = ()

    def evaluate(self, recipe: Recipe) -> Result:
        """What a recipe loses on the subsample, in one run."""
        return self.judge.evaluate(recipe, self.case, self.run, replicates=1)

    def learn(self, small: Result, candidate: Candidate) -> None:
        """Remember what a recipe loses on the subsample and on the full data."""
        losses = self.judge.losses(small)
        if candidate.judged and candidate.losses is not None and losses is not None and min(losses) > 0:
            self.pairs[candidate.recipe.digest] = (losses, candidate.losses)

    def clearly_worse(self, small: Result) -> bool:
        """Whether a recipe would lose too much by every utility, however much the full data may help it."""
        losses = self.judge.losses(small)
        if losses is None or len(self.pairs) < _MIN_RECIPES_TRIED or len(self.best) < _BETTER:
            return False
        parts, wholes = (np.array(side) for side in zip(*self.pairs.values(), strict=True))
        helped = (wholes / parts).min(axis=0)
        limit = np.max([each.losses or () for each in self.best[:_BETTER]], axis=0)
        return bool((np.array(losses) * helped > limit).all())
