"""Edit rules: what must hold between the columns of one record (a total is the sum of its parts)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add

import polars as pl

from sfumato.errors import PlanError

#: How far a sum of decimals may be off, as a share of its largest term; the second where a column is Float32.
TOLERANCE, COARSE_TOLERANCE = 1e-9, 1e-6

#: Whole numbers below this add up exactly in double precision.
FIRST_INEXACT = 2.0**53

#: Most parts that a rule is taken apart into.
_MOST_CLAUSES = 64

#: What looks at more records than one: AVG(income), RANK() OVER (…).
_OF_ALL = re.compile(
    r"\b(avg|sum|min|max|count|median|quantile\w*|std\w*|var\w*|corr|covar\w*|first|last|\w+_agg)\s*\(|\bover\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Rule:
    """A condition every record must meet, written as an SQL expression.

    ``total = part_a + part_b``, ``child_age < mother_age``, ``sex <> 'male' OR pregnant = 'no'``,
    ``CASE WHEN age < 16 THEN marital = 'single' ELSE TRUE END``.
    As with SQL's CHECK, a record that lacks a value the rule needs does not violate it.

    A rule that says of numbers that one sum equals another is a `Sum`. A record of whole numbers must keep it
    exactly; one with decimals may be off by a billionth of its largest term, so that 0.3 is 0.1 + 0.2.

    Examples
    --------
    >>> rule = Rule("total = part_a + part_b")
    >>> rule.columns
    ('part_a', 'part_b', 'total')
    >>> frame = pl.DataFrame({"total": [3, 5, 9], "part_a": [1, 2, None], "part_b": [2, 2, 4]})
    >>> rule.violations(frame)
    1
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.columns:  # what cannot be read is refused when made
            raise self._unreadable()

    @cached_property
    def expression(self) -> pl.Expr:
        """The rule as a polars expression."""
        try:
            return pl.sql_expr(self.text)
        except (pl.exceptions.PolarsError, TypeError) as error:
            raise self._unreadable() from error

    def _unreadable(self) -> PlanError:
        return PlanError(
            f"the rule `{self.text}` is not an SQL condition on columns",
            hint="write it like `total = part_a + part_b`; put odd column names in double quotes",
        )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns the rule speaks of, sorted."""
        return tuple(sorted(set(self.expression.meta.root_names())))

    @cached_property
    def sum(self) -> Sum | None:
        """The rule as an equation of sums, or None when it is something else."""
        found = _parse_sum(self.text)
        # Whatever the small grammar misread (a keyword taken for a name) shows in the columns.
        return found if found is not None and tuple(sorted(found.terms)) == self.columns else None

    @cached_property
    def clauses(self) -> tuple[pl.Expr, ...]:
        """Conditions of few columns each, which hold together where the rule does.

        Brackets of AND, OR and NOT are multiplied out: ``a OR (b AND c)`` is ``a OR b`` and ``a OR c``. What
        is built otherwise, or of too many brackets, stays whole. A rule that looks at other records has none.
        """
        return () if _OF_ALL.search(self.text) else tuple(_clauses(self.expression))

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        """Numbers that the rule may compare with, with either sign."""
        found = {float(each) for each in re.findall(r"\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+", self.text)}
        return tuple(sorted(found | {-each for each in found}))

    def breaks(self, frame: pl.DataFrame, clause: pl.Expr | None = None) -> pl.Series:
        """Whether each record breaks the rule, or one of its clauses."""
        try:
            asked = self._holds(frame.schema) if clause is None else clause
            holds = frame.select(asked.alias("holds")).to_series()
        except pl.exceptions.PolarsError:  # its text may quote cells, so it is not passed on
            raise PlanError(f"rule `{self.text}` does not fit the types of its columns") from None
        if holds.dtype != pl.Boolean:
            raise PlanError(f"rule `{self.text}` is not true or false for a record, but {holds.dtype}")
        if len(holds) != frame.height:
            raise PlanError(
                f"rule `{self.text}` is about a total of all records, and must be about one record"
            )
        return (~holds).fill_null(value=False).alias("broken")

    def _holds(self, types: Mapping[str, pl.DataType]) -> pl.Expr:
        numeric = all(name in types and types[name].is_numeric() for name in self.columns)
        if self.sum is None or not numeric:  # `county = county_of_birth` is an equation of words
            return self.expression
        coarse = any(types[name] == pl.Float32 for name in self.columns)
        return self.sum.holds(COARSE_TOLERANCE if coarse else TOLERANCE)

    def violations(self, frame: pl.DataFrame) -> int:
        """Number of records that break the rule."""
        return int(self.breaks(frame).sum())


@dataclass(frozen=True)
class Sum:
    """An equation between sums of columns: the ``terms`` (factors of columns) and the ``constant`` make 0.

    ``totals`` are the columns that can be told from the others as what those make up: one that stands alone
    on its side of the equation (if both sides are single columns, the left is named first) or, where none
    does, the only one with its sign when all are brought to one side. There may be none.
    """

    terms: Mapping[str, float]
    constant: float
    totals: tuple[str, ...]

    def parts(self, total: str) -> tuple[str, ...]:
        """The columns that make up the ``total``."""
        return tuple(name for name in self.terms if name != total)

    def value(self, total: str) -> pl.Expr:
        """What the ``total`` must be; null where a part is."""
        sign = -self.terms[total]
        made_up = [_number(name) * (self.terms[name] / sign) for name in self.parts(total)]
        return reduce(add, made_up, pl.lit(self.constant / sign))

    def holds(self, tolerance: float) -> pl.Expr:
        """Whether the equation holds, null if unknown; the ``tolerance`` is for terms that are not whole."""
        terms = [_number(name) * factor for name, factor in self.terms.items()]
        terms.append(pl.lit(self.constant, dtype=pl.Float64))
        gap, largest = reduce(add, terms), pl.max_horizontal(term.abs() for term in terms)
        # Whole numbers add up exactly; with them a gap of one, however small a share, is a mistake.
        exact = pl.all_horizontal(term == term.round() for term in terms) & (largest < FIRST_INEXACT)
        allowed = pl.when(exact).then(0.0).otherwise(largest * tolerance)
        return (gap == 0) | ((gap.abs() <= allowed) & largest.is_finite())


def _number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64).fill_nan(None)


def _clauses(expression: pl.Expr, *, negated: bool = False) -> list[pl.Expr]:
    """Conditions that hold together where the expression does, or does not; with nulls as SQL has them."""
    match expression.meta.pop():
        case [only] if (~only).meta.eq(expression):
            return _clauses(only, negated=not negated)
        case [only] if only.cast(pl.Boolean).meta.eq(expression):  # what NOT denies is made a truth first
            return _clauses(only, negated=negated)
        case [right, left]:
            both, either = (left & right).meta.eq(expression), (left | right).meta.eq(expression)
            parts = [_clauses(each, negated=negated) for each in (left, right) if both or either]
            if parts and both is not negated:
                return [*parts[0], *parts[1]]
            if parts and len(parts[0]) * len(parts[1]) <= _MOST_CLAUSES:
                return [one | other for one in parts[0] for other in parts[1]]
    truth = expression.cast(pl.Boolean)
    return [~truth if negated else truth]


# Reading sums ------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<name>[^\W\d][\w$\#]*)
      | "(?P<quoted>(?:[^"]|"")+)"
      | (?P<sign>==|=|\+|\*|\(|\)|-(?!-))   # two minus signs in a row begin a comment
    )\s*""",
    re.VERBOSE,
)


