"""Hospital discharges of an invented California, made to order.

The paper on four million discharge records [sanchez2016]_ works on a file that cannot be shipped. `patients`
draws a file with its columns, its size and much of its dependence from a model instead, so that what the
paper does can be done at once and at any size. No record stems from a real person.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.kernels.arrays import Flags, Floats, Ints

__all__ = ["COUNTIES", "ETHNICITIES", "RACES", "SEXES", "patients"]


class _County(NamedTuple):
    """A row of `_MAP`, still as text; `_facts` turns what is a number into one."""

    name: str
    thousands: str  # of inhabitants, census of 2010
    first_zip: str  # a stretch of numbers in the county's postal area; the single codes are invented
    last_zip: str
    region: str
    hispanic: str  # per cent, likewise the next two
    black: str
    asian: str


#: The counties in the order of their codes, from 1; 0 is outside California, where no hospitals are.
_MAP: Final = """
outside California,450,97001,99999,outside,30,5,8; Alameda,1510,94601,94720,bay,22,12,27;
Alpine,1,96140,96142,sierra,7,0,1; Amador,38,95665,95689,sierra,12,2,1; Butte,220,95914,95944,north,14,2,4;
Calaveras,46,95245,95257,sierra,10,1,1; Colusa,21,95970,95979,north,55,1,1;
Contra Costa,1049,94801,94899,bay,24,9,15; Del Norte,29,95531,95548,north,18,3,3;
El Dorado,181,95619,95650,sierra,12,1,4; Fresno,930,93650,93799,valley,50,5,9;
Glenn,28,95980,95988,north,37,1,2; Humboldt,135,95501,95530,north,10,1,2;
Imperial,175,92231,92283,south,80,3,1; Inyo,19,93513,93530,sierra,19,1,1; Kern,840,93301,93399,valley,49,5,4;
Kings,153,93230,93245,valley,51,7,4; Lake,65,95485,95493,north,17,2,1; Lassen,35,96113,96121,north,18,8,1;
Los Angeles,9819,90001,91899,south,48,8,14; Madera,151,93601,93645,valley,54,3,2;
Marin,252,94901,94979,bay,15,3,5; Mariposa,18,95338,95345,sierra,9,1,1; Mendocino,88,95454,95482,north,22,1,2;
Merced,256,95315,95334,valley,55,3,7; Modoc,10,96101,96112,north,14,1,1; Mono,14,93541,93546,sierra,27,0,1;
Monterey,415,93901,93962,coast,55,3,6; Napa,136,94558,94576,bay,32,2,7; Nevada,99,95945,95952,sierra,9,0,1;
Orange,3010,92602,92899,south,34,2,18; Placer,348,95701,95765,sierra,13,1,6;
Plumas,20,96122,96135,sierra,8,1,1; Riverside,2190,92501,92599,south,46,6,6;
Sacramento,1419,95811,95899,sierra,22,10,15; San Benito,55,95023,95045,coast,56,1,3;
San Bernardino,2035,92301,92427,south,49,8,6; San Diego,3095,91901,92199,south,32,5,11;
San Francisco,805,94102,94188,bay,15,6,33; San Joaquin,685,95201,95240,valley,39,7,14;
San Luis Obispo,270,93401,93465,coast,21,2,3; San Mateo,718,94002,94080,bay,25,3,26;
Santa Barbara,424,93101,93199,coast,43,2,5; Santa Clara,1782,95101,95196,bay,27,2,32;
Santa Cruz,262,95060,95077,coast,32,1,4; Shasta,177,96001,96025,north,8,1,2;
Sierra,3,95910,95912,sierra,8,0,0; Siskiyou,45,96057,96091,north,10,1,1; Solano,413,94510,94535,bay,24,14,15;
Sonoma,484,95401,95448,bay,25,1,4; Stanislaus,514,95346,95369,valley,42,3,5;
Sutter,95,95953,95968,north,29,2,14; Tehama,63,96029,96055,north,22,1,1; Trinity,14,95563,95568,north,7,0,1;
Tulare,442,93256,93299,valley,61,1,3; Tuolumne,55,95370,95383,sierra,11,2,1;
Ventura,823,93001,93066,south,40,2,7; Yolo,201,95605,95618,sierra,30,2,13; Yuba,72,95901,95909,north,25,3,7
"""
_COUNTIES: Final = tuple(_County(*row.strip().split(",")) for row in _MAP.split(";"))
_WITHOUT_HOSPITAL: Final = ("outside California", "Alpine", "Sierra")


class _Chapter(NamedTuple):
    leads: tuple[str, ...]  # its commonest diagnoses
    first: int  # its categories in the ICD-9
    last: int
    n_codes: int
    log_days: float  # length of stay: location and spread of its logarithm, share of very long stays
    spread: float
    long: float
    base: int  # charge in dollars: once, and per day
    daily: int
    shares: tuple[float, ...]  # of newborns, children, women and men of 18-44, then 45-64, from 65


_CHAPTERS: Final = (
    _Chapter(("V30.00", "V30.01"), 760, 779, 12, 0.85, 0.38, 0.05, 600, 1300, (95, 0, 0, 0, 0, 0)),
    _Chapter(("664.01", "654.21", "650"), 630, 677, 220, 0.9, 0.33, 0.005, 7000, 4000, (0, 1, 57, 0, 0, 0)),
    _Chapter(("414.01", "428.0"), 390, 459, 300, 1.1, 0.7, 0.01, 25000, 8500, (0.2, 2, 3, 8, 19, 30)),
    _Chapter(("486", "491.21", "493.92"), 460, 519, 160, 1.3, 0.7, 0.02, 5000, 7000, (1.5, 22, 3, 6, 9, 14)),
    _Chapter(("574.00", "577.0"), 520, 579, 280, 1.1, 0.65, 0.01, 12000, 7500, (0.5, 15, 9, 17, 14, 11)),
    _Chapter(("038.9", "008.45"), 1, 139, 200, 1.5, 0.75, 0.025, 8000, 8500, (1, 6, 3, 6, 5, 7)),
    _Chapter(("820.21", "996.62"), 800, 999, 420, 1.2, 0.75, 0.02, 17000, 9000, (0.3, 17, 6, 22, 13, 11)),
    _Chapter(("174.9", "153.9", "162.9"), 140, 239, 260, 1.35, 0.8, 0.02, 20000, 8500, (0.1, 4, 3, 4, 9, 6)),
    _Chapter(("715.36", "722.10"), 710, 739, 180, 1.05, 0.5, 0.01, 33000, 6500, (0, 3, 3, 6, 10, 7)),
    _Chapter(("296.20", "295.70"), 290, 319, 120, 1.6, 0.8, 0.05, 1500, 2000, (0, 10, 7, 18, 7, 2)),
    _Chapter(("584.9", "599.0"), 580, 629, 150, 1.15, 0.65, 0.01, 7000, 6500, (0.1, 4, 4, 4, 5, 5)),
    _Chapter(("276.51", "250.80"), 240, 289, 200, 1.15, 0.7, 0.03, 7000, 6000, (1.3, 16, 3, 9, 9, 8)),
)

SEXES: Final = {1: "male", 2: "female"}
ETHNICITIES: Final = {1: "Hispanic", 2: "non-Hispanic", 3: "unknown"}
RACES: Final = {1: "White", 2: "Black", 3: "Native American", 4: "Asian or Pacific", 5: "other", 6: "unknown"}
COUNTIES: Final = {code: county.name for code, county in enumerate(_COUNTIES)}

_N_ZIPS: Final = 1830  # before each county is cut to its stretch of numbers
_N_HOSPITALS: Final = 450
_STAY: Final = 0.86  # share of patients treated in their own county
_SHARE_IN_REGION: Final = 0.85  # share of the others treated in their own region
_ZIP_SPREAD: Final = 1.65  # of the logarithm of a zip code's size within its county
_HABIT: Final = 3.0  # how much the people of one zip code prefer some hospitals to others
_SEGREGATION: Final = 0.75  # how much zip codes of a county differ in whom they house
_LONGEST: Final = 730
_ADULT, _MIDDLE, _OLD, _OLDEST = 18, 45, 65, 85


def patients(n: int = 10_000, *, seed: int = 2009) -> Table:
    """Draw `n` hospital discharges of one year in an invented California.

    The columns are those of the file that [sanchez2016]_ protects: nine keys (hospital, age, sex, ethnicity,
    race, zip code, county, length of stay, quarter of admission) and two sensitive ones (charge, diagnosis).
    They hold whole numbers, as in that file, because its algorithms need numbers; `SEXES`, `ETHNICITIES`,
    `RACES` and `COUNTIES` say what the codes mean. The diagnosis is a text in the form of an ICD-9 code: the
    commonest ones are real, the rest only look so.

    Parameters
    ----------
    n : int, default 10,000
        Number of discharges; the paper has 3,985,166.
    seed : int, default 2009
        Which patients: the same `n` and `seed` give the same table. The hospitals, zip codes and habits are
        the same for every seed, so two seeds give two samples of one population.

    Returns
    -------
    Table
        `n` records in random order, with schema.

    Notes
    -----
    **How it is made.** A zip code by its size; a hospital by the habits of the zip code (86 % stay in their
    county); the age; ethnicity by zip code and age, race by zip code and ethnicity; sex by age; a chapter of
    the ICD-9 by age and sex, and a diagnosis in it by Zipf's law; the length of stay by chapter, age and sex,
    with a long tail; the charge by chapter and length of stay.

    **What to expect.** The share of records that are alone with their nine keys is 0.996 at n = 10,000, 0.975
    at 100,000, 0.878 at 1,000,000 and 0.755 at 3,985,166, where the paper finds "almost 75 %" (the spread of
    the sizes of zip codes was chosen to come near it). About 10 % of the charges exceed 100,000. Correlations
    above 0.03 in both Table S4 and Table S5 have their sign here (hospital and county 0.81, there 0.81), but
    hospital and zip code go together more (0.19, there 0.04). All this is a model, no evidence about anyone.

    References
    ----------
    .. [sanchez2016] D. Sánchez, S. Martínez, J. Domingo-Ferrer (2016). Comment on "Unique in the shopping
       mall: on the reidentifiability of credit card metadata". Science 351, 1274.

    Examples
    --------
    >>> table = patients(1000)
    >>> len(table), table.schema.with_role(Role.SENSITIVE)
    (1000, ('charge', 'diag_p'))
    """
    _require_whole("n", n)
    _require_whole("seed", seed)
    rng = np.random.default_rng(seed)
    state = _california()
    everyone = np.zeros(n, dtype=np.int64)
    zips = _draw(state.zip_shares, everyone, rng)
    hospitals = _draw(state.hospital_shares, zips, rng)
    ages = _draw(_cumulate(_age_shares()), everyone, rng)
    ethnicities = _draw(state.ethnicity_shares, zips * (_OLDEST + 1) + ages, rng)
    races = _draw(state.race_shares, zips * len(ETHNICITIES) + ethnicities, rng)
    women = rng.random(n) < _shares_of_women()[ages]
    chapters = _draw(_cumulate(_facts(_CHAPTERS, "shares").T), _stages(ages, women), rng)
    days = _lengths_of_stay(chapters, ages, women, rng)
    quarters = _draw(_cumulate(np.array([[0.256, 0.251, 0.247, 0.246]])), everyone, rng)
    codes, shares = _catalogue()
    frame = pl.DataFrame(
        {
            "oshpd_id": state.hospital_ids[hospitals],
            "age_yrs": ages,
            "sex": women + np.int64(1),
            "ethncty": ethnicities + 1,
            "race": races + 1,
            "patzip": state.zip_codes[zips],
            "patcnty": state.zip_counties[zips],
            "los": days,
            "adm_qtr": quarters + 1,
            "charge": _charges(chapters, days, rng),
            "diag_p": codes.gather(chapters * shares.shape[1] + _draw(shares, chapters, rng)),
        }
    )
    return Table(frame, _SCHEMA)


def _require_whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ParameterError(f"`{name}` of `patients` must be a whole number from 0 up, got: `{value}`")


def _cumulate(shares: Floats) -> Floats:
    """Turn rows of shares into cumulated ones, the row `g` lifted by `g`, for `_draw`."""
    sums = np.cumsum(shares, axis=1)
    return np.asarray(sums / sums[:, -1:] + np.arange(len(sums))[:, None], dtype=np.float64)


def _draw(cumulated: Floats, groups: Ints, rng: np.random.Generator) -> Ints:
    """Draw a category for each record by the shares of its group, with one search in one sorted list."""
    # Short of 1 by more than the rounding of `groups + lot`, so that no lot falls into the next group.
    lots = rng.random(len(groups)) * (1 - 2.0**-30)
    lots += groups
    found: Ints = np.searchsorted(cumulated.ravel(), lots, side="right")
    found -= groups * cumulated.shape[1]
    return found


class _California(NamedTuple):
    zip_codes: Ints
    zip_counties: Ints
    zip_shares: Floats
    hospital_ids: Ints
    hospital_shares: Floats
    ethnicity_shares: Floats
    race_shares: Floats


@cache
def _california() -> _California:
    """Lay out the state; it does not depend on the seed of the patients."""
    rng = np.random.default_rng(1821)
    people = _facts(_COUNTIES, "thousands")
    room = _facts(_COUNTIES, "last_zip") - _facts(_COUNTIES, "first_zip") + 1
    n_zips = np.minimum(_apportion(people**0.8, _N_ZIPS), room).astype(np.int64)
    zip_counties, nth = _number_in_county(n_zips)
    codes = _facts(_COUNTIES, "first_zip")[zip_counties] + nth * room[zip_counties] // n_zips[zip_counties]
    sizes = _split(people, zip_counties, np.exp(rng.normal(0, _ZIP_SPREAD, len(zip_counties))))
    n_hospitals = _apportion(people**0.9, _N_HOSPITALS)
    n_hospitals[[county.name in _WITHOUT_HOSPITAL for county in _COUNTIES]] = 0
    hospital_counties, rank = _number_in_county(n_hospitals)
    capacities = _split(people, hospital_counties, 1 / (rank + 1.0) ** 0.65)
    numbers = np.concatenate([np.sort(rng.choice(np.arange(1, 1400), k, replace=False)) for k in n_hospitals])
    housed = _neighbourhoods(zip_counties, rng)
    return _California(
        zip_codes=codes.astype(np.int64),
        zip_counties=zip_counties,
        zip_shares=_cumulate(sizes[None, :]),
        hospital_ids=hospital_counties * 10_000 + numbers,
        hospital_shares=_cumulate(_hospital_shares(zip_counties, hospital_counties, capacities, rng)),
        ethnicity_shares=_cumulate(_ethnicity_shares(housed)),
        race_shares=_cumulate(_race_shares(housed)),
    )


def _facts(rows: Sequence[_County] | Sequence[_Chapter], name: str) -> Floats:
    return np.array([getattr(row, name) for row in rows], dtype=np.float64)


def _apportion(weights: Floats, total: int) -> Ints:
    """Give each county its share of `total`, at least one."""
    counts: Ints = np.maximum(np.rint(weights / weights.sum() * total), 1).astype(np.int64)
    return counts


def _number_in_county(counts: Ints) -> tuple[Ints, Ints]:
    """The county of each place and its number within the county."""
    counties = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return counties, np.arange(len(counties)) - starts[counties]


def _split(totals: Floats, counties: Ints, weights: Floats) -> Floats:
    """Split each county's total over its places by weight."""
    sums = np.bincount(counties, weights, len(totals))
    return np.asarray(totals[counties] * weights / sums[counties], dtype=np.float64)


