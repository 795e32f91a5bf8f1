"""Linkability: whether a release joins two sets of facts about one person."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import owners_of
from sfumato.core.measure import Laws, Score, Tells
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.errors import quoted
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._attack import AttackMeasure, AttackSides, AttackTrial, arena_of, sides_of


class Linkability(AttackMeasure):
    r"""Share of people whose data in two sources a release links, beyond the share in a control group.

    The intruder knows some columns of a person from one place and others from another, and wants to know that
    they are of one person. In either set of columns they look for the ``k`` nearest released records; one
    that is among both links the two. Records that are equally near are all candidates: of :math:`c` people
    who are candidates in both sets the intruder names ``k``, and is credited :math:`\min(1, k / c)`. With
    :math:`\tau` the share of people so linked, and :math:`\tau_c` that of strangers,

    .. math:: R = \frac{\tau - \tau_c}{1 - \tau_c}.

    Numbers are compared by the share of the range between them, categories by being equal (Gower); a
    generalised cell is no distance from a value it may stand for.

    Notes
    -----
    **How to read it.** 0 means that people in the release are linked no more often than others; 1 that all
    are. ``baseline`` is what two sets of records drawn blindly give. Without ``first`` and ``second`` the
    columns are dealt out in turn, those of most values first. ``candidates`` says how many released people
    each set of columns leaves on average, and both together: where these are many, people are alike and the
    release links nobody, and a low number means that and no more.

    Where nothing is equally near this is the published attack, which draws ``k`` records of those equally
    near in either set by lot; in categories these are seldom the same ones. It is tried as well (*nearest
    records*), and the one that does better is the score.

    **Doubt.** Estimated from at most ``queries`` people on each side, with an interval of the stated
    confidence.

    **Missing.** A missing value is a value of its own; where released cells are generalised, or lack values
    that people have, one that is missing may be any and is as far as a record drawn blindly.

    **Units.** Persons are counted, each by the record that is linked; two released records of one person
    link, too.

    **Cost.** A look at each released record for each one attacked, twice.
    """

    name = "linkability"
    counts = replace(
        AttackMeasure.counts,
        laws=Laws(reads_names="Columns of equally many values are dealt out in the order of their names."),
    )
    vetted = (
        "brute-forced: unit/risk/test_attacks.py::"
        "test_linkability_and_inference_are_what_a_look_at_every_pair_gives"
    )
    family = "attacks"
    threat = "linkability"
    title = "Linkability"
    tells = Tells(
        places={"report": 21},
        record_sentence="the release links its two sets of columns with a probability of {:.3g}",
        not_seen="It does not test an intruder who weighs both sets of columns together or links by other "
        "columns: it looks up each set alone and counts only the nearest released records.",
    )
    references = ("giomi2023", "carvalho2023")

    k: int = param(1, "Number of nearest records in either set of columns.", ge=1, le=100)
    first: Columns = param(Columns(), "The columns known from one source.")
    second: Columns = param(Columns(), "The columns known from another source.")

    def parts(self, evidence: Evidence) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The two sets of columns."""
        names, resolve = self.columns(evidence), evidence.original.schema.resolve
        first, second = (tuple(n for n in resolve(each) if n in names) for each in (self.first, self.second))
        if first or second:
            others = [name for name in names if name not in (first or second)]
            return first or tuple(others), second or tuple(others)
        counts = {name: evidence.original.frame[name].n_unique() for name in names}
        dealt = sorted(names, key=lambda name: (-counts[name], name))
        return tuple(sorted(dealt[::2])), tuple(sorted(dealt[1::2]))

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse a single column, and sets that overlap: there must be two to join."""
        reason = super().refuses(evidence)
        if reason is not None:
            return reason
        named = evidence.original.schema.resolve(Columns((*self.first, *self.second)))
        if unknown := sorted(set(named) - set(self.columns(evidence))):
            return f"{self.name} must be given columns that the intruder knows, got: {quoted(unknown)}"
        first, second = self.parts(evidence)
        if not first or not second or set(first) & set(second):
            got = "one column" if len(self.columns(evidence)) == 1 else "sets that overlap or are empty"
            return f"{self.name} must have two sets of columns without a common one, got: {got}"
        apart = () if evidence.buckets is None else set(evidence.buckets.names) & {*first, *second}
        if apart:
            return (
                f"{self.name} must find both sets of columns beside each other, got: "
                f"{quoted(sorted(apart))}, which a bucket joins to the others"
            )
        return None

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Look for the nearest in either set, and for a common one."""
        assert evidence.protected is not None  # `refuses` saw to it
        released, names, owners = evidence.protected, self.columns(evidence), owners_of(evidence)
        sides = sides_of(evidence, names, self.queries, run)
        k, places, searches = min(self.k, len(released)), [], []
        for number, part in enumerate(self.parts(evidence)):
            # A lot of its own for each set: of records equally near the same ones would be drawn twice.
            order = sides.order[run.rng("lot", number).permutation(len(released))]
            arena = arena_of(sides.known, released, part, order)
            near, far = arena.nearest(sides.targets, k=k, run=run, task=self.title)
            places.append(owners[near])
            searches.append(arena.search(sides.targets, far[:, -1], owners))
        drawn = (places[0][:, :, None] == places[1][:, None, :]).any(axis=(1, 2)).astype(np.float64)
        counts = kernels.box_neighbours.count_common(*searches, tick=run.ticker(self.title))
        common = np.where(counts[:, 2] > 0, np.minimum(k / np.maximum(counts[:, 2], 1), 1.0), 0.0)
        found = {"common candidates": common}
        if not np.array_equal(common, drawn):
            found["nearest records"] = drawn
        baseline = _blind(owners, k)
        trials = {how: _trial(sides, hits, baseline) for how, hits in found.items()}
        by_record = sides.by_record(common, len(evidence.original))
        details: dict[str, float | int | str] = {
            "columns": len(names),
            "candidates": _candidates_sentence(counts[: len(sides.people)]),
        }
        return self.score_of_trials(trials, by_record=by_record, details=details)


def _trial(sides: AttackSides, hits: Floats, baseline: float) -> AttackTrial:
    of_people, others = sides.best(hits)
    return AttackTrial(of_people.sum(), len(of_people), others.sum(), len(others), baseline)


def _blind(owners: Ints, k: int) -> float:
    """How often two sets of records drawn blindly have a common owner."""
    shares = np.bincount(owners) / len(owners)
    m = max(round(1 / float(shares @ shares)), k)  # how many owners of as many records each
    return 1 - math.comb(m - k, k) / math.comb(m, k)


def _candidates_sentence(counts: Ints) -> str:
    """Say among how many a person is sought: who has many twins in each set is honestly hard to link."""
    first, second, both = counts.mean(axis=0)
    return (
        f"one set of columns leaves {first:,.1f} released people on average, the other {second:,.1f}, and "
        f"{both:,.1f} of them are in both"
    )
