"""Paper 000: R along the grids of Figure 1, the match, Table 1, and every method at that risk and utility."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from sfumato.core import registry
from sfumato.core.method import Method
from sfumato.core.run import Run
from sfumato.data.table import Table
from sfumato.datasets import census, eia
from sfumato.errors import UnjudgedError
from sfumato.front import compare
from sfumato.methods import CorrelatedNoise, HohneNoise, Mdav, RankSwapping
from sfumato.report.frame import Spec
from sfumato.reproduce.bench import (
    Bench,
    Experiment,
    Paper,
    Values,
    mean_numbers,
    numbers_of,
    rank_correlation,
)
from sfumato.reproduce.figures import lines, points_of
from sfumato.risk.ranks import RankLinkage
from sfumato.study.compare import MethodAtLevel
from sfumato.study.evaluate import EXPECTED_ERRORS
from sfumato.utility.transport import EarthMoversDistance

RUNS = 5
#: Each curve of Figure 1: its method by the parameter, and the grid of the paper. A p of 0.2 is 20 per cent.
CURVES: Mapping[str, tuple[Callable[[float], Method], tuple[float, ...]]] = {
    "microaggregation": (lambda k: Mdav(k=int(k)), (5, 10, 15, 20, 25, 50)),
    "correlated noise": (
        lambda ratio: CorrelatedNoise(ratio=ratio),
        (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1, 3),
    ),
    "rank swapping": (
        lambda p: RankSwapping(window=100 * p),
        (0.01, 0.05, 0.075, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    ),
    "multiplicative noise": (
        lambda s: HohneNoise(deviation=s), (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 1),
    ),
}  # fmt: skip
#: The parameters of the match (section 5.1).
MATCH = {
    "Census": dict(zip(CURVES, (5, 1, 0.2, 0.5), strict=True)),
    "EIA": dict(zip(CURVES, (5, 0.05, 0.08, 0.3), strict=True)),
}  # fmt: skip
#: Seconds of R and of EMD, by file.
_SECONDS = {"Census": (0.1, 1.1), "EIA": (0.1, 6.0)}


def eia_numbers(path: object) -> Table:
    """The 11 attributes of the paper: the utility's number and the ten revenue and sales columns."""
    table = eia(str(path))
    return table.select([n for n in table.names if n == "UTILITYID" or n.endswith(("REVENUE", "SALES"))])


def experiments(bench: Bench) -> Iterator[Experiment]:
    """The work of the paper: with --quick a third of each grid on Census, one run, and Table 1 of Census."""
    tables = {"Census": census(bench.paths["census.csv"]), "EIA": eia_numbers(bench.paths["eia.csv"])}
    for name, table in tables.items():
        if name == "EIA" and bench.quick:
            continue
        yield from _figure_1(bench, name, table)
        yield from _table_1(bench, name, table)
    if not bench.quick:
        yield from _comparisons(tables["Census"])


def _figure_1(bench: Bench, name: str, table: Table) -> Iterator[Experiment]:
    for curve, (make, grid) in CURVES.items():

        def work(run: Run, curve: str = curve, make: Callable[[float], Method] = make,
                 grid: tuple[float, ...] = grid[:: 3 if bench.quick else 1]) -> Values:  # fmt: skip
            runs = bench.runs(RUNS if name == "Census" else 2)
            found = [mean_numbers(make(v), table, [RankLinkage()], run.at(str(v)), runs)[0] for v in grid]
            steps = np.diff(np.array(found, dtype=float))
            rises = {f"claims/R rises, {curve}/{name}": float((steps > 0).mean())}
            return {f"figure-1 {name}/{curve}/{v}": r for v, r in zip(grid, found, strict=True)} | rises

        seconds = _SECONDS[name][0] * len(grid) * (1 if bench.quick or curve == "microaggregation" else 3)
        yield Experiment(f"figure 1, {name}, {curve}", work, seconds)


def _table_1(bench: Bench, name: str, table: Table) -> Iterator[Experiment]:
    methods = {curve: CURVES[curve][0](value) for curve, value in MATCH[name].items()}
    extra = {"microaggregation, raw values": Mdav(k=5, scale="none")} if name == "EIA" else {}

    def work(run: Run) -> Values:
        measures, values = [RankLinkage(), EarthMoversDistance()], dict[str, float | None]()
        for curve, method in (methods | extra).items():
            runs = bench.runs(RUNS if name == "Census" else 1)
            risk, utility = mean_numbers(method, table, measures, run.at(curve), runs)
            values |= {f"match/{curve}/{name}": risk, f"table-1/{curve}/{name}": utility}
        ours = [values[f"table-1/{curve}/{name}"] for curve in methods]
        printed = [bench.published[f"table-1/{curve}/{name}"] for curve in methods]
        return values | {f"claims/order of Table 1/{name}": rank_correlation(ours, printed)}

    yield Experiment(f"table 1, {name}", work, _SECONDS[name][1] * (4 if bench.quick else 10))


def _comparisons(table: Table) -> Iterator[Experiment]:
    """Each method of the registry at the level of microaggregation with k = 5, by risk and by utility."""
    for name, cls in registry.methods().items():
        if not cls.randomness.replay or not {"continuous"} <= {kind.value for kind in cls.kinds}:
            continue

        def work(run: Run, cls: type[Method] = cls, name: str = name) -> Values:
            if cls.gives.generalised or cls.gives.suppressed or cls.gives.deassociated:
                return {f"equal-risk/{name}/setting": "R needs exact values, one record for each"}
            measures = RankLinkage(), EarthMoversDistance()
            level = numbers_of(Mdav(k=5), table, measures, run)
            values: dict[str, object] = {}
            for held, ranked, target, where, columns in (
                (*measures, level[0], "equal-risk", ("R", "EMD")),
                (*measures[::-1], level[1], "equal-utility", ("EMD", "R")),
            ):
                try:
                    study = compare(
                        table, [cls()], hold=held, level=target, rank_by=ranked, repeats=2, run=run
                    )
                except (
                    *EXPECTED_ERRORS,
                    UnjudgedError,
                ) as error:  # it does not take these columns, or never reaches the level
                    values[f"{where}/{name}/setting"] = error.message.partition(",")[0]
                    continue
                values |= {
                    f"{where}/{name}/{k}": v for k, v in _numbers_at_level(study.outcomes[0], columns).items()
                }
            return values

        yield Experiment(f"every method, {name}", work, 4.0)


def _numbers_at_level(outcome: MethodAtLevel, columns: tuple[str, str]) -> dict[str, object]:
    """The setting at which a method reached the level, and both numbers there; or why it did not."""
    if outcome.held is None or outcome.ranked is None or outcome.why_not_ranked:
        return {"setting": outcome.why_not_ranked or "the level is not reached"}
    return {"setting": outcome.level.value, columns[0]: float(outcome.held.mean),
            columns[1]: float(outcome.ranked.mean)}  # fmt: skip


def figures(values: Values) -> dict[str, Spec]:
    """Figure 1 for each file, over the place in the grid: the paper says to disregard the scale."""
    drawn = {}
    for name in MATCH:
        points, places = [], dict[str, int]()
        for curve, _, value in points_of(values, f"figure-1 {name}"):
            places[curve] = places.get(curve, 0) + 1
            points.append((curve, str(places[curve]), value))
        if points:
            reads = "Each line is a method along its grid of parameters (k, γ, p, s); a larger R is safer."
            drawn[f"figure-1-{name}"] = lines(
                f"Figure 1: R on {name}", reads, points, x="place in the grid of its parameter", y="R"
            )
    return drawn


PAPER = Paper("000", experiments, figures)