def _hospital_shares(homes: Ints, counties: Ints, capacities: Floats, rng: np.random.Generator) -> Floats:
    """Where the people of each zip code are treated: at home, in the region, anywhere."""
    regions = np.array([county.region for county in _COUNTIES])
    habits = capacities * np.exp(rng.normal(0, _HABIT, (len(homes), len(counties))))
    same_county = homes[:, None] == counties
    same_region = regions[homes][:, None] == regions[counties]
    return (
        _STAY * _normalise_rows(habits * same_county)
        + (1 - _STAY) * _SHARE_IN_REGION * _normalise_rows(habits * (same_region & ~same_county))
        + (1 - _STAY) * (1 - _SHARE_IN_REGION) * _normalise_rows(np.broadcast_to(capacities, habits.shape))
    )


def _normalise_rows(weights: Floats) -> Floats:
    """Rows that sum to 1, or to 0 where there is nothing."""
    sums = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / np.where(sums > 0, sums, 1), dtype=np.float64)


def _neighbourhoods(zip_counties: Ints, rng: np.random.Generator) -> Floats:
    """Shares of Hispanics and of non-Hispanic Blacks, Asians and others in each zip code."""
    named = np.stack([_facts(_COUNTIES, name) for name in ("hispanic", "black", "asian")], axis=1)
    shares = np.concatenate([named, 100 - named.sum(axis=1, keepdims=True)], axis=1) + 0.2
    return _normalise_rows(shares[zip_counties] * np.exp(rng.normal(0, _SEGREGATION, (len(zip_counties), 4))))


