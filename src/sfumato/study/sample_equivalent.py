"""Which random sample of the original a release is as good as, by each measure of utility.

Samples and release are scored as their readers have them: nobody knows which record is whose. Of persons or
households whole ones are drawn, all of them with the same chance. The samples are those of the run and the
original, the same for every measure and release, and each measure asks of them what it asks of the release.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Score, Status
from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.core.sample_equivalent import SampleEquivalent
from sfumato.data.persons import households_of, persons_of
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import Cancelled
from sfumato.kernels.arrays import Floats, Ints
from sfumato.study.evaluate import NUMERIC_STATUSES, EvaluationCase, score_of
from sfumato.study.sample_curve import SampleCurve

#: The shares of the samples, evenly spaced in the logarithm of (1 − f) / f, and how many of each are drawn.
SHARES: Final = (0.01, 0.05, 0.25, 0.75, 0.95, 0.99)
DRAWS: Final = 6

#: How many processor seconds samples may take in all where nobody asked for them.
QUICK_SECONDS: Final = 5.0

#: The same of a study, or as many as it took to compare.
STUDY_SECONDS: Final = 20.0

#: Of more units than this for each second, not even one sample of each share would be scored in time.
_UNITS_A_SECOND: Final = 50_000

#: As many shares at least tell how the error falls.
_FEWEST_SHARES = 3

NO_TIME: Final = "it takes long to score samples by it (ask for it: `--sample-equivalent`)"
FOLLOWS_RECORDS: Final = "it compares each record with its own original, which a sample leaves as it is"
ESTIMATED: Final = "of so many records it is estimated on small samples, too coarsely to tell samples apart"
SAMPLES_ALIKE: Final = "larger samples do not score better by it"


@dataclass
class SampleEquivalents:
    """The curves of measures on one original, each found once; all releases of a study are held to them.

    All of them may take ``seconds`` of the processor; measures that would take longer than what is left are
    left out, those that take least are served first.
    """

    case: EvaluationCase
    run: Run
    seconds: float = math.inf
    curves: dict[str, SampleCurve | str] = field(default_factory=dict)

    def add_to(
        self, scores: Mapping[str, Score], measures: Sequence[Measure], release: Release | None
    ) -> dict[str, Score]:
        """The scores of a release, those of utility with the sample that is as good, as far as time goes."""
        able = [each for each in measures if each.aspect == "utility" and str(each) in scores]
        able = [each for each in able if scores[str(each)].status in NUMERIC_STATUSES]
        if release is None or not able:
            return dict(scores)
        found = dict(scores)
        try:
            self.draw(able)
            for each in able:
                found[str(each)] = replace(scores[str(each)], like_sample=self.of(each, release))
        except Cancelled:
            if self.run.progress.stopped():
                raise
        return found

    def of(self, measure: Measure, release: Release, shift: float = 0.0) -> SampleEquivalent:
        """The sample that scores as a release does; ``shift`` is added to its score."""
        self.draw([measure])
        curve = self.curves[str(measure)]
        if isinstance(curve, str):
            return SampleEquivalent.missing(curve)
        score = score_of(measure, self.case.evidence(_without_mapping(release)), self.run.silent())
        if score.status not in NUMERIC_STATUSES:
            return SampleEquivalent.missing(score.reason)
        return curve.equivalent(score.value + shift)

    def draw(self, measures: Sequence[Measure]) -> None:
        """Score samples by the measures that have no curve yet."""
        fresh = {str(each): each for each in measures if str(each) not in self.curves}
        for name, measure in fresh.items():
            if measure.needs.mapping:
                self.curves[name] = FOLLOWS_RECORDS
        rest = [each for name, each in fresh.items() if name not in self.curves]
        if rest:
            self.curves |= _CurveDrawing(self.case, self.run, rest, self.seconds).curves()


def working_time() -> float:
    """Seconds of the processor without those of compiling: the first run finds what the second does."""
    return time.process_time() - kernels.compile_watch.worked


class _CurveDrawing:
    """Scores samples of one original by several measures, as far as their time goes."""

    def __init__(self, case: EvaluationCase, run: Run, measures: Sequence[Measure], seconds: float) -> None:
        self.case, self.run, self.seconds = case, run, seconds
        self.measures = {str(each): each for each in measures}
        self.units = units_of(case.table)
        self.sizes = sample_sizes(int(self.units.max(initial=-1)) + 1)
        self.scores = {name: np.full((len(self.sizes), DRAWS), np.nan) for name in self.measures}
        self.best = dict.fromkeys(self.measures, math.nan)
        self.spent = dict.fromkeys(self.measures, 0.0)
        self.why = dict.fromkeys(self.measures, "")

    def curves(self) -> dict[str, SampleCurve | str]:
        if len(self.sizes) < _FEWEST_SHARES:
            return dict.fromkeys(self.measures, "there are too few records to draw samples of")
        if len(self.units) > _UNITS_A_SECOND * self.seconds:
            return dict.fromkeys(self.measures, NO_TIME)
        for place, draw, evidence in self.run.track("samples scored", self._samples(), self._total):
            for name in self._alive():
                self._score_one(name, place, draw, evidence)
            if place < 0:
                self._drop_slow(DRAWS * sum(self.sizes) / (int(self.units.max()) + 1))
            elif draw == 0 and place == len(self.sizes) - 1:
                self._drop_slow(DRAWS - 1)
        return {name: self._curve(name) for name in self.measures}

    @property
    def _total(self) -> int:
        return 1 + DRAWS * len(self.sizes)

    def _alive(self) -> list[str]:
        return [name for name in self.measures if self.why[name] not in {NO_TIME, ESTIMATED}]

    def _samples(self) -> Iterator[tuple[int, int, Evidence]]:
        """All records first, then each sample in turn: one of each share before the next of any."""
        yield -1, -1, self._evidence(None)
        for draw in range(DRAWS):
            for place, size in enumerate(self.sizes):
                rng = self.run.randomness.at_root().key(self.case.table, "sample", size, draw).rng()
                drawn = np.zeros(self.units.max() + 1, dtype=np.bool_)
                drawn[rng.choice(len(drawn), size, replace=False)] = True
                if not self._alive():
                    return
                yield place, draw, self._evidence(np.flatnonzero(drawn[self.units]))

    def _evidence(self, rows: Ints | None) -> Evidence:
        table = self.case.table if rows is None else self.case.table.take(rows)
        return self.case.evidence(Release.of(table))

    def _score_one(self, name: str, place: int, draw: int, evidence: Evidence) -> None:
        """Score one sample by one measure; one that is slower than its part of the time is left out."""
        left = self.seconds / DRAWS - self.spent[name] if draw <= 0 else math.inf
        here, began = self.run.silent(), working_time()
        try:
            score = score_of(
                self.measures[name],
                evidence,
                here if math.isinf(left) else here.with_deadline(left, working_time),
            )
        except Cancelled:
            self.run.check()
            self.why[name] = NO_TIME
            return
        finally:
            self.spent[name] += working_time() - began
        if score.status not in NUMERIC_STATUSES:
            self.why[name] = self.why[name] or score.reason
        elif place < 0:
            self.best[name] = score.value
            if score.status is Status.APPROXIMATE and score.value not in self.measures[name].bounds:
                self.why[name] = ESTIMATED
        else:
            self.scores[name][place, draw] = score.value

    def _drop_slow(self, times: float) -> None:
        """Leave out what will take more time than is left, ``times`` what it took; short ones go first."""
        left = self.seconds - sum(self.spent.values())
        for name in sorted(self._alive(), key=self.spent.__getitem__):
            left -= times * self.spent[name]
            if left < 0:
                self.why[name] = NO_TIME

    def _curve(self, name: str) -> SampleCurve | str:
        known = np.isfinite(self.scores[name]).all(axis=1)
        if (
            self.why[name] in {NO_TIME, ESTIMATED}
            or known.sum() < _FEWEST_SHARES
            or not math.isfinite(self.best[name])
        ):
            return self.why[name] or "samples have no finite score by it"
        shares: Floats = np.array(self.sizes)[known] / (int(self.units.max()) + 1)
        curve = SampleCurve(self.measures[name], shares, self.scores[name][known], self.best[name])
        return curve if curve.falls else SAMPLES_ALIKE


def units_of(table: Table) -> Ints:
    """What is drawn as a whole, numbered from 0: households, else persons, else records."""
    by_household = table.schema.only_role(Role.HOUSEHOLD) is not None
    numbers = households_of(table) if by_household else persons_of(table)
    units: Ints = np.unique(numbers, return_inverse=True)[1]
    return units


def sample_sizes(units: int) -> list[int]:
    """The numbers of units drawn, each once: of few units some shares come to the same."""
    sizes = {max(round(share * units), 1) for share in SHARES}
    return sorted(size for size in sizes if size < units)


def _without_mapping(release: Release) -> Release:
    """The release as its readers have it: nobody knows which record is whose."""
    return replace(release, origin=Origin.unknown()) if release.origin.is_known else release
