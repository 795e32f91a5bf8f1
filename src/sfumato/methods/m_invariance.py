"""m-invariance: each person is among the same sensitive values in all releases of a series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sfumato.core.method import Gives
from sfumato.core.origin import Origin
from sfumato.core.params import param
from sfumato.core.release import PrivateArtifact, Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import column_codes
from sfumato.data.generalised.nodes import canonical_text, parse_exact
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, UnreachableError, count_noun
from sfumato.kernels.arrays import Ints, Words, count_distinct
from sfumato.methods._buckets import DeassociatingMethod, free_name, split_into_tables
from sfumato.methods._signatures import Division, Signature

#: The tables in which signatures are confided, and by what a value that is missing stands there.
_SIGNATURES, _PERSONS, _MISSING = "signatures", "persons", "?"


class MInvariantBuckets(DeassociatingMethod):
    r"""Release keys and sensitive values in two tables so that repeated releases disclose no more than one.

    A bucket has at least :math:`m` records, no two of the same sensitive value; its *signature* is the set of
    these values. A person in several releases of a series is in buckets of the same signature in all of them,
    so that all releases together reveal a value no better than one: with a probability of :math:`1 / m`. The
    algorithm is that of Xiao and Tao:

    1. *Division*: people of earlier releases are sorted by signature, if their value is still part of it.
    2. *Balancing*: the people of a signature must have each of its values equally often. New people fill the
       gaps as long as the remaining ones can form buckets of their own; otherwise a *counterfeit* does, a
       value that belongs to no person. Who fills them is planned for all values at once, so that counterfeits
       are the fewest.
    3. *Assignment*: the remaining new people get signatures of the :math:`m` most frequent values among them.
       If one value is too frequent, or there are fewer than :math:`10 m` new people, each gets the signature
       of a random person with the same value: the counterfeits in their bucket could equally be their values.
    4. *Partitioning*: the people of a signature are put into buckets with one of each value, similar keys
       together, and counterfeits evenly among them.

    The first table (``qit``) has every record with the number of its bucket, and a row without keys for each
    counterfeit; ``counterfeits`` says how many of the bucket's values belong to no person. The second
    (``st``) has the values of each bucket, in random order.

    See Also
    --------
    Anatomy : the same for a single release.
    Bucketisation : buckets of similar records, in one table.

    Notes
    -----
    **When to use.** Longitudinal releases: data that are released repeatedly while people join and leave, in
    a plan with a part ``[series]``. The signatures are kept in the private trail, from which the next release
    continues; the first release needs none.

    **Guarantees.** Each bucket has at least :math:`m` values, all different, and a person's signature shares
    either all values with an earlier one or none; the release is measured before it is returned. A person
    whose value is no longer in their signature gets one that has nothing in common with the earlier ones: the
    values that they never had are partitioned without regard to the present values of those who changed, so
    that knowing the algorithm reveals nothing, and by their frequencies among the others, so that none is
    much more likely. The release stops if a person would be alone with counterfeits and a value that no one
    else has or had.

    **Risk to know.** Where more than one in :math:`m` people have the same value, people in buckets with
    counterfeits mostly have it, above all in the first release, which an intruder may guess: the measure
    ``counterfeit-inference`` tells for how many that is right, and may be required. As with anatomy,
    exact keys show who is in the file. The number of counterfeits is published, as in the paper, and shows
    that people have left. An intruder who knows others in a bucket, or knows that a person does not have a
    value, guesses better.

    **Ties, missing, weights.** Missing sensitive values are refused, or a value of their own; missing keys
    stay. Several records of one person are refused. Weights are refused, as counterfeits have none.

    **Cost.** :math:`O(n \log n)`, and a pass over the values for each signature. The number of counterfeits
    is the smallest that the signatures people have leave possible, which has a closed form, except where new
    people are put among others at random (step 3); the notes give both numbers. What people have had cannot
    be chosen again, so a release may need counterfeits that a series planned from its end would not.

    Examples
    --------
    >>> frame = pl.DataFrame({"who": [1, 2, 3, 4], "age": [23, 35, 41, 58], "ill": ["a", "b", "a", "b"]})
    >>> schema = Schema((
    ...     Column("who", Kind.NOMINAL, Role.PERSON), Column("age", Kind.CONTINUOUS, Role.KEY),
    ...     Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    ... ))
    >>> release = MInvariantBuckets(m=2).protect(Table(frame, schema, targets=("age",)), Run(seed=1))
    >>> release.tables["st"].frame.group_by("bucket").agg(pl.col("ill").n_unique())["ill"].to_list()
    [2, 2]
    """

    name = "m-invariance"
    vetted = "proved: proofs/counterfeits.md"
    family = "de-associative methods"
    title = "m-invariance"
    analyst_note = (
        "Sensitive values are separated from their records, in buckets with some invented records, whose "
        "number is published. Subtract these, and estimate counts over both tables by the shares of each "
        "bucket."
    )
    references = ("xiao2007minvariance",)
    gives = Gives(deassociated=True, other_records=True, new_columns=True)

    m: int = param(
        3,
        "Number of sensitive values among which each person's value stays hidden in all releases.",
        ge=2,
        le=1000,
        symbol="m",
        log=True,
        tune=(2, 12),
        drive=True,
    )

    @property
    def values_in_bucket(self) -> int:
        """The m of m-invariance."""
        return self.m

    def table_names(self) -> tuple[str, ...]:
        """Keys and sensitive values."""
        return ("qit", "st")

    def by_person(self) -> bool:
        """What people keep are their signatures; chance is of the buckets alone."""
        return True

    def refuses(self, table: Table) -> str | None:
        """Refuse what cannot be parted, several sensitive columns, and weights."""
        reason = super().refuses(table)
        if reason is not None:
            return reason
        if len(self.sensitive_columns(table)) > 1:
            return (
                f"{self.name} must be given one sensitive column, got: {len(self.sensitive_columns(table))}"
            )
        if table.schema.only_role(Role.WEIGHT) is not None:
            return f"{self.name} must be given records without weights, which counterfeits do not have"
        return None

    def protect(self, table: Table, run: Run) -> Release:
        """Find the buckets, put counterfeits into them, and prove what came of it."""
        (name,) = self.sensitive_columns(table)
        self.require_values(table)
        memory = _SignatureHistory.of(table, run)
        values = _Values.of(table, name, memory.texts)
        if len(values.texts) < self.m:
            raise UnreachableError(
                f"`{name}` must have at least {self.m} values for {self.name}, got: {len(values.texts)}",
                hint="choose a smaller m",
            )
        here = replace(run, randomness=run.randomness.fresh(table))
        division = Division(self.m, values.of_record, len(values.texts), here.rng("division"))
        before = memory.signatures(values)
        members = division.assign_signatures(before)
        self._require_known_values(
            members, {code for code, text in enumerate(values.texts) if text in memory.texts}
        )
        buckets, extra = _partition_records(table, members, here.rng("partition"))
        release = self._make_tables(table, values.cells(extra), buckets, here, division.fewest)
        self._require_invariant(table, release, values, before)
        artifacts = memory.private_artifacts(self, values, buckets, extra)
        return replace(release, byproducts=replace(release.byproducts, private_artifacts=artifacts))

    def _make_tables(
        self, table: Table, false_values: pl.Series, buckets: Ints, run: Run, fewest: int
    ) -> Release:
        """The two tables, with a row for each counterfeit, of which any release has ``fewest``."""
        n, n_false, name = len(table), len(false_values), false_values.name
        whole = _with_counterfeits(table, false_values) if n_false else table
        false = np.bincount(buckets[n:], minlength=int(buckets.max(initial=0)) + 1)[buckets]
        column = free_name("counterfeits", whole)
        counted = Column(column, Kind.CONTINUOUS, Role.OTHER, integer=True)
        whole = whole.with_values(column, pl.Series(false, dtype=pl.Int64), column=counted)
        release = split_into_tables(whole, buckets, {"qit": (), "st": (name,)}, run)
        rows = np.where(np.arange(len(whole)) < n, np.arange(len(whole)), -1)
        what = "1 value is a counterfeit" if n_false == 1 else f"{n_false:,} values are counterfeits"
        least = (
            "which are the fewest there can be" if n_false == fewest else f"of which {fewest:,} are needed"
        )
        note = f"{what} of no person, {least}: ignore the rows without keys"
        figures = {"counterfeits": n_false, "counterfeits_needed": fewest}
        release = release.with_notes(*([note] if n_false else []), figures=figures)
        if not n_false:
            return release
        assert release.layout is not None  # it was parted
        return replace(release, origin=Origin.of_rows(rows), layout=replace(release.layout, sources={}))

    def unmet(self, table: Table, release: Release, run: Run) -> list[str]:  # noqa: ARG002  — no chance
        """What was asked for and the buckets of a release do not meet; what is not released tells nothing."""
        (name,) = self.sensitive_columns(table)
        if all(name not in each.schema for each in release.tables.values()):
            return []
        buckets = release.buckets
        if buckets is None:
            return ["separation: sensitive values are next to their records, because the bucket is not shown"]
        codes = column_codes(buckets.values, name).codes.astype(np.int64)
        pairs = buckets.of_values * (int(codes.max(initial=0)) + 1) + codes
        twice, few = len(pairs) - count_distinct(pairs), np.bincount(buckets.of_values)
        small = int(((few > 0) & (few < self.m)).sum())
        return [
            *([f"{count_noun(twice, 'value')} that are twice in a bucket"] if twice else []),
            *([f"{small} buckets of fewer than {self.m} values"] if small else []),
        ]

    def _require_known_values(
        self, members: Mapping[Signature, Mapping[int, Sequence[int]]], before: set[int]
    ) -> None:
        """Raise if those of a signature have new values that no other has, and all else is counterfeits."""
        often = Counter(value for signature in members for value in signature)
        bare = 0
        for own in members.values():
            real = {value: sum(row >= 0 for row in rows) for value, rows in own.items()}
            real_values = {value for value, many in real.items() if many}
            new = {value for value in own if often[value] == 1 and value not in before}
            bare += sum(real.values()) if len(real_values) < len(own) and real_values <= new else 0
        if bare:
            who = "1 person with a new value" if bare == 1 else f"{bare:,} people with new values"
            raise UnreachableError(
                "a value among counterfeits must occur for other people, now or before, got: "
                f"{who} that no one else has",
                hint="recode rare values first, or remove these records",
            )

    def _require_invariant(
        self, table: Table, release: Release, values: _Values, before: Mapping[int, Sequence[Signature]]
    ) -> None:
        """Raise unless the buckets are what was asked for, and keep every signature that was published."""
        unmet = self.unmet(table, release, Run(seed=0))
        broken = sum(
            each != now and not set(each).isdisjoint(now)
            for row, now in _signatures_of(release, values)
            for each in before.get(row, ())
        )
        if unmet or broken:
            reasons = [*unmet, *([f"{broken} signatures that have changed"] if broken else [])]
            raise UnreachableError(
                f"{self.name} cannot meet the requirements: {'; '.join(reasons)}", hint="ask for less"
            )


# Values and what earlier releases have shown of them ---------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Values:
    """The values of the sensitive column by codes: those of the records, and those of earlier signatures."""

    column: pl.Series
    texts: list[str]
    of_record: Ints

    @classmethod
    def of(cls, table: Table, name: str, more: Sequence[str]) -> _Values:
        own = pl.select(pl.when(pl.Series(~table.missing(name))).then(table.frame[name])).to_series()
        texts = canonical_text(own.alias(name)).cast(pl.String)
        written = pl.select(
            pl.when(texts.is_null()).then(pl.lit(_MISSING)).otherwise(pl.lit("=") + texts)
        ).to_series()
        everything = sorted({*written.unique().to_list(), *more})
        codes = {text: code for code, text in enumerate(everything)}
        of_record = written.replace_strict(codes, return_dtype=pl.Int64).to_numpy()
        return cls(table.frame[name], everything, of_record)

    def cells(self, codes: Ints) -> pl.Series:
        """Cells of these values, as the column writes them."""
        first = np.full(len(self.texts), -1, dtype=np.int64)
        first[self.of_record[::-1]] = np.arange(len(self.of_record))[::-1]
        known = self.column.gather(pl.Series(first[codes]).replace(-1, None))
        texts = pl.Series([self.texts[code] for code in codes], dtype=pl.String)
        absent = pl.Series(first[codes] < 0) & (texts != _MISSING)
        spoken = parse_exact(texts.str.strip_prefix("="), self.column.dtype)
        if (lost := int((absent & spoken.is_null()).sum())) > 0:
            raise DataError(
                f"`{self.column.name}` cannot represent {count_noun(lost, 'value')} of earlier releases",
                hint="declare the column as in those releases",
            )
        return pl.select(pl.when(absent).then(spoken).otherwise(known)).to_series().alias(self.column.name)


@dataclass(frozen=True, eq=False)
class _SignatureHistory:
    """The signatures that everyone has had, by who they are; without a column of persons nobody is known."""

    words: Words | None  # [records] whose each is
    signature_texts: Mapping[int, tuple[str, ...]]  # the values of each signature
    known: Mapping[int, tuple[int, ...]]  # the signatures of each person, the oldest first

    @classmethod
    def of(cls, table: Table, run: Run) -> _SignatureHistory:
        if table.schema.only_role(Role.PERSON) is None:
            return cls(None, {}, {})
        identity = run.randomness.identity
        signatures, persons = (run.randomness.previous_fit(name) for name in (_SIGNATURES, _PERSONS))
        signature_texts: dict[int, list[str]] = {}
        known: dict[int, list[int]] = {}
        if signatures is not None and persons is not None:
            for number, text in signatures.frame.select("signature", "value").iter_rows():
                signature_texts.setdefault(number, []).append(text)
            for word, number in persons.frame.select("person", "signature").iter_rows():
                known.setdefault(int(word, 16), []).append(number)
        return cls(
            identity.persons(table),
            {number: tuple(each) for number, each in signature_texts.items()},
            {word: tuple(each) for word, each in known.items()},
        )

    @property
    def texts(self) -> list[str]:
        """All values of earlier signatures."""
        return sorted({text for each in self.signature_texts.values() for text in each})

    def signatures(self, values: _Values) -> dict[int, list[Signature]]:
        """Those of the persons of all records who have had some, the oldest first."""
        if self.words is None:
            return {}
        code = {text: place for place, text in enumerate(values.texts)}
        coded = {
            number: tuple(sorted(code[each] for each in texts))
            for number, texts in self.signature_texts.items()
        }
        return {
            row: [coded[number] for number in self.known[word]]
            for row, word in enumerate(self.words.tolist())
            if word in self.known
        }

    def private_artifacts(
        self, method: MInvariantBuckets, values: _Values, buckets: Ints, extra: Ints
    ) -> tuple[PrivateArtifact, ...]:
        """The signatures of everyone ever released, for the next release."""
        if self.words is None:
            return ()
        numbers = {texts: number for number, texts in self.signature_texts.items()}
        known = {word: list(each) for word, each in self.known.items()}
        of_bucket: dict[int, list[str]] = {}
        for bucket, code in zip(buckets.tolist(), [*values.of_record.tolist(), *extra.tolist()], strict=True):
            of_bucket.setdefault(bucket, []).append(values.texts[code])
        number_of = {
            bucket: numbers.setdefault(tuple(sorted(texts)), len(numbers))
            for bucket, texts in of_bucket.items()
        }
        for word, bucket in zip(self.words.tolist(), buckets.tolist(), strict=False):
            own = known.setdefault(word, [])
            if number_of[bucket] not in own:
                own.append(number_of[bucket])
        rows = [(number, text) for texts, number in numbers.items() for text in texts]
        whose = [(f"{word:016x}", number) for word, own in known.items() for number in own]
        tables = {
            _SIGNATURES: _small(rows, {"signature": pl.Int64, "value": pl.String}),
            _PERSONS: _small(whose, {"person": pl.String, "signature": pl.Int64}),
        }
        return (PrivateArtifact(method, tables),)


def _small(rows: Sequence[tuple[int, str]] | Sequence[tuple[str, int]], kinds: Mapping[str, type]) -> Table:
    frame = pl.DataFrame(rows, schema=dict(kinds), orient="row")
    columns = (Column(name, Kind.NOMINAL, Role.OTHER) for name in kinds)
    return Table(frame, Schema(tuple(columns)))


# Partitioning ------------------------------------------------------------------------------------------


def _partition_records(
    table: Table, members: Mapping[Signature, Mapping[int, Sequence[int]]], rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """The bucket of each record and counterfeit, near keys together, and the values of the counterfeits.

    Counterfeits are spread evenly: a bucket with a single person would reveal the most frequent value.
    """
    rank = _rank_of(table, rng)
    buckets, extra, places = np.empty(len(table), dtype=np.int64), list[int](), list[int]()
    used = 0
    for own in members.values():
        many = max((len(rows) for rows in own.values()), default=0)
        first = int(rng.integers(max(many, 1)))
        for value, rows in own.items():
            real = np.array([row for row in rows if row >= 0], dtype=np.int64)
            real = real[np.argsort(rank[real], kind="stable")]
            taken = np.zeros(many, dtype=np.bool_)
            taken[(first + np.arange(len(real))) % max(many, 1)] = True
            first += len(real)
            buckets[real] = used + np.flatnonzero(taken)
            extra += [value] * (many - len(real))
            places += (used + np.flatnonzero(~taken)).tolist()
        used += many
    return np.append(buckets, np.array(places, dtype=np.int64)), np.array(extra, dtype=np.int64)


def _rank_of(table: Table, rng: np.random.Generator) -> Ints:
    """Where each record stands in an order of the keys, those of few values first; ties by chance."""
    codings = [column_codes(table, name) for name in table.chosen]
    codings = sorted(codings, key=lambda each: each.space)
    order = np.lexsort([rng.permutation(len(table)), *(each.codes for each in reversed(codings))])
    rank = np.empty(len(table), dtype=np.int64)
    rank[order] = np.arange(len(table))
    return rank


def _with_counterfeits(table: Table, cells: pl.Series) -> Table:
    """The table with a row for each counterfeit, in which nothing stands but its sensitive value."""
    empty = {each: pl.Series(each, [None], dtype=dtype) for each, dtype in table.frame.schema.items()}
    rows = pl.DataFrame([column.new_from_index(0, len(cells)) for column in empty.values()])
    rows = rows.with_columns(cells.cast(table.frame.schema[cells.name]))
    return replace(table, frame=pl.concat([table.frame, rows]))


def _signatures_of(release: Release, values: _Values) -> Iterator[tuple[int, Signature]]:
    """Each original record with its signature as it is released."""
    found, rows = release.buckets, release.source_rows
    assert found is not None  # it was parted
    assert rows is not None
    shown = _Values.of(found.values, values.column.name, values.texts)
    assert shown.texts == values.texts  # nothing but these was written
    codes: dict[int, set[int]] = {}
    for bucket, code in zip(found.of_values.tolist(), shown.of_record.tolist(), strict=True):
        codes.setdefault(bucket, set()).add(code)
    signatures = {bucket: tuple(sorted(each)) for bucket, each in codes.items()}
    pairs = zip(rows.tolist(), found.of_record.tolist(), strict=True)
    return ((row, signatures[bucket]) for row, bucket in pairs if row >= 0)
