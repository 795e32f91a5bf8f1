"""Two surveys: RAND lies in this folder, Fair's in the package statsmodels, which is not imported for it."""

from __future__ import annotations

import importlib.util
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal, get_args

import polars as pl

from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import MissingDependencyError, ParameterError, ReadError

__all__ = ["fair", "rand"]

Per = Literal["year", "person"]

_HEALTH: Final = ("excellent", "good", "fair", "poor")

#: What is known once per person: it does not change over the years of the file.
_LASTING: Final = (
    Column("site", Kind.NOMINAL, Role.KEY, label="site of the experiment"),
    Column("black", Kind.ORDINAL, Role.KEY, label="1 if black, 0 if not, between where imputed"),
    Column("female", Kind.NOMINAL, Role.KEY, label="1 if female"),
    Column("educdec", Kind.CONTINUOUS, Role.KEY, lower=0, label="years of education of the decision maker"),
    Column(
        "physlm",
        Kind.ORDINAL,
        Role.KEY,
        label="1 if physically limited at the start, 0 if not, between where imputed",
    ),
    Column("disea", Kind.CONTINUOUS, Role.KEY, lower=0, label="count of chronic diseases at the start"),
    Column("health", Kind.ORDINAL, Role.KEY, order=_HEALTH, label="self-rated health at the start"),
    Column("income", Kind.CONTINUOUS, Role.SENSITIVE, lower=0, label="income of the family in dollars"),
    Column(
        "mhi", Kind.CONTINUOUS, Role.SENSITIVE, lower=0, upper=100, label="mental health index at the start"
    ),
    Column(
        "ghindx",
        Kind.CONTINUOUS,
        Role.SENSITIVE,
        lower=0,
        upper=100,
        label="general health index at the start",
    ),
    Column("plan", Kind.NOMINAL, Role.OTHER, label="number of the insurance plan"),
    Column("coins", Kind.ORDINAL, Role.OTHER, label="coinsurance in per cent"),
    Column("idp", Kind.NOMINAL, Role.OTHER, label="1 if individual deductible plan"),
    Column("mdeoff", Kind.CONTINUOUS, Role.OTHER, lower=0, label="maximum expenditure offered"),
    Column("pioff", Kind.CONTINUOUS, Role.OTHER, lower=0, label="participation incentive offered"),
    Column("tookphys", Kind.NOMINAL, Role.OTHER, label="1 if examined by a physician at the start"),
)

#: What changes from year to year and describes the person: of the first year, when told per person.
_CHANGING: Final = (
    Column("xage", Kind.CONTINUOUS, Role.KEY, lower=0, label="age that year"),
    Column("child", Kind.NOMINAL, Role.KEY, label="1 if younger than 18"),
    Column("num", Kind.CONTINUOUS, Role.KEY, integer=True, lower=1, label="size of the family"),
)