class _NotLinearError(Exception):
    """The text is no equation of sums."""


@dataclass(frozen=True)
class _Linear:
    """Factors of columns plus a constant."""

    terms: Mapping[str, float]
    constant: float = 0.0

    def plus(self, other: _Linear, sign: float) -> _Linear:
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, 0.0) + sign * factor
        return _Linear(terms, self.constant + sign * other.constant)

    def times(self, other: _Linear) -> _Linear:
        if self.terms and other.terms:
            raise _NotLinearError
        many, factor = (self, other.constant) if self.terms else (other, self.constant)
        return _Linear({name: by * factor for name, by in many.terms.items()}, many.constant * factor)

    @property
    def single_column(self) -> str | None:
        """The column that is all there is."""
        return next(iter(self.terms)) if list(self.terms.values()) == [1.0] and not self.constant else None


def _parse_sum(text: str) -> Sum | None:
    try:
        parser = _Parser(text)
        left = parser.sum()
        parser.take("=", "==")
        right = parser.sum()
        parser.end()
    except _NotLinearError:
        return None
    gap = left.plus(right, -1.0)
    if not gap.terms or 0.0 in gap.terms.values():  # `a = a + b` is about b alone
        return None
    totals = [name for name in (left.single_column, right.single_column) if name is not None]
    if not totals:
        for sign in (1.0, -1.0):
            same = [name for name, factor in gap.terms.items() if factor * sign > 0]
            totals += same if len(same) == 1 < len(gap.terms) - 1 and abs(gap.terms[same[0]]) == 1 else []
    return Sum(gap.terms, gap.constant, tuple(totals) if len(gap.terms) > 1 else ())


class _Parser:
    """Reads sums of columns and numbers, with products by numbers and brackets; refuses all else."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None or found.lastgroup is None:
                raise _NotLinearError
            self.tokens.append((found.lastgroup, found[found.lastgroup]))
            position = found.end()
        self.tokens.reverse()  # the next token is the last

    def next_is(self, *signs: str) -> bool:
        return bool(self.tokens) and self.tokens[-1][0] == "sign" and self.tokens[-1][1] in signs

    def take(self, *signs: str) -> str:
        if not self.next_is(*signs):
            raise _NotLinearError
        return self.tokens.pop()[1]

    def end(self) -> None:
        if self.tokens:
            raise _NotLinearError

    def sum(self) -> _Linear:
        total = self.product()
        while self.next_is("+", "-"):
            sign = 1.0 if self.take("+", "-") == "+" else -1.0
            total = total.plus(self.product(), sign)
        return total

    def product(self) -> _Linear:
        product = self.atom()
        while self.next_is("*"):
            self.take("*")
            product = product.times(self.atom())
        return product

    def atom(self) -> _Linear:
        if self.next_is("+", "-"):
            sign = 1.0 if self.take("+", "-") == "+" else -1.0
            return self.atom().times(_Linear({}, sign))
        if self.next_is("("):
            self.take("(")
            inner = self.sum()
            self.take(")")
            return inner
        if not self.tokens or self.tokens[-1][0] == "sign":
            raise _NotLinearError
        kind, text = self.tokens.pop()
        if kind == "number":
            return _Linear({}, float(text))
        return _Linear({text.replace('""', '"') if kind == "quoted" else text: 1.0})
