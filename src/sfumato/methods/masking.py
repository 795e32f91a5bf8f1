"""Masking: of each code or name the first or last characters stay, and stars stand for the rest."""

from __future__ import annotations

from typing import Literal

import polars as pl

from sfumato.core.method import Gives, Method, Randomness
from sfumato.core.params import PerColumn, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.levels import KeyLevels
from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.hierarchy.build import from_prefix
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import DataError, count_noun
from sfumato.methods._analyst_notes import GROUPED

#: What could not be told from the signs of generalised values.
_UNREADABLE = r"\*|^\\"


class Masking(Method):
    r"""Keep the first or the last characters of each code or name, and show stars for the rest.

    .. math::

        y_{ij} = x_{ij}[1 \dots c_j]\;{*}\dots{*} \quad\text{or}\quad {*}\dots{*}\;x_{ij}[-c_j \dots -1]

    where :math:`c_j` is the number of characters that stay. If all values of a column have one length, there
    is a star for each masked character (``9372*``, ``*3721``), else one star for all of them (``E11*``). A
    value that would be shown entirely is shown as ``*``.

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

    **Risk to know.** Values with a rare beginning or end stay rare. Measures read what is left as all values
    that begin or end so, as the intruder does. The last digits of a number often tell a person as well as all
    of them: of ten thousand people, four last digits are nearly a number of their own.

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
    vetted = "brute-forced: unit/methods/test_masking.py::test_no_more_than_what_stays_is_written"
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
        "Number of characters that stay.",
        ge=1,
        le=1000,
        unit="characters",
        symbol="c",
        label="Characters that stay",
    )

    end: Literal["first", "last"] = param(
        "first",
        "Which characters stay.",
        choices={"first": "The first ones: `93***`.", "last": "The last ones: `***21`."},
        label="Which end stays",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse columns that were generalised before: their labels are no codes."""
        return super().refuses(table) or self.refuses_generalised(table)

    def protect(self, table: Table, run: Run) -> Release:
        """Mask one column after the other."""
        protected = table
        for name in run.track(self.title, table.chosen, len(table.chosen)):
            protected = _mask(protected, name, self.keep[name], last=self.end == "last")
        note = "masking is no protection by itself: what is left of a value may still be unique, so require k"
        return Release.record_by_record(protected, notes=(note,))


def _mask(table: Table, name: str, keep: int, *, last: bool) -> Table:
    present = pl.Series(~table.missing(name))
    texts = canonical_text(table.frame[name]).zip_with(present, pl.Series([None], dtype=pl.String))
    unreadable = int(texts.str.contains(_UNREADABLE).sum())
    if unreadable:
        raise DataError(
            "masking must be given values without stars, or a backslash in front, got: "
            f"{count_noun(unreadable, 'record')} with one in `{name}`",
            hint="replace them by another character before",
        )
    if not present.any():
        return table
    cut = from_prefix(texts.drop_nulls(), lengths=(keep,), name=name, last=last)
    key = KeyLevels.of(table, name, cut, "raise")
    lengths = texts.str.len_chars()
    shown = lengths < keep if lengths.n_unique() > 1 + lengths.has_nulls() else lengths <= keep
    return to_wildcard(key.write(table, 1), name, shown.fill_null(value=False).to_numpy())
