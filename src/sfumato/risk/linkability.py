"""Linkability: whether a release joins two sets of facts about one person."""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import owners_of
from sfumato.core.measure import Score, Tells
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.errors import quoted
from sfumato.risk._attack import AttackMeasure, Trial, arena_of, sides_of


class Linkability(AttackMeasure):
    r"""Share of people whose facts in two places a release joins, beyond what it does to strangers.

    The intruder knows some columns of a person from one place and others from another, and wants to know that
    they are of one person. In either set of columns they look for the ``k`` nearest released records; one
    that is among both links the two. With :math:`\tau` the share of people so linked, and :math:`\tau_c` that
    of strangers,

    .. math:: R = \frac{\tau - \tau_c}{1 - \tau_c}.

    Numbers are compared by the share of the range between them, categories by being equal (Gower); a
    generalised cell is no distance from a value it may stand for.

    Notes
    -----
    **How to read it.** 0 means that people in the release are linked no more often than others; 1 that all
    are. ``baseline`` is what two sets of records drawn blindly give. Without ``first`` and ``second`` the
    columns are dealt out in turn, those of most values first.

    **Doubt.** Estimated from at most ``queries`` people on each side, with an interval of the stated
    confidence. Of records equally near some are drawn, as an intruder must.

    **Missing.** A missing value is a value of its own; where released cells are generalised, or lack values
    that people have, one that is missing may be any and is as far as a record drawn blindly.

    **Units.** Persons are counted, each by the record that is linked; two released records of one person
    link, too.

    **Cost.** A look at each released record for each one attacked, twice.
    """

    name = "linkability"
    family = "attacks"
    threat = "linkability"
    title = "Linkability"
    tells = Tells(
        places={"report": 21},
        record_sentence="its facts in two sets of columns are joined by a released record (1) or not (0): "
        "{:.0f}",
    )
    references = ("giomi2023", "carvalho2023")

    k: int = param(1, "Number of nearest records in either set of columns.", ge=1, le=100)
    first: Columns = param(Columns(), "The columns known from one place.")
    second: Columns = param(Columns(), "The columns known from another.")

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
        released, names = evidence.protected, self.columns(evidence)
        sides = sides_of(evidence, names, self.queries, run)
        k, places = min(self.k, len(released)), []
        for number, part in enumerate(self.parts(evidence)):
            # A lot of its own for each set: of records equally near the same ones would be drawn twice.
            order = sides.order[run.rng("lot", number).permutation(len(released))]
            arena = arena_of(sides.known, released, part, order)
            places.append(arena.nearest(sides.attacked, k=k, run=run, task=self.title)[0])
        owners = owners_of(evidence)
        first, second = (owners[each] for each in places)
        hits = (first[:, :, None] == second[:, None, :]).any(axis=(1, 2)).astype(np.float64)
        mine, others = sides.best(hits)
        shares = np.bincount(owners) / len(owners)
        m = max(round(1 / float(shares @ shares)), k)  # how many owners of as many records each
        apart = math.comb(m - k, k) / math.comb(m, k)
        trial = Trial(mine.sum(), len(mine), others.sum(), len(others), 1 - apart)
        by_record = sides.by_record(hits, len(evidence.original))
        return self.estimated(
            {"nearest records": trial}, by_record=by_record, details={"columns": len(names)}
        )