def _ethnicity_shares(housed: Floats) -> Floats:
    """Shares of the ethnicities for each zip code and age: the younger, the more Hispanic."""
    ages = np.arange(_OLDEST + 1)
    youth = np.interp(ages, [0, 15, 20, 32, 45, 85], [1.1, 0.6, 0.9, 0.8, -0.6, -1.7])
    odds = (housed[:, 0] / (1 - housed[:, 0]))[:, None] * np.exp(youth)
    hispanic = 0.975 * odds / (1 + odds)
    return np.stack([hispanic, 0.975 - hispanic, np.full_like(odds, 0.025)], axis=-1).reshape(-1, 3)


def _race_shares(housed: Floats) -> Floats:
    """Shares of the races for each zip code and ethnicity; half of the Hispanics call theirs "other"."""
    rest = (
        _normalise_rows(housed[:, 1:] * [1.25, 0.7, 1.0]) * 0.955
    )  # Blacks are in hospital more, Asians less often
    shares = np.empty((len(housed), len(ETHNICITIES), len(RACES)))
    shares[:, 0] = [0.46, 0.012, 0.004, 0.012, 0.485, 0.027]
    shares[:, 1] = [0, 0, 0.006, 0, 0.03, 0.009]
    shares[:, 1, [1, 3, 0]] = rest
    shares[:, 2] = [0.22, 0.04, 0.003, 0.06, 0.17, 0.507]
    return shares.reshape(-1, len(RACES))


