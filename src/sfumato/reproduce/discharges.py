"""Paper 003: hospital discharges masked, regenerated, k-anonymous, t-close and coarsened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.method import Method
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.intervals import intervals, is_interval
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.datasets import patients
from sfumato.front import protect
from sfumato.kernels.arrays import Floats
from sfumato.methods import (
    CloseGeneralisation,
    NaiveCoarsening,
    Regeneration,
    SafeHarbour,
    SortedGeneralisation,
)
from sfumato.methods.close_generalisation import closest_of
from sfumato.methods.regeneration import masked_cells, masked_marginals
from sfumato.report.frame import Spec
from sfumato.reproduce.bench import DATA_SEED, Bench, Experiment, Paper, Values, score_number
from sfumato.reproduce.figures import bars, points_of, surface
from sfumato.risk import AttributeDisclosure, Uniqueness
from sfumato.utility import GeneralisationLoss

RECORDS, QUICK_RECORDS = 3_985_166, 20_000
CENSUS = ("age_yrs", "sex", "ethncty", "race", "patzip", "patcnty")
PLACE, TIME = ("oshpd_id",), ("los", "adm_qtr")
KEYS = (*PLACE, *CENSUS, *TIME)
#: The order of Tables S4 and S5.
LISTED_KEYS = ("oshpd_id", "age_yrs", "sex", "ethncty", "race", "patzip", "patcnty", "los", "adm_qtr")
#: The attributes of Table S3.
MASKED = ("age_yrs", "ethncty", "race", "sex", "adm_qtr", "patzip", "patcnty")
KNOWN = {"census": CENSUS, "census and hospital": (*CENSUS, *PLACE), "census, hospital and time": KEYS}
KS, RESOLUTIONS = (2, 3, 5, 10), (32, 16, 8)
#: The resolutions of Figures S5 and S6; 0 leaves values as they are.
SURFACE = (2, 4, 8, 16, 32, 0)
WEALTHY = 100_001
_RELEASES = [f"k = {k}{more}" for k in KS for more in ("", ", t-close")]
_RELEASES += ["safe harbour", *(f"coarsened to {resolution}" for resolution in RESOLUTIONS)]


def experiments(bench: Bench) -> Iterator[Experiment]:
    """With --quick of 20,000 records, and the surfaces of fewer resolutions; else of all."""
    n = QUICK_RECORDS if bench.quick else RECORDS
    scale = n / RECORDS
    yield Experiment("examples", _examples, 1)
    yield Experiment("tables S7 to S9", _intervals, 1)
    yield Experiment("masking and regeneration", partial(_masking, n=n), 10 + 100 * scale)
    for k in KS:
        for close in (False, True):
            name = f"k = {k}" + ", t-close" * close
            method = _close(k) if close else SortedGeneralisation(k=k, exact_ends=True)
            yield Experiment(
                f"figure S4, {name}", partial(_release, n=n, name=name, method=method), 1 + 60 * scale
            )
    for resolution in RESOLUTIONS:
        name = f"coarsened to {resolution}"
        method = NaiveCoarsening(resolution=resolution)
        yield Experiment(
            f"figure S4, {name}", partial(_release, n=n, name=name, method=method), 1 + 25 * scale
        )
    for resolution in SURFACE[:: 2 if bench.quick else 1]:
        yield Experiment(
            f"figures S5 and S6, {resolution}", partial(_surface, n=n, census=resolution), 1 + 40 * scale
        )


def _close(k: int) -> Method:
    method: Method = CloseGeneralisation(k=k, sensitive="charge", exact_ends=True)
    return method


@cache
def discharges(n: int) -> Table:
    """So many patients, by the seed of data."""
    return patients(n, seed=DATA_SEED)


def unique(table: Table, columns: Sequence[str], run: Run, release: Release | None = None) -> float | None:
    """The share of unique records by equation 1, where a wildcard stands for every value."""
    evidence = Evidence(table, release, scenario=Scenario(columns=tuple(columns)))
    return score_number(Uniqueness(missing="any"), evidence, run)


# Masking, regeneration and their correlations ------------------------------------------------------------


def mask_and_regenerate(original: Table, run: Run) -> tuple[Table, Table]:
    """Mask as the office does; then fill the masked cells from the marginals it publishes (Algorithm S1)."""
    masked = protect(original, SafeHarbour(), columns=[*MASKED, *PLACE], run=run).table
    marginals = masked_marginals(original, masked, MASKED)
    method = Regeneration(marginals="marginals")
    regenerated = protect(masked, method, columns=MASKED, resources={"marginals": marginals}, run=run)
    return masked, regenerated.table


def _masking(run: Run, *, n: int) -> Values:
    original = discharges(n)
    masked, regenerated = mask_and_regenerate(original, run)
    values = _masked_counts(original, masked)
    tables = {"regenerated (SPD)": regenerated, "masked (PD)": masked, "original": original}
    values |= {f"figure-s3/{known}/{name}": unique(table, columns, run)
               for known, columns in KNOWN.items() for name, table in tables.items()}  # fmt: skip
    before, after = pairwise_correlations(masked), pairwise_correlations(regenerated)
    for (one, other), first, second in zip(combinations(LISTED_KEYS, 2), before, after, strict=True):
        values |= {f"table-s4-s5/{one} {other}/S4": first, f"table-s4-s5/{one} {other}/S5": second}
    values["table-s4-s5/correlation of both/S5"] = float(np.corrcoef(before, after)[0, 1])
    evidence = Evidence(
        original, Release.of(masked, source_rows=np.arange(n)), scenario=Scenario(columns=KEYS)
    )
    values["figure-s4/safe harbour/unique"] = values["figure-s3/census, hospital and time/masked (PD)"]
    return values | _disclosure_and_loss("safe harbour", evidence, run)


def _masked_counts(original: Table, masked: Table) -> dict[str, Any]:
    """Figures S1 and S2: records and masked ones, by race and age, scaled to the size of the paper's file."""
    scale, values = RECORDS / len(original), dict[str, Any]()
    for column, width, name in (("race", 1, "race"), ("age_yrs", 10, "age")):
        codes = original.frame[column].cast(pl.Int64).to_numpy() // width * width
        hidden = masked_cells(masked, column)
        for code in np.unique(codes).tolist():
            own = codes == code
            values[f"figure-{name}/{name} {code}/all"] = float(own.sum() * scale)
            values[f"figure-{name}/{name} {code}/masked"] = float((own & hidden).sum() * scale)
            if name == "race":
                values[f"masking/race {code}/masked"] = float((own & hidden).sum() * scale)
    return values


