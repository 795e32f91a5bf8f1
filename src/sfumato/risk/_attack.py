r"""Attacks with a control: what a release tells of its people beyond what it tells of strangers.

An attack is tried on people who are in the release and, in the same way, on people of the same population
who are not (the *control*). What also comes true of strangers is knowledge of the population, and no
disclosure of anybody. With :math:`\tau` and :math:`\tau_c` the shares of right guesses the risk is

.. math:: R = \frac{\tau - \tau_c}{1 - \tau_c}.

An attempt that fails, for whatever reason, is counted as one that was wrong. Without a control there is no
number: a share of right guesses alone says nothing of anybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, EstimatedMeasure, Needs, Score, Status
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.codings import codes_of_both
from sfumato.data.generalised.cover import Cover, cover_of
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.schema import COMPARABLE, STRUCTURAL_ROLES, Kind, Role, Schema
from sfumato.data.shares import wilson
from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import count_noun, quoted
from sfumato.kernels.arrays import Flags, Floats, Ints, count_distinct
from sfumato.risk._spaces import why_generalised, why_incomparable

#: People that must be on each side: of fewer no interval tells anything.
MIN_PEOPLE_PER_SIDE = 10

#: Of equal distances the one with less information loss counts; a difference of values always counts more.
_LOSS = 1e-6

#: Distances that differ by less are equal: sums of the same shares in another order.
_FLOAT_TOLERANCE = 1e-12

#: A control that is found more often than this many standard deviations allow is of another population.
_STRANGE = 3.29

#: From the shares of right guesses on people and on strangers to a risk.
Rated: TypeAlias = Callable[[float, float], float]
_IsRight: TypeAlias = Callable[[Ints, Ints], Flags]


@dataclass(frozen=True)
class AttackTrial:
    """One attack: right guesses and attempts on people in the release, and on strangers.

    ``corrects`` is what the strangers' share is multiplied by where they were fewer or more than the people.
    """

    hits: float
    tries: int
    other_hits: float
    other_tries: int
    baseline: float
    corrects: float = 1.0

    @property
    def rate(self) -> float:
        """The share of right guesses on people in the release."""
        return float(self.hits / self.tries)

    @property
    def other_rate(self) -> float:
        """The share of right guesses on strangers."""
        return float(min(self.corrects * self.other_hits / self.other_tries, 1.0))

    def risk(self, rated: Rated, z: float) -> tuple[float, float, float]:
        """The risk and its interval of so many standard deviations, which may lie below 0.

        Each share has its interval of Wilson; how far each end would move the risk is squared and added.
        """
        value = rated(self.rate, self.other_rate)
        low, high = wilson(self.hits, self.tries, z)
        others = wilson(self.other_hits, self.other_tries, z)
        other_low, other_high = (min(self.corrects * end, 1.0) for end in others)
        below = math.hypot(value - rated(low, self.other_rate), value - rated(self.rate, other_high))
        above = math.hypot(rated(high, self.other_rate) - value, rated(self.rate, other_low) - value)
        return value, max(value - below, -1.0), min(value + above, 1.0)


def beyond_control(rate: float, other: float) -> float:
    """The share of what strangers leave open that people in the release add."""
    return (rate - other) / (1 - other) if other < 1 else -math.inf


def difference(rate: float, other: float) -> float:
    """By how much more often people in the release are found: the advantage of a test of membership."""
    return rate - other


class AttackMeasure(EstimatedMeasure):
    """A measure by attacks on people in the release and on strangers."""

    aspect = "risk"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = COMPARABLE
    needs = Needs(control=True)
    counts = Counting(pools_copies=True, compares_kept_relations=True)
    cost = "n"

    queries: int = param(
        2000, "Largest number of people attacked in the file, and in the control group.", ge=10, le=100_000
    )

    def looked_at(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns it takes to attack: those the intruder knows, and what they want to know."""
        return self.columns(evidence)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where there is no control, or tables that cannot be compared value by value."""
        reason = super().refuses(evidence) or why_incomparable(self.name, evidence, self.kinds)
        if reason is not None:
            return reason
        assert evidence.control is not None  # asked for before
        names = self.looked_at(evidence)
        has, original = evidence.control.schema, evidence.original.schema
        lacking = [name for name in names if name not in has or has[name].kind is not original[name].kind]
        if lacking:
            return f"{self.name} needs {quoted(lacking)} of the same kind in the control group"
        return why_generalised(self.name, names, evidence.original, evidence.control)

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Say where there are too few to attack, or nothing is there to attack by."""
        tables = {"original": evidence.original, "release": evidence.protected, "control": evidence.control}
        sizes = {name: count_distinct(persons_of(each)) for name, each in tables.items() if each is not None}
        few = [f"{size} in the {name}" for name, size in sizes.items() if size < MIN_PEOPLE_PER_SIDE]
        if few:
            return f"{self.name} needs at least {MIN_PEOPLE_PER_SIDE} people, and has {', '.join(few)}"
        if all(evidence.original.missing(name).all() for name in self.columns(evidence)):
            return "all values in the columns that the intruder knows are missing"
        return evidence.remember("control in original", lambda: _protected_control(evidence))

    def score_of_trials(
        self,
        trials: Mapping[str, AttackTrial],
        *,
        rated: Rated = beyond_control,
        by_record: Floats | None = None,
        details: Mapping[str, float | int | str] | None = None,
    ) -> Score:
        """The score of the attack that does best; the more were tried, the wider its interval."""
        from scipy.special import ndtri

        sure = [name for name, trial in trials.items() if trial.other_rate >= 1 and rated is beyond_control]
        left = {name: trial for name, trial in trials.items() if name not in sure}
        if not left:
            return Score.not_estimable(
                "every guess on the control group is right, so people in the release cannot stand out"
            )
        z = float(ndtri(1 - (1 - self.confidence / 100) / 2 / len(trials)))
        found = {name: trial.risk(rated, z) for name, trial in left.items()}
        if all(trial.risk(rated, _STRANGE)[2] < 0 for trial in left.values()):
            return Score.not_estimable(
                "the control group is guessed right more often than people in the release: it is not of the "
                "same population"
            )
        worst = max(found, key=lambda name: (found[name][0], trials[name].tries))
        low, high = (max(0.0, *(each[end] for each in found.values())) for end in (1, 2))
        value, trial = max(found[worst][0], 0.0), trials[worst]
        score_details: dict[str, float | int | str] = {"attack": worst} if len(trials) > 1 else {}
        score_details |= {"rate": trial.rate, "control": trial.other_rate, "baseline": trial.baseline}
        score_details |= {"queries": trial.tries, "control_queries": trial.other_tries, **(details or {})}
        score_details["not_seen"] = self.tells.not_seen
        return Score(
            value=value,
            status=Status.APPROXIMATE,
            interval=(min(low, value), max(high, value)),
            confidence=self.confidence,
            baseline=trial.baseline,
            by_record=by_record,
            details=score_details,
        )


