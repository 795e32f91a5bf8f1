"""Differential privacy by sampling and k-anonymity: fixed levels, a random sample, and no small classes."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from sfumato.core.method import Gives
from sfumato.core.params import PerColumn, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.levels import KeyLevels
from sfumato.data.schema import COMPARABLE
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.methods import _opendp
from sfumato.methods._private import PrivateMethod, others, spending
from sfumato.methods.recoding import hierarchies_of

#: What rounding may take from a chance, so that more is drawn than was said.
_FLOAT_TOLERANCE = 1e-9
#: By default no record is drawn with a larger chance: near 1 the classes would have to be far larger.
_LARGEST_CHANCE = 0.5
#: Beyond, nothing is gained, and powers of e end.
_LARGEST_EPSILON = 500.0
#: With less no class is large enough.
_LEAST_DELTA = 1e-100
#: Counts that are looked at at a time, and what their chances may be off by rounding.
_COUNTS, _MARGIN = 1024, 1e-6


class PrivateRecoding(PrivateMethod):
    r"""Sample the records, show them at fixed levels, and leave out who is alike to too few (SafePub).

    Each record is drawn with the chance :math:`\beta`. The keys of those drawn are shown at levels that were
    chosen without looking at the data, and records in classes of fewer than :math:`k` are left out. That is
    :math:`(\varepsilon, \delta)`-differential privacy if :math:`\beta \le 1 - e^{-\varepsilon}` and

    .. math::

        \delta \ge \max_{m \ge k} \; P(X_m \ge a_m) - e^\varepsilon P(X_{m-1} \ge a_m), \qquad
        X_m \sim \mathrm{Bin}(m, \beta), \quad a_m = \max(k, \lfloor \gamma m \rfloor + 1),

    with :math:`\gamma = 1 - (1 - \beta) e^{-\varepsilon}`; the smallest such :math:`k` is taken.

    See Also
    --------
    global-recoding : finds the levels by the data, for k-anonymity alone.
    PrivateMarginals : new records from noisy counts, which keep much more of the data.

    Notes
    -----
    **When to use.** True records are wanted under differential privacy, there are many of them, and a few
    keys at coarse levels will do: ε = 1 and a δ of a millionth take classes of 35 drawn records.

    **Guarantees.** (ε, δ)-differential privacy of the protected columns, where neighbours are tables with one
    record more or less. *Proof.* The levels are fixed, so a record changes the count of one class only, from
    :math:`X_{m-1}` to :math:`X_m`, of which nothing is shown below :math:`k`. A count :math:`j` is
    :math:`m (1 - \beta) / (m - j)` times as likely with the record: more than :math:`e^\varepsilon` only
    above :math:`\gamma m`, so that :math:`\delta` is what lies beyond on the counts that are shown. Without
    it a count is at most :math:`1 / (1 - \beta) \le e^\varepsilon` times as likely. The sum for a class
    falls with :math:`m` below any bound (Chernoff), so that the maximum is found. The theorem of Li, Qardaji
    and Su leaves the second term out and asks for a larger :math:`k`. Of a person with :math:`c` records
    each is protected with :math:`\varepsilon / c`. OpenDP draws the sample, and no seed repeats it.

    **Risk to know.** Unprotected columns are released unchanged. Levels, β or ε that were chosen from the
    data, and hierarchies built from it (``domain`` data), give no guarantee. Each release spends budget
    again.

    **Ties, missing, weights.** A missing key is a value that no level changes, except a root that is the
    wildcard. A value that is not in its hierarchy is shown as the root. Sampling weights are not used. Where
    no class is large enough nobody is released.

    **Cost.** :math:`O(n \log n)`.

    Examples
    --------
    >>> table = Table(pl.DataFrame({"sex": ["f", "m"] * 500}), Schema((Column("sex", Kind.NOMINAL),)))
    >>> release = PrivateRecoding(epsilon=1, levels=0).apply(table.aimed_at(["sex"]), Run(seed=1))
    >>> release.figures["k"], release.budget.total().epsilon
    (35, 1.0)
    """

    name = "private-recoding"
    vetted = "proved: proofs/sampled-classes.md"
    synonyms = ("SafePub", "EDDifferentialPrivacy", "sampling and k-anonymity", "safe k-anonymisation")
    title = "Private recoding"
    analyst_note = (
        "This is a random sample, drawn with a published chance, at fixed levels; combinations that few "
        "records have are left out, so counts of rare groups are too small."
    )
    family = "differential privacy"
    nature = "non-perturbative"
    kinds = COMPARABLE
    references = ("bild2018", "li2012")
    gives = Gives(generalised=True, suppressed=True, other_records=True)

    levels: PerColumn[int] = param(
        0, "Level of the hierarchy to show, chosen without the data: 0 is the values themselves.",
        ge=0, le=99, symbol="ℓ",
    )  # fmt: skip
    delta: float = param(
        1e-6, "Probability with which the guarantee may fail.", ge=1e-15, le=0.1, symbol="δ", log=True,
        hint="well below 1 / (number of records)",
    )  # fmt: skip
    share: float | None = param(
        None, "Chance of a record to be drawn; by default the largest that ε allows, up to a half.",
        gt=0, lt=1, symbol="β", advanced=True, label="Chance to be drawn",
    )  # fmt: skip

    def refuses(self, table: Table) -> str | None:
        """Refuse a chance to be drawn that gives more away than ε."""
        most = -math.expm1(-self.epsilon / self.records)
        if self.share is not None and self.share > most:
            return f"`share` of {self.name} must be at most {most:.6g} for this ε, got: {self.share:g}"
        if self._of_a_record()[1] < _LEAST_DELTA:
            return f"{self.name} has no δ left for each of so many records: lower `records` or ε"
        return super().refuses(table)

    def why_undeclared(self, table: Table) -> str | None:
        """Refuse levels of hierarchies that would be built from the data."""
        built = [name for name in table.chosen if self.levels[name] and not table.schema[name].hierarchy]
        if self.domain == "data" or not built:
            return None
        return (
            f"{self.name} needs the hierarchies that its levels are of: the schema has none for "
            f"{quoted(built)} (`domain` data builds them from the data; level 0 needs none)"
        )

    def _of_a_record(self) -> tuple[float, float]:
        """The ε and δ of each record of a person that together are those of the person."""
        part = self.epsilon / self.records
        share = math.exp(part - self.epsilon) * math.expm1(-part) / math.expm1(-self.epsilon)
        return part, self.delta * share

    def protect(self, table: Table, run: Run) -> Release:
        """Draw the records, show them at their levels, and leave out small classes."""
        epsilon, delta = self._of_a_record()
        chance = self.share or min(-math.expm1(-epsilon) * (1 - _FLOAT_TOLERANCE), _LARGEST_CHANCE)
        k = smallest_class(epsilon, delta, chance)
        hierarchies = hierarchies_of(table, run)[0] if any(map(self.levels.__getitem__, table.chosen)) else {}
        shown = table
        for name in run.track(self.title, table.chosen, len(table.chosen)):
            if level := self.levels[name]:
                key = KeyLevels.of(table, name, hierarchies[name], "root")
                shown = key.write(shown, min(level, key.height - 1))
        rows = np.flatnonzero(_opendp.draw_each(len(table), chance))
        drawn = shown.take(rows)
        if len(rows):
            classes = Classes.of(drawn, table.chosen)
            kept = np.flatnonzero(classes.members[classes.of_record] >= k)
            rows, drawn = rows[kept], drawn.take(kept)
        notes = [f"a record is drawn with the chance {chance:.4g}; classes of fewer than {k} are left out"]
        notes += [
            f"unchanged, and not protected by ε: {quoted(beside)}" for beside in [others(table)] if beside
        ]
        release = Release.of(drawn, source_rows=rows, notes=tuple(notes), figures={"k": k, "chance": chance})
        spent = spending(
            "sampling and classes of at least k", "add-remove", epsilon=self.epsilon, delta=self.delta
        )
        return self.with_budget(release, table, [spent], delta=self.delta)


def smallest_class(epsilon: float, delta: float, chance: float) -> int:
    """The smallest k for which sampling with this chance, and no smaller classes, is (ε, δ)-private."""
    low, high = 0, 1
    while delta_of(high, epsilon, chance) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_of(middle, epsilon, chance) <= delta else (middle, high)
    return high


@cache
def delta_of(k: int, epsilon: float, chance: float) -> float:
    r"""The δ of sampling with a chance and classes of at least k, at an ε of no less than −ln(1 − chance).

    That a class of m shows a count of a or more differs by
    :math:`\beta P(X_{m-1} = a - 1) - (e^\varepsilon - 1) P(X_{m-1} \ge a)`, which rises with m while
    :math:`\gamma m \le a - 1` and falls from there on: so for each a one m is looked at.
    """
    from scipy.special import betainc, betaln  # slow to import

    epsilon = min(epsilon, _LARGEST_EPSILON)
    border = -math.expm1(math.log1p(-chance) - epsilon)
    # By Chernoff a class of m has more than the border of them drawn with a chance of e^(−m·rate) at most.
    rate = border * math.log(border / chance) - (1 - border) * epsilon
    worst, first = 0.0, k
    while math.exp(-(first - 1) / border * rate) > worst:
        least = np.arange(first, first + _COUNTS, dtype=np.float64)
        others = np.maximum(np.floor((least - 1) / border), least - 1)  # m without the record
        logs = least * math.log(chance) + (others - least + 1) * math.log1p(-chance) - np.log1p(others)
        just = np.exp(logs - betaln(others - least + 2, least))  # the chance that it makes the difference
        beyond = others >= least
        more = np.where(beyond, betainc(least, np.where(beyond, others - least + 1, 1.0), chance), 0.0)
        worst = max(worst, float((just - math.expm1(epsilon) * more).max()))
        first += _COUNTS
    return worst * (1 + _MARGIN)
