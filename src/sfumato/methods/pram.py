"""PRAM, the post-randomisation method: categories change at random, with known probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from sfumato.core.method import Method, Takes
from sfumato.core.params import Resource, param
from sfumato.core.release import Byproducts, FittedMethod, PrivateArtifact, Provenance, Release
from sfumato.core.run import Run
from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.schema import Kind
from sfumato.data.strata import strata
from sfumato.data.table import Table
from sfumato.errors import DataError, RefusedError, count_noun, quoted
from sfumato.kernels.arrays import Codes, Flags, Floats
from sfumato.methods._resources import columns_of
from sfumato.methods._transitions import (
    MATRIX,
    MOST_CATEGORIES,
    MOST_CHANCES,
    AllowedTransitions,
    Categories,
    as_rows,
    draw_transitions,
    even,
    invariant,
    invert_matrix,
    read_matrix,
    restrict_transitions,
)

#: What the table of a fitted matrix is called among the resources of a release.
_FITTED = Resource("transitions")


class Pram(Method):
    r"""Change categories at random by a matrix of transition probabilities (post-randomisation).

    A record of category :math:`k` is released as :math:`l` with the probability :math:`p_{kl}` of a Markov
    matrix, independently for each record. Without a matrix of your own, a category is kept with the
    probability ``retain`` (:math:`r`) or otherwise becomes any other allowed category with equal probability:

    .. math::

        p_{kk} = r, \qquad p_{kl} = \frac{1 - r}{|A_k|} \quad (l \in A_k)

    where :math:`A_k` are the other categories of the column that occur and are allowed for the record. An
    ``invariant`` matrix keeps the counts of categories in expectation: a second stage goes back by Bayes'
    rule, and the two stages together, :math:`R`, have :math:`\sum_k c_k R_{kl} = c_l` for the counts
    :math:`c`. Where the probability to stay would be below :math:`r`, the transitions from and to that
    category are reduced by the same factor both ways, so that :math:`r` is a lower bound of every diagonal
    element and the counts are still kept.

    A transition gets the probability 0 if ``forbidden`` lists it, or if the record would violate a rule of
    the schema that it now satisfies (no pregnant men, no married children); its probability goes to staying
    or, without a matrix of your own, to other categories. Columns of one rule are treated as one column, and
    so are all columns with ``compound``: their categories are the combinations that occur.

    ``matrix`` names a table with the columns *column*, *from*, *to* and *probability*. Transitions that it
    does not list have the probability 0, every row must sum to 1, and for its columns ``retain`` is not used.
    It is used unchanged unless ``invariant`` is set: then its smallest diagonal element is kept, and
    transitions of probability 0 happen in neither direction. ``forbidden`` names a table with *column*,
    *from* and *to*. Columns treated as one are called ``a+b`` there, and so are their categories.

    See Also
    --------
    DataSwapping : keeps tables of counts exactly.
    RankSwapping : for ordinal columns, keeps the counts and moves less.

    Notes
    -----
    **When to use.** Categories that must stay as detailed as they are. With the matrix, counts of the
    original can be estimated: `corrected_counts` does so, with variances.

    **Guarantees.** Each diagonal element is at least ``retain``; a forbidden transition, and one that
    violates a rule, never happens; no new category arises. Invariant: the expected counts are those of the
    original, in each part of the records for which the rules allow the same transitions; for households that
    change ``together``, the number of households is kept, not that of their members. Proved from the matrix,
    and by enumeration in the tests.

    **Risk to know.** A released category is the true one with a probability that follows from the matrix:
    keep the matrix private (it is stored in the private trail). Records of one person change independently,
    and so do columns: many of either average out. Use ``together`` for values that a household shares. A
    unique category stays with probability :math:`r`, and is as unique as before.

    **Ties, missing, weights.** A missing value stays missing, and no value becomes missing: whether something
    is known is not protected. Combinations of several columns change only into those with the same columns
    missing. With weights the weighted counts are kept, and corrected.

    **Cost.** :math:`O(n \log K)` for :math:`K` categories, and :math:`K^3` for an invariant matrix; more than
    2,000 categories are refused.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job": ["cook"] * 6 + ["smith"] * 3 + ["king"]})
    >>> release = protect(jobs, Pram(retain=0.6), columns=["job"], seed=3)
    >>> release.data["job"].to_list()
    ['cook', 'cook', 'cook', 'cook', 'smith', 'cook', 'smith', 'cook', 'smith', 'cook']
    >>> corrected_counts(release).columns
    ['column', 'category', 'released', 'corrected', 'variance']
    """

    name = "pram"
    vetted = "proved: proofs/invariant-pram.md"
    synonyms = ("post-randomisation", "post-randomisation method")
    family = "swapping and shuffling"
    title = "PRAM"
    analyst_note = (
        "Some categories were changed at random: counts and relations are disturbed. Ask the data owner for "
        "counts corrected by the matrix (`corrected_counts`), and use their larger variances."
    )
    kinds = frozenset({Kind.NOMINAL, Kind.ORDINAL})
    references = ("gouweleeuw1998", "kooiman1997", "hundepool2012", "carvalho2023")
    cost = "n"
    takes = Takes(edit_rules=True)

    retain: float = param(
        0.8,
        "Smallest probability that a category stays unchanged.",
        ge=0,
        le=1,
        symbol="r",
        tune=(0.05, 0.99),
        drive=True,
        hint="it is a probability: 0.8 changes at most a fifth of the records on average",
    )
    invariant: bool | None = param(
        None, "Whether expected counts are kept; by default they are, unless a matrix is given."
    )
    compound: bool = param(False, "Change all columns as one, whose categories are combinations.")
    matrix: Resource | None = param(
        None, "Table of transition probabilities: column, from, to and probability.", holds="table"
    )
    forbidden: Resource | None = param(
        None, "Table of transitions that must not happen: column, from and to.", holds="table", advanced=True
    )

    def by_person(self) -> bool:
        """Each record has a draw of its own."""
        return True

    def refuses(self, table: Table) -> str | None:
        """Refuse ranges and sets of values, and a table of nobody: no chances can be told from it."""
        if not len(table):
            return f"{self.name} must be given records, got: none"
        return super().refuses(table) or self.refuses_generalised(table)

    def protect(self, table: Table, run: Run) -> Release:
        """Change the columns, each with a matrix and a stream of chance of its own."""
        groups = list(_groups(table, compound=self.compound))
        protected, stay, fitted = table, 0, [pl.DataFrame(schema=_TYPES)]
        known = _texts_of(self, "matrix", run, "probability")
        banned = _texts_of(self, "forbidden", run)
        self._require_known_units(groups, known, banned)
        for names in run.track(self.title, groups, total=len(groups)):
            chain = self.chain(table, names, known, banned)
            rng = run.random_key(*names).with_values(names, chain.categories.words).rng()
            codes = draw_transitions(chain.matrices, chain.rows, rng)
            protected = chain.categories.write(protected, codes)
            stay += chain.n_staying
            fitted += chain.transitions()
        note = f"{count_noun(stay, 'value')} cannot change: no other category is allowed"
        matrix = Table(pl.concat(fitted), MATRIX)
        again = replace(self, matrix=_FITTED, invariant=False, forbidden=None)
        tables = {str(_FITTED): matrix}
        return replace(
            Release.record_by_record(protected),
            byproducts=Byproducts(
                notes=(note,) if stay else (),
                figures={"values_that_stay": stay},
                private_artifacts=(PrivateArtifact(again, tables),),
            ),
            fit=FittedMethod(again, tables),
        )

    def _require_known_units(self, groups: list[tuple[str, ...]], *tables: pl.DataFrame | None) -> None:
        """Raise if a table speaks of columns that are no unit here: what it asks would not be done."""
        labels = {"+".join(names) for names in groups}
        for rows in tables:
            strangers = [] if rows is None else sorted(set(rows["column"]) - labels)
            if strangers:
                raise DataError(
                    f"the transitions must be of columns that {self.name} changes, {quoted(sorted(labels))}, "
                    f"got: {quoted(strangers)}",
                    hint="columns that are changed as one are named together, as in `a+b`",
                )

    def chain(
        self, table: Table, names: tuple[str, ...], known: pl.DataFrame | None, banned: pl.DataFrame | None
    ) -> Chain:
        """The matrices of columns that are changed as one, with who has which category."""
        categories = Categories.of(table, names)
        rows = None if known is None else known.filter(pl.col("column") == categories.label)
        if rows is not None and rows.height:
            categories = categories.with_more(rows["from"])
        allowed = AllowedTransitions.of(table, categories)
        n_parts, size = allowed.targets.shape
        if size > MOST_CATEGORIES or n_parts * size**2 > MOST_CHANCES:
            raise RefusedError(
                f"{self.name} must be given at most {MOST_CATEGORIES:,} categories, got: {size:,} in "
                f"{quoted(names)}"
                + (f", with {n_parts:,} different sets that rules allow" if n_parts > 1 else ""),
                hint="recode the column first, or leave it out",
            )
        free = categories.comparable & _allowed_transitions(banned, categories)
        counts = allowed.counts(categories, table.weights)
        matrices = np.empty((n_parts, size, size))
        for part in range(n_parts):
            here = rows
            if rows is not None and rows["where"].n_unique() > 1:
                here = rows.filter(pl.col("where") == allowed.name(part, categories))
            matrices[part] = self._matrix(categories, free & allowed.targets[part], counts, part, here)
        return Chain(categories, allowed, matrices)

    def _matrix(
        self, categories: Categories, allowed: Flags, counts: Floats, part: int, rows: pl.DataFrame | None
    ) -> Floats:
        """The matrix of the records of one part."""
        occurring = counts.sum(axis=0) > 0
        if rows is None or not rows.height:
            allowed = allowed & occurring
            matrix, least = even(allowed, self.retain), self.retain
        else:
            given = read_matrix(rows, categories, occurring)
            allowed = allowed & (given > 0)  # what a matrix says must not happen does not by a second stage
            matrix = restrict_transitions(allowed, given)
            least = float(matrix.diagonal().min(initial=1.0))
        keeps = self.matrix is None if self.invariant is None else self.invariant
        return invariant(matrix, counts[part], allowed, least) if keeps else matrix


_TYPES = {
    "column": pl.String, "where": pl.String, "from": pl.String, "to": pl.String, "probability": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Chain:
    """The matrices of columns that are changed as one, by part of the records."""

    categories: Categories
    allowed: AllowedTransitions
    matrices: Floats  # [parts, K, K]

    @cached_property
    def rows(self) -> Codes:
        """[n] the row of the matrices that each record stands in."""
        return self.allowed.rows(self.categories)

    @property
    def n_staying(self) -> int:
        """How many records cannot move."""
        stays = self.matrices.diagonal(axis1=1, axis2=2) >= 1.0
        return int(self.allowed.counts(self.categories, None)[stays].sum()) if stays.any() else 0

    def transitions(self) -> Iterator[pl.DataFrame]:
        """All matrices as tables of transitions."""
        for part, matrix in enumerate(self.matrices):
            where = self.allowed.name(part, self.categories)
            yield as_rows(self.categories.label, where, self.categories.texts, matrix)


def _groups(table: Table, *, compound: bool) -> Iterator[tuple[str, ...]]:
    """The columns that are changed as one: all, or those that a rule speaks of together."""
    left = [name for name in table.chosen if not table.missing(name).all()]
    if compound:
        yield from [tuple(left)] if left else []
        return
    together = [set(rule.columns) & set(left) for rule in table.schema.rules]
    while left:
        group = {left[0]}
        while more := {name for other in together if other & group for name in other} - group:
            group |= more
        yield tuple(sorted(group))
        left = [name for name in left if name not in group]


def _allowed_transitions(banned: pl.DataFrame | None, categories: Categories) -> Flags:
    """[K, K] which transitions nobody has forbidden."""
    free = np.ones((len(categories), len(categories)), dtype=np.bool_)
    if banned is not None:
        rows = banned.filter(pl.col("column") == categories.label)
        start, end = categories.places(rows["from"]), categories.places(rows["to"])
        there = (start >= 0) & (end >= 0)
        free[start[there], end[there]] = False
    return free


def _texts_of(method: Pram, parameter: str, run: Run, *names: str) -> pl.DataFrame | None:
    """The table of transitions that a parameter names, as text; for all records if it does not say."""
    frame = columns_of(method, parameter, run, ("column", "from", "to", *names))
    if frame is None:
        return None
    where = canonical_text(frame["where"]).fill_null("") if "where" in frame.columns else pl.lit("")
    texts = [canonical_text(frame[name]).fill_null("").alias(name) for name in ("column", "from", "to")]
    return pl.DataFrame([*texts, *(frame[name] for name in names)]).with_columns(where.alias("where"))


# What analysts get back --------------------------------------------------------------------------------


def corrected_counts(release: Release) -> pl.DataFrame:
    r"""Estimate the original counts of categories from a release of PRAM, with their variances.

    .. math::

        \hat c = (P^\top)^{-1} t, \qquad
        \widehat{\mathrm{Var}}(\hat c) = (P^\top)^{-1} \hat V P^{-1}, \qquad
        \hat V = \sum_k \hat q_k \left( \mathrm{diag}(p_k) - p_k p_k^\top \right)

    where :math:`t` are the released counts, :math:`p_k` is row :math:`k` of the matrix, and :math:`\hat q` is
    :math:`\hat c` (with weights, or households that are changed ``together``: the same estimate of the sums
    of the squared weights of what changed as one). Both are unbiased over the chance of PRAM. The matrix is
    private: whoever has it sees how safe each category is.

    Parameters
    ----------
    release
        What `Pram` made, as it came from ``protect``. Each of its steps is corrected, stratum by stratum.

    Returns
    -------
    polars.DataFrame
        The ``column``, its ``category``, and how often it is ``released``, was there by the ``corrected``
        estimate, and the ``variance`` of that; with weights, weighted counts.
    """
    steps = [(n, each) for n, each in enumerate(release.steps) if each.byproducts.private_artifacts]
    if release.byproducts.private_artifacts:  # nothing but the method was taken
        own = Provenance(Pram.name, {}, release.table.chosen, byproducts=release.byproducts)
        steps = [(len(release.steps), own)]
    if not steps:
        raise DataError("corrected counts need a release of pram with its private matrix, got: none")
    found = [pl.DataFrame(schema=_CORRECTED)]
    for place, step in steps:
        later = {name for each in release.steps[place + 1 :] for name in each.columns}
        changed = sorted(later & {*step.columns, *step.within})
        if changed:
            raise DataError(f"counts cannot be corrected after a later step on {quoted(changed)}")
        found += _corrected_step(release.table, step)
    sums = pl.col("released", "corrected", "variance").sum()
    return pl.concat(found).group_by("column", "category", maintain_order=True).agg(sums)


def _corrected_step(table: Table, step: Provenance) -> Iterator[pl.DataFrame]:
    """The counts of each stratum of a step, whose numbers add up."""
    rows = dict(strata(table, step.within)) if step.within else {}
    for each in step.byproducts.private_artifacts:
        if not isinstance(each.method, Pram):
            continue
        part = table.take(rows.get(each.stratum, np.empty(0, np.int64))) if each.stratum else table
        part = part.aimed_at(step.columns)
        known = _texts_of(each.method, "matrix", Run(seed=0, resources=each.tables), "probability")
        for names in _groups(part, compound=each.method.compound):
            yield _corrected_counts(part, each.method.chain(part, names, known, None), step.together)


_CORRECTED = {
    "column": pl.String, "category": pl.String, "released": pl.Float64, "corrected": pl.Float64,
    "variance": pl.Float64,
}  # fmt: skip


def _corrected_counts(table: Table, chain: Chain, together: str) -> pl.DataFrame:
    categories, weights = chain.categories, table.weights
    released, corrected, variance = np.zeros((3, len(categories)))
    of_squares = sums = chain.allowed.counts(categories, weights)
    if weights is not None or together:
        weights = np.ones(len(table)) if weights is None else weights
        of_squares = chain.allowed.counts(categories, weights * _joint_weights(table, weights, together))
    for matrix, there, squared in zip(chain.matrices, sums, of_squares, strict=True):
        if not there.any():
            continue
        back = invert_matrix(matrix, categories.label)
        squares = squared @ back
        spread = np.diag(squares @ matrix) - matrix.T @ (squares[:, None] * matrix)
        released += there
        corrected += there @ back
        variance += np.einsum("ij,jk,ki->i", back.T, spread, back)
    return pl.DataFrame(
        {
            "column": pl.repeat(categories.label, len(categories), eager=True),
            "category": categories.texts,
            "released": released,
            "corrected": corrected,
            "variance": variance,
        }
    )


def _joint_weights(table: Table, weights: Floats, together: str) -> Floats:
    """The weight of all records that changed as one with each, so that own times this sums to its square."""
    if not together:
        return weights
    members = table.codes(together).codes
    sums = np.bincount(members[members >= 0], weights[members >= 0], minlength=1)
    return np.where(members < 0, weights, sums[members])
