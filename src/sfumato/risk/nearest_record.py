"""How near released records come to people: told, and never required, for it proves nothing."""

from __future__ import annotations

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Score, Status, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.schema import COMPARABLE
from sfumato.risk._attack import MIN_PEOPLE_PER_SIDE, arena_of, stack_tables
from sfumato.risk._spaces import why_generalised, why_incomparable


class NearestRecordDistance(Measure):
    r"""Median distance from a person to the nearest released record (DCR), beside that of a control group.

    .. math:: D = \operatorname{median}_n \min_m d(x_n, y_m)

    where :math:`d` is Gower's distance over the columns the intruder knows, divided by their number.

    Notes
    -----
    **How to read it.** 0 means that half of the people or more stand in the release as they are. A large
    distance is no evidence of safety: releases that look far away were shown to give members away, so it
    is shown and cannot be required. Use `MembershipInference` or `Inference`. ``control`` is the distance of
    people who were not protected, where there are such: if theirs is larger, the release knows its people.

    **Doubt.** Of larger tables the people are a sample.

    **Missing.** As in `Linkability`.

    **Cost.** A look at each released record for each person looked at.
    """

    name = "nearest-record-distance"
    aliases = ("dcr",)
    synonyms = ("distance to closest record",)
    title = "Distance to the nearest record"
    tells = Tells(
        record_sentence="the nearest released record is {:.3g} of the columns' ranges away, on average",
        why_not_required="a large distance is no evidence of safety: require an attack with a control group, "
        "such as `membership <= 0.1 at 95%`",
    )
    family = "attacks"
    aspect = "risk"
    threat = "linkability"
    better = "high"
    bounds = (0.0, 1.0)
    kinds = COMPARABLE
    cost = "n"
    references = ("yao2025",)

    queries: int = param(2000, "Largest number of people compared.", ge=10, le=100_000)

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse what cannot be compared."""
        reason = super().refuses(evidence) or why_incomparable(self.name, evidence, self.kinds)
        return reason or why_generalised(self.name, self.columns(evidence), evidence.original)

    def why_not_estimable(self, evidence: Evidence) -> str | None:
        """Say that there are too few."""
        assert evidence.protected is not None  # `refuses` saw to it
        if min(len(evidence.original), len(evidence.protected)) < MIN_PEOPLE_PER_SIDE:
            return f"{self.name} needs at least {MIN_PEOPLE_PER_SIDE} records in both tables"
        if all(evidence.original.missing(name).all() for name in self.columns(evidence)):
            return "all values in the columns that the intruder knows are missing"
        return None

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Find the nearest record of each."""
        assert evidence.protected is not None  # `refuses` saw to it
        names, n, control = self.columns(evidence), len(evidence.original), evidence.control
        known, beside = evidence.original, control is not None and set(names) <= set(control.names)
        if control is not None and beside:
            known = stack_tables(known, control, names)
        arena = arena_of(known, evidence.protected, names, np.arange(len(evidence.protected)))
        rows = np.sort(run.rng("people").choice(n, min(n, self.queries), replace=False))
        away = arena.nearest(rows, run=run, task=self.title)[1][:, 0] / len(names)
        details: dict[str, float | int | str] = {"columns": len(names), "copied": float((away < 1e-9).mean())}  # noqa: PLR2004
        if beside:
            others = n + run.rng("others").permutation(len(known) - n)[: self.queries]
            far = arena.nearest(others, run=run, task=self.title)[1][:, 0] / len(names)
            details["control"] = float(np.median(far))
        by_record = np.full(n, np.nan)
        by_record[rows] = np.minimum(away, 1.0)
        status, reason = (
            (Status.OK, "") if len(rows) == n else (Status.APPROXIMATE, "estimated from a sample")
        )
        return Score(
            min(float(np.median(away)), 1.0),
            status=status,
            reason=reason,
            by_record=by_record,
            details=details,
        )
