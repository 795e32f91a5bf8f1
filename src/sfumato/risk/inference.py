"""Inference: whether a release tells a sensitive value of somebody whose other values are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Laws, Score, Tells
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.data.generalised.cover import Cover, cover_of
from sfumato.data.schema import Kind, Role
from sfumato.data.table import Table
from sfumato.errors import MissingDependencyError
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.risk._attack import (
    MIN_PEOPLE_PER_SIDE,
    AttackMeasure,
    AttackSides,
    AttackSpace,
    AttackTrial,
    arena_of,
    beyond_control,
    sides_of,
    unlearnable,
)
from sfumato.risk._spaces import WITHIN_HELP
from sfumato.risk.linkage import DISTANCE_TOLERANCE, MEASURED, deviation

#: A forest learns from so many released records, and tells at most so many values apart.
_LESSONS, _MOST_VALUES, _TREES = 20_000, 100, 50

#: Released records that a blind guess is drawn from, for each query.
_BLIND_GUESSES = 10


@dataclass(frozen=True)
class InferenceTarget:
    """A column that the intruder wants to know: true values, released cells, and how near is right."""

    true: Floats
    cells: Cover
    reach: Floats  # of each true value
    prevalence: Floats  # of each true value in the original
    is_measured: bool

    @classmethod
    def of(cls, known: Table, released: Table, name: str, within: float, n: int) -> InferenceTarget:
        """Read it on one line; the first ``n`` known records are the original's."""
        true, cells = cover_of(known, released, name)
        is_measured = known.schema[name].kind in MEASURED
        middles = cells.middles[np.isfinite(cells.middles)]
        spread = (deviation(true) or deviation(middles)) if is_measured else 0.0
        values, places = np.unique(true, return_inverse=True)
        counts = np.bincount(places[:n], minlength=len(values)) * ~np.isnan(values)
        prevalence = (counts / max(counts.sum(), 1))[places]
        return cls(true, cells, np.full(len(true), within / 100 * spread), prevalence, is_measured)

    def within_error(self, error: float) -> InferenceTarget:
        """The same with so many per cent of each value as its reach; that of 0 stays as it is."""
        reach = np.where(self.true == 0, self.reach, error / 100 * np.abs(self.true))
        return replace(self, reach=reach)

    def gains(self, rows: Ints, chances: Floats) -> Floats:
        """How far the chances of the true values are from their prevalence to certainty."""
        left = 1 - self.prevalence[rows]
        return np.where(left > 0, (chances - self.prevalence[rows]) / np.where(left > 0, left, 1.0), 0.0)

    def is_guessed_right(self, rows: Ints, guesses: Ints) -> Flags:
        """Whether these released cells may stand for the true values; what is silent tells none."""
        cells, true = self.cells.take(guesses), self.true[rows]
        if not self.is_measured:
            return cells.holds(true) & ~cells.uninformative
        slack = self._slack(rows)
        return (cells.lows - slack <= true) & (true <= cells.highs + slack) & ~cells.uninformative

    def near(self, rows: Ints, numbers: Floats) -> Flags:
        """Whether numbers are near the true values."""
        true = self.true[rows]
        near: Flags = np.abs(numbers - true) <= self._slack(rows)
        return near

    def _slack(self, rows: Ints) -> Floats:
        """How far off is still near, with some room for rounding."""
        reach = self.reach[rows]
        slack: Floats = reach + DISTANCE_TOLERANCE * (np.abs(self.true[rows]) + reach)
        return slack


@dataclass(frozen=True)
class _GuessingSpace:
    """The space of the columns known, and how often the nearest records there are right, by column."""

    arena: AttackSpace
    by_neighbours: Mapping[str, Floats]