def unlearnable(name: str, evidence: Evidence, wanted: tuple[str, ...], kinds: frozenset[Kind]) -> str | None:
    """Which columns that an intruder wants to learn cannot be; None if all can. Left out, they would hide."""
    shared = evidence.shared_columns
    lost = {each for each in wanted if each in shared} - set(evidence.of_kinds(shared, kinds))
    if not lost:
        return None
    listed = ", ".join(f"`{each}` ({evidence.original.schema[each].kind})" for each in sorted(lost))
    return f"{name} cannot compare these sensitive columns: {listed}"


# The people, the strangers and the release in one space --------------------------------------------------


@dataclass(frozen=True)
class AttackSides:
    """The original above the control in one table, which of them are attacked, and the release by lot."""

    known: Table
    persons: Ints  # whose record each known one is
    people: Ints
    strangers: Ints
    order: Ints  # of the released records

    @property
    def targets(self) -> Ints:
        """All of them, the people first."""
        return np.concatenate((self.people, self.strangers))

    def split_hits(self, hits: Floats) -> tuple[Floats, Floats]:
        """What came of all attacks, for the records of the people and for those of the strangers."""
        return hits[: len(self.people)], hits[len(self.people) :]

    def best(self, hits: Floats) -> tuple[Floats, Floats]:
        """The same for each person once: who reaches one of a person's records reaches the person."""
        best = zip((self.people, self.strangers), self.split_hits(hits), strict=True)
        of_people, others = (best_by_person(self.persons[rows], each) for rows, each in best)
        return of_people, others

    def mean(self, hits: Floats, asked: Flags) -> tuple[Floats, Floats]:
        """The same for each person once, as the share of hits among the records that were asked about."""
        found = []
        for part in (np.arange(len(self.people)), np.arange(len(self.people), len(hits))):
            here = part[asked[part]]
            _, places = np.unique(self.persons[self.targets[here]], return_inverse=True)
            found.append(np.bincount(places, hits[here]) / np.bincount(places))
        return found[0], found[1]

    def by_record(self, hits: Floats, size: int) -> Floats:
        """What came of the attacks on people, in the order of the original; NaN for whom none was made."""
        spread = np.full(size, np.nan)
        spread[self.people] = hits[: len(self.people)]
        return spread


