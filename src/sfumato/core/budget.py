"""A privacy budget: what each differentially private step spent, and what all of them spent together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal

from sfumato.errors import ParameterError

#: Said of an ε that was moved until the data looked right: the search itself told something of them.
NO_GUARANTEE = "not a differential-privacy guarantee"

#: Between which logarithms of α − 1 the best order α of a Rényi divergence is looked for, in how many cuts.
_LEAST_ORDER, _MOST_ORDER, _HALVINGS = -5.0, 30.0, 60

#: Which tables are neighbours: one unit more or less, or one unit with other values.
Neighbours = Literal["add-remove", "replace"]


@dataclass(frozen=True)
class Spending:
    """What one mechanism spent: ε and δ, or ρ of zero-concentrated differential privacy.

    ``unit`` is what is hidden, in words (``record``, ``person with at most 3 records``), and ``neighbours``
    say which two tables cannot be told apart. It is not ``kept`` if ε was moved on the data.
    """

    mechanism: str
    epsilon: float = 0.0
    delta: float = 0.0
    rho: float = 0.0
    unit: str = "record"
    neighbours: Neighbours = "add-remove"
    kept: bool = True

    def __post_init__(self) -> None:
        spent = (self.epsilon, self.delta, self.rho)
        if not all(each >= 0 and math.isfinite(each) for each in spent) or self.delta >= 1:
            raise ParameterError(
                f"{self.mechanism} must spend ε, ρ from 0 up and δ from 0 to below 1, "
                f"got: ε = {self.epsilon}, δ = {self.delta}, ρ = {self.rho}"
            )
        if self.rho and (self.epsilon or self.delta):
            raise ParameterError(f"{self.mechanism} spends both ρ and ε or δ: give one of the two")

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Total:
    r"""Differential privacy of neighbours :math:`x` and :math:`x'`.

    .. math:: P(M(x) \in S) \le e^\varepsilon P(M(x') \in S) + \delta
    """

    epsilon: float
    delta: float

    @property
    def advantage(self) -> float:
        r"""The most that an attack on membership gains.

        .. math:: TPR - FPR \le \frac{e^\varepsilon - 1 + 2\delta}{e^\varepsilon + 1}
        """
        grown = math.exp(-self.epsilon)  # so that a large ε does not overflow
        return min(1.0, (1 - grown + 2 * self.delta * grown) / (1 + grown))


@dataclass(frozen=True)
class PrivacyBudget:
    """What was spent, mechanism by mechanism, in the order of the steps; empty where nothing is private."""

    spent: tuple[Spending, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.spent)

    def __add__(self, later: PrivacyBudget) -> PrivacyBudget:
        """Spend both on the same records: budgets add up."""
        return PrivacyBudget(self.spent + later.spent)

    def total(self, delta: float = 1e-6) -> Total:
        r"""What all spent together: pure ε adds up, and so does ρ, which gives ε for a ``delta``.

        .. math:: \varepsilon = \min_{\alpha > 1} \; \alpha \rho + \ln\left(1 - \frac 1 \alpha\right)
            + \frac{\ln(1/\delta) - \ln \alpha}{\alpha - 1}

        (Canonne, Kamath and Steinke 2020). Where some steps are pure and some concentrated, a pure ε counts
        as itself or as :math:`\rho = \varepsilon^2/2`, whichever gives less.
        """
        kinds = {(each.unit, each.neighbours) for each in self.spent}
        if len(kinds) > 1:
            neighbourhoods = "; ".join(sorted(f"{unit}, {neighbours}" for unit, neighbours in kinds))
            raise ParameterError(
                f"budgets of different units or neighbouring relations cannot be added: {neighbourhoods}"
            )
        if not 0 < delta < 1:
            raise ParameterError(f"`delta` must be above 0 and below 1, got: `{delta}`")
        rho, lost = (math.fsum(getattr(each, name) for each in self.spent) for name in ("rho", "delta"))
        pure = math.fsum(each.epsilon for each in self.spent if not each.delta)
        rest = math.fsum(each.epsilon for each in self.spent if each.delta)
        if not rho:
            return Total(pure + rest, min(lost, 1.0))
        squares = math.fsum(each.epsilon**2 / 2 for each in self.spent if not each.delta)
        least = min(pure + _epsilon_of_rho(rho, delta), _epsilon_of_rho(rho + squares, delta))
        return Total(rest + least, min(lost + delta, 1.0))

    def unkept(self) -> PrivacyBudget:
        """The same, of steps whose ε was moved on the data."""
        return PrivacyBudget(tuple(replace(each, kept=False) for each in self.spent))

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: each step, and all of them together where they can be added."""
        payload: dict[str, Any] = {"steps": [each.to_dict() for each in self.spent]}
        if len({(each.unit, each.neighbours) for each in self.spent}) == 1:
            total = self.total()
            payload |= {"epsilon": total.epsilon, "delta": total.delta, "advantage_at_most": total.advantage}
        if not all(each.kept for each in self.spent):
            payload["guarantee"] = NO_GUARANTEE
        return payload


def side_by_side(budgets: Sequence[PrivacyBudget]) -> PrivacyBudget:
    """What was spent on parts of a table that share no record: where one record is in one part, the most.

    A record that is replaced may move from one part to another, so then the two largest count. A unit of
    several records may stand in many parts: there everything adds up.
    """
    rows = list(zip_longest(*(each.spent for each in budgets)))
    alike = all(None not in row and len({_sort_of(each) for each in row}) == 1 for row in rows)
    if not alike or any(each.unit != "record" for budget in budgets for each in budget.spent):
        return PrivacyBudget(tuple(each for budget in budgets for each in budget.spent))
    return PrivacyBudget(tuple(_largest(row) for row in rows))


def _sort_of(spent: Spending) -> tuple[Any, ...]:
    return spent.mechanism, spent.unit, spent.neighbours, spent.rho > 0


def _largest(row: Sequence[Spending]) -> Spending:
    count = 2 if row[0].neighbours == "replace" else 1
    sums: dict[str, Any] = {
        name: math.fsum(sorted((getattr(each, name) for each in row), reverse=True)[:count])
        for name in ("epsilon", "delta", "rho")
    }
    return replace(row[0], **sums, kept=all(each.kept for each in row))


def rho_of_epsilon(epsilon: float, delta: float) -> float:
    """The largest ρ that gives no more than ε at δ."""
    low, high = 0.0, epsilon  # ε is more than ρ unless δ is large, where less is spent than could be
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _epsilon_of_rho(middle, delta) <= epsilon else (low, middle)
    return low


def _epsilon_of_rho(rho: float, delta: float) -> float:
    """The ε of ρ at δ; each α proves one, and the least is looked for by cutting where it must lie."""

    def proved(log: float) -> float:
        more = math.exp(log)  # α − 1
        return (1 + more) * rho - math.log1p(1 / more) + (math.log(1 / delta) - math.log1p(more)) / more

    low, high = _LEAST_ORDER, _MOST_ORDER
    for _ in range(_HALVINGS):
        left, right = low + (high - low) * 0.382, low + (high - low) * 0.618
        low, high = (low, right) if proved(left) <= proved(right) else (left, high)
    return max(0.0, proved((low + high) / 2))
