"""Paper 004: UM and CM1 to CM3 of k-anonymous, private, noisy and synthetic data; which measures agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.table import Table
from sfumato.datasets import census, tarragona
from sfumato.front import protect
from sfumato.methods import (
    CorrelatedNoise,
    HohneNoise,
    IndividualRanking,
    IpsoC,
    Mdav,
    PrivateLaplace,
    PrivateMicroaggregation,
    RankSwapping,
    Resampling,
    Rounding,
    Synthesis,
    UncorrelatedNoise,
    UniformNoise,
)
from sfumato.report.frame import Spec
from sfumato.reproduce.bench import (
    DATA_SEED,
    Bench,
    Experiment,
    Paper,
    Values,
    band_of,
    mean_numbers,
    mean_of,
    numeric_keys,
    rank_correlation,
    score_number,
)
from sfumato.reproduce.figures import lines, points_of, surface
from sfumato.risk import (
    AllCorrelations,
    DistanceLinkage,
    GlobalLinkage,
    IntervalDisclosure,
    LargestCorrelation,
    RankLinkage,
    SortedCorrelations,
)
from sfumato.utility import (
    EarthMoversDistance,
    ProbabilisticInformationLoss,
    PropensityMeanSquare,
    RankUtility,
    SseRatio,
)

#: The attributes of the three versions: the first two, three and all four.
ATTRIBUTES = ("FICA", "FEDTAX", "INTVAL", "POTHVAL")
SIZES = (2, 3, 4)
KS = (*range(2, 101), 200, 300, 400, 500)
EPSILONS = (0.01, 0.1, 1, 10, 25, 50, 100)
NOISES = tuple(round(0.1 * step, 1) for step in range(1, 10))
REPLICATIONS, RUNS = 100, 5
METRICS = {"UM": RankUtility(), "CM1": LargestCorrelation(), "CM2": AllCorrelations()}
#: The measures that section 8 wants compared: of risk, and of utility.
RISKS = {
    "CM1": LargestCorrelation(), "CM2": AllCorrelations(), "CM3": SortedCorrelations(),
    "DBRL": DistanceLinkage(),
    "GDBRL": GlobalLinkage(), "R": RankLinkage(), "interval": IntervalDisclosure(),
}  # fmt: skip
LOSSES = {
    "UM": RankUtility(), "EMD": EarthMoversDistance(), "PIL": ProbabilisticInformationLoss(),
    "pMSE": PropensityMeanSquare(),
}  # fmt: skip
#: Methods and settings over which measures are compared.
SETTINGS: Mapping[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "mdav": (lambda v: Mdav(k=v), (3, 10, 30, 100)),
    "individual ranking": (lambda v: IndividualRanking(k=v), (3, 10, 30, 100)),
    "uncorrelated noise": (lambda v: UncorrelatedNoise(deviation=v), (5, 15, 40, 100)),
    "correlated noise": (lambda v: CorrelatedNoise(ratio=v), (0.01, 0.1, 0.5, 1.5)),
    "multiplicative noise": (lambda v: HohneNoise(deviation=v), (0.05, 0.2, 0.5, 1)),
    "rank swapping": (lambda v: RankSwapping(window=v), (1, 5, 15, 40)),
    "resampling": (lambda v: Resampling(samples=v), (1, 2, 5, 20)),
    "rounding": (lambda v: Rounding(coarseness=v), (0.2, 1, 2, 4)),
    "synthesis": (lambda v: Synthesis(leaf=v), (3, 20, 80, 300)),
}


def experiments(bench: Bench) -> Iterator[Experiment]:
    """With --quick fewer replications, few settings, and no comparison of measures."""
    whole = census(bench.paths["census.csv"])
    table = whole.select(list(ATTRIBUTES))
    for name, data in {"Census": table, "Simulated": simulated()}.items():
        replications = bench.runs(REPLICATIONS, 10)
        yield Experiment(
            f"table 1, {name}",
            partial(_table_1, name=name, table=data, runs=replications),
            len(replications) / 8,
        )
    for size in SIZES:
        ks = KS[::12] if bench.quick else KS
        yield Experiment(f"figure 2, {size}", partial(_figure_2, table=table, size=size, ks=ks), len(ks) / 12)
        yield Experiment(
            f"figure 3, {size}",
            partial(_figure_3, table=table, size=size, runs=bench.runs(RUNS, 2)),
            4,
            "noise",
        )
    for sign, make in {"α": UncorrelatedNoise, "β": UniformNoise}.items():
        yield Experiment(
            f"figures 4 and 5, {sign}",
            partial(_noise, table=table, sign=sign, make=make, runs=bench.runs(RUNS, 2)),
            3,
        )
    for name, data in {"Census": whole, "Tarragona": tarragona(bench.paths["tarragona.csv"])}.items():
        yield Experiment(f"sse, {name}", partial(_sse, name=name, table=data), 2)
    if not bench.quick:
        for name, (_, settings) in SETTINGS.items():
            yield from (
                Experiment(
                    f"agreement, {name} {v}", partial(_agreement, name=name, setting=v, table=table), 4
                )
                for v in settings
            )
        for by, epsilon in product(("record", "column"), (0.1, 1, 10, 100)):
            yield Experiment(
                f"ε, {by} {epsilon}", partial(_epsilon, table=table, by=by, epsilon=epsilon), 3, "noise"
            )


def simulated() -> Table:
    """Four attributes of 1,080 records with correlations of .99, by the seed of data."""
    shape = np.full((4, 4), 0.99) + 0.01 * np.eye(4)
    values = np.random.default_rng(DATA_SEED).multivariate_normal(np.zeros(4), shape, 1080)
    return numeric_keys(pl.DataFrame(values, schema=list(ATTRIBUTES)))


def _table_1(run: Run, *, name: str, table: Table, runs: range) -> Values:
    found = []
    for number in runs:
        here = run.at("run", number)
        released = protect(table, IpsoC(), run=here).table
        by_place = Evidence(table, Release.of(released, source_rows=np.arange(len(table))))
        numbers = [score_number(measure, by_place, here) for measure in METRICS.values()]
        found.append(
            [*numbers, score_number(SortedCorrelations(), Evidence(table, Release.of(released)), here)]
        )
    columns = [*METRICS, "CM3"]
    means = [mean_of(each) for each in zip(*found, strict=True)]
    return {f"table-1/{name}/{column}": mean for column, mean in zip(columns, means, strict=True)}


def _figure_2(run: Run, *, table: Table, size: int, ks: Sequence[int]) -> Values:
    own, values = table.select(list(ATTRIBUTES[:size])), dict[str, Any]()
    asked = [*METRICS.values(), RankUtility(of="values")]
    found = [mean_numbers(Mdav(k=k), own, asked, run, range(1)) for k in ks]
    for name, column in zip([*METRICS, "UM of values"], zip(*found, strict=True), strict=True):
        values |= {f"figure-2 {name}/{size} attributes/{k}": each for k, each in zip(ks, column, strict=True)}
    return values


def _figure_3(run: Run, *, table: Table, size: int, runs: range) -> Values:
    own, values = table.select(list(ATTRIBUTES[:size])), dict[str, Any]()
    for epsilon in EPSILONS:
        method = PrivateLaplace(epsilon=epsilon, domain="data")
        found = [
            mean_numbers(method, own, list(METRICS.values()), run.at(number), range(1)) for number in runs
        ]
        for name, numbers in zip(METRICS, zip(*found, strict=True), strict=True):
            values[f"figure-3 {name}/{size} attributes/{epsilon}"] = band_of(
                [n for n in numbers if n is not None]
            )
    return values


def _noise(run: Run, *, table: Table, sign: str, make: Any, runs: range) -> Values:
    figure, values = {"α": "figure-4", "β": "figure-5"}[sign], dict[str, Any]()
    for size in NOISES:
        method = make(deviation=100 * size) if sign == "α" else make(spread=size)
        numbers = mean_numbers(method, table, list(METRICS.values()), run.at(str(size)), runs)
        values |= {f"{figure}/{name}/{size}": n for name, n in zip(METRICS, numbers, strict=True)}
    return values


def _sse(run: Run, *, name: str, table: Table) -> Values:
    ratios = {k: mean_numbers(Mdav(k=k), table, [SseRatio()], run, range(1))[0] for k in (3, 5, 10)}
    return {f"sse/{name}/k = {k}": None if ratio is None else 100 * ratio for k, ratio in ratios.items()}


def _agreement(run: Run, *, name: str, setting: Any, table: Table) -> Values:
    """All measures of one release, turned so that more is more disclosive, or loses more."""
    released = protect(table, SETTINGS[name][0](setting), run=run).table
    evidence = Evidence(table, Release.of(released, source_rows=np.arange(len(table))))
    values = {}
    for short, measure in {**RISKS, **LOSSES}.items():
        number = score_number(measure, evidence, run)
        turned = number if measure.better == "low" or number is None else -number
        values[f"releases/{name} {setting}/{short}"] = turned
    return values


def _epsilon(run: Run, *, table: Table, by: str, epsilon: float) -> Values:
    method = PrivateMicroaggregation(k=15, epsilon=epsilon, domain="data", by=by)
    asked = {"DBRL": DistanceLinkage(), "CM2": AllCorrelations()}
    found = [
        mean_numbers(method, table, list(asked.values()), run.at(number), range(1)) for number in range(RUNS)
    ]
    return {
        f"epsilon/by {by}, ε = {epsilon}/{name}": band_of([n for n in numbers if n is not None])
        for name, numbers in zip(asked, zip(*found, strict=True), strict=True)
    }


# What follows from the numbers ---------------------------------------------------------------------------


def conclude(values: Values) -> Values:
    """The claims of the text, and the rank correlations of section 8, of all numbers that there are."""
    drawn = [
        *(f"{figure} {name}" for figure in ("figure-2", "figure-3") for name in METRICS),
        "figure-4",
        "figure-5",
    ]
    if not all(points_of(values, name) for name in drawn):
        return _correlations(values)
    found: dict[str, Any] = {}
    for figure, sign in {"figure-2": "k", "figure-3": "ε"}.items():
        trends = {name: _trend(points_of(values, f"{figure} {name}")) for name in METRICS}
        found |= _claims(trends, sign, falls=sign == "ε")
    for figure, sign in {"figure-4": "α", "figure-5": "β"}.items():
        points = points_of(values, figure)
        found |= _claims({name: _trend([p for p in points if p[0] == name]) for name in METRICS}, sign)
    for label, name in {"values": "UM of values", "ranks": "UM"}.items():
        numbers = [number for _, _, number in points_of(values, f"figure-2 {name}")]
        found[f"UM above 0.9 for all k, {label}"] = float(np.mean(np.array(numbers) > 0.9))  # noqa: PLR2004
    found["UM falls as k grows, values"] = _trend(points_of(values, "figure-2 UM of values"))
    found["more attributes, more CM2"] = _more_with_attributes(points_of(values, "figure-2 CM2"))
    pairs = [[number for name, _, number in points_of(values, figure) if name == "CM1"]
             for figure in ("figure-4", "figure-5")]  # fmt: skip
    found["CM1 larger for α than for β"] = float(np.mean(np.array(pairs[0]) > np.array(pairs[1])))
    claims = {f"claims/{name}/holds": number for name, number in found.items()}
    return {**claims, **_correlations(values)}


def _claims(trends: Mapping[str, float], sign: str, *, falls: bool = False) -> dict[str, float]:
    """The trends of UM and of the confidentiality metrics, as the text states them of a parameter."""
    grows = {name: (name == "UM") == falls for name in trends}
    return {f"{name} grows with {sign}" if grows[name] else f"{name} falls as {sign} grows": trend
            for name, trend in trends.items()}  # fmt: skip


def _trend(points: Sequence[tuple[str, str, float]]) -> float:
    """The mean over the lines of the rank correlation of place and number."""
    trends = []
    for line in dict.fromkeys(name for name, _, _ in points):
        own = [(float(at), number) for name, at, number in points if name == line]
        trends.append(rank_correlation([at for at, _ in own], [number for _, number in own]))
    return float(np.mean(trends))


def _more_with_attributes(points: Sequence[tuple[str, str, float]]) -> float:
    """The share of settings at which each further attribute adds."""
    by_place: dict[str, list[float]] = {}
    for _, at, number in points:
        by_place.setdefault(at, []).append(number)
    return float(np.mean([bool((np.diff(numbers) > 0).all()) for numbers in by_place.values()]))


def _correlations(values: Values) -> Values:
    points = points_of(values, "releases")
    names = list(dict.fromkeys(row for row, _, _ in points))
    columns = {short: {row: n for row, column, n in points if column == short} for short in (*RISKS, *LOSSES)}
    found = {}
    for one, other in product((*RISKS, *LOSSES), RISKS):
        both = [row for row in names if row in columns[one] and row in columns[other]]
        if both:
            found[f"agreement/{one}/{other}"] = rank_correlation(
                [columns[one][row] for row in both], [columns[other][row] for row in both]
            )
    return found


def figures(values: Values) -> dict[str, Spec]:
    """Figures 2 to 5, and the rank correlations as a surface."""
    drawn = {}
    for figure, sign, what in (("figure-2", "k", "k-anonymous data"), ("figure-3", "ε", "private data")):
        for name in METRICS:
            points = points_of(values, f"{figure} {name}")
            caption = f"{figure.capitalize().replace('-', ' ')}: {name} of {what}"
            drawn[f"{figure}-{name}"] = lines(
                caption, "A line for each number of attributes.", points, x=sign, y=name, log=True
            )
    for figure, sign, what in (("figure-4", "α", "additive"), ("figure-5", "β", "multiplicative")):
        caption = f"{figure.capitalize().replace('-', ' ')}: metrics of {what} noise"
        drawn[figure] = lines(
            caption, "Four attributes of Census.", points_of(values, figure), x=sign, y="metric"
        )
    agreement = points_of(values, "agreement")
    if agreement:
        drawn["agreement"] = surface(
            "Which measures agree?", "Rank correlations over methods and settings; 1 means the same order.",
            agreement, x="measure of risk", y="measure of risk or loss", value="rank correlation",
        )  # fmt: skip
    return drawn


PAPER = Paper("004", experiments, figures, conclude)