class Inference(AttackMeasure):
    r"""Share of sensitive values that an intruder infers from a release, beyond those of a control group.

    The intruder knows the other columns of a person and guesses the sensitive one in two ways: the value of
    the released record that is nearest in these columns (*neighbours*), and what a random forest trained on
    the release predicts (*forest*). A guess is right if it is the true category, or a number ``within`` so
    many per cent of the column's standard deviation; a generalised cell if it may stand for the true value.
    What holds for everybody is guessed of strangers as well: with :math:`\tau_c` the share of theirs,

    .. math:: R = \frac{\tau - \tau_c}{1 - \tau_c},

    and the score is that of the column and the guess that do best.

    Notes
    -----
    **How to read it.** 0 means that the release says no more of its people than of others, however much that
    is; 1 that all values are given away. ``control`` is what is known of everybody, ``baseline`` what the
    value of a released record drawn blindly gives; ``by_column`` has each column's.

    **Doubt.** Estimated from at most ``queries`` people on each side; the more columns and ways, the
    wider the interval. Of records equally near the share that is right counts, whichever would be drawn.
    Without declared sensitive columns each known one is guessed from the others.

    **RAPID.** With ``success`` = *confident* a category is at risk if the intruder is surer of the true one
    than its prevalence allows: with :math:`g` the chance that the forest, or the nearest records, give to the
    true category and :math:`b` its share of the original,

    .. math:: \frac{g - b}{1 - b} > \tau

    (``gain``), and a number if it is predicted within ``error`` per cent of the true one; of 0 and of dates
    ``within`` counts. ``rapid`` is the largest share of people at risk by any column and guess: the published
    number, which no control corrects. The score is the share beyond that of the control group, as always.

    **Missing.** Who has no value is not asked, and columns that too few have are named as ``not_guessed``. A
    released cell that says nothing is a wrong guess. Missing
    values of the columns known as in `Linkability`.

    **Units.** Persons are counted, each by the share of their values that is guessed right.

    **Cost.** A look at each released record for each one attacked and column; the forest learns from at most
    20,000 records and is left out for columns of more than 100 values that are not numbers.
    """

    name = "inference"
    counts = replace(
        AttackMeasure.counts,
        laws=Laws(reads_names="Its draws follow the order of the columns, which is that of their names."),
    )
    synonyms = ("attribute inference", "AIA", "RAPID")
    family = "attacks"
    threat = "inference"
    title = "Inference of sensitive values"
    tells = Tells(
        places={"report": 22},
        record_sentence="share of guesses of its sensitive value that are right: {:.2g}",
        not_seen="It does not test columns that it does not guess, nor an intruder with a better model than "
        "the nearest record or a random forest.",
    )
    references = ("giomi2023", "carvalho2023", "templ2026")

    by: Literal["worst", "neighbours", "forest"] = param(
        "worst",
        "How values are guessed.",
        choices={
            "worst": "In both ways; the more successful one counts.",
            "neighbours": "The value of the released record that is nearest in the other columns.",
            "forest": "What a random forest trained on the release predicts.",
        },
    )
    learn: Columns = param(Columns(), "The columns to guess; by default the sensitive ones.")
    within: float = param(10.0, WITHIN_HELP, ge=0, le=1000, unit="%")
    success: Literal["right", "confident"] = param(
        "right",
        "When a value counts as inferred.",
        choices={
            "right": "If it is guessed right.",
            "confident": "If the intruder is surer of it than its prevalence allows.",
        },
        synonyms={"RAPID": "confident"},
    )
    gain: float = param(
        0.3,
        "Least gain of confidence, from the prevalence of a category to certainty.",
        ge=0, lt=1, symbol="τ", when="success=confident",
    )  # fmt: skip
    error: float = param(
        10.0,
        "Largest relative error of a number.",
        gt=0, le=1000, unit="%", symbol="ε", when="success=confident",
    )  # fmt: skip

    def secrets(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns that are guessed."""
        wanted = self._sensitive_columns(evidence)
        shared = evidence.of_kinds(evidence.shared_columns, self.kinds)
        return tuple(name for name in shared if name in wanted) or self.columns(evidence)

    def _sensitive_columns(self, evidence: Evidence) -> tuple[str, ...]:
        schema = evidence.original.schema
        return schema.resolve(self.learn) or schema.with_role(Role.SENSITIVE)

    def looked_at(self, evidence: Evidence) -> tuple[str, ...]:
        """What is known and what is guessed."""
        return tuple(sorted({*self.columns(evidence), *self.secrets(evidence)}))

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse a single column: there must be one to know and one to guess."""
        wanted = self._sensitive_columns(evidence)
        reason = super().refuses(evidence) or unlearnable(self.name, evidence, wanted, self.kinds)
        if reason is None and len(self.looked_at(evidence)) < 2:  # noqa: PLR2004
            return f"{self.name} needs a column to guess and one to guess it from, and there is one column"
        return reason

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Guess each column in either way."""
        assert evidence.protected is not None  # `refuses` saw to it
        sides = sides_of(evidence, self.looked_at(evidence), self.queries, run)
        trials, by_column, hits = dict[str, AttackTrial](), dict[str, float](), list[Floats]()
        # What is told by its bucket alone, where it stands apart; what is known, by all tables.
        shown = evidence.protected if evidence.buckets is None else evidence.buckets.reading
        n = len(evidence.original)
        secrets = {name: self._target(sides.known, shown, name, n) for name in self.secrets(evidence)}
        guessed_from = {name: tuple(o for o in self.columns(evidence) if o != name) for name in secrets}
        spaces: dict[tuple[str, ...], _GuessingSpace] = {}
        for name in run.track(self.title, secrets, len(secrets)):
            known = guessed_from[name]
            if not known:
                continue
            if known not in spaces:
                alike = {other: each for other, each in secrets.items() if guessed_from[other] == known}
                spaces[known] = self._space(evidence, sides, known, alike, run.silent())
            guesses = self._guess_column(sides, name, secrets[name], spaces[known], run.silent().at(name))
            for how, trial, right in guesses:
                trials[f"{name} by {how}"] = trial
                by_column[name] = max(by_column.get(name, 0.0), _excess_rate(trial))
                hits.append(right)
        details: dict[str, float | int | str] = {"columns": len(self.columns(evidence))}
        details |= {"guessed": len(by_column)}
        if self.success == "confident":
            details["rapid"] = max((trial.rate for trial in trials.values()), default=0.0)
        if left_out := [name for name in self.secrets(evidence) if name not in by_column]:
            details["not_guessed"] = ", ".join(left_out)
        if not trials:
            return Score.not_estimable(_nobody(self.by))
        by_record = np.full(len(evidence.original), np.nan)
        by_record[sides.people] = np.fmax.reduce(hits)
        score = self.score_of_trials(trials, by_record=by_record, details=details)
        return replace(score, by_column=by_column)

    def _target(self, known: Table, shown: Table, name: str, n: int) -> InferenceTarget:
        target = InferenceTarget.of(known, shown, name, self.within, n)
        is_relative = self.success == "confident" and known.schema[name].kind is not Kind.DATE
        return target.within_error(self.error) if is_relative else target

    def _space(
        self,
        evidence: Evidence,
        sides: AttackSides,
        known: tuple[str, ...],
        secrets: Mapping[str, InferenceTarget],
        run: Run,
    ) -> _GuessingSpace:
        """The space of some columns, and what the nearest records there tell of all that is guessed by it."""
        assert evidence.protected is not None  # `refuses` saw to it
        arena = arena_of(sides.known, evidence.protected, known, sides.order)
        if self.by == "forest":
            return _GuessingSpace(arena, {})
        checks = [each.is_guessed_right for each in secrets.values()]
        shares = arena.shares_of_nearest(sides.targets, checks, run=run, task=self.title)
        return _GuessingSpace(arena, dict(zip(secrets, shares, strict=True)))

    def _guess_column(
        self, sides: AttackSides, name: str, secret: InferenceTarget, space: _GuessingSpace, run: Run
    ) -> Iterator[tuple[str, AttackTrial, Floats]]:
        """Each way to guess a column: its name, what came of it, and who of the people was guessed right."""
        asked = ~np.isnan(secret.true[sides.targets])
        there = asked[: len(sides.people)]
        if min(map(len, sides.mean(asked.astype(np.float64), asked))) < MIN_PEOPLE_PER_SIDE:
            return
        arena = space.arena
        blind = run.rng("blind").integers(len(arena.order), size=(_BLIND_GUESSES, len(sides.people)))
        blind = arena.order[blind]  # sorted by what they hold, so that the order of the file decides nothing
        guessed = np.mean([secret.is_guessed_right(sides.people, each)[there].mean() for each in blind])
        found = {"neighbours": space.by_neighbours[name]} if name in space.by_neighbours else {}
        by_gain = self.success == "confident" and not secret.is_measured
        if self.by != "neighbours":
            right = _forest(arena, secret, sides.targets, run.rng("forest"), chances=by_gain)
            found |= {} if right is None else {"forest": right}
        if by_gain:  # who knows only how common each value is gains nothing
            gains = {how: secret.gains(sides.targets, each) for how, each in found.items()}
            guessed, found = 0.0, {how: (each > self.gain).astype(np.float64) for how, each in gains.items()}
        for how, shares in found.items():
            of_people, others = sides.mean(shares, asked)
            trial = AttackTrial(of_people.sum(), len(of_people), others.sum(), len(others), float(guessed))
            yield how, trial, np.where(there, shares[: len(there)], np.nan)


def _nobody(by: str) -> str:
    reason = f"fewer than {MIN_PEOPLE_PER_SIDE} people or of the control group have a value to guess"
    return reason if by != "forest" else f"{reason}, or a forest cannot learn so many values"


def _excess_rate(trial: AttackTrial) -> float:
    return max(beyond_control(trial.rate, trial.other_rate), 0.0)


def _forest(
    arena: AttackSpace, secret: InferenceTarget, rows: Ints, rng: np.random.Generator, *, chances: bool
) -> Floats | None:
    """Whether a forest trained on the release guesses these records right; None if it cannot learn.

    Or the ``chances`` that it gives to what is right.
    """
    try:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    except ImportError as error:
        raise MissingDependencyError.of("scikit-learn", extra="models", purpose="a random forest") from error
    cells = secret.cells.take(arena.order)
    lessons = np.flatnonzero(~cells.uninformative)
    lessons = lessons[rng.permutation(len(lessons))[:_LESSONS]]
    if len(lessons) < MIN_PEOPLE_PER_SIDE:
        return None
    with np.errstate(invalid="ignore"):  # what is open at both ends has no middle
        features = arena.boxes.lows / 2 + arena.boxes.highs / 2
    features = np.where(np.isfinite(features), features, np.nan)[lessons]
    settings = {"n_estimators": _TREES, "random_state": int(rng.integers(1 << 31)), "n_jobs": 1}
    if secret.is_measured and cells.exact:
        # A third of the columns at each split: trees that see all are alike, take longer and tell less.
        forest = RandomForestRegressor(**settings, max_features=1 / 3).fit(features, cells.lows[lessons])
        return secret.near(rows, forest.predict(arena.points[rows])).astype(np.float64)
    ends = np.column_stack((cells.lows[lessons], cells.highs[lessons]))
    if cells.codes is not None:
        ends = np.column_stack((ends, cells.codes[lessons]))
    _, examples, classes = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    if len(examples) > min(_MOST_VALUES, len(lessons) // 2):  # there is nothing to learn from one of each
        return None
    classifier = RandomForestClassifier(**settings).fit(features, classes.reshape(-1))
    cells_of_class = arena.order[lessons[examples]]
    if not chances:
        guesses = cells_of_class[classifier.predict(arena.points[rows])]
        return secret.is_guessed_right(rows, guesses).astype(np.float64)
    shares = classifier.predict_proba(arena.points[rows])
    right = [secret.is_guessed_right(rows, np.full(len(rows), cell)) for cell in cells_of_class]
    total: Floats = (shares * np.column_stack(right)).sum(axis=1)
    return total
