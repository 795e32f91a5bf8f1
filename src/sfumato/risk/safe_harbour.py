"""The safe harbour of HIPAA: which released columns still hold one of its eighteen kinds of identifiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Laws, Measure, Needs, Score
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.data.generalised.cover import uninformative_records
from sfumato.data.generalised.intervals import ends, is_interval
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.guess.columns import guess_columns, is_shared_key
from sfumato.data.guess.contacts import contacts_in, shown_texts
from sfumato.data.guess.facts import Facts
from sfumato.data.schema import Kind, Role
from sfumato.data.table import Table

#: The table of zip codes and their inhabitants, among the resources.
ZIP_CODES = "zip-codes"

_MIN_PEOPLE = 20_000  # a zip code of three digits has more, or is 000
_OLDEST = 89  # ages above are one category

#: Names of columns by the letter of their kind, of a person or of relatives, employers and household members.
#: An identifier is one however often it occurs, and so is a part of it.
_NAMED = {
    "A": "surname* (last|first|middle|maiden|given|family|full|nick)_?names? forename* initials next_of_kin "
    "(patient|person|insured|subscriber|guardian|relative|spouse|mother|father|parent|child)s?_?names? "
    "employer(?!_[a-z]) employer_name*",
    "D": "phone* telephone* tel tel_n* mobile(?!_home) cell_?phone* pager*",
    "E": "fax*",
    "F": "e_?mail* mail_address*",
    "G": "ssn* social_security*",
    "H": "mrn medical_record* chart_n* record_n* patient_(id|no|num*)",
    "I": "beneficiary* member_(id|n*) policy_n* subscriber* mbi hicn? "
    "(health_plan|medicare|medicaid|insurance)_(id|no|num*)",
    "J": "account* acct* iban (card|billing)_(no|num*) credit_card*",
    "K": "licen*_n* licence* license* certificate_(id|n*) passport* npi dea_n*",
    "L": "vin vehicle_(id*|n*|serial*) licen*_plate* plate* chassis* registration_(no|num*)",
    "M": "serial* device_(id*|n*) implant_id* imei udi mac_address*",
    "N": "url* website* web_address* homepage*",
    "O": "ip ip_?addr* ipv4 ipv6",
    "P": "biometric* finger_?print* voice_?print* retina* iris_scan* face_?print*",
    "Q": "photo* portrait* picture* image image_* face_image* selfie*",
    "R": "uuid guid barcode* specimen_id* (accession|prescription|trial)_(no|num*)",
}
_AGES, _BIRTHS = "age ages age_*", "birth* born dob yob bday"
_PARTS_OF_DATES = (
    "month weekday dow day_of_week day_of_month day_of_year week_of_year quarter qtr season "
    "(admission|adm|discharge|birth|death|visit|service)_?(day|week)"
)
_PLACES = (
    "street* address* block_group* census_tract* tract* geo_?code* geohash* lat lon lng longitude* township* "
    "parish* neighbo*rhood*"
)
_ZIP_CODES = "zip* *zip *zip3 *zip5 postal* post*code"
_PREFIX = r"^(\d{1,3})[*xX#]*$"


class SafeHarbourViolations(Measure):
    r"""Number of released columns that the safe harbour of HIPAA does not allow.

    .. math::

        \left|\{ c : c \text{ shows an identifier of } 45\ \mathrm{CFR}\ 164.514(b)(2)(i) \}\right|

    where the kinds of identifiers are those of the ``rule``. *identifiers* are names and numbers, (A) and (D)
    to (R), of persons or of their relatives, employers and household members: a column breaks it by its role,
    by what its name says, and by what its values look like. *places*,
    (B): any place smaller than a State; of a zip code the first three digits may be shown where more than
    20,000 people live, by the table ``zip-codes`` (columns ``zip`` and ``population_count``), and 000 for all
    others. *dates*, (C): any part of a date but its year, and ages above 89, or years of birth that
    tell them, unless they are one category (90, or a range without an end from 90 or less).

    See Also
    --------
    SafeHarbour : a method that masks rare records in the order of the Californian discharge data.

    Notes
    -----
    **How to read it.** Require ``<= 0`` of each rule. ``by_column`` is 1 for a column that breaks it,
    ``reason`` tells by which letter and why. A column of which nothing is shown (all missing or wildcards)
    breaks none. Numbers of persons and households do, and so do pseudonyms, which are derived from them: (c)
    allows codes that are derived from nothing about a person. Columns of such are named in ``codes``.

    **Doubt.** Exact for what it looks for; names are read in English, and places in nine languages. A
    column whose name tells nothing and whose values look like nothing is not found, nor what stands in an
    image. The rule also asks, (b)(2)(ii), that the owner knows of no way to identify somebody by what is
    left; that no measure can tell. A column of a State or of a larger area that is taken for a smaller one is
    named in ``larger``. Without ``year``, the year of the data, no year of birth may be shown.

    **Missing.** Missing values show nothing.

    **Cost.** One look at the distinct values of each column.

    Examples
    --------
    >>> frame = pl.DataFrame({"zip": ["021**", "036**"], "age": [44, 97], "fax": ["-", "+1 617 555 0100"]})
    >>> zips = Table(pl.DataFrame({"zip": ["021", "036"], "population_count": [700_000, 9_000]}), Schema((
    ...     Column("zip", Kind.NOMINAL), Column("population_count", Kind.CONTINUOUS))))
    >>> kinds = {"zip": Kind.NOMINAL, "age": Kind.CONTINUOUS, "fax": Kind.NOMINAL}
    >>> table = Table(frame, Schema(tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items())))
    >>> evidence = Evidence(table, resources={"zip-codes": zips})
    >>> for rule in ("identifiers", "places", "dates"):
    ...     measure = SafeHarbourViolations(rule=rule)
    ...     print(measure.score(evidence, Run(seed=1)).by_column)
    {'fax': 1.0}
    {'zip': 1.0}
    {'age': 1.0}
    """

    name = "safe-harbour-violations"
    vetted = "brute-forced: unit/risk/test_safe_harbour.py::test_by_brute_force"
    synonyms = ("Safe Harbor", "164.514", "18 identifiers", "HIPAA identifiers")
    family = "re-identification"
    title = "Columns against the safe harbour"
    aspect = "risk"
    threat = "singling out"
    better = "low"
    bounds = (0.0, np.inf)
    kinds = frozenset(Kind)
    references = ("hipaa2000",)
    needs = Needs(release=False, columns=0)
    counts = Counting(
        joins_person_records=True,
        laws=Laws(
            reads_names="The rule is about what columns are called.",
            knowledge_is_risk=True,  # it looks at all that is released, whatever is known
        ),
    )
    cost = "n"

    rule: Literal["identifiers", "places", "dates"] = param(
        "identifiers",
        "Which of the rules is looked at.",
        choices={
            "identifiers": "Names and numbers, (A) and (D) to (R).",
            "places": "Places smaller than a State, (B).",
            "dates": "Dates but for the year, and ages above 89, (C).",
        },
    )
    codes: Columns = param((), "Columns of codes that are derived from nothing about a person.")
    larger: Columns = param((), "Columns of States or of larger areas, whatever they are called.")
    year: int | None = param(
        None, "The year of the data, by which years of birth tell ages.", ge=1900, le=2200
    )

    def measure(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — no chance is used
        """Look at each column that shows something."""
        table = evidence.original if evidence.protected is None else evidence.protected
        shown = [name for name in table.names if not uninformative_records(table, (name,)).all()]
        found: dict[str, str] = {}
        look = {"identifiers": self._identifiers, "places": self._places, "dates": self._dates}[self.rule]
        for name, why in look(evidence, table.select(shown)) if shown else ():
            found.setdefault(name, why)
        return Score(
            float(len(found)),
            by_column=dict.fromkeys(found, 1.0),
            reason="; ".join(f"`{name}`: {why}" for name, why in found.items()),
            details={"columns": len(shown)},
        )

    # Names and numbers ------------------------------------------------------------------------------------

    def _identifiers(self, evidence: Evidence, table: Table) -> Iterator[tuple[str, str]]:
        codes = set(evidence.original.schema.resolve(self.codes))
        for proposal in guess_columns(table):
            column = table.schema[proposal.column.name]
            if column.name in codes:
                continue
            facts = Facts(table.frame[column.name])
            letter = next((each for each, stems in _NAMED.items() if facts.name_contains(stems)), "")
            if column.role is Role.IDENTIFIER:
                yield column.name, "declared as a direct identifier"
            elif column.role in (Role.PERSON, Role.HOUSEHOLD):
                yield column.name, "(R) a number of persons or households, or derived from one"
            elif letter:
                yield column.name, f"({letter}) by its name"
            elif proposal.column.role is Role.IDENTIFIER and not is_shared_key(table, column):
                yield column.name, proposal.role_reason
            elif contacts := contacts_in(shown_texts(table, column.name)):
                yield column.name, f"its text contains {next(iter(contacts.cells))}"

    # Places -----------------------------------------------------------------------------------------------

    def _places(self, evidence: Evidence, table: Table) -> Iterator[tuple[str, str]]:
        larger = set(evidence.original.schema.resolve(self.larger))
        for name in table.names:
            facts = Facts(table.frame[name])
            is_place = any(each.about == "place" for each in facts.concepts) or facts.name_contains(_PLACES)
            if name in larger or not is_place:
                continue
            if not facts.name_contains(_ZIP_CODES):
                yield name, "(B) a place smaller than a State"
            elif why := _why_zip_codes(evidence, table, name):
                yield name, f"(B) {why}"

    # Dates and ages ---------------------------------------------------------------------------------------

    def _dates(self, evidence: Evidence, table: Table) -> Iterator[tuple[str, str]]:  # noqa: ARG002
        kinds = {proposal.column.name: proposal.column.kind for proposal in guess_columns(table)}
        for name in table.names:
            facts = Facts(table.frame[name])
            lows, highs = _ends(table, name)
            dated = Kind.DATE in {table.schema[name].kind, kinds[name]}
            if dated and not _are_years(lows, highs):
                yield name, "(C) dates of more than their year"
            elif facts.name_contains(_BIRTHS):
                if self.year is None:
                    yield name, "(C) years of birth, and `year` does not say which tell an age above 89"
                elif _tells_old_ages(self.year - _as_years(highs), self.year - _as_years(lows)):
                    yield name, "(C) years of birth that tell ages above 89"
            elif facts.name_contains(_PARTS_OF_DATES):
                yield name, "(C) a part of a date"
            elif facts.name_contains(_AGES) and _tells_old_ages(lows, highs):
                yield name, "(C) ages above 89 that are not one category"


def _why_zip_codes(evidence: Evidence, table: Table, name: str) -> str:
    """Why these zip codes may not be shown; empty when they may."""
    prefixes = _texts(table, name).str.extract(_PREFIX)
    if table.frame[name].dtype.is_numeric() or prefixes.null_count():
        return "zip codes of more than their first three digits"
    shown = prefixes.filter(prefixes != "000").unique()
    if not len(shown):
        return ""
    zips: object = evidence.resources.get(ZIP_CODES)
    if not isinstance(zips, Table) or not {"zip", "population_count"} <= set(zips.names):
        return f"zip codes, and no table `{ZIP_CODES}` (zip, people) says where more than 20,000 people live"
    codes, people = (
        zips.frame["zip"].cast(pl.String),
        zips.frame["population_count"].cast(pl.Float64, strict=False),
    )
    short = codes.str.len_bytes().max() in {1, 2, 3}
    codes = codes.str.zfill(3 if short else 5)  # a code that was read as a number has lost its zeros
    if any((people.filter(codes.str.starts_with(prefix)).sum() or 0) <= _MIN_PEOPLE for prefix in shown):
        return "zip codes of at most 20,000 people that are not 000"
    return ""


def _texts(table: Table, name: str) -> pl.Series:
    """The different texts that are shown, but for the wildcard."""
    rows = np.flatnonzero(~uninformative_records(table, (name,)))
    series = table.frame[name].gather(rows).unique()
    nodes = table.nodes.get(name)
    return (to_text(series, nodes) if nodes is not None else series.cast(pl.String)).drop_nulls()


def _ends(table: Table, name: str) -> tuple[pl.Series, pl.Series]:
    """Where the different values that are shown begin and end; null: without an end.

    Of texts these are the least and the greatest number in them; one number alone has no end if a sign or
    word stands beside it.
    """
    rows = np.flatnonzero(~uninformative_records(table, (name,)))
    series = table.frame[name].gather(rows).unique()
    if is_interval(series.dtype):
        return ends(series)
    if series.dtype.is_numeric() or series.dtype.is_temporal():
        return series, series
    texts = _texts(table, name)
    numbers = texts.str.extract_all(r"\d+(?:\.\d+)?").list.eval(pl.element().cast(pl.Float64))
    alone = (numbers.list.len() == 1) & ~texts.str.contains(r"^\s*\d+(?:\.\d+)?\s*$")
    return numbers.list.min(), numbers.list.max().set(alone, None)


def _are_years(lows: pl.Series, highs: pl.Series) -> bool:
    """Whether all begin with the first day of a year and end with the last."""
    if not (lows.dtype.is_temporal() and highs.dtype.is_temporal()):
        return bool((lows == highs).all()) and bool(lows.is_between(1000, 9999).all())
    first, last = lows.drop_nulls(), highs.drop_nulls()
    return bool((first.dt.ordinal_day() == 1).all()) and bool(
        ((last.dt.month() == 12) & (last.dt.day() == 31)).all()  # noqa: PLR2004
    )


def _as_years(values: pl.Series) -> pl.Series:
    return (values.dt.year() if values.dtype.is_temporal() else values).cast(pl.Float64)


def _tells_old_ages(lows: pl.Series, highs: pl.Series) -> bool:
    """Whether an age above 89 is told, other than by 90, or by a range without an end from 90 or less."""
    if not (lows.dtype.is_numeric() and highs.dtype.is_numeric()):
        return False
    category = _OLDEST + 1
    ended = (highs > _OLDEST) & ~((lows == category) & (highs == category))
    endless = highs.is_null() & (lows > category)
    return bool((ended.fill_null(value=False) | endless.fill_null(value=False)).any())