def sides_of(evidence: Evidence, names: tuple[str, ...], queries: int, run: Run) -> AttackSides:
    """Put the control below the original, and draw whom to attack."""
    assert evidence.control is not None  # `refuses` saw to it
    assert evidence.protected is not None
    known, n = stack_tables(evidence.original, evidence.control, names), len(evidence.original)
    of_people, others = persons_of(evidence.original), persons_of(evidence.control)
    people, strangers = (
        drawn_persons(side, queries, run.rng(label))
        for label, side in (("people", of_people), ("strangers", others))
    )
    persons = np.concatenate((of_people, others + of_people.max(initial=-1) + 1))
    order = order_by_lot(known, evidence.protected, names, run.rng("order"))
    return AttackSides(known, persons, people, n + strangers, order)


def drawn_persons(persons: Ints, queries: int, rng: np.random.Generator) -> Ints:
    """The records of persons by lot, all that a person has, while there are no more than so many.

    Of very few persons no interval tells anything, so that there may be more.
    """
    _, places, sizes = np.unique(persons, return_inverse=True, return_counts=True)
    order = rng.permutation(len(sizes))
    enough = int(np.searchsorted(np.cumsum(sizes[order]), queries, side="right"))
    return np.flatnonzero(np.isin(places, order[: max(enough, MIN_PEOPLE_PER_SIDE)]))


def _protected_control(evidence: Evidence) -> str | None:
    """Why the control is no control: its persons, or too many of its records, stand in the original."""
    assert evidence.control is not None  # `refuses` saw to it
    original, control = evidence.original, evidence.control
    person = original.schema.only_role(Role.PERSON)
    if person is not None and person in control.schema:
        codes = codes_of_both(original, control, person)
        of_people, others = (set(each[each >= 0].tolist()) for each in codes)
        if both := len(of_people & others):
            return (
                f"the control group and the original share {count_noun(both, 'person')} by `{person}` "
                "(leave the column out of the control group if its numbers mean other people there)"
            )
    return _why_not_control(original, control)


def _why_not_control(original: Table, control: Table) -> str | None:
    """Why it is none, if its records stand in the original more often than twins do there."""
    names = tuple(
        column.name
        for column in original.schema.columns
        if column.name in control.schema and column.kind in COMPARABLE and column.role not in STRUCTURAL_ROLES
        if not original.is_generalised(column.name) and not control.is_generalised(column.name)
    )
    numbers, n = number_records(stack_tables(original, control, names)), len(original)
    counts = np.bincount(numbers[:n], minlength=int(numbers.max()) + 1)
    again, twins = int((counts[numbers[n:]] > 0).sum()), int((counts[numbers[:n]] > 1).sum())
    if wilson(again, len(control), _STRANGE)[0] <= wilson(twins, n, _STRANGE)[1]:
        return None
    return f"the control group is in the original: {again} of its {len(control)} records are there too"


def number_records(table: Table) -> Ints:
    """Number the distinct records of a table; what is missing is a value of its own."""
    codes = np.column_stack([table.codes(name).codes for name in table.names])
    return np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)


def stack_tables(first: Table, second: Table, names: tuple[str, ...]) -> Table:
    """One table below another, by the first one's schema."""
    columns = []
    for name in names:
        pair = [first.frame[name], second.frame[name]]
        if pair[0].dtype != pair[1].dtype and any(each.dtype in TEXTUAL for each in pair):
            pair = [each.cast(pl.String) for each in pair]
        columns.append(pl.concat([each.to_frame() for each in pair], how="vertical_relaxed"))
    frame = pl.concat(columns, how="horizontal") if columns else pl.DataFrame()
    return Table(frame, Schema(tuple(first.schema[name] for name in names)))


@dataclass(frozen=True)
class AttackSpace:
    """Some columns of the known records as points and of the released ones as boxes, in an order by lot."""

    points: Floats
    boxes: Any  # kernels.box_neighbours.Boxes, which is loaded on first use
    order: Ints  # which released record each box is

    def nearest(self, rows: Ints, *, k: int = 1, run: Run, task: str) -> tuple[Ints, Floats]:
        """The nearest released records of known ones, and how far they are."""
        tick = run.ticker(task)
        places, distances = kernels.box_neighbours.nearest(self.points[rows], self.boxes, k=k, tick=tick)
        return np.append(self.order, -1)[places], distances

    def shares_of_nearest(
        self, rows: Ints, checks: Sequence[_IsRight], *, run: Run, task: str
    ) -> list[Floats]:
        """The share of right guesses among the released records nearest to each known one, ties and all.

        Each check is asked of pairs, of a known and a released record, and has shares of its own.
        """
        radii = self.nearest(rows, run=run, task=task)[1][:, 0] * (1 + _FLOAT_TOLERANCE) + _FLOAT_TOLERANCE
        right, tied = [np.zeros(len(rows)) for _ in checks], np.zeros(len(rows))
        pairs = kernels.box_neighbours.within(self.points[rows], self.boxes, radii, tick=run.ticker(task))
        for places, boxes in pairs:
            for number, is_right in enumerate(checks):
                are_right = is_right(rows[places], self.order[boxes])
                right[number] += np.bincount(places, are_right, minlength=len(rows))
            tied += np.bincount(places, minlength=len(rows))
        return [shares / np.maximum(tied, 1) for shares in right]

    def search(self, rows: Ints, distances: Floats, owners: Ints) -> Any:
        """A search for all that are as near as these distances, however much information they lost."""
        reach = distances * (1 + _FLOAT_TOLERANCE) + self.boxes.extras.max(initial=0.0) + _FLOAT_TOLERANCE
        box_neighbours = kernels.box_neighbours
        return box_neighbours.BoxSearch(self.points[rows], self.boxes, reach, owners[self.order])