def known_numbers(table: Table) -> dict[str, Floats]:
    """The keys as numbers, as the paper codes them; NaN where they are masked."""
    numbers = {}
    for name in LISTED_KEYS:
        series = table.frame[name]
        exact = series.struct.field("lo") if is_interval(series.dtype) else series
        exact = exact.cast(pl.String) if name in table.nodes else exact
        values = exact.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        numbers[name] = np.where(masked_cells(table, name), np.nan, values)
    return numbers


def pairwise_correlations(table: Table) -> list[float]:
    """Tables S4 and S5: the correlation of each pair of keys, over the records where both are known."""
    numbers, found = known_numbers(table), []
    for one, other in combinations(LISTED_KEYS, 2):
        both = ~(np.isnan(numbers[one]) | np.isnan(numbers[other]))
        found.append(float(np.corrcoef(numbers[one][both], numbers[other][both])[0, 1]))
    return found


# Releases ------------------------------------------------------------------------------------------------


def _release(run: Run, *, n: int, name: str, method: Method) -> Values:
    table = discharges(n)
    release = method.apply(table.aimed_at(KEYS), run)
    evidence = Evidence(table, release, scenario=Scenario(columns=KEYS))
    alone = alone_share(release.table) if name.startswith("coarsened") else unique(table, KEYS, run, release)
    return {f"figure-s4/{name}/unique": alone} | _disclosure_and_loss(name, evidence, run)


def alone_share(table: Table) -> float:
    """The share of records in a class of their own: on fixed intervals that is what equation 1 counts."""
    classes = Classes.of(table, KEYS)
    return float((classes.members == 1).sum() / len(table))


def _disclosure_and_loss(name: str, evidence: Evidence, run: Run) -> dict[str, Any]:
    disclosure = AttributeDisclosure(sensitive="charge", low=WEALTHY)
    return {
        f"figure-s4/{name}/disclosed": score_number(disclosure, evidence, run),
        f"figure-s4/{name}/loss": score_number(GeneralisationLoss(), evidence, run),
    }