def _age_shares() -> Floats:
    """Many newborns, mothers and old people; the top-coded last age holds all above it."""
    ages = np.arange(_OLDEST + 1.0)
    mothers = 0.0125 * np.exp(-0.5 * ((ages - 27) / 7) ** 2)
    old = 0.0115 * np.exp(-0.5 * ((ages - 72) / 17) ** 2)
    shares = 0.0035 * np.exp(-ages / 4) + 0.0028 + mothers + old
    shares *= (1 - 0.135 - 0.08) / shares[1:-1].sum()
    shares[0], shares[-1] = 0.135, 0.08
    return shares[None, :]


def _shares_of_women() -> Floats:
    """Share of women at each age: most patients between 18 and 40 give birth."""
    knots = [0, 1, 13, 18, 22, 32, 40, 46, 60, 75, 84, 85]
    shares = [0.485, 0.43, 0.46, 0.72, 0.80, 0.80, 0.65, 0.52, 0.49, 0.55, 0.63, 0.69]
    return np.interp(np.arange(_OLDEST + 1), knots, shares)


def _stages(ages: Ints, women: Flags) -> Ints:
    """The stage of life that decides on the diagnosis, in the order of `_Chapter.shares`."""
    young = ages < _MIDDLE
    return np.select([ages == 0, ages < _ADULT, young & women, young, ages < _OLD], [0, 1, 2, 3, 4], 5)


