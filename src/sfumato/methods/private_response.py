"""Randomised response: a category is the true one, or a random one."""

from __future__ import annotations

import polars as pl

from sfumato.core.method import Gives, set_protected_values
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.methods import _opendp
from sfumato.methods._private import ByColumnMethod, categories_of, codes_among, in_type, spending


class PrivateResponse(ByColumnMethod):
    r"""Keep each category or, at random, replace it by any category: randomised response.

    A category is released as it is or, with probability :math:`q`, replaced by one drawn uniformly from all
    :math:`K` declared categories (including the true one):

    .. math::

        q_j = \frac{K_j}{e^{\varepsilon_j / c} + K_j - 1}, \qquad
        \varepsilon_j = \varepsilon\,\frac{w_j}{\sum_l w_l}

    where :math:`c` is the largest number of records of a person and :math:`w_j` the weight of the column. So
    the true category is :math:`e^{\varepsilon_j / c}` times as likely as any other, and no more.

    See Also
    --------
    Pram : probabilities that keep expected counts, without a guarantee.
    PrivateMarginals : new records from noisy counts, which keep much more of the data.

    Notes
    -----
    **When to use.** Sensitive answers, few categories, many records: counts can be corrected, since the
    probabilities are known, :math:`\hat c_k = (t_k - n q / K) / (1 - q)` for a released count :math:`t_k`.

    **Guarantees.** ε-differential privacy of the protected columns, where neighbours are tables in which one
    record, or all of one person, has other values. The randomness is OpenDP's, and no seed repeats it.

    **Risk to know.** Unprotected columns are released unchanged. Categories from the data (``domain`` data)
    reveal which ones occur, and an ε chosen from the data discloses information about them: neither gives a
    guarantee. The same ε can mean different disclosure risks: measure ``dbrl`` too. Each release spends
    budget again.

    **Ties, missing, weights.** Missing values visibly stay missing; with ``missing`` hidden they are a
    category like the others. Sampling weights are not used.

    **Cost.** :math:`O(n \log K)`, a few µs for a value.

    Examples
    --------
    >>> smokes = Column("smokes", Kind.NOMINAL, labels=(("y", "yes"), ("n", "no")))
    >>> table = Table(pl.DataFrame({"smokes": ["y", "n", "n"]}), Schema((smokes,))).aimed_at(["smokes"])
    >>> release = PrivateResponse(epsilon=1).apply(table, Run(seed=1))
    >>> release.table.frame["smokes"].is_in(["y", "n"]).all(), release.budget.total().epsilon
    (True, 1.0)
    """

    name = "private-response"
    vetted = "proved: proofs/budgets.md"
    synonyms = ("randomised response", "local differential privacy")
    title = "Private randomised response"
    analyst_note = (
        "Categories were changed with probabilities that follow from the published ε: estimate counts by "
        "inverting these, and add the variance of that estimate."
    )
    family = "differential privacy"
    kinds = frozenset({Kind.NOMINAL, Kind.ORDINAL})
    references = ("warner1965", "dwork2006")
    gives = Gives(suppressed=True)  # where it is hidden that values are missing, others become so

    def protect(self, table: Table, run: Run) -> Release:
        """Draw each column anew where chance says so."""
        _opendp.opendp()
        protected, steps = table, []
        spent = _opendp.shares(self.epsilon, [self.weight[name] for name in table.chosen])
        for name, share in zip(table.chosen, spent, strict=True):
            categories = categories_of(table, name, self.domain, run)
            codes = codes_among(table, name, categories)
            if self.missing == "hidden":  # a category of its own, the first
                categories = pl.concat([categories.clear(1), categories])
                codes = codes + 1
            there = codes >= 0
            tick = run.ticker(f"{self.title}: {name}")
            codes = _opendp.randomised_response(
                codes[there], len(categories), epsilon=share / self.records, tick=tick
            )
            fresh = in_type(categories.gather(codes), table.frame.schema[name])
            column = (
                set_protected_values(table, name, fresh) if len(fresh) < len(table) else fresh.alias(name)
            )
            protected = protected.with_values(name, column)
            steps.append(spending(f"randomised response on {name}", "replace", epsilon=share))
        release = Release.record_by_record(protected, notes=self.remarks(table))
        return self.with_budget(release, table, steps)
