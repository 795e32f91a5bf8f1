"""NIST's Collaborative Research Cycle: releases of national2019 scored as SDNist does, beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ReadError
from sfumato.front import protect
from sfumato.kernels.arrays import Ints
from sfumato.methods import LocalSuppression, PrivateMarginals, Synthesis
from sfumato.reproduce.bench import Bench, Experiment, Paper, Values, band_of, score_number
from sfumato.risk import KAnonymity
from sfumato.utility import PropensityMeanSquare

FILE = "crc/national2019.csv"
TEN = ("AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE", "DVET", "DEYE")
#: What the file of CART lacks: the two weights, and the detailed industry, which its category stands for.
LEFT_OUT = ("PWGTP", "WGTP", "INDP")
NUMBERS, ORDERED = ("AGEP", "DENSITY", "PINCP", "POVPIP", "NOC", "NPF"), ("EDU", "PINCP_DECILE")
#: Columns that are cut into twenty bins of equal frequency.
BINNED = ("AGEP", "PINCP", "POVPIP")
#: Edit rules of the data; N is a missing value here.
RULES = (
    "AGEP >= 15 OR (DVET IS NULL AND MSP IS NULL AND PINCP_DECILE IS NULL)",
    "AGEP >= 15 OR (PINCP IS NULL AND INDP_CAT IS NULL)",
    "AGEP >= 15 OR EDU IS NULL OR EDU < 12",
    "AGEP >= 5 OR (DPHY IS NULL AND DREM IS NULL)",
    "AGEP >= 5 OR EDU IS NULL OR EDU < 5",
    "AGEP >= 3 OR EDU IS NULL",
    "AGEP <= 15 OR (MSP IS NOT NULL AND PINCP_DECILE IS NOT NULL AND EDU IS NOT NULL)",
    "AGEP <= 15 OR (PINCP IS NOT NULL AND DPHY IS NOT NULL AND DREM IS NOT NULL)",
    "NOC IS NULL OR NPF IS NULL OR NOC < NPF",
    "HOUSING_TYPE = 1 OR OWN_RENT = 0",
    "HOUSING_TYPE = 1 OR (NOC IS NULL AND NPF IS NULL)",
    "HOUSING_TYPE <> 1 OR OWN_RENT IN (1, 2)",
    "HOUSING_TYPE <> 1 OR NOC IS NOT NULL",
)
K, RUNS, RECORDS = 6, 3, 27_253


def read_cycle(path: Path) -> pl.DataFrame:
    """A file of the cycle: numbers and codes, N missing; PUMA stays a text."""
    return pl.read_csv(path, null_values="N", infer_schema_length=None, schema_overrides={"PUMA": pl.String})


def table_of(frame: pl.DataFrame, *, ruled: bool = False) -> Table:
    """The columns with their kinds; the edit rules of the columns that are there, if they are to be kept."""
    kinds = {
        name: Kind.CONTINUOUS if name in NUMBERS else Kind.ORDINAL if name in ORDERED else Kind.NOMINAL
        for name in frame.columns
    }
    columns = [Column(name, kind, Role.KEY, integer=name == "AGEP", lower=0 if name == "AGEP" else None,
                      upper=99 if name == "AGEP" else None) for name, kind in kinds.items()]  # fmt: skip
    return Table(frame, Schema(tuple(columns), rules=rules_of(frame.columns) if ruled else ()))


def code_categories(frame: pl.DataFrame) -> Table:
    """The ten columns for methods that want a category in place of N: age a number, the others texts."""
    texts = frame.with_columns(pl.exclude("AGEP").cast(pl.String).fill_null("N"))
    columns = [Column("AGEP", Kind.CONTINUOUS, Role.KEY, integer=True, lower=0, upper=99)]
    columns += [
        Column(name, Kind.NOMINAL, Role.KEY, labels=tuple((c, c) for c in texts[name].unique().sort()))
        for name in texts.columns if name != "AGEP"
    ]  # fmt: skip
    return Table(texts, Schema(tuple(columns))).aimed_at(texts.columns)


def decode_categories(frame: pl.DataFrame) -> pl.DataFrame:
    """Back to numbers with N missing."""
    return frame.with_columns(pl.exclude("AGEP").cast(pl.Int64, strict=False), pl.col("AGEP").cast(pl.Int64))


def rules_of(names: Sequence[str]) -> tuple[Rule, ...]:
    """The edit rules that can be asked of these columns."""
    return tuple(rule for rule in map(Rule, RULES) if set(rule.columns) <= set(names))


def experiments(bench: Bench) -> Iterator[Experiment]:
    """With --quick the original, suppression of every tenth record and one run of MST; else all."""
    whole = read_cycle(bench.paths[FILE])
    ten, many = whole.select(TEN), whole.drop(LEFT_OUT)
    yield Experiment("uniques", partial(_uniques, frames={"10": ten, "21": many, "24": whole}), 1)
    private: dict[str, Literal["tree", "adaptive"]] = {"MST, ε = 1": "tree", "AIM, ε = 1": "adaptive"}
    for name, choice in list(private.items())[: 1 if bench.quick else None]:
        work = partial(_private, frame=ten, name=name, choice=choice, runs=bench.runs(RUNS))
        yield Experiment(name, work, 35 if choice == "tree" else 45, "noise")
    for name, how in (("category", {}), ("any", {"missing": "any"})):
        if name == "category" or not bench.quick:
            own = ten.gather_every(10) if bench.quick else ten
            yield Experiment(f"suppression, {name}", partial(_suppression, frame=own, name=name, how=how), 15)
    if not bench.quick:
        yield Experiment("CART, 21 columns", partial(_synthesis, frame=many), 60)
    for path in sorted((bench.folder / "crc" / "releases").glob("*.csv")):
        yield Experiment(f"release {path.name}", partial(_foreign, frame=whole, path=path), 10)


def _uniques(run: Run, *, frames: dict[str, pl.DataFrame]) -> Values:  # noqa: ARG001
    return {f"uniques/{n} columns/records": unique_records(frame).height for n, frame in frames.items()}


def unique_records(frame: pl.DataFrame) -> pl.DataFrame:
    """The combinations of values that one record has."""
    return frame.group_by(frame.columns).len().filter(pl.col("len") == 1).drop("len")


def uniques_intact(original: pl.DataFrame, made: pl.DataFrame) -> int:
    """How many unique originals stand in a release with all their values."""
    unique = unique_records(original)
    return unique.join(made.unique(), on=original.columns, how="semi", nulls_equal=True).height


def rules_broken(made: pl.DataFrame) -> int:
    """How many records break an edit rule."""
    broken = [~rule.expression.fill_null(value=True) for rule in rules_of(made.columns)]
    return int(made.select(pl.any_horizontal(*broken, pl.lit(value=False))).to_series().sum())


def k_marginal(original: pl.DataFrame, made: pl.DataFrame, within: str | None = None) -> float:
    """SDNist's score over all pairs of columns; with a column that divides the records, the mean of them."""
    codes = {name: _codes(original[name], made[name]) for name in original.columns}
    parts = codes.pop(within) if within else (np.zeros(len(original), int), np.zeros(len(made), int))
    n_parts, lost = int(max(each.max(initial=0) for each in parts)) + 1, []
    there = np.bincount(parts[0], minlength=n_parts) > 0
    for one, other in combinations(codes.values(), 2):
        width = int(max(other[0].max(), other[1].max())) + 1
        cells = [a * width + b for a, b in zip(one, other, strict=True)]
        size = int(max(each.max() for each in cells)) + 1
        shares = []
        for part, cell in zip(parts, cells, strict=True):
            counts = np.bincount(part * size + cell, minlength=n_parts * size).reshape(n_parts, size)[there]
            shares.append(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
        lost.append(np.abs(shares[0] - shares[1]).sum(axis=1).mean())
    return float((2 - np.mean(lost)) * 500)


def _codes(first: pl.Series, second: pl.Series) -> tuple[Ints, Ints]:
    """A column of both tables as whole numbers from 0 (missing) on, numbers in twentieths of the first."""
    if first.name in BINNED:
        ends = np.unique(np.quantile(first.drop_nulls(), np.linspace(0, 1, 21)[1:-1]))
        binned = [np.where(each.is_null(), 0, 1 + np.searchsorted(ends, each.fill_null(0), side="right"))
                  for each in (first, second)]  # fmt: skip
        return binned[0], binned[1]
    both = pl.concat([first, second.cast(first.dtype)]).rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    return both[: len(first)], both[len(first) :]


def scores(
    original: pl.DataFrame, made: pl.DataFrame, run: Run, *, within: str | None = None
) -> dict[str, Any]:
    """The four scores of a release."""
    evidence = Evidence(table_of(original), Release.of(table_of(made)))
    return {
        "k-marginal": k_marginal(original, made, within),
        "pMSE": score_number(PropensityMeanSquare(), evidence, run),
        "uniques intact": uniques_intact(original, made),
        "rules broken": rules_broken(made),
    }


def _private(run: Run, *, frame: pl.DataFrame, name: str, choice: str, runs: range) -> Values:
    found = []
    for number in runs:
        here = run.at("run", number)
        method = PrivateMarginals(epsilon=1, choice=choice)
        found.append(
            scores(
                frame, decode_categories(protect(code_categories(frame), method, run=here).table.frame), here
            )
        )
    return {f"scores/{name}/{column}": band_of([each[column] for each in found]) for column in found[0]}


def _synthesis(run: Run, *, frame: pl.DataFrame) -> Values:
    made = protect(table_of(frame, ruled=True), Synthesis(), run=run).table.frame
    found = scores(frame, made.select(frame.columns), run, within="PUMA")
    return {f"scores/CART, 21 columns/{column}": value for column, value in found.items()}


def _suppression(run: Run, *, frame: pl.DataFrame, name: str, how: dict[str, Any]) -> Values:
    table = code_categories(frame)
    release = protect(table, LocalSuppression(k=K, **how), columns=TEN, run=run)
    strict = score_number(KAnonymity(), Evidence(release.table), run)
    suppressed = sum(release.table.frame[name].null_count() for name in TEN)
    made = release.table.frame.select(TEN)
    values = {
        f"policies/{name}/cells suppressed": suppressed / (len(frame) * len(TEN)),
        f"policies/{name}/k-marginal": k_marginal(table.frame, made),
        f"policies/{name}/uniques intact": uniques_intact(table.frame, made),
        f"policies/{name}/k strict": strict,
    }
    if name == "category" and len(frame) == RECORDS:
        evidence = Evidence(table, Release.of(release.table))
        known = made.filter(pl.all_horizontal(pl.all().is_not_null()))
        found = {
            "k-marginal": values[f"policies/{name}/k-marginal"],
            "pMSE": score_number(PropensityMeanSquare(), evidence, run),
            "uniques intact": values[f"policies/{name}/uniques intact"],
            "rules broken": rules_broken(decode_categories(known)),
        }
        values |= {f"scores/local suppression, k = {K}/{column}": each for column, each in found.items()}
    return values


def _foreign(run: Run, *, frame: pl.DataFrame, path: Path) -> Values:
    """Score a release of somebody else, by the columns that it has."""
    try:
        made = read_cycle(path)
        names = [name for name in frame.columns if name in made.columns]
        made = made.select(names).cast(frame.select(names).schema)
    except (OSError, pl.exceptions.PolarsError):  # its text may quote cells
        raise ReadError(f"`{path.name}` in crc/releases is no release of national2019") from None
    if len(names) < 2:  # noqa: PLR2004
        raise ReadError(f"`{path.name}` in crc/releases has fewer than two columns of national2019")
    found = scores(frame.select(names), made, run, within="PUMA" if "PUMA" in names else None)
    return {f"scores/{path.stem.replace('/', ' ')}/{column}": value for column, value in found.items()}


PAPER = Paper("crc", experiments)