def _lengths_of_stay(chapters: Ints, ages: Ints, women: Flags, rng: np.random.Generator) -> Ints:
    """Whole days, 0 for a discharge on the day of admission; few stay very long."""
    logs = _facts(_CHAPTERS, "spread")[chapters] * rng.standard_normal(len(ages))
    logs += _facts(_CHAPTERS, "log_days")[chapters]
    logs += np.where(ages > 0, 0.004 * (ages - 45), 0) - 0.05 * (women & (ages >= _ADULT))
    long = rng.random(len(ages)) < _facts(_CHAPTERS, "long")[chapters]
    logs[long] += 1.6 + 0.8 * np.abs(rng.standard_normal(int(long.sum())))
    return np.minimum(np.exp(logs), _LONGEST).astype(np.int64)


def _charges(chapters: Ints, days: Ints, rng: np.random.Generator) -> Ints:
    """Whole dollars."""
    usual = _facts(_CHAPTERS, "base")[chapters] + _facts(_CHAPTERS, "daily")[chapters] * np.maximum(days, 0.5)
    return (usual * np.exp(0.6 * rng.standard_normal(len(days)))).astype(np.int64)


@cache
def _catalogue() -> tuple[pl.Series, Floats]:
    """The codes of all chapters, each filled up to the same length, and their cumulated shares."""
    rng = np.random.default_rng(9)
    width = max(chapter.n_codes for chapter in _CHAPTERS)
    codes: list[str] = []
    shares = np.zeros((len(_CHAPTERS), width))
    for row, chapter in enumerate(_CHAPTERS):
        tenths = rng.permutation(np.arange(10 * chapter.first, 10 * (chapter.last + 1)))
        others = [f"{tenth // 10:03d}.{tenth % 10}" for tenth in tenths.tolist()]
        own = list(dict.fromkeys([*chapter.leads, *others]))[: chapter.n_codes]
        codes += own + [""] * (width - len(own))
        shares[row, : len(own)] = 1 / np.arange(1.0, len(own) + 1)
    return pl.Series(codes, dtype=pl.String), _cumulate(shares)


