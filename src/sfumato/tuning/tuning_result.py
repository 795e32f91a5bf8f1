"""What a tuner recommends, in plain words: why this, what it costs, what was tried, what nearly won."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.core.method import Method
from sfumato.core.params import Requirements
from sfumato.core.requirement import Requirement
from sfumato.data.notebook import Tabular, as_html, as_page
from sfumato.errors import UnreachableError, count_noun
from sfumato.io import write_text
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.study.replicate_mean import ReplicateMean
from sfumato.tuning.candidate import Candidate, ConfirmedCandidate, RecipeJudge, in_order, on_front
from sfumato.tuning.search_space import SearchSpace
from sfumato.tuning.trial_runner import NEIGHBOUR, SEARCHED, SINGLE, UNPROTECTED
from sfumato.tuning.tuner import SearchResult

#: How many that nearly won are named, and how many columns of a step.
_NAMED = 3
_COLUMNS = 6


@dataclass(frozen=True)
class TuningResult(Tabular):
    """The recommended recipe, the plan that makes it, and everything that was tried on the way."""

    plan: Plan
    best: ConfirmedCandidate
    runners_up: tuple[ConfirmedCandidate, ...]
    judge: RecipeJudge
    space: SearchSpace
    found: SearchResult = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def recipe(self) -> Recipe:
        """The recommended recipe."""
        return self.best.recipe

    @property
    def frontier(self) -> tuple[Candidate, ...]:
        """The candidates no other beats: less loss, or further from what is demanded, without losing."""
        return tuple(on_front(self.found.candidates))

    @property
    def counts(self) -> dict[str, int]:
        """How many recipes were tried, by what came of them."""
        tried = [each for each in self.found.candidates if each.origin != UNPROTECTED]
        return {
            "tried": len(tried),
            "single methods": sum(each.origin == SINGLE for each in tried),
            "searched": sum(each.origin == SEARCHED for each in tried),
            "nudged": sum(each.origin == NEIGHBOUR for each in tried),
            "met the requirements": sum(each.feasible for each in tried),
            "pruned on the subsample": sum(each.pruned for each in tried),
            "could not be applied": sum(bool(each.result.refused) for each in tried),
            "failed in fresh runs": len(self.found.failed),
        }

    def sentences(self) -> list[str]:
        """Say in plain words what is recommended and why."""
        return [
            f"Recommended: {describe(self.recipe)}.",
            *self._why(),
            *self._against_the_rest(),
            *self._trial_lines(),
            *self._skipped_lines(),
        ]

    def _why(self) -> Iterator[str]:
        runs = len(self.best.result.runs)
        fresh = "one fresh run" if runs == 1 else f"each of {runs} fresh runs"
        for place, (demand, spread) in enumerate(zip(self.judge.demands, self.best.demands, strict=True)):
            scores, asked = [run.demands[place] for run in self.best.result.runs], demand.requirement
            estimated = any(asked.is_estimated(score) for score in scores)  # then the far end is what counts
            values = [asked.worst(score) if estimated else score.value for score in scores]
            how = " (estimated)" if estimated else ""
            where = f" ({demand.scenario.name})" if demand.scenario.name != "default" else ""
            if spread is not None:
                low, high = min(values), max(values)
                range_text = f"{low:.4g}" + (f" to {high:.4g}" if high > low else "")
                yield f"It meets {demand}{where} in {fresh}: {range_text}{how}."
        for measure, spread in zip(self.judge.utilities, self.best.utilities, strict=True):
            yield f"{measure.title}: {mean_text(spread)} ({measure.better}er is better)."

    def _against_the_rest(self) -> Iterator[str]:
        measure = self.judge.utilities[0]
        if len(self.recipe.steps) > 1:
            lone = next((each for each in self.runners_up if len(each.recipe.steps) == 1), None)
            if lone is not None:
                yield (
                    f"The best single method that passed, {describe(lone.recipe)}, has {measure.title} "
                    f"{mean_text(lone.utilities[0])}{_doubt(self.best, lone)}."
                )
        for each in self.runners_up[:_NAMED]:
            value = mean_text(each.utilities[0])
            yield f"Runner-up: {describe(each.recipe)}, {measure.title} {value}{_doubt(self.best, each)}."
        for candidate, result in self.found.failed[:_NAMED]:
            missed = "; ".join(self.judge.missed_demands(result))
            yield f"Did well in the search but failed in fresh runs: {describe(candidate.recipe)} ({missed})."

    def _trial_lines(self) -> Iterator[str]:
        counts = self.counts
        parts = [
            f"{count_noun(counts['single methods'], 'single method')} at or near the mildest setting",
            count_noun(counts["searched"], "proposed recipe"),
            f"{count_noun(counts['nudged'], 'neighbour')} of recipes that just failed",
        ]
        yield (
            f"Tried: {count_noun(counts['tried'], 'recipe')} ({', '.join(parts)}). "
            f"{counts['met the requirements']} met the requirements, "
            f"{counts['could not be applied']} could not be applied."
        )
        if counts["pruned on the subsample"]:
            yield (
                f"Pruned: {counts['pruned on the subsample']} that lost clearly too much on a subsample of "
                f"{self.found.subsample} records."
            )
        if self.found.planned:
            yield f"The search made {self.found.planned}."
        if self.found.stopped_early:
            yield f"The search was {self.found.stopped_early}."
        if self.found.searched_by != self.judge:
            quick = ", ".join(map(str, self.found.searched_by.utilities))
            yield f"The search measured losses by {quick}; the best recipes were measured as requested."

    def _skipped_lines(self) -> Iterator[str]:
        yield from (f"Note: {note}." for note in self.notes)
        for name, reason in self.found.unreachable.items():
            yield f"Cannot meet the requirements alone: {name} ({reason})."
        reasons: dict[str, list[str]] = {}
        for name, reason in self.space.left_out.items():
            reasons.setdefault(reason, []).append(name)
        for reason, names in reasons.items():
            yield f"Left out: {', '.join(names)} ({reason})."
        if self.found.sampled_only:
            worse = ", ".join(self.found.sampled_only)
            sample = f"a sample of {self.found.subsample} records"
            yield f"Did worse alone on {sample}, so not tried on all: {worse}."
        if self.found.skipped:
            yield f"Not tried alone, for lack of trials or time: {', '.join(self.found.skipped)}."

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON; nothing per record, no seed."""
        return {
            "recommended": self.best.to_dict(self.judge),
            "runners_up": [each.to_dict(self.judge) for each in self.runners_up],
            "frontier": [_point(each, self.found.searched_by) for each in self.frontier],
            "counts": self.counts,
            "unreachable": dict(self.found.unreachable),
            "left_out": dict(self.space.left_out),
            "not_tried_alone": list(self.found.skipped),
            "tried_on_a_sample_only": list(self.found.sampled_only),
            "failed_in_fresh_runs": [
                {"steps": candidate.recipe.to_list(), "missed": self.judge.missed_demands(result)}
                for candidate, result in self.found.failed
            ],
            "stopped_early": self.found.stopped_early,
            "notes": list(self.notes),
            "subsample": self.found.subsample,
            "groups": {group.name: list(group.columns) for group in self.space.groups},
            "words": self.sentences(),
        }

    def to_frame(self) -> pl.DataFrame:
        """The candidates that no other beats, a row each."""
        return pl.DataFrame(
            [
                {
                    "recipe": describe(each.recipe),
                    "met": each.feasible,
                    **{
                        str(m): s.mean if s else None
                        for m, s in zip(self.judge.utilities, utilities, strict=True)
                    },
                    **{
                        str(d): s.mean if s else None
                        for d, s in zip(self.judge.demands, demands, strict=True)
                    },
                }
                for each in self.frontier
                for utilities, demands in [self.judge.spreads(each.result)]
            ]
        )

    def _repr_html_(self) -> str:
        return as_html(self.sentences(), self.to_frame())

    def report(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write what is recommended and why as a small page."""
        write_text(path, as_page("Recommended recipe", self._repr_html_()), overwrite=overwrite)
        return Path(path)


def conclude(
    found: SearchResult,
    judge: RecipeJudge,
    space: SearchSpace,
    plan_of: Callable[[Recipe], Plan],
    notes: tuple[str, ...] = (),
) -> TuningResult:
    """Choose the best of what was confirmed; raise with the nearest miss if nothing was."""
    passed = {candidate.recipe.digest: result for candidate, result in found.confirmed}
    if not passed:
        raise _unreachable(found, judge)
    judge = found.judge
    # The order is that of the fresh runs: the runs of the search flatter what was chosen by them.
    fresh = [Candidate(c.recipe, c.origin, made, judge.losses(made), (0.0,)) for c, made in found.confirmed]
    confirmed = tuple(judge.confirmed(each.recipe, each.result) for each in in_order(fresh))
    best = _surest(confirmed)
    rest = tuple(each for each in confirmed if each is not best)
    return TuningResult(plan_of(best.recipe), best, rest, judge, space, found, notes)


def _surest(confirmed: Sequence[ConfirmedCandidate]) -> ConfirmedCandidate:
    """The best; of one that is left to chance, what is not and loses no more within chance."""
    first = confirmed[0]
    settled = [each for each in confirmed if not each.recipe.stochastic]
    alike = [each for each in settled if not first.utilities[0].differs_from(each.utilities[0])]
    return alike[0] if first.recipe.stochastic and alike else first


def _unreachable(found: SearchResult, judge: RecipeJudge) -> UnreachableError:
    asked = ", ".join(str(demand) for demand in judge.demands)
    judged = [each for each in found.candidates if each.result.runs and not each.pruned]
    parts = []
    if found.failed:
        candidate, result = found.failed[0]
        nearest = f"{describe(candidate.recipe)} met all requirements in the search but not in fresh runs"
        parts.append(f"{nearest}: {'; '.join(judge.missed_demands(result))}")
    elif judged:
        closest = min(judged, key=lambda c: (c.shortfall, sum(c.shortfalls), c.origin == UNPROTECTED))
        missed = "; ".join(judge.missed_demands(closest.result)) or _without_a_number(closest, judge)
        parts.append(f"the closest is {describe(closest.recipe)}: {missed}")
    parts += [f"{name}: {reason}" for name, reason in found.unreachable.items()]
    parts += [found.stopped_early] if found.stopped_early else []
    tried = count_noun(len(found.candidates) - 1, "recipe")
    return UnreachableError(f"none of {tried} tried meets {asked}", hint="; ".join(parts))


def _without_a_number(candidate: Candidate, judge: RecipeJudge) -> str:
    """Why a candidate that meets the demands is none all the same."""
    reasons = [
        f"{measure} is {score.status}" + (f" ({score.reason})" if score.reason else "")
        for run in candidate.result.runs[:1]
        for measure, score in zip(judge.utilities, run.utilities, strict=True)
    ]
    return "; ".join(reasons)


def describe(recipe: Recipe) -> str:
    """Say a recipe in a line: ``mdav(k=3) on age, income; then rounding on wealth``."""
    if not recipe.steps:
        return "the data as they are"
    return "; then ".join(f"{_short(step.method)} on {_shorten_names(step.columns)}" for step in recipe.steps)


def _shorten_names(columns: Sequence[str]) -> str:
    """The names, or the first few of many: the plan has them all."""
    if len(columns) <= _COLUMNS:
        return ", ".join(columns)
    return f"{', '.join(columns[: _COLUMNS - 1])} and {len(columns) - _COLUMNS + 1} more"


def _short(method: Method) -> str:
    """The method with its drive and what else is not default, numbers short enough to be read."""
    default, drive = type(method)().to_dict(), method.drive()
    settings = [
        f"{key}={_setting_text(getattr(method, key), value)}"
        for key, value in method.to_dict().items()
        if value != default.get(key) or (drive is not None and key == drive.name)
    ]
    return f"{method.name}({', '.join(settings)})" if settings else method.name


def _setting_text(setting: Any, value: Any) -> str:
    """A setting in short: of what is enforced the measure and its number."""
    if isinstance(setting, Requirements):
        short = (Requirement.parse(each) for each in setting)
        return ", ".join(
            f"{each.measure.name} {each.sign} {each.level:g}{each.at}{each.where}" for each in short
        )
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def mean_text(spread: ReplicateMean) -> str:
    """Say a mean with half its 95 % interval, and whether the measure itself was estimated."""
    low, high = spread.interval
    about = "≈ " if spread.approximate else ""
    return f"{about}{spread.mean:.4g}" + (f" ± {(high - low) / 2:.2g}" if high > low else "")


def _doubt(best: ConfirmedCandidate, other: ConfirmedCandidate) -> str:
    differs = best.utilities[0].differs_from(other.utilities[0])
    return "" if differs else ", no clear difference"


def _point(candidate: Candidate, judge: RecipeJudge) -> dict[str, Any]:
    utilities, demands = judge.spreads(candidate.result)
    return {
        "steps": candidate.recipe.to_list(),
        "origin": candidate.origin,
        "feasible": candidate.feasible,
        "shortfall": candidate.shortfall,
        "utility": {str(m): each.mean for m, each in zip(judge.utilities, utilities, strict=True)},
        "requirements": judge.required_scores("mean", [each.mean if each else None for each in demands]),
    }
