"""Who proposes what a search tries next: Optuna, and the neighbourhood of the best found so far.

Optuna is loaded on use. It is asked for a whole batch, then told the whole batch in order: its answers
depend on the batches and not on how many workers there were or who was first.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato.core.run import Run
from sfumato.errors import MissingDependencyError
from sfumato.tuning.candidate import UNKNOWN, Candidate
from sfumato.tuning.search_space import Point, SearchSpace

if TYPE_CHECKING:
    import optuna

#: The best candidates so far whose neighbourhood is looked at.
_BEST: Final = 3

#: How far neighbours lie, as a share of an axis.
_WIDEST: Final = 0.15
_NARROWEST: Final = 0.01

#: The places along one drive that are tried together, and how much nearer they are in the next round.
_FINER: Final = 0.2
_ALONG: Final = (-0.3, -0.1, -0.03, 0.03, 0.1, 0.3)


class Proposals:
    """Proposes points of a space, and learns from what came of them."""

    def __init__(self, space: SearchSpace, run: Run, *, utilities: int) -> None:
        self.space, self.run, self.batches = space, run, 0
        self.stride, self.leader = _WIDEST, ""
        self.divided: set[Any] = set()
        self.looked: dict[Any, int] = {}
        self.optuna = _optuna()
        logs = self.optuna.logging
        before = logs.get_verbosity()
        logs.set_verbosity(logs.WARNING)
        try:
            # Each utility's loss and the largest shortfall are made small together.
            self.study: optuna.Study = self.optuna.create_study(directions=["minimize"] * (utilities + 1))
        finally:
            logs.set_verbosity(before)

    def ask(self, count: int, best: Sequence[Candidate]) -> list[optuna.Trial]:
        """Ask for a batch: half of it near the best found so far, once there are any."""
        rng = self.run.rng("proposals", self.batches)
        self.study.sampler = self._sampler(int(rng.integers(2**31)))
        self.batches += 1
        starts = self._starts(best)
        for point in self._near(starts, count, rng) if starts else ():
            self.study.enqueue_trial(point)
        return [self._next_trial() for _ in range(count)]

    def _near(self, starts: Sequence[Point], count: int, rng: np.random.Generator) -> list[dict[str, Any]]:
        """Points near the best: in turns along a drive of one of them, and half a batch of neighbours."""
        if self.batches % 2:
            return self._along(starts)[:count]
        points = []
        for start in starts:
            if self.space.structure(start) not in self.divided:
                self.divided.add(self.space.structure(start))
                points.append(self.space.split_step(start, rng))
        while len(points) < count // 2:
            start = starts[len(points) % len(starts)]
            points.append(self.space.neighbour(start, rng, stride=self.stride))
        return points[:count]

    def _along(self, starts: Sequence[Point]) -> list[dict[str, Any]]:
        """Points along one drive: of the best, in every other turn of another structure; finer each round."""
        turn = self.batches // 2
        others = starts[1:] if turn % 2 else ()
        start = others[turn // 2 % len(others)] if others else starts[0]
        looked = tuple(sorted(start.items()))
        times = self.looked[looked] = self.looked.get(looked, -1) + 1
        scale = _FINER ** (times // max(len(self.space.structure(start)), 1))
        return list(self.space.along(start, times, [scale * share for share in _ALONG]))

    def _starts(self, best: Sequence[Candidate]) -> list[Point]:
        """Where to look around: the best of each structure; nearer by if the last batch brought nothing."""
        found: dict[Any, Point] = {}
        for each in best:
            if each.point is not None and each.recipe.steps:
                found.setdefault(self.space.structure(each.point), each.point)
        if best:
            better = best[0].recipe.digest != self.leader
            self.stride = min(self.stride * 1.5, _WIDEST) if better else self.stride * 0.7
            if self.stride < _NARROWEST:
                self.stride = _WIDEST
            self.leader = best[0].recipe.digest
        return list(found.values())[:_BEST]

    def _next_trial(self) -> optuna.Trial:
        trial = self.study.ask()
        self.space.choose(trial)
        return trial

    def tell(self, trial: optuna.Trial, candidate: Candidate) -> None:
        """Tell what came of a proposal. What was not judged on the full data counts as far from feasible."""
        judged = candidate.is_judged
        shortfalls = candidate.shortfalls if judged else (UNKNOWN,) * len(candidate.shortfalls)
        for place, shortfall in enumerate(shortfalls):
            trial.set_constraint(f"demand {place}", shortfall)
        losses = candidate.losses or (0.0,) * (len(self.study.directions) - 1)
        self.study.tell(trial, [*losses, max(shortfalls)])

    def learn(self, candidate: Candidate) -> None:
        """Tell of a candidate that came from elsewhere."""
        if candidate.point is not None:
            self.study.enqueue_trial(dict(candidate.point))
            self.tell(self._next_trial(), candidate)

    def _sampler(self, seed: int) -> Any:
        with warnings.catch_warnings():  # it says that some of it may change: so may everything
            warnings.simplefilter("ignore", self.optuna.exceptions.ExperimentalWarning)
            return self.optuna.samplers.TPESampler(seed=seed, n_startup_trials=8, constant_liar=True)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingDependencyError.of("optuna", extra="tune", purpose="tuning") from None
    return optuna