def _describe_codes(codes: dict[int, str]) -> str:
    return ", ".join(f"{code} {meaning}" for code, meaning in codes.items())


_SCHEMA: Final = Schema(
    columns=(
        Column("oshpd_id", Kind.NOMINAL, Role.KEY, label="hospital: code of its county, then its number"),
        Column("age_yrs", Kind.CONTINUOUS, Role.KEY, integer=True, lower=0, upper=85, label="age in years"),
        Column("sex", Kind.NOMINAL, Role.KEY, label=f"sex: {_describe_codes(SEXES)}"),
        Column("ethncty", Kind.NOMINAL, Role.KEY, label=f"ethnicity: {_describe_codes(ETHNICITIES)}"),
        Column("race", Kind.NOMINAL, Role.KEY, label=f"race: {_describe_codes(RACES)}"),
        Column("patzip", Kind.NOMINAL, Role.KEY, label="zip code of residence"),
        Column("patcnty", Kind.NOMINAL, Role.KEY, label="county of residence, 0 outside California"),
        Column("los", Kind.CONTINUOUS, Role.KEY, integer=True, lower=0, label="length of stay in days"),
        Column("adm_qtr", Kind.ORDINAL, Role.KEY, order=(1, 2, 3, 4), label="quarter of admission"),
        Column("charge", Kind.CONTINUOUS, Role.SENSITIVE, integer=True, lower=0, label="charge in dollars"),
        Column("diag_p", Kind.NOMINAL, Role.SENSITIVE, label="diagnosis, in the form of an ICD-9 code"),
    ),
    related=(("oshpd_id", "patcnty", "patzip"),),
)
