"""Masking: of each code or name the first characters stay, and stars stand for the rest."""

from __future__ import annotations

import polars as pl

from sfumato.core.method import Gives, Method, Randomness
from sfumato.core.params import PerColumn, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.levels import KeyLevels
from sfumato.data.generalised.nodes import WILDCARD, canonical_text
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.hierarchy.build import from_prefix
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import DataError, count_noun
from sfumato.methods._analyst_notes import GROUPED


class Masking(Method):
    r"""Keep the first characters of each code or name, and show stars for the rest.

    .. math::

        y_{ij} = x_{ij}[1 \dots c_j]\;{*}\dots{*}

    where :math:`c_j` is the number of characters that stay. If all values of a column have one length, there
    is a star for each masked character (``9372*``), else one star for all of them (``E11*``). A value that
    would be shown entirely is shown as ``*``.

    See Also
    --------
    recoding : any hierarchy, prefixes of several lengths among them.
    global-recoding : finds how many characters may stay, and guarantees k-anonymity.

    Notes
    -----
    **When to use.** A rule says how much of a code may be shown, such as three digits of a postcode. Direct
    identifiers (names, account numbers) need no masking: a column of the role ``identifier`` is left out, or
    gets pseudonyms.

    **Guarantees.** None: masking is no protection by itself. What is left may still be unique, alone or
    together with other columns: require k of the release.

    **Risk to know.** Values with a rare beginning stay rare. Only beginnings can stay: measures read what a
    beginning stands for, and so count it as the intruder does; the last digits of a number often tell a
    person as well as all of them.

    **Ties, missing, weights.** Equal values are masked alike. Missing values stay missing. Weights are not
    used.

    **Cost.** :math:`O(n)` per column.

    Examples
    --------
    >>> people = pl.DataFrame({"code": ["93721", "93722", "94110"]})
    >>> release = sfumato.protect(people, Masking(keep=2), columns=["code"])
    >>> release.data["code"].to_list()
    ['93***', '93***', '94***']
    """

    name = "masking"
    vetted = "brute-forced: unit/methods/test_masking.py::test_no_more_than_the_first_characters_is_written"
    synonyms = (
        "data masking",
        "masking of identifiers",
        "character masking",
        "redaction",
        "truncation of codes",
    )
    family = "recoding"
    nature = "non-perturbative"
    title = "Masking of characters"
    analyst_note = GROUPED
    kinds = frozenset({Kind.NOMINAL})
    references = ("willenborg2001", "hipaa2000")
    gives = Gives(generalised=True, suppressed=True)
    randomness = Randomness(stochastic=False)

    keep: PerColumn[int] = param(
        3,
        "Number of characters that stay, counted from the first.",
        ge=1,
        le=1000,
        unit="characters",
        symbol="c",
        label="Characters that stay",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse columns that were generalised before: their labels are no codes."""
        return super().refuses(table) or self.refuses_generalised(table)

    def protect(self, table: Table, run: Run) -> Release:
        """Mask one column after the other."""
        protected = table
        for name in run.track(self.title, table.chosen, len(table.chosen)):
            protected = _mask(protected, name, self.keep[name])
        note = "masking is no protection by itself: what is left of a value may still be unique, so require k"
        return Release.record_by_record(protected, notes=(note,))


def _mask(table: Table, name: str, keep: int) -> Table:
    present = pl.Series(~table.missing(name))
    texts = canonical_text(table.frame[name]).zip_with(present, pl.Series([None], dtype=pl.String))
    starred = int(texts.str.contains(WILDCARD, literal=True).sum())
    if starred:
        raise DataError(
            f"masking must be given values without stars, got: {count_noun(starred, 'record')} with one in "
            f"`{name}`",
            hint="replace them by another character before",
        )
    if not present.any():
        return table
    key = KeyLevels.of(table, name, from_prefix(texts.drop_nulls(), lengths=(keep,), name=name), "raise")
    lengths = texts.str.len_chars()
    shown = lengths < keep if lengths.n_unique() > 1 + lengths.has_nulls() else lengths <= keep
    return to_wildcard(key.write(table, 1), name, shown.fill_null(value=False).to_numpy())
