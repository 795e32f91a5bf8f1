"""The reference sets of the literature, read from a file of yours: they are not ours to ship."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ReadError

__all__ = ["adult", "census", "eia", "tarragona"]

Place = str | PathLike[str]


class _ReferenceFile(NamedTuple):
    """How a reference set looks on disk, and where it can be had."""

    title: str
    separator: str
    schema: Schema
    source: str


def _casc(name: str) -> str:
    return (
        f"it is a reference set of the CASC project; the R package sdcMicro ships it as `{name}`: "
        f"write.csv({name}, 'FILE', row.names = FALSE)"
    )


def _measures(labels: dict[str, str]) -> tuple[Column, ...]:
    """Columns of whole numbers that an intruder is assumed to know, as the literature does."""
    return tuple(
        Column(name, Kind.CONTINUOUS, Role.KEY, integer=True, label=label) for name, label in labels.items()
    )


_CENSUS: Final = _ReferenceFile(
    "census",
    ",",
    Schema(
        _measures(
            {
                "AFNLWGT": "final weight, in hundredths",
                "AGI": "adjusted gross income",
                "EMCONTRB": "employer's contribution to health insurance",
                "FEDTAX": "federal income tax",
                "PTOTVAL": "total income of the person",
                "STATETAX": "state income tax",
                "TAXINC": "taxable income",
                "POTHVAL": "total of other incomes",
                "INTVAL": "income from interest",
                "PEARNVAL": "total earnings of the person",
                "FICA": "social security deduction",
                "WSALVAL": "wages and salaries",
                "ERNVAL": "business or farm net earnings",
            }
        )
    ),
    _casc("CASCrefmicrodata"),
)

_TARRAGONA: Final = _ReferenceFile(
    "tarragona",
    ",",
    Schema(
        _measures(
            {
                "FIXED.ASSETS": "fixed assets",
                "CURRENT.ASSETS": "current assets",
                "TREASURY": "treasury",
                "UNCOMMITTED.FUNDS": "uncommitted funds",
                "PAID.UP.CAPITAL": "paid-up capital",
                "SHORT.TERM.DEBT": "short-term debt",
                "SALES": "sales",
                "LABOR.COSTS": "labour costs",
                "DEPRECIATION": "depreciation",
                "OPERATING.PROFIT": "operating profit",
                "FINANCIAL.OUTCOME": "financial outcome",
                "GROSS.PROFIT": "gross profit",
                "NET.PROFIT": "net profit",
            }
        )
    ),
    _casc("Tarragona"),
)

_EIA: Final = _ReferenceFile(
    "eia",
    ",",
    Schema(
        (
            *_measures({"UTILITYID": "number of the utility, taken as a measure by the literature"}),
            Column("UTILNAME", Kind.NOMINAL, Role.IDENTIFIER, label="name of the utility"),
            Column("STATE", Kind.NOMINAL, Role.KEY, label="state"),
            Column("YEAR", Kind.ORDINAL, Role.OTHER, label="year, two digits"),
            Column("MONTH", Kind.ORDINAL, Role.OTHER, order=tuple(range(1, 13)), label="month"),
            *_measures(
                {
                    "RESREVENUE": "revenue from residential consumers",
                    "RESSALES": "sales to residential consumers",
                    "COMREVENUE": "revenue from commercial consumers",
                    "COMSALES": "sales to commercial consumers",
                    "INDREVENUE": "revenue from industrial consumers",
                    "INDSALES": "sales to industrial consumers",
                    "OTHREVENUE": "revenue from other consumers",
                    "OTHRSALES": "sales to other consumers",
                    "TOTREVENUE": "revenue from all consumers",
                    "TOTSALES": "sales to all consumers",
                }
            ),
        ),
        related=(
            ("UTILITYID", "UTILNAME", "STATE"),
            ("TOTREVENUE", "RESREVENUE", "COMREVENUE", "INDREVENUE", "OTHREVENUE"),
            ("TOTSALES", "RESSALES", "COMSALES", "INDSALES", "OTHRSALES"),
        ),
    ),
    _casc("EIA"),
)

_EDUCATION: Final = (
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"),
    *("Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"),
)
_SALARY: Final = ("<=50K", ">50K")
_ADULT_SOURCE: Final = (
    "it is the set Adult of the UCI Machine Learning Repository; github.com/arx-deidentifier/arx ships it, "
    "with its hierarchies, as `data/adult.csv`"
)


def _adult_key(name: str, label: str) -> Column:
    return Column(name, Kind.NOMINAL, Role.KEY, label=label)


_AGE: Final = Column("age", Kind.CONTINUOUS, Role.KEY, integer=True, lower=0, label="age in years")
_SCHOOLING: Final = Column("education", Kind.ORDINAL, Role.KEY, order=_EDUCATION, label="highest education")

_ADULT_ARX: Final = _ReferenceFile(
    "adult",
    ";",
    Schema(
        (
            _adult_key("sex", "sex"),
            _AGE,
            _adult_key("race", "race"),
            _adult_key("marital-status", "marital status"),
            _SCHOOLING,
            _adult_key("native-country", "country of birth"),
            _adult_key("workclass", "class of worker"),
            _adult_key("occupation", "occupation"),
            Column("salary-class", Kind.ORDINAL, Role.SENSITIVE, order=_SALARY, label="yearly income"),
        )
    ),
    _ADULT_SOURCE,
)

_ADULT_UCI: Final = _ReferenceFile(
    "adult",
    ",",
    Schema(
        (
            _AGE,
            _adult_key("workclass", "class of worker"),
            Column("fnlwgt", Kind.CONTINUOUS, Role.WEIGHT, integer=True, lower=0, label="final weight"),
            _SCHOOLING,
            Column("education-num", Kind.ORDINAL, Role.KEY, label="highest education, numbered"),
            _adult_key("marital-status", "marital status"),
            _adult_key("occupation", "occupation"),
            _adult_key("relationship", "relationship to the householder"),
            _adult_key("race", "race"),
            _adult_key("sex", "sex"),
            *(
                Column(name, Kind.CONTINUOUS, Role.SENSITIVE, integer=True, lower=0, label=label)
                for name, label in (("capital-gain", "capital gains"), ("capital-loss", "capital losses"))
            ),
            Column(
                "hours-per-week",
                Kind.CONTINUOUS,
                Role.KEY,
                integer=True,
                lower=0,
                label="hours of work a week",
            ),
            _adult_key("native-country", "country of birth"),
            Column("class", Kind.ORDINAL, Role.SENSITIVE, order=_SALARY, label="yearly income"),
        ),
        related=(("education", "education-num"),),
    ),
    _ADULT_SOURCE,
)

#: Columns of whole numbers that are not measured but counted or numbered.
_NUMBERED: Final = frozenset({"YEAR", "MONTH", "education-num"})


def census(path: Place) -> Table:
    """Read the set "Census" of the literature: incomes and taxes of 1,080 persons, 1995.

    Thirteen columns of whole numbers. All are keys, as the literature assumes an intruder who knows them all;
    it does so for the final weight AFNLWGT too, which therefore is not a *weight* here.

    Parameters
    ----------
    path : path
        A comma-separated file with a header: the R package sdcMicro's `CASCrefmicrodata`, written without row
        names.

    Returns
    -------
    Table
        The records of the file.

    Raises
    ------
    ReadError
        If there is no such file, or it is not this set.

    References
    ----------
    .. [brand2002] R. Brand, J. Domingo-Ferrer, J. M. Mateo-Sanz (2002). Reference data sets to test and
       compare SDC methods for protection of numerical microdata. CASC project.
    """
    return _read(path, _CENSUS)


def tarragona(path: Place) -> Table:
    """Read the set "Tarragona" of the literature: accounts of 834 companies, 1995.

    Thirteen strongly skewed columns of whole numbers, some negative; all are keys, as in the literature.

    Parameters
    ----------
    path : path
        A comma-separated file with a header: the R package sdcMicro's `Tarragona`, written without row names.

    Returns
    -------
    Table
        The records of the file.

    Raises
    ------
    ReadError
        If there is no such file, or it is not this set.
    """
    return _read(path, _TARRAGONA)


def eia(path: Place) -> Table:
    """Read the set "EIA" of the literature: 4,092 monthly accounts of US electric utilities, 1996.

    The literature takes the number of the utility and the ten revenues and sales as continuous keys; so does
    this schema. The name of the utility is an identifier. The totals are the sums of their parts in most
    records only (all but 249 for the revenues, all but 275 for the sales), so no rule says so.

    Parameters
    ----------
    path : path
        A comma-separated file with a header: the R package sdcMicro's `EIA`, written without row names.

    Returns
    -------
    Table
        The records of the file.

    Raises
    ------
    ReadError
        If there is no such file, or it is not this set.
    """
    return _read(path, _EIA)


def adult(path: Place) -> Table:
    """Read the set "Adult", an extract of the US census of 1994, in one of its two forms.

    In the form that ARX ships there are 30,162 records without missing values and nine columns: eight keys
    and the sensitive income; hierarchies for all nine lie beside the file. In UCI's form there are 32,561
    records and fifteen columns, with a sampling weight; its ``?`` (not known) is left as a category of its
    own, as the literature does.

    Parameters
    ----------
    path : path
        ARX's semicolon-separated `adult.csv` (or `adult_subset.csv`), or UCI's training file,
        comma-separated and with a header.

    Returns
    -------
    Table
        The records of the file.

    Raises
    ------
    ReadError
        If there is no such file, or it is not this set.

    References
    ----------
    .. [kohavi1996] R. Kohavi (1996). Scaling up the accuracy of naive-Bayes classifiers: a decision-tree
       hybrid. Proceedings of KDD-96, 202–207.
    """
    return _read(path, _ADULT_ARX, _ADULT_UCI)


def _read(path: Place, *layouts: _ReferenceFile) -> Table:
    """Read a file in the layout whose header it has."""
    header = _header(Path(path), layouts[0])
    for layout in layouts:
        if tuple(name.strip('"') for name in header.split(layout.separator)) == layout.schema.names:
            return Table(_numbers(_texts(Path(path), layout), layout), layout.schema)
    names = layouts[0].schema.names
    raise ReadError(
        f"the header of the data set `{layouts[0].title}` must be its {len(names)} columns from `{names[0]}` "
        f"to `{names[-1]}`, separated by `{layouts[0].separator}`; that of {path} is different",
        hint=layouts[0].source,
    )


def _header(path: Path, layout: _ReferenceFile) -> str:
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            return lines.readline().rstrip("\r\n")
    except OSError as error:
        raise ReadError(
            f"cannot read {path}, the file of the data set `{layout.title}`: {error.strerror}",
            hint=layout.source,
        ) from None


def _texts(path: Path, layout: _ReferenceFile) -> pl.DataFrame:
    try:
        frame = pl.read_csv(path, separator=layout.separator, infer_schema=False)
    except pl.exceptions.PolarsError:  # its text may quote cells, so it is not passed on
        raise ReadError(
            f"not every line of {path} has the {len(layout.schema.columns)} values of the data set "
            f"`{layout.title}`",
            hint=layout.source,
        ) from None
    return frame.rename(dict(zip(frame.columns, layout.schema.names, strict=True)))


def _numbers(texts: pl.DataFrame, layout: _ReferenceFile) -> pl.DataFrame:
    """Turn the columns of whole numbers into such, or say how many values are not; none may be missing."""
    whole = [column.name for column in layout.schema.columns if column.integer or column.name in _NUMBERED]
    frame = texts.with_columns(pl.col(whole).str.strip_chars().cast(pl.Int64, strict=False))
    for name in frame.columns:
        wrong = frame[name].null_count()
        if wrong:
            raise ReadError(
                f"column `{name}` of the data set `{layout.title}` must hold "
                f"{'whole numbers' if name in whole else 'texts'}, got: {wrong} values that are not",
                hint=layout.source,
            )
    return frame
