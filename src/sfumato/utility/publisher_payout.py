"""The payout of a publisher against an adversary who re-identifies where that pays (Wan and others)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score, Status, Tells
from sfumato.core.params import Resource, param
from sfumato.core.run import Run
from sfumato.data.schema import COMPARABLE

_PRICE: dict[str, Any] = {"ge": 0, "le": 1e12, "unit": "per record"}


class PublisherPayout(Measure):
    r"""Expected payout of a release to its publisher, as a share of what the unprotected table is worth.

    .. math::

        (1 - IL) - \frac{L}{B} \frac1n \sum_i p_i \,[G p_i > C]

    where :math:`IL` is the share of the information that the release has lost (non-uniform-entropy),
    :math:`p_i` the chance to re-identify record :math:`i`, :math:`B` the benefit of a record to the
    publisher and :math:`L` the loss if its person is re-identified. The adversary gains :math:`G` by that at
    the cost of :math:`C` for each attempt, and tries where more is to be expected than it costs.

    See Also
    --------
    prosecutor-risk : the chances of an adversary who knows who is in the table.
    journalist-risk : those of one who does not.
    tradeoff-score : loss and risk without prices.

    Notes
    -----
    **How to read it.** Higher is better; 1 is an unprotected table that nobody attacks, and below 0 it is
    better not to release. ``details`` have the payout in the currency of the prices, the adversary's, and how
    many records are ``attacked``: with none, the release is profitable without any attack. ``by_record`` is
    the adversary's payout for each record, 0 where an attack does not pay.

    **Doubt.** Prices cannot be checked, and risk is traded for utility: a release may pay and disclose too
    much. So it ranks releases and cannot be required; require the risks. The defaults are the prices of Wan
    and others, in US dollars. Approximate where the chances are estimated by weights. ARX takes all values
    of a domain for equally frequent where it measures the information lost, so its payouts differ somewhat
    (Adult, k = 5: 0.499 at its optimum; by frequencies 0.513 at that of ``global-recoding``).

    **Missing.** As in its parts. Who is left out is not attacked, and of no benefit.

    **Cost.** That of its parts.

    Examples
    --------
    >>> schema = Schema((Column("age", Kind.CONTINUOUS, Role.KEY),))
    >>> table = Table(pl.DataFrame({"age": [20, 30, 40, 60]}), schema)
    >>> evidence = Evidence(table, Release.record_by_record(table))
    >>> score = PublisherPayout().score(evidence, Run(seed=1))
    >>> score.value, score.details["attacked"]
    (0.75, 4)
    """

    name = "publisher-payout"
    synonyms = (
        "PublisherPayout", "publisher benefit", "ProfitabilityProsecutor", "ProfitabilityProsecutorNoAttack",
        "Stackelberg", "game theory", "cost/benefit analysis", "profitability",
    )  # fmt: skip
    family = "analyses"
    title = "Payout of the publisher"
    aspect = "utility"
    better = "high"
    bounds = (-np.inf, 1.0)
    kinds = COMPARABLE
    references = ("wan2015",)
    cost = "n log n"
    needs = Needs(mapping=True, exact_original=True)
    tells = Tells(
        why_not_required="it trades risk for utility by prices that nobody can check: require a risk",
        trades=True,
    )

    knows: Literal["members", "population"] = param(
        "members",
        "What the adversary knows.",
        choices={
            "members": "Who is in the table, as a prosecutor does.",
            "population": "The population, but not who is in the table, as a journalist does.",
        },
        synonyms={
            "ProfitabilityJournalist": "population",
            "ProfitabilityJournalistNoAttack": "population",
        },
    )
    population: Resource | None = param(
        None, "The table of the population; by default weights estimate it.", holds="table",
        when="knows=population",
    )  # fmt: skip
    benefit: float = param(1200.0, "What a record is worth to the publisher.", symbol="B", gt=0, le=1e12)
    loss: float = param(300.0, "What a re-identified person costs the publisher.", symbol="L", **_PRICE)
    gain: float = param(300.0, "What a re-identified person is worth to the adversary.", symbol="G", **_PRICE)
    price: float = param(4.0, "What an attempt costs the adversary.", symbol="C", **_PRICE)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Score the loss and the chances, and have the adversary attack where it pays."""
        lost = registry.measure("non-uniform-entropy")().score(evidence, run)
        name, given = "prosecutor-risk", dict[str, Any]()
        if self.knows == "population":
            name = "journalist-risk"
            given = {} if self.population is None else {"population": str(self.population)}
        risk = registry.measure(name).from_dict(given).score(evidence, run)
        for part in (lost, risk):
            if part.status not in (Status.OK, Status.APPROXIMATE) or part.by_record is None:  # fmt: skip
                return Score.not_estimable(part.reason)
        assert risk.by_record is not None
        chances = np.nan_to_num(risk.by_record, nan=0.0)  # who was left out is not found
        attacked = self.gain * chances > self.price
        damage = self.loss * float(np.where(attacked, chances, 0.0).mean())
        paid = np.where(attacked, self.gain * chances - self.price, 0.0)
        value = 1.0 - lost.value - damage / self.benefit
        return Score(
            value=value,
            status=risk.status,
            reason=risk.reason,
            by_record=paid,
            details={
                "payout": value * self.benefit * len(chances),
                "information_lost": lost.value,
                "damage": damage * len(chances),
                "attacked": int(attacked.sum()),
                "adversary_payout": float(paid.sum()),
            },
        )
