"""Paper 001: links found by DBRL, GDBRL and GDBRL-δ on Census, larger draws, and after PRAM."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.params import Columns
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.table import Table
from sfumato.datasets import census
from sfumato.front import protect
from sfumato.kernels.arrays import Floats, Ints
from sfumato.methods import (
    DataShuffling,
    GaussianCopula,
    IpsoC,
    Pram,
    PrivateMicroaggregation,
    RankShuffling,
    RankSwapping,
    RankSwappingDistribution,
    UncorrelatedNoise,
    UniformNoise,
)
from sfumato.reproduce.bench import (
    DATA_SEED,
    Bench,
    Experiment,
    Paper,
    Values,
    band_of,
    mean_of,
    nominal_keys,
    numeric_keys,
    score_number,
)
from sfumato.risk import DistanceLinkage, GlobalLinkage

RUNS = 5
#: Attributes 1–6 and 7–13 in the order of the CASC file: the two blocks of the paper's data model.
FIRST = ("AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "STATETAX")
SECOND = ("TAXINC", "POTHVAL", "INTVAL", "PEARNVAL", "FICA", "WSALVAL", "ERNVAL")
METRICS = {"L2": "euclidean", "L1": "manhattan", "Mah": "mahalanobis"}
#: The categorical attributes of Table 7, by file.
CATEGORICAL = {
    "Household": (
        "testdata.csv", ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex", "hhcivil"),
    ),
    "Adult": (
        "adult/adult_uci.csv",
        ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex",
         "native-country"),
    ),
}  # fmt: skip
#: The probability with which the quantile of an unbounded distortion holds for all records.
QUANTILE = 0.95

Make = Callable[[Table, Run], Release]


def in_halves(table: Table, run: Run, method: Any) -> Release:
    """Protect each block of attributes given the original other block."""
    made = table
    for half, other in ((FIRST, SECOND), (SECOND, FIRST)):
        own = protect(table, method(given=Columns(other)), columns=half, run=run.at(half[0])).table
        for name in half:
            made = made.with_values(name, own.frame[name])
    return Release.of(made, source_rows=np.arange(len(table)))


def _by(method: Any) -> Make:
    return lambda table, run: protect(table, method, run=run)


def rows() -> dict[str, Make]:
    """The sixteen rows of Tables 2 to 6, by what they are called there."""
    made = {f"NA {s}": _by(UncorrelatedNoise(deviation=s)) for s in (15, 20, 25, 30)}
    made |= {f"RSwp {p}": _by(RankSwappingDistribution(distance=p)) for p in (2, 5, 10)}
    made |= {f"RShf {q}": _by(RankShuffling(window=q)) for q in (2, 3, 4)}
    made |= {"IPSO": partial(in_halves, method=IpsoC), "DShf": partial(in_halves, method=DataShuffling)}
    return made | {
        f"MicDP {k}, {e}": _by(PrivateMicroaggregation(k=k, epsilon=e, domain="data"))
        for k in (15, 25)
        for e in (1, 10)
    }


def measures(metric: str = "euclidean") -> dict[str, Any]:
    """The three measures of the paper by one distance."""
    how: dict[str, Any] = {"metric": metric, "scale": "pooled"}
    return {
        "DBRL": DistanceLinkage(**how),
        "GDBRL": GlobalLinkage(**how),
        "GDBRL-δ": GlobalLinkage(**how, pairs="delta"),
    }


def links(measure: Any, evidence: Evidence, run: Run) -> float | None:
    """The number of records that are linked correctly, as expected."""
    share = score_number(measure, evidence, run)
    return None if share is None else share * len(evidence.original)


def experiments(bench: Bench) -> Iterator[Experiment]:
    """With --quick one run of Table 2 by one distance, and Household; else all, then the larger draws."""
    yield Experiment("examples", _examples, 1)
    table = census(bench.paths["census.csv"])
    for name, make in rows().items():
        work = partial(_census_row, name=name, make=make, table=table, bench=bench)
        yield Experiment(f"tables 2 and 6, {name}", work, 1 if bench.quick else 5.5, _noise_of(name))
    for name, (file, columns) in CATEGORICAL.items():
        if name == "Household" or not bench.quick:
            work = partial(_pram, name=name, path=bench.paths[file], columns=columns, bench=bench)
            yield Experiment(f"table 7, {name}", work, 2 if name == "Household" else 60)
    for name in ["NA 15", "uniform 0.3"] if bench.quick else list(_bounds()):
        yield Experiment(f"intruder, {name}", partial(_intruder, name=name, table=table), 3)
    if not bench.quick:
        yield from _larger(table)


def _noise_of(row: str) -> Literal["", "noise"]:
    return "noise" if row.startswith("MicDP") else ""


def _examples(run: Run) -> Values:
    cases: dict[str, tuple[list[list[float]], list[list[float]]]] = {
        "first": ([[1.0, 0], [0, 1], [-1, 0], [0, -1]], [[0.0, 0], [0, 2.1], [-2.1, 0], [0, -2.1]]),
        "second": ([[1.0], [2], [3], [4]], [[2.0], [3], [4], [-0.1]]),
    }
    values = {}
    for name, (known, released) in cases.items():
        tables = [numeric_keys(pl.DataFrame(np.array(each), schema=[f"c{i}" for i in range(len(each[0]))]))
                  for each in (known, released)]  # fmt: skip
        evidence = Evidence(tables[0], Release.of(tables[1], source_rows=np.arange(4)))
        for column, measure in {"DBRL": DistanceLinkage(), "GDBRL": GlobalLinkage()}.items():
            values[f"examples/{name}/{column}"] = score_number(measure, evidence, run)
    return values


def _census_row(run: Run, *, name: str, make: Make, table: Table, bench: Bench) -> Values:
    found: dict[str, list[float | None]] = {}
    for number in bench.runs(RUNS):
        here = run.at("run", number)
        evidence = Evidence(table, make(table, here))
        for short, metric in list(METRICS.items())[: 1 if bench.quick else None]:
            for column, measure in measures(metric).items():
                found.setdefault(f"{column} {short}", []).append(links(measure, evidence, here))
    reached = {key: _summary(numbers, band=name.startswith("MicDP")) for key, numbers in found.items()}
    table_2 = {f"table-2/{name}/{key[:-3]}": value for key, value in reached.items() if key.endswith(" L2")}
    if bench.quick:
        return table_2
    return table_2 | {f"table-6/{name}/{key}": value for key, value in reached.items()}


def _summary(numbers: Sequence[float | None], *, band: bool) -> Any:
    return band_of([each for each in numbers if each is not None]) if band else mean_of(numbers)


def drawn_matrix(counts: Ints, least: float, rng: np.random.Generator) -> Floats:
    """Draw a PRAM matrix as sdcMicro does: a diagonal, a second stage by Bayes, half of the identity."""
    size = len(counts)
    diagonal = rng.uniform(least, 1, size)
    first = np.repeat((1 - diagonal)[:, None] / max(size - 1, 1), size, axis=1)
    np.fill_diagonal(first, diagonal if size > 1 else 1.0)
    back = (counts[:, None] * first).T
    mixed: Floats = 0.5 * (first @ (back / back.sum(axis=1, keepdims=True))) + 0.5 * np.eye(size)
    return mixed


def pram_release(table: Table, least: float, run: Run) -> Release:
    """Protect all columns by PRAM with matrices drawn as sdcMicro does."""
    rows, rng = [], run.rng("matrices")
    for name in table.names:
        values, counts = np.unique(table.frame[name].to_numpy(), return_counts=True)
        matrix = drawn_matrix(counts, least, rng)
        rows += [
            {"column": name, "from": a, "to": b, "probability": float(matrix[i, j])}
            for i, a in enumerate(values)
            for j, b in enumerate(values)
        ]
    return protect(
        table, Pram(matrix="drawn", invariant=False), resources={"drawn": pl.DataFrame(rows)}, run=run
    )


def distinct_keys(path: Path, columns: Sequence[str]) -> Table:
    """The different records of a file on its categorical attributes."""
    return nominal_keys(pl.read_csv(path, columns=list(columns)).unique(maintain_order=True))


def _pram(run: Run, *, name: str, path: Path, columns: Sequence[str], bench: Bench) -> Values:
    table, values = distinct_keys(path, columns), dict[str, float | None]()
    for least in (0.8,) if bench.quick else (0.8, 0.7):
        found: list[list[float | None]] = []
        for number in bench.runs(RUNS if name == "Household" else 2):
            here = run.at("pd", str(least), "run", number)
            evidence = Evidence(table, pram_release(table, least, here))
            local = links(DistanceLinkage(metric="hamming"), evidence, here)
            score = GlobalLinkage(metric="hamming").score(evidence, here)
            delta = links(GlobalLinkage(metric="hamming", pairs="delta"), evidence, here)
            ends = [len(table) * end for end in score.interval or (score.value, score.value)]
            found.append([local, len(table) * score.value, delta, *ends])
        columns_of = bench.published.tables["table-7"].columns
        values |= {f"table-7/{name}, pd {least}/{column}": mean_of(numbers)
                   for column, numbers in zip(columns_of, zip(*found, strict=True), strict=True)}  # fmt: skip
    return values


# The intruder of section 3 (b) --------------------------------------------------------------------------


def _bounds() -> Mapping[str, tuple[Any, Callable[[Floats, Floats, Run], float], float]]:
    """Methods with what an intruder derives of them: Δ by the records, the scale and chance; and how sure."""
    noise = {
        f"NA {s}": (UncorrelatedNoise(deviation=s), partial(_normal_bound, share=s / 100), QUANTILE)
        for s in (15, 20, 25, 30)
    }
    uniform = {
        f"uniform {b}": (UniformNoise(spread=b), partial(_uniform_bound, share=b), 1.0)
        for b in (0.1, 0.3, 0.5)
    }
    swaps = {
        f"rank swapping {p}": (RankSwapping(window=p), partial(_rank_bound, share=p / 100), 1.0)
        for p in (2, 5, 10)
    }
    return noise | uniform | swaps


def _normal_bound(values: Floats, spread: Floats, run: Run, *, share: float) -> float:
    """The quantile of the largest distortion of all records, of noise that has no bound."""
    sizes = share * values.std(axis=0) / spread
    draws = run.rng("quantile").normal(size=(200_000, len(sizes))) * sizes
    return float(np.quantile(np.sqrt((draws**2).sum(axis=1)), QUANTILE ** (1 / len(values))))


def _uniform_bound(values: Floats, spread: Floats, run: Run, *, share: float) -> float:  # noqa: ARG001
    """The most that a record moves if every value is multiplied by 1 ± share at most."""
    return float(np.sqrt(((share * values / spread) ** 2).sum(axis=1)).max())


def _rank_bound(values: Floats, spread: Floats, run: Run, *, share: float) -> float:  # noqa: ARG001
    """The most that a record moves if every value comes from at most so many ranks away."""
    width, n = int(share * len(values)) + 1, len(values)
    gaps = np.empty_like(values)
    for column in range(values.shape[1]):
        order = np.argsort(values[:, column], kind="stable")
        ordered, places = values[order, column], np.arange(n)
        up = ordered[np.minimum(places + width, n - 1)] - ordered
        down = ordered - ordered[np.maximum(places - width, 0)]
        gaps[order, column] = np.maximum(up, down) / spread[column]
    return float(np.sqrt((gaps**2).sum(axis=1)).max())


def _intruder(run: Run, *, name: str, table: Table) -> Values:
    method, derive, sure = _bounds()[name]
    release = protect(table, method, run=run)
    known, released = table.matrix(table.names), release.table.matrix(table.names)
    spread = np.ptp(np.vstack([known, released]), axis=0)
    moved = np.sqrt((((known - released) / spread) ** 2).sum(axis=1))
    bound, evidence = derive(known, spread, run), Evidence(table, release)
    how: dict[str, Any] = {"metric": "euclidean", "scale": "pooled"}
    found = {
        "Δ": bound, "δ": float(moved.max()), "Δ sure": sure,
        "GDBRL": links(GlobalLinkage(**how), evidence, run),
        "GDBRL-Δ": links(GlobalLinkage(**how, pairs="published", bound=bound), evidence, run),
    }  # fmt: skip
    return {f"intruder/{name}/{column}": value for column, value in found.items()}


# Tables 3 to 5 ------------------------------------------------------------------------------------------


@cache
def copula_draws(table: Table, n: int) -> Table:
    """So many draws from a Gaussian copula of Census, in place of files that cannot be had."""
    rows = np.random.default_rng(DATA_SEED).integers(0, len(table), n)
    return protect(table.take(rows), GaussianCopula(), run=Run(seed=DATA_SEED)).table


def _larger(table: Table) -> Iterator[Experiment]:
    for number, n, seconds in (("3", 13_518, 7.0), ("4", 27_753, 25.0)):
        for name, make in rows().items():
            work = partial(_large_row, name=name, make=make, number=number, table=table, n=n)
            yield Experiment(f"table {number}, {name}", work, seconds, _noise_of(name))


def _large_row(run: Run, *, name: str, make: Make, number: str, table: Table, n: int) -> Values:
    drawn = copula_draws(table, n)
    evidence = Evidence(drawn, make(drawn, run))
    how: dict[str, Any] = {"metric": "euclidean", "scale": "pooled"}
    asked: Mapping[str, Any] = measures()
    if number == "4" and not name.startswith("MicDP"):  # of which it takes more than ten minutes a row
        asked = {**asked, "AGDBRL²": GlobalLinkage(**how, pairs="own")}
    values: dict[str, float | None] = {}
    for column, measure in asked.items():
        start = time.process_time()
        values[f"table-{number}/{name}/{column}"] = links(measure, evidence, run)
        if number == "4" and column in {"GDBRL", "AGDBRL²"}:
            values[f"table-5/{name}/{column}"] = round(time.process_time() - start, 1)
    return values


PAPER = Paper("001", experiments)