#: What is counted over a year: summed, when told per person.
_YEARLY: Final = (
    Column("time", Kind.CONTINUOUS, Role.OTHER, lower=0, label="time eligible, in years"),
    Column(
        "mdvis", Kind.CONTINUOUS, Role.SENSITIVE, integer=True, lower=0, label="outpatient visits to an MD"
    ),
    Column(
        "notmdvis",
        Kind.CONTINUOUS,
        Role.SENSITIVE,
        integer=True,
        lower=0,
        label="outpatient visits to others than an MD",
    ),
    Column("mentvis", Kind.CONTINUOUS, Role.SENSITIVE, integer=True, lower=0, label="psychotherapy visits"),
    Column("totadm", Kind.CONTINUOUS, Role.SENSITIVE, integer=True, lower=0, label="hospital admissions"),
    Column(
        "outpdol",
        Kind.CONTINUOUS,
        Role.SENSITIVE,
        lower=0,
        label="outpatient expenses in dollars, without mental care, drugs and supplies",
    ),
    Column("drugdol", Kind.CONTINUOUS, Role.SENSITIVE, lower=0, label="drugs bought, in dollars"),
    Column("suppdol", Kind.CONTINUOUS, Role.SENSITIVE, lower=0, label="supplies bought, in dollars"),
    Column("mentdol", Kind.CONTINUOUS, Role.SENSITIVE, lower=0, label="psychotherapy expenses in dollars"),
    Column("inpdol", Kind.CONTINUOUS, Role.SENSITIVE, lower=0, label="inpatient expenses in dollars"),
    Column(
        "meddol",
        Kind.CONTINUOUS,
        Role.SENSITIVE,
        lower=0,
        label="medical expenses in dollars: the sum of outpatient, drugs, supplies and inpatient",
    ),
)
_INCOMPLETE: Final = Column("inpmis", Kind.NOMINAL, Role.OTHER, label="1 if an inpatient charge is missing")
_YEAR: Final = Column("year", Kind.ORDINAL, Role.OTHER, order=(1, 2, 3, 4, 5), label="year of the study")
_YEARS: Final = Column(
    "years", Kind.ORDINAL, Role.OTHER, order=(1, 2, 3, 4, 5), label="number of years in the study"
)
_RELATED: Final = (
    ("xage", "child"),
    ("plan", "coins", "idp"),
    ("meddol", "outpdol", "drugdol", "suppdol", "inpdol"),
)


def rand(*, per: Per = "year") -> Table:
    """Read the RAND health insurance experiment: 20,190 person-years of 5,912 persons.

    Families at six sites in the United States were given insurance plans at random between 1974 and 1982 and
    followed for up to five years. The same person stands in up to five records, so this is the set on which
    to see that risks are counted in persons, not in records.

    Parameters
    ----------
    per : {"year", "person"}, default "year"
        One record per person and year, the person's number `zper` having the role *unit*; or one per person,
        `zper` being an identifier.

    Returns
    -------
    Table
        20,190 records of 33 columns, or 5,912 of 33 (with `years` instead of `year`).

    Notes
    -----
    **Which file.** That of Cameron and Trivedi's book (45 columns), which the package statsmodels has as
    ``randhie/src/randhie.csv``. No pair of person and year occurs in it twice.

    **What is left out.** Logarithms and other functions of columns that are here (`lfam`, `lnum`, `lpi`,
    `logc`, `fmde`, `linc`, `lnmeddol`, `binexp`, `fchild`, and `xghindx`, which is `ghindx` with imputed
    values): a function of a protected column, released beside it, would undo the protection. The flags
    `hlthg`, `hlthf`, `hlthp` became one column `health`.

    **Per person.** What describes the person is taken from the first of their years (only `xage`, `child` and
    `num` ever change); visits, admissions, expenses and time are summed; `inpmis` is 1 if it ever was;
    `years` counts the years.

    **Missing.** `educdec` (4 records), `mdeoff` and `pioff` (5), and `ghindx` (5,223, of 1,486 persons).

    References
    ----------
    .. [cameron2005] A. C. Cameron, P. K. Trivedi (2005). Microeconometrics: methods and applications.
       Cambridge University Press. The data are in the public domain.

    Examples
    --------
    >>> table = rand(per="person")
    >>> len(table), table.schema["mdvis"].label
    (5912, 'outpatient visits to an MD')
    """
    if per not in get_args(Per):
        raise ParameterError(f"`per` of the data set `rand` must be `year` or `person`, got: `{per}`")
    years = pl.read_parquet(files("sfumato.datasets").joinpath("rand.parquet").read_bytes())
    facts = (*_LASTING, *_CHANGING, *_YEARLY, _INCOMPLETE)
    if per == "year":
        person = Column("zper", Kind.NOMINAL, Role.PERSON, label="number of the person")
        schema = Schema((person, _YEAR, *facts), related=_RELATED)
        return Table(years.select(schema.names), schema)
    person = Column("zper", Kind.NOMINAL, Role.IDENTIFIER, label="number of the person")
    schema = Schema((person, _YEARS, *facts), related=_RELATED)
    return Table(_per_person(years).select(schema.names), schema)


