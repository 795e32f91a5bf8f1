"""Exact matches: whose own record stands in a release alone, and says what an intruder knows of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import classes_of, joining, why_pairs_unknown
from sfumato.core.measure import Counting, Laws, Score, Tells
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.cover import cover_of
from sfumato.data.persons import best_by_person
from sfumato.kernels.arrays import Flags, Ints
from sfumato.risk._box_distances import nearness_of
from sfumato.risk._spaces import NOISE_NOT_SEEN, LinkageSpace, TrueLinkMeasure, space_of, why_generalised
from sfumato.risk.linkage import by_original


class ExactMatch(TrueLinkMeasure):
    r"""Share of persons whose own released record is the only one that agrees with all the intruder knows.

    .. math::

        P = \frac{1}{N} \left|\{n : C_n \ne \emptyset,\ C_n \text{ are all of person } n\}\right|

    where :math:`C_n` are the released records that cover record :math:`n` in all known columns: an exact
    value covers its equal, an interval or group every value in it.

    See Also
    --------
    DirectMatching : the chance to be right for whoever agrees, not only where it is certain.
    Uniqueness : who is alone in the released values, be they true or not.

    Notes
    -----
    **How to read it.** These persons are found for certain, without any distance, by a join of two files. A
    release of which nobody may be found must have 0. Numbers are also read as finely as the original has
    them. Most methods that change every value by a little more reach it at once, and it says nothing of how
    near the changed values are: require `dbrl` beside it. ``by_record``
    is 1 for who is found; ``covered`` counts those whose own record agrees with them, alone or not.

    **Doubt.** Exact, and on the safe side where released values are missing.

    **Missing.** A released cell that is missing, suppressed or a wildcard hides only those whose own cell
    says as little: of several records that might be anyone, none makes a person with exact values safe. A
    missing value of the intruder's is covered by such a cell only.

    **Units.** Persons are counted, each found if one of their records is; other records of the same person
    hide nobody. Where a released column tells which records belong together (a person's or a household's),
    those are found, too, of whom two or more records agree and whose released records no others have alike.

    **Cost.** That of grouping by the keys; each record whose released keys are those of one person only is
    compared with 64 distinct released ones at a time.

    Examples
    --------
    Of three ages one was left as it is, and nobody else has it:

    >>> schema = Schema((Column("age", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"age": [31.0, 40.0, 58.0]}), schema)
    >>> released = Table(pl.DataFrame({"age": [30.0, 40.0, 60.0]}), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(3)))
    >>> ExactMatch().score(evidence, Run(seed=1)).by_record.tolist()
    [0.0, 1.0, 0.0]
    """

    name = "exact-match"
    vetted = "brute-forced: property/test_exact_match.py::test_found_is_who_is_covered_by_their_own_alone"
    family = "linkage"
    title = "Exact matches"
    counts = Counting(
        joins_person_records=True, pools_copies=True, intruder_records_only=True,
        compares_kept_relations=True, compares_equal=True,
        laws=Laws(coarser_is_safer=True, copies_hide_nobody=True),
    )  # fmt: skip
    tells = Tells(places={"report": 13}, not_seen=NOISE_NOT_SEEN)
    references = ("hundepool2012", "herzog2007")
    cost = "n log n"

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse where nobody knows which matches are right."""
        return (
            self.why_unsuitable(evidence)
            or why_pairs_unknown(self.name, evidence)
            or why_generalised(self.name, self.columns(evidence), evidence.known_table)
        )

    def sentence(self, value: float) -> str:
        """Say in words what its number means for one record."""
        return f"a join on the known columns {'finds' if value > 0 else 'does not find'} it"

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Look who is covered by their own alone."""
        assert evidence.protected is not None  # `refuses` saw to it
        names = self.columns(evidence)
        space = space_of(evidence, (), run, metric="hamming", scale="range")
        if not len(space.rows) or not len(space.released_rows):
            return Score.not_estimable(space.why_empty)
        covered = _covered_by_own(evidence, names, space)
        found = _is_covered_by_own_only(evidence, names, space, run)
        if joining(evidence):
            found |= _are_groups_covered(evidence, names, space, covered)
        return Score(
            value=float(best_by_person(space.persons, found.astype(np.float64)).mean()),
            by_record=by_original(space.rows, found.astype(np.float64), len(evidence.known_table)),
            details={
                **self.count_details(space, evidence, names),
                "covered": int(covered.sum()),
                "found": int(found.sum()),
            },
        )


def _covered_by_own(evidence: Evidence, names: tuple[str, ...], space: LinkageSpace) -> Flags:
    """Whether each of mine is covered by the released record that is the same."""
    assert evidence.protected is not None and space.truth is not None  # noqa: PT018  — `refuses` saw to it
    covered = space.truth >= 0
    for name in names:
        covered &= _is_held(evidence, name, space)
    return covered


def _is_held(evidence: Evidence, name: str, space: LinkageSpace) -> Flags:
    """Whether what the same released record shows in a column may be the value of each of mine."""
    known, released, truth = evidence.known_table, evidence.protected, space.truth
    assert released is not None and truth is not None  # noqa: PT018  — `refuses` saw to it

    def look() -> Flags:
        values, cover = cover_of(known, released, name, nested=True)
        own = cover.take(truth)
        return own.holds(values[space.rows]) | own.missing

    if len(space.rows) < len(known):
        return look()
    return evidence.remember_for_all(("held", known, name), look)


def _is_covered_by_own_only(
    evidence: Evidence, names: tuple[str, ...], space: LinkageSpace, run: Run
) -> Flags:
    """Whether each of mine is covered by released records of the same person, and by no others."""
    released, owners = evidence.protected, space.owners
    assert released is not None and owners is not None  # noqa: PT018  — `refuses` saw to it
    classes = Classes.of(released, names)
    whose = _only_owners(classes.of_record, owners, len(classes))
    # One record of each class tells of all, and of one that is of several persons nobody is found.
    examples = replace(evidence, release=Release.as_read(released.take(classes.examples), evidence.buckets))
    assert examples.protected is not None  # it was one above
    both = evidence.known_table, examples.protected
    covers = (cover_of(*both, name, nested=True)[1] for name in names)
    silent = np.column_stack([cover.uninformative for cover in covers])
    found = np.zeros(len(space.rows), dtype=np.bool_)
    for pattern in np.unique(silent[whose >= 0], axis=0):
        asked = np.flatnonzero(np.isin(space.persons, whose[(silent == pattern).all(axis=1) & (whose >= 0)]))
        rows = np.flatnonzero(~(silent & ~pattern).any(axis=1))
        there = examples.read_as(examples.protected.take(rows))
        near = nearness_of(there, names, space.rows[asked], metric="hamming", scale="range")
        tick = run.ticker("exact matches")
        found[asked] |= near.is_covered_by_own_only(space.persons[asked], whose[rows], tick=tick)
    return found


def _only_owners(of_record: Ints, owners: Ints, n_classes: int) -> Ints:
    """The person whose the records of each class are; −1 where they are of several, or nobody's."""
    least, most = np.full(n_classes, np.iinfo(np.int64).max), np.full(n_classes, -1)
    np.minimum.at(least, of_record, owners)
    np.maximum.at(most, of_record, owners)
    return np.where(least == most, most, -1)


def _are_groups_covered(
    evidence: Evidence, names: tuple[str, ...], space: LinkageSpace, covered: Flags
) -> Flags:
    """Whether two or more records that belong together are covered, and no others' look the same."""
    assert space.truth is not None  # `refuses` saw to it
    numbers = list(joining(evidence).values())[-1]
    classes = classes_of(evidence, names, joined=True)
    counts = np.bincount(numbers[space.truth[covered]], minlength=int(numbers.max()) + 1)
    is_alone = (classes.persons == 1)[classes.of_record[space.truth]]
    together: Flags = covered & is_alone & (counts[numbers[space.truth]] > 1)
    return together
