"""Synthesis: records drawn column by column, each conditional on the previous ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sfumato.core.method import Gives, Method, Takes
from sfumato.core.origin import Origin
from sfumato.core.params import Columns, PerColumn, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind, Role
from sfumato.data.table import Table
from sfumato.errors import DataError, quoted
from sfumato.kernels.arrays import Flags
from sfumato.methods._analyst_notes import SYNTHETIC
from sfumato.methods._conditional_models import By, ConditionalModel, ModelColumn, fit_conditional_model
from sfumato.methods._synthetic_records import NUMBER_ROLES, Skeleton, SyntheticRecords


class Synthesis(Method):
    r"""Generate synthetic records, one column after another, each conditional on the previous ones.

    The joint distribution is factorised,

    .. math:: f(x_1, \dots, x_d \mid g) = f(x_1 \mid g) \prod_{j > 1} f(x_j \mid x_1, \dots, x_{j-1}, g)

    where :math:`g` are the ``given`` columns, each factor is fitted to the original, and a new record is
    drawn from the first to the last. With ``by="cart"``, the default, a factor is a classification or
    regression tree: a record that falls into a leaf gets the value of one of the original records there, of
    which there are at least ``leaf``. ``"regression"`` is a normal linear model of the ranks, or linear
    discriminants of categories; ``"sample"`` draws from the column alone.

    If all columns are drawn (numbers of persons and households are assigned new), no record belongs to a
    person: the release is fully synthetic, and its ``source_rows`` are unknown. Otherwise the other columns
    stay with their records, and the release is partially synthetic; columns to condition on are ``given``.

    See Also
    --------
    GaussianCopula : one normal model for all columns.
    IpsoC : keeps means, coefficients and covariances exactly.
    DataShuffling : keeps the values of each column exactly.

    Notes
    -----
    **When to use.** Whole tables of mixed columns for teaching, for tests, or for analyses that are not known
    in advance. Relations of any shape are followed, the more closely the smaller the leaves.

    **Guarantees.** Every value is one that the column has or, with ``smoothing``, lies in the gap beside one
    that fewer than ``leaf`` persons have. No category is drawn that fewer than ``holders`` persons have (of
    what is the same throughout a household: households); where a column has no other category and no missing
    value, the whole column becomes missing. The edit rules of the schema hold of every drawn record: totals
    are computed, and for records that violate another rule the last of its columns and those after it are
    drawn again, so that no group is replaced by others; where that does not help, the whole record is drawn
    again, which a note counts, or the method stops. None of this bounds the disclosure risk: measure it.

    **Risk to know.** A leaf of ``leaf`` records reveals what these have in common, and with many columns an
    original record may be reproduced. Records that are unusual in the columns drawn first lead to leaves of
    similar records. Several copies together reveal more than one. Where a person has several records, a leaf
    counts records.

    **Ties, missing, weights.** Ties need no special treatment. Whether a value is missing is drawn first, by
    a model of its own or as a category. Columns that are the same for all records of a household or person
    are drawn once for it, before the others; of a fully synthetic table households and persons are drawn as
    wholes, so that the number of records is about what was asked for. Weights are not used; a weight can be
    drawn like any column.

    **Cost.** :math:`O(d^2 n \log n)` for :math:`d` columns; a bit of memory for each record and column.

    Examples
    --------
    >>> ages = [20 + i % 60 for i in range(300)]
    >>> people = pl.DataFrame({"age": ages, "retired": ["yes" if a >= 65 else "no" for a in ages]})
    >>> made = sfumato.protect(people, Synthesis(), columns=["age", "retired"], seed=1)
    >>> made.synthetic, made.source_rows is None, len(made.data)
    (True, True, 300)
    >>> made.data.filter((pl.col("age") < 60) & (pl.col("retired") == "yes")).height
    0
    """

    name = "synthesis"
    synonyms = ("synthetic data", "fully synthetic data", "synthpop", "CART synthesis")
    title = "Sequential synthesis"
    analyst_note = SYNTHETIC
    family = "synthetic data"
    nature = "synthetic"
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL, Kind.DATE})
    references = ("nowok2016", "reiter2005")
    cost = "n log n"
    takes = Takes(whole_records=True)
    gives = Gives(suppressed=True, other_records=True)

    leaf: int = param(
        5,
        "Smallest number of records that a value is drawn from.",
        ge=2,
        unit="records",
        log=True,
        tune=(3, 1000),
        drive=True,
        hint="5 is usual; more is safer, but loses finer relations",
        label="Smallest leaf",
    )
    by: PerColumn[By] = param(
        "cart",
        "Model from which a column is drawn.",
        choices={
            "cart": "A tree that predicts it from the previous columns; values come from its leaves (CART).",
            "regression": "A linear model of its normal scores, or linear discriminants of its categories.",
            "sample": "Its own values, independent of the other columns.",
        },
        label="Model",
    )
    given: Columns = param(
        Columns(),
        "Columns released as they are, whose relations to the drawn ones the release keeps.",
        label="Given columns",
    )
    visit: str = param(
        "",
        "Columns in the order in which they are drawn, with + between; others after them, few values first.",
        label="Order of columns",
        advanced=True,
    )
    predictors: PerColumn[str] = param(
        "",
        (
            "Columns that a column is conditional on, with + between; by default all given and previously "
            "drawn ones."
        ),
        advanced=True,
    )
    records: int = param(
        0,
        "Number of records to draw; 0 means as many as in the original.",
        ge=0,
        unit="records",
        label="Number of records",
    )
    smoothing: bool = param(
        True,
        "Whether numbers and dates that fewer than `leaf` persons share are moved into the gap next to them.",
        advanced=True,
    )
    holders: int = param(
        3,
        "Smallest number of persons, or households, that must have a category for it to be drawn.",
        ge=1,
        unit="persons",
        hint="1 also draws categories of a single person",
        label="Smallest category",
        advanced=True,
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse columns that do not fit together, and tables of fewer records than a leaf."""
        reason = super().refuses(table) or self._why_unsuitable(table)
        if reason is not None:
            return reason
        if 0 < len(table) < self.leaf:
            return f"{self.name} must have at least {self.leaf} records to draw from, got: {len(table)}"
        original_columns = self._original_columns(table)
        numbered = [name for name in table.names if table.schema[name].role in {Role.HOUSEHOLD, Role.PERSON}]
        if self.records and original_columns and numbered:
            return (
                f"{self.name} must draw all columns to change the number of records, got columns that stay: "
                f"{quoted(original_columns)}"
            )
        return None

    def _why_unsuitable(self, table: Table) -> str | None:
        given = self._conditioning_columns(table)
        sets = [name for name in given if table.schema[name].kind is Kind.SET]
        if sets:
            return f"{self.name} must be given columns of single values, got: sets in {quoted(sets)}"
        if reason := self.refuses_generalised(table, (*table.chosen, *given)):
            return reason
        for name in _split(self.visit):
            if name not in table.chosen:
                return f"`visit` of {self.name} must name columns that are drawn, got: `{name}`"
        for name in self.predictors.columns:
            strange = set(_split(self.predictors[name])) - {*table.chosen, *given} - {name}
            if strange or name in _split(self.predictors[name]):
                others = quoted(sorted(strange)) or f"`{name}` itself"
                return (
                    f"`predictors` of {self.name} must be drawn or given columns, got for `{name}`: {others}"
                )
        return None

    def _conditioning_columns(self, table: Table) -> tuple[str, ...]:
        return tuple(sorted(set(table.schema.resolve(self.given)) - set(table.chosen)))

    def _original_columns(self, table: Table) -> list[str]:
        """The columns that stay with their record, and say something of a person."""
        others = [name for name in table.names if name not in table.chosen]
        return [name for name in others if table.schema[name].role not in NUMBER_ROLES]

    def drive_range(self, table: Table) -> tuple[float, float]:
        """From small leaves to those of half the records."""
        low, high = super().drive_range(table)
        return low, float(min(high, max(len(table) // 2, low + 1)))

    def protect(self, table: Table, run: Run) -> Release:
        """Fit a model to each column, draw, and draw again what breaks a rule."""
        if not len(table):
            return Release.unchanged(table)
        frame = Skeleton.of(
            table,
            run.rng("records"),
            records=self.records,
            given=self.given,
            whole=not self._original_columns(table),
        )
        order = self._order(table, frame)
        coded = {name: ModelColumn.of(table, name) for name in (*self._conditioning_columns(table), *order)}
        rare = {name: frame.rare_records(table, name, self.holders) for name in order}
        models = {
            name: self._model(name, order, frame, coded, rare[name])
            for name in run.track(f"{self.title}: fitting", order, total=len(order))
        }
        drawing = SyntheticRecords(
            table,
            frame,
            coded,
            models,
            rare=rare,
            smooth_below=self.leaf if self.smoothing else 0,
            task=self.title,
        )
        drawing.draw(np.arange(len(frame.sources)), run.at("round", 0))
        redrawn, anew = drawing.keep_rules(run)
        made = drawing.assemble(np.arange(len(frame.sources)))
        origin = Origin.synthetic() if frame.whole else Origin.of_rows(frame.sources)
        figures = {"redrawn_records": redrawn} if table.schema.rules else {}
        empty = [name for name in order if rare[name].any() and (rare[name] | table.missing(name)).all()]
        notes = [
            f"{quoted(empty)}: empty, because no category is shared by {self.holders} persons or households"
        ] * bool(empty)
        if anew:
            notes.append(
                f"{anew} whole records were drawn again to satisfy the rules: groups that often violate a "
                "rule may be underrepresented"
            )
        return replace(Release.of(made, notes=tuple(notes), figures=figures), origin=origin)

    def _order(self, table: Table, frame: Skeleton) -> list[str]:
        """The columns in the order of their visit: those of households first, then of persons."""
        visit_order = _split(self.visit)
        sizes = {name: table.frame[name].n_unique() for name in table.chosen}
        rest = sorted(set(table.chosen) - set(visit_order), key=lambda name: (sizes[name], name))
        return sorted([*visit_order, *rest], key=lambda name: frame.levels[name])

    def _model(
        self, name: str, order: Sequence[str], frame: Skeleton, coded: Mapping[str, ModelColumn], rare: Flags
    ) -> tuple[ConditionalModel, tuple[str, ...]]:
        """The model of a column, and what it looks at: nothing that differs within its household."""
        before = [each for each in coded if each not in order] + list(order[: order.index(name)])
        asked = _split(self.predictors[name])
        used = tuple(
            each
            for each in before
            if frame.levels[each] <= frame.levels[name] and (not asked or each in asked)
        )
        late = [each for each in asked if each not in used]
        if late:
            raise DataError(
                f"`predictors` of `{name}` must be known before it is drawn, got: {quoted(late)}",
                hint="set the order in `visit`; columns of a household or person are drawn first",
            )
        rows = frame.firsts(frame.levels[name])
        rows = rows if rare.all() else rows[~rare[rows]]  # of only rare ones what is drawn is emptied
        return fit_conditional_model(
            self.by[name], coded[name], [coded[each] for each in used], rows, self.leaf
        ), used


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split("+") if name.strip()]
