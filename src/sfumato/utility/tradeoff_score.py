"""The score of Domingo-Ferrer and Torra: the mean of what a release loses and what it discloses."""

from __future__ import annotations

from typing import Any

from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score, Status, Tells
from sfumato.core.run import Run
from sfumato.data.schema import ORDERED

#: The parts of the score, with their settings and weights.
_PARTS: dict[str, tuple[dict[str, Any], float]] = {
    "probabilistic-information-loss": ({}, 0.5),
    "interval-disclosure": ({"by": "rank", "width": 10.0, "steps": 10}, 0.25),
    "dbrl": ({}, 0.125),
    "probabilistic-linkage": ({}, 0.125),
}


class TradeoffScore(Measure):
    r"""Mean of information loss and disclosure risk (the score of Domingo-Ferrer and Torra).

    .. math::

        \tfrac12 (IL + DR), \qquad DR = \tfrac12 ID + \tfrac14 (DLD + PLD)

    where :math:`IL` is the probabilistic information loss, :math:`ID` the interval disclosure by ranks, mean
    over ten widths up to 10 %, :math:`DLD` the share of records linked by distance and :math:`PLD` that of
    probabilistic linkage. The papers measure the loss by relative changes of statistics at first, which have
    no upper bound; the probabilistic loss, by the same authors, lies between 0 and 1.

    See Also
    --------
    probabilistic-information-loss : the loss alone.
    interval-disclosure : one of the risks alone.

    Notes
    -----
    **How to read it.** Lower is better; 0 means that nothing is lost and nothing disclosed, which no release
    reaches. An unchanged table has 0.5, and so has one of which nothing is left. ``details`` has the parts.

    **Doubt.** The score trades risk for loss, one for one: a release may have a good score and disclose too
    much. So it ranks methods, as in the literature, and cannot be required; require the risks. It is
    approximate if a part is.

    **Missing.** As in its parts.

    **Cost.** That of its parts; probabilistic linkage compares all pairs of records.
    """

    name = "tradeoff-score"
    synonyms = ("Domingo-Ferrer Torra score", "IL + DR", "score of Domingo-Ferrer and Torra", "overall score")
    family = "analyses"
    title = "Score of loss and risk"
    aspect = "utility"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = ORDERED
    references = ("domingoferrer2001", "mateosanz2005")
    cost = "n²"
    needs = Needs(mapping=True, exact_original=True)
    tells = Tells(
        why_not_required="it trades risk for loss, so a release that discloses too much may score well",
        trades=True,
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Score the parts, and weigh them."""
        total, doubt, details = 0.0, "", dict[str, float]()
        for name, (settings, weight) in _PARTS.items():
            part = registry.measure(name).from_dict(settings).score(evidence, run)
            if part.status not in (Status.OK, Status.APPROXIMATE):  # fmt: skip
                return Score.not_estimable(part.reason)
            doubt = doubt or (part.reason or f"{name} is approximate") * (part.status is not Status.OK)
            details[name] = part.value
            total += weight * part.value
        status = Status.APPROXIMATE if doubt else Status.OK
        return Score(value=total, status=status, reason=doubt, details=details)