def _per_person(years: pl.DataFrame) -> pl.DataFrame:
    in_order = years.sort("zper", "year")
    return in_order.group_by("zper", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("years"),
        pl.col([column.name for column in (*_LASTING, *_CHANGING)]).first(),
        pl.col([column.name for column in _YEARLY]).sum(),
        pl.col(_INCOMPLETE.name).max(),
    )


_OCCUPATIONS: Final = (
    "1 student; 2 farming, semi-skilled or unskilled; 3 white-collar; 4 teacher, social worker, nurse, "
    "artist, technician or skilled; 5 managerial or business; 6 professional with advanced degree"
)
_FAIR: Final = Schema(
    (
        Column(
            "rate_marriage",
            Kind.ORDINAL,
            Role.SENSITIVE,
            order=(1, 2, 3, 4, 5),
            label="marriage rated from 1 very poor to 5 very good",
        ),
        Column("age", Kind.ORDINAL, Role.KEY, label="age, as the middle of one of six classes"),
        Column(
            "yrs_married",
            Kind.ORDINAL,
            Role.KEY,
            label="years married, as the middle of one of seven classes",
        ),
        Column("children", Kind.ORDINAL, Role.KEY, label="number of children, 5.5 for more than four"),
        Column(
            "religious",
            Kind.ORDINAL,
            Role.SENSITIVE,
            order=(1, 2, 3, 4),
            label="religious, from 1 not to 4 strongly",
        ),
        Column(
            "educ",
            Kind.ORDINAL,
            Role.KEY,
            order=(9, 12, 14, 16, 17, 20),
            label="education: 9 grade school, 12 high school, 14 some college, 16 college graduate, "
            "17 some graduate school, 20 advanced degree",
        ),
        Column("occupation", Kind.NOMINAL, Role.KEY, label=f"occupation: {_OCCUPATIONS}"),
        Column("occupation_husb", Kind.NOMINAL, Role.KEY, label=f"husband's occupation: {_OCCUPATIONS}"),
        Column("affairs", Kind.CONTINUOUS, Role.SENSITIVE, lower=0, label="measure of time spent in affairs"),
    ),
    related=(("age", "yrs_married"),),
)


def fair() -> Table:
    """Read Fair's survey on extramarital affairs: 6,366 married women, readers of a magazine, 1974.

    A small file of coarse answers and one of the most sensitive questions there are: most women share their
    keys with others, and those others' answers may still give them away.

    Returns
    -------
    Table
        6,366 records of 9 columns: six keys, three sensitive; no value is missing.

    Raises
    ------
    MissingDependencyError
        If statsmodels is not installed.

    References
    ----------
    .. [fair1978] R. C. Fair (1978). A theory of extramarital affairs. Journal of Political Economy 86, 45–61.
       Included in statsmodels with permission of the author.

    Examples
    --------
    >>> len(fair())
    6366
    """
    return Table(_read_statsmodels("fair", Path("fair", "fair.csv")).select(_FAIR.names), _FAIR)


def _read_statsmodels(name: str, file: Path) -> pl.DataFrame:
    # `find_spec` of a top-level package does not import it, which for statsmodels would take seconds.
    spec = importlib.util.find_spec("statsmodels")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError.of("statsmodels", extra="data", purpose=f"the data set `{name}`")
    path = Path(spec.submodule_search_locations[0], "datasets", file)
    try:
        return pl.read_csv(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError):  # its text may quote cells, so it is not passed on
        raise ReadError(
            f"the installed statsmodels lacks `datasets/{file.as_posix()}`, which has the data set `{name}`",
            hint="install it again: pip install --force-reinstall statsmodels",
        ) from None
