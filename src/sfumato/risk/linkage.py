"""Risk by local linkage: each record is linked to the released record that is nearest to it, whoever else is.

See `LinkageSpace` for what is compared. A link is right if the released record is of the same person: of the
same record or, where a column says whose records they are (the unit), of any record of that person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import joining, why_pairs_unknown
from sfumato.core.measure import Laws, Needs, Scaling, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.codings import codes_of_both, numbers_of_both
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints, count_distinct
from sfumato.risk._box_distances import nearness_of
from sfumato.risk._learned_metric import LearningLinkage
from sfumato.risk._spaces import WITHIN_HELP, LinkageMeasure, LinkageSpace, why_generalised

#: Columns whose values are compared by size; those of the others are equal or not.
MEASURED = frozenset({Kind.CONTINUOUS, Kind.DATE})

#: Rounding of a difference, against the values themselves: two that should be equal are.
DISTANCE_TOLERANCE = 2.0**-40


#: Pairs of records up to which units are linked by all of their records.
MOST_PAIRS_OF_UNITS = 4_000_000_000

#: Above this, differences of numbers and multiples of their deviation may be none.
HUGE = 1e300


def around_median(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Shift a column of both tables to a value that occurs, so that offsets cost no digits of differences.

    Of huge numbers both tables are a power of two smaller, so that differences are numbers, too.
    """
    if np.nanmax(np.abs(np.concatenate((first, second))), initial=0.0) > HUGE:
        first, second = np.ldexp(first, -16), np.ldexp(second, -16)
    there = first[~np.isnan(first)]
    if not len(there):
        return first, second
    origin = np.partition(there, (len(there) - 1) // 2)[(len(there) - 1) // 2]
    return first - origin, second - origin


def deviation(values: Floats) -> float:
    """The standard deviation of what is there; 0 if nothing is."""
    there = values[~np.isnan(values)]
    if not len(there):
        return 0.0
    exponent = int(np.frexp(np.abs(there).max())[1])  # so that no square overflows
    return float(np.ldexp(np.ldexp(there, -exponent).std(), exponent))


def by_original(rows: Ints, values: Floats, size: int) -> Floats:
    """What is known of the records the intruder holds, in the order of their table; NaN for the others."""
    spread = np.full(size, np.nan)
    spread[rows] = values
    return spread


def shares_by_person(persons: Ints, owners: Ints) -> Floats:
    """For each of ``persons``, the share of all released records that are theirs: what guessing finds."""
    looked_for = owners[(owners >= 0) & np.isin(owners, persons)]  # few where few are
    distinct, counts = np.unique(looked_for, return_counts=True)
    if not len(distinct):
        return np.zeros(len(persons))
    places = np.minimum(np.searchsorted(distinct, persons), len(distinct) - 1)
    return np.where(distinct[places] == persons, counts[places], 0) / len(owners)


def expected_links(
    evidence: Evidence, space: LinkageSpace, chances: Floats, details: Mapping[str, float | int | str]
) -> Score:
    """The score of links that come true with these chances, one for each record the intruder holds."""
    assert space.owners is not None  # `refuses` saw to it
    best = best_by_person(space.persons, chances)
    guessed = best_by_person(space.persons, shares_by_person(space.persons, space.owners))
    persons = {"persons": len(best)} if len(best) < len(chances) else {}
    links = {"links_expected": float(best.sum()), "links_certain": int((best == 1).sum())}
    return Score(
        value=float(best.mean()),
        by_record=by_original(space.rows, chances, len(evidence.known_table)),
        baseline=float(guessed.mean()),
        details={**details, **persons, **links},
    )


def _centre_by_unit(points: Floats, units: Ints, n_measured: int) -> Floats:
    """Points with numbers from the mean of their unit: what is between a unit's records may be as it was."""
    distinct, places, counts = np.unique(units, return_inverse=True, return_counts=True)
    moved = points.copy()
    for column in range(n_measured):
        means = np.bincount(places, points[:, column], minlength=len(distinct)) / counts
        moved[:, column] -= means[places]
    return moved


def _value(score: Score) -> float:
    return score.value


class DistanceLinkage(LearningLinkage):
    r"""Share of records linked to their own released record by the smallest distance (DBRL).

    .. math::

        P(T, T') = \frac{1}{N} \sum_{n=1}^{N} \frac{\chi_n}{|B_n|}

    where :math:`B_n` are the released records at the least distance from record :math:`n` of the intruder,
    and :math:`\chi_n` is 1 if its own is among them, else 0: the probability to be right for an intruder who
    knows the true values of a record and links it to the nearest, drawing among equals.

    With ``metric`` *euclidean*, *manhattan* or *gower* two unequal categories are one unit apart; *hamming*
    counts the columns that differ; *chebyshev* takes the column that differs most; *mahalanobis* weighs
    numbers with the inverse of the sum of both tables' covariances. *gower* always divides by the range over
    both tables, *mahalanobis* needs no ``scale``. With ``scale`` *rank* numbers are compared by their ranks,
    each within its own table and from 0 to 1: the share linked by rank, or with *chebyshev* by permutation
    distance. With ``nominal`` *hierarchy* two categories are as far apart as the lowest label that covers
    both is high, with the root at one unit (added to the distance, or to its square where *euclidean*);
    columns without a hierarchy are equal or not. Released values that are generalised are refused then.

    Where released values are intervals or groups, the distance is that to the nearest values they may stand
    for, and of equal distances the least information loss counts: the mean over the columns of the share of
    the domain that is spanned. So among the records that cover the intruder's, :math:`B_n` are those of least
    loss, and a record that is perturbed in one column and generalised in another is still near to its own.
    One that is coarser than the own is nearer only if it is so whatever it stands for: no record hides
    others because it says little. With *mahalanobis* or *learned*, distances to such records are *euclidean*.

    With ``metric`` *learned* the largest share counts that one of three fixed metrics finds, or one learned
    from half of the true links, as in `gdbrl`.

    Notes
    -----
    **How to read it.** 0 is safe; 1 means every record is found. ``baseline`` is what guessing finds;
    ``links_certain`` counts the records whose own is the nearest and the only one. Linking all records at
    once, one to one, often finds more: look at both.

    **Doubt.** Exact, ties shared. Distances that differ by less than :math:`2^{-34}` of the numbers that go
    into them are taken as equal, since rounding might be all that tells them apart.

    **Missing.** A missing value is a value of its own: one unit from any that is there, and it lies at the
    column's mean. Beside generalised values, one that is missing in the release covers every value, and a
    missing one of the intruder's is covered only by a missing one or the wildcard, and one unit from others.
    Where exact cells were suppressed both readings are taken, and the larger share counts.

    **Units.** Where a column tells whose record it is, a link to any record of the same person is right, and
    persons are counted, each by the record that is linked best. An intruder who knows who is in the file
    (``membership``) does not try the records of others; one who does not tries and fails. Where released
    records are joined (a pseudonym stays, or something else puts them together), all records of a unit are
    also linked at once to the released unit that is nearest to them, by their numbers and by how these differ
    within the unit (one shift for all dates of a person keeps that), and the largest share counts; where
    released values are generalised nobody can tell how near, and the score is no more than an estimate.

    **Cost.** :math:`O(n \log n)` in few columns, up to :math:`O(n^2)` in many; a million records of 8 columns
    take about a minute. Where released values are generalised: each record with 64 of the distinct released
    ones at a time, and one by one for those whose own does not cover them.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}), schema)
    >>> released = Table(pl.DataFrame({"x": [2.0, 3.0, 4.0, -0.1]}), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> DistanceLinkage().score(evidence, Run(seed=1)).value
    0.25
    """

    name = "dbrl"
    counts = replace(LearningLinkage.counts, laws=Laws(coarser_is_safer=True))
    vetted = "brute-forced: property/test_linkage.py::test_dbrl_is_that_of_all_pairs_in_fractions"
    synonyms: ClassVar[tuple[str, ...]] = ("record linkage", "distance-based linkage")
    family = "linkage"
    tells = Tells(
        places={"default": 0, "comparison": 3, "epsilon": 1, "report": 14},
        intruder="takes the nearest released record",
    )
    scales = Scaling(exact_up_to=200_000, persons_drawn=20_000)
    title = "Distance-based record linkage"
    references: ClassVar[tuple[str, ...]] = (
        "herranz2015", "domingoferrer2001", "pagliuca1999", "torra2006", "muralidhar2016", "abril2012",
        "abril2015", "kostinger2012",
    )  # fmt: skip
    cost = "n²"

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where nobody knows which links are right."""
        return (
            self.why_unsuitable(evidence)
            or why_pairs_unknown(self.name, evidence)
            or why_generalised(self.name, self.columns(evidence), evidence.known_table)
        )

    def sees_joined_records(self, evidence: Evidence) -> bool:
        """Whether all values are exact, and not too many: units are then linked by all of their records."""
        known, released = evidence.known_table, evidence.protected
        if released is None or len(known) * len(released) > MOST_PAIRS_OF_UNITS:
            return False
        return not released.is_generalised(*self.columns(evidence))

    def of_space(self, evidence: Evidence, space: LinkageSpace, run: Run) -> Score:
        """Link each record to the nearest."""
        names, coarse = self.columns(evidence), self.is_coarse(evidence)
        assert space.owners is not None  # `refuses` saw to it
        if not len(space.known_points):
            return Score.not_estimable(space.why_empty)
        tick, details = run.ticker(self.title), self.count_details(space, evidence, names)
        if coarse:
            near = nearness_of(evidence, names, space.rows, metric=self.metric, scale=self.scale)
            links = near.links(space.persons, space.owners, tick=tick)
            details |= {"metric": f"{space.metric} to what released values stand for, then information loss"}
            details |= {"not_covered": int((links.references > 0).sum())}
        else:
            links = kernels.linking.closer_counts(
                *space.points, space.persons, space.owners, **space.distance, tick=tick
            )
        details |= {"ties_shared": int(((links.chances > 0) & (links.chances < 1)).sum())}
        score = expected_links(evidence, space, links.chances, details)
        if (joined := joining(evidence)) and self.sees_joined_records(evidence):
            return max(score, self._of_units(evidence, space, list(joined.values())[-1], run), key=_value)
        return score

    def _of_units(self, evidence: Evidence, space: LinkageSpace, numbers: Ints, run: Run) -> Score:
        """Link all records of a unit at once to the released unit that is nearest to them."""
        assert space.truth is not None  # `refuses` saw to it
        alone = numbers.max(initial=0) + 1 + np.arange(len(space.truth))
        units = np.where(space.truth < 0, alone, numbers[space.truth])
        n_measured = space.known_points.shape[1] - space.n_codes
        centred = [
            _centre_by_unit(points, of, n_measured)
            for points, of in zip(space.points, (units, numbers), strict=True)
        ]
        link = partial(kernels.unit_linking.unit_chances, **space.distance, tick=run.ticker(self.title))
        chances = max((link(*pair, units, numbers) for pair in (space.points, centred)), key=np.mean)
        first = np.unique(units, return_index=True)[1]
        return Score(
            value=float(chances[first].mean()),
            by_record=by_original(space.rows, chances, len(evidence.known_table)),
            baseline=1 / max(count_distinct(numbers), 1),
            details={"units": len(first), "links_certain": int((chances[first] == 1).sum())},
        )


class AttributeLinkage(LinkageMeasure):
    r"""Share of values an intruder learns from the released record that is nearest in all other columns.

    For each of the :math:`V` columns the intruder is taken to know the other :math:`V - 1`, links each record
    by them, and takes the released value of the column for the true one:

    .. math::

        A = \frac{1}{V} \sum_{c=1}^{V} \frac{1}{N} \sum_{n=1}^{N}
            \frac{|\{y \in B_n^{(c)} : y_c \approx x_{n,c}\}|}{|B_n^{(c)}|}

    where :math:`B_n^{(c)}` are the released records nearest to record :math:`n` in all columns but :math:`c`,
    and :math:`\approx` means equal for nominal and ordinal values, and within ``within`` per cent of the
    column's standard deviation for numbers and dates. No true pairs are needed, so synthetic data can be
    measured.

    Notes
    -----
    **How to read it.** 0 means nothing is learnt, 1 that every value is. Compare with ``baseline``, what the
    value of a released record drawn blindly would give: what is known of everybody discloses nobody.
    ``by_column`` shows which columns are learnt.

    **Doubt.** Exact, ties shared.

    **Missing.** In the columns used for linking a value of its own; where cells were suppressed the score is
    no more than an estimate. A record whose true value is missing
    is left out of that column: there is nothing to learn; a released value that is missing is never right.

    **Units.** Persons are counted, each by the record from which most is learnt.

    **Cost.** That of `DistanceLinkage` times the number of columns.
    """

    name = "attribute-linkage"
    family = "linkage"
    threat = "inference"
    title = "Attribute disclosure by linkage"
    needs = Needs(columns=2)  # one to learn and one to link by
    counts = replace(LinkageMeasure.counts, averages_columns=True)
    tells = Tells(
        record_sentence="the released record nearest in the other columns discloses {:.0%} of its values"
    )
    references = ("soriacomas2015", "carvalho2023")
    cost = "n²"

    within: float = param(10.0, WITHIN_HELP, ge=0, le=1000, unit="%")

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse what cannot be compared; whose the records are need not be known."""
        names, tables = self.columns(evidence), (evidence.known_table, evidence.protected)
        return self.why_unsuitable(evidence) or why_generalised(self.name, names, *tables)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Link by all columns but one, for each, and look at that one."""
        names = self.columns(evidence)
        size = len(evidence.known_table)
        learnt, guessed = np.full((len(names), size), np.nan), np.full((len(names), size), np.nan)
        for i, name in enumerate(run.track(self.title, names, len(names))):
            space = self.space(evidence, run, tuple(other for other in names if other != name))
            shares = self._correct_value_shares(evidence, space, name, run)
            learnt[i, space.rows], guessed[i, space.rows] = shares
        persons = persons_of(evidence.known_table)
        by_column = {name: mean_of_best(persons, learnt[i]) for i, name in enumerate(names)}
        by_column = {name: value for name, value in by_column.items() if not np.isnan(value)}
        if not by_column or not len(space.released_points):
            return Score.not_estimable("no record of the intruder has a value to learn")
        chance = [mean_of_best(persons, each) for each in guessed]
        there = ~np.isnan(learnt)
        return Score(
            value=float(np.mean(list(by_column.values()))),
            by_column=by_column,
            by_record=np.where(
                there.any(axis=0), np.nansum(learnt, axis=0) / np.maximum(there.sum(axis=0), 1), np.nan
            ),
            baseline=float(np.nanmean(chance)),
            details={**self.count_details(space, evidence, names), "values": int(there.sum())},
        )

    def _correct_value_shares(
        self, evidence: Evidence, space: LinkageSpace, name: str, run: Run
    ) -> tuple[Floats, Floats]:
        """The share of right values among the nearest of each, and among all; NaN where there is none."""
        assert evidence.protected is not None  # `refuses` saw to it
        true, released, reach = self._values(evidence.known_table, evidence.protected, name)
        true = true[space.rows]
        if not len(space.known_points) or not len(space.released_points):
            return np.full(len(true), np.nan), np.full(len(true), np.nan)
        slack = DISTANCE_TOLERANCE * (np.abs(true) + reach)
        lows, highs = true - reach - slack, true + reach + slack
        guessed = _share_between(released, lows, highs)
        holes, nowhere = np.isnan(true), np.nanmax(np.abs(released), initial=0) + reach + 1
        # A missing value is put where no window reaches, so it is never right.
        window = kernels.linking.Window(
            np.where(np.isnan(released), 2 * nowhere, released)[:, None],
            np.where(holes, 0.0, np.clip(lows, -nowhere, None))[:, None],
            np.where(holes, 0.0, np.clip(highs, None, nowhere))[:, None],
        )
        tied, inside = kernels.linking.nearest_in_window(
            *space.points, **space.distance, window=window, tick=run.silent().ticker(self.title)
        )
        return np.where(holes, np.nan, inside / tied), np.where(holes, np.nan, guessed)

    def _values(self, known: Table, released: Table, name: str) -> tuple[Floats, Floats, float]:
        """A column of both tables as numbers that compare, and how far apart two may be."""
        kind = known.schema[name].kind
        if kind in MEASURED:
            true, other = around_median(*numbers_of_both(known, released, name))
            # True values that are all the same, as of a single person, do not tell what is near: both do.
            spread = deviation(true) or deviation(np.concatenate((true, other)))
            return true, other, self.within / 100 * spread
        both = (codes.astype(np.float64) for codes in codes_of_both(known, released, name))
        first, second = (np.where(codes < 0, np.nan, codes) for codes in both)
        return first, second, 0.0


def mean_of_best(persons: Ints, values: Floats) -> float:
    """The mean over persons of the greatest of their values; NaN if there is none."""
    there = ~np.isnan(values)
    return float(best_by_person(persons[there], values[there]).mean()) if there.any() else np.nan


def _share_between(values: Floats, lows: Floats, highs: Floats) -> Floats:
    """The share of all values, missing ones among them, from each low to each high; NaN where a limit is."""
    ordered = np.sort(values[~np.isnan(values)])
    counts = np.searchsorted(ordered, highs, side="right") - np.searchsorted(ordered, lows, side="left")
    return np.where(np.isnan(lows), np.nan, counts / max(len(values), 1))