def _surface(run: Run, *, n: int, census: int) -> Values:
    """A row of Figures S5 and S6; the loss of a tenth of the records."""
    values, tables = dict[str, Any](), (discharges(n), discharges(max(n // 10, 2_000)))
    whole, tenth = (_coarsen(table, census, CENSUS, run) for table in tables)
    for time in SURFACE[:: 2 if n < RECORDS else 1]:
        row, column = (str(r) if r else "all" for r in (census, time))
        share = alone_share(_coarsen(whole, time, (*PLACE, *TIME), run))
        values[f"figure-s5/{row}/{column}"] = round(share * n)
        if census or time:
            release = Release.record_by_record(_coarsen(tenth, time, (*PLACE, *TIME), run))
            evidence = Evidence(tables[1], release, scenario=Scenario(columns=KEYS))
            values[f"figure-s6/{row}/{column}"] = score_number(GeneralisationLoss(), evidence, run)
    return values


def _coarsen(table: Table, resolution: int, columns: Sequence[str], run: Run) -> Table:
    """Coarsen some columns to a resolution (0: they stay as they are)."""
    if not resolution:
        return table
    made: Table = NaiveCoarsening(resolution=resolution).apply(table.aimed_at(columns), run).table
    return made.aimed_at(())


# Worked examples -----------------------------------------------------------------------------------------


def _intervals(run: Run) -> Values:
    """Tables S7 to S9."""
    age = Column("age", Kind.CONTINUOUS, lower=0, upper=85)
    ages = Table(pl.DataFrame({"age": list(range(86))}), Schema((age,)))
    values: dict[str, float] = {f"table-s9/k = {k}/t": closest_of(RECORDS, k) for k in KS}
    for resolution in (16, 8, 4):
        shown = NaiveCoarsening(resolution=resolution).apply(ages, run).table.frame["age"]
        for number, ends in enumerate(shown.unique(maintain_order=True).to_list(), start=1):
            name = f"table-s7-s8/{resolution} intervals, no. {number}"
            values |= {f"{name}/from": ends["lo"], f"{name}/to": ends["hi"]}
    return values


def six_patients(*, generalised: bool, first_ages: tuple[int, int] = (35, 52)) -> Table:
    """Table S2, or Table S6, its 3-anonymous version (whose printed first range of ages is an erratum)."""
    numbers = {
        "age": ([42, 35, 52, 70, 57, 61], first_ages, (57, 70)),
        "zip": ([93_722, 93_611, 93_561, 93_560, 93_555, 93_551], (93_561, 93_722), (93_551, 93_560)),
        "quarter": ([1, 2, 2, 2, 4, 2], (1, 2), (2, 4)),
        "stay": ([33, 47, 13, 1, 2, 2], (13, 47), (1, 2)),
    }
    names = {
        "gender": (["Male"] * 3 + ["Female"] + ["Male"] * 2, "Male", "Male or Female"),
        "ethnicity": (["Non-hispanic"] * 3 + ["Hispanic"] + ["Non-hispanic"] * 2, "Non-hispanic",
                      "Non-hispanic or Hispanic"),
        "race": (["White", "White", "Black", "White", "White", "White"], "White or Black", "White"),
        "county": (["Fresno"] * 2 + ["Kern"] * 3 + ["Los Angeles"], "Fresno or Kern", "Kern or Los Angeles"),
    }  # fmt: skip
    frame: dict[str, Any] = {"hospital": ["Cedars-Sinai"] * 6}
    nodes: dict[str, Nodes] = {}
    for name, (values, first, second) in numbers.items():
        ends = [(first[i], second[i]) for i in (0, 1)]
        lows, highs = ([a] * 3 + [b] * 3 for a, b in ends)
        frame[name] = intervals(lows, highs, name=name) if generalised else values
    for name, (texts, one, two) in names.items():
        nodes[name] = Nodes.of({each: each.split(" or ") for each in (one, two)}, leaves=sorted(set(texts)))
        frame[name] = (
            pl.Series(name, [one] * 3 + [two] * 3, dtype=nodes[name].dtype) if generalised else texts
        )
    frame |= {"charge": [505_785, 1_083_683, 252_303, 107_179, 34_392, 24_846],
              "diagnosis": ["Pneumonia", "Meningitis", "Necrosis", "Breast Cancer", "Kidney Cancer",
                            "Stomach Cancer"]}  # fmt: skip
    kinds = dict.fromkeys(("hospital", *names), Kind.NOMINAL) | dict.fromkeys(numbers, Kind.CONTINUOUS)
    columns = [Column(name, kind, Role.KEY) for name, kind in kinds.items()]
    columns += [
        Column("charge", Kind.CONTINUOUS, Role.SENSITIVE),
        Column("diagnosis", Kind.NOMINAL, Role.SENSITIVE),
    ]
    return Table(pl.DataFrame(frame), Schema(tuple(columns)), nodes=nodes if generalised else {})


def _examples(run: Run) -> Values:
    before, after = six_patients(generalised=False), six_patients(generalised=True)
    neighbour = Scenario(columns=("hospital", "age", "gender", "ethnicity", "race", "zip", "county"))
    release = Release.of(after, source_rows=np.arange(6))
    cancer = "Breast Cancer|Kidney Cancer|Stomach Cancer"
    found = {
        "unique in S2, neighbour": (Uniqueness(), Evidence(before, scenario=neighbour)),
        "unique in S6, neighbour": (Uniqueness(), Evidence(before, release, scenario=neighbour)),
        "unique in S6, all keys": (Uniqueness(), Evidence(before, release)),
        "charges above 250,000 disclosed": (
            AttributeDisclosure(low=250_001, sensitive=("charge",)), Evidence(before, release),
        ),
        "cancer disclosed": (
            AttributeDisclosure(value=cancer, sensitive=("diagnosis",)), Evidence(before, release),
        ),
    }  # fmt: skip
    return {f"examples/{name}/number": score_number(measure, evidence, run)
            for name, (measure, evidence) in found.items()}  # fmt: skip


# What follows from the numbers ---------------------------------------------------------------------------


def conclude(values: Values) -> Values:
    """Which statements of the text are true of our numbers, once there are all of them."""
    if not {"figure-s3/census/original", *(f"figure-s4/{name}/loss" for name in _RELEASES)} <= values.keys():
        return {}

    def number(name: str, column: str = "loss") -> float:
        return float(values[f"figure-s4/{name}/{column}"])

    counts: dict[str, list[float]] = {}
    for race, _, count in points_of(values, "figure-race"):
        counts.setdefault(race, []).append(count)
    races = sorted((total, masked / total) for total, masked in counts.values())
    known = [values[f"figure-s3/{name}/original"] for name in KNOWN]
    losses, close = [number(f"k = {k}") for k in KS], [number(f"k = {k}, t-close") for k in KS]
    coarse = [number(f"coarsened to {r}", "unique") for r in RESOLUTIONS]
    found = {
        "S1: rarer races are masked more often": all(a[1] >= b[1] for a, b in pairwise(races)),
        "S3: the more is known, the more are unique": known == sorted(known),
        "S4: coarsening leaves unique records": min(coarse) > 0,
        "S4: safe harbour leaves unique records": number("safe harbour", "unique") > 0,
        "S4: k = 2 loses less than coarsening to 8": number("k = 2") < number("coarsened to 8"),
        "S4: loss grows with k": losses == sorted(losses),
        "S7: t-closeness loses more than k alone": bool((np.array(close) > np.array(losses)).all()),
    }  # fmt: skip
    return {f"claims/{name}/holds": int(true) for name, true in found.items()}


def figures(values: Values) -> dict[str, Spec]:
    """Figures S1 to S7."""
    drawn = {}
    for name, number in (("race", "S1"), ("age", "S2")):
        caption = f"Figure {number}: all and masked records by {name}"
        drawn[f"figure-{number}"] = bars(
            caption, "Scaled to 3,985,166 records.", points_of(values, f"figure-{name}"), y="records"
        )
    drawn["figure-S3"] = bars(
        "Figure S3: unique records by what an intruder knows", "Shares of all records.",
        points_of(values, "figure-s3"), y="share unique",
    )  # fmt: skip
    for column, y in (
        ("unique", "share unique"),
        ("disclosed", "share disclosed"),
        ("loss", "information loss"),
    ):
        points = [(row, column, n) for row, own, n in points_of(values, "figure-s4") if own == column]
        drawn[f"figure-S4-{column}"] = bars(
            f"Figures S4 and S7: {y}", "k-anonymity with and without t-closeness, coarsening, safe harbour.",
            points, y=y,
        )  # fmt: skip
    for name, number, value in (
        ("figure-s5", "S5", "unique records"),
        ("figure-s6", "S6", "information loss"),
    ):
        drawn[f"figure-{number}"] = surface(
            f"Figure {number}: {value} by two resolutions", "Number of intervals of each attribute.",
            points_of(values, name), x="hospital, quarter and length of stay", y="census features",
            value=value,
        )  # fmt: skip
    return drawn


PAPER = Paper("003", experiments, figures, conclude)