def order_by_lot(known: Table, released: Table, names: tuple[str, ...], rng: np.random.Generator) -> Ints:
    """Sort released records by what they hold, and shuffle them: the order of the file decides nothing."""
    covers = [cover_of(known, released, name, nested=_is_step(known, name))[1] for name in names]
    order = np.lexsort([side for cover in covers for side in (cover.lows, cover.highs)])
    return order[rng.permutation(len(order))]


def _is_step(known: Table, name: str) -> bool:
    return known.schema[name].kind is Kind.NOMINAL


def arena_of(known: Table, released: Table, names: tuple[str, ...], order: Ints) -> AttackSpace:
    """Put known records and released ones into the space of some columns.

    Numbers count by the share of the range that lies between them, categories by being unequal. What a
    generalised cell may stand for is no distance away; of equals the one of less information loss is nearer.
    A cell that says nothing is as far away as a record drawn blindly is on average, so it hides no other. Of
    records that are equally near the first of the ``order`` is taken.
    """
    axes = [_axis(known, released, name) for name in names]
    lows, highs = (np.column_stack([axis[side] for axis in axes]) for side in (1, 2))
    losses = np.mean([axis[3] for axis in axes], axis=0)
    boxes = kernels.box_neighbours.ReleasedBoxes(
        lows[order], highs[order], np.array([axis[4] for axis in axes]), np.array([axis[5] for axis in axes]),
        _LOSS * losses[order],
    )  # fmt: skip
    return AttackSpace(np.column_stack([axis[0] for axis in axes]), boxes, order)


def _axis(known: Table, released: Table, name: str) -> tuple[Floats, Floats, Floats, Floats, bool, float]:
    """Points, both ends of boxes, their information loss, whether it is a step, the blind distance."""
    is_step = _is_step(known, name)
    values, cover = cover_of(known, released, name, nested=is_step)
    any_value = is_suppressed(values, cover)
    losses = np.where(any_value, 1.0, 0.0 if cover.exact else cover.share_of_domain())
    if not is_step:
        values, cover = _in_range(values, cover)
    lows, highs = np.where(any_value, -np.inf, cover.lows), np.where(any_value, np.inf, cover.highs)
    return values, lows, highs, losses, is_step, _blind(values, is_step=is_step)


def is_suppressed(known: Floats, cover: Cover) -> Flags:
    """Which released cells are missing and may stand for any value.

    Beside generalised values they all may, and so where a release lacks more values than people do: then they
    were suppressed. Else methods left what is missing where it was, and that is a value of its own.
    """
    gone, lacking = cover.missing, np.isnan(known)
    if cover.exact and lacking.any():
        likely = wilson(float(lacking.sum()), len(known), _STRANGE)[1]
        if wilson(float(gone.sum()), max(len(gone), 1), _STRANGE)[0] <= likely:
            return np.zeros(len(gone), dtype=np.bool_)
    return gone


def _in_range(values: Floats, cover: Cover) -> tuple[Floats, Cover]:
    """Divide by the range over both tables; in halves, so that nothing overflows."""
    ends = np.concatenate((values, cover.lows, cover.highs))
    ends = ends[np.isfinite(ends)] / 2
    low, width = (float(ends.min()), float(np.ptp(ends))) if len(ends) else (0.0, 0.0)

    def place(numbers: Floats) -> Floats:
        return (numbers / 2 - low) / (width or 0.5)

    return place(values), cover.map_values(place)


def _blind(values: Floats, *, is_step: bool) -> float:
    """How far two known records are apart on average that are drawn blindly."""
    there = np.sort(values[~np.isnan(values)])
    n = len(there)
    if not n:
        return 0.0
    if is_step:
        return float(1 - ((np.unique(there, return_counts=True)[1] / n) ** 2).sum())
    return float(2 * ((2 * np.arange(n) - n + 1) * there).sum() / n / n)
