"""Far ends of estimates by a sample, against populations that are known: how often is the truth beyond?

    python benchmarks/bench_far_end.py [folder of CSV files]

Mixtures of people who are alone in the population and of groups, smooth populations, and columns of real
files (numbers in twenty ranges, chosen by chance), each sampled with .5 to 20 %. `population-uniqueness … at
95%` goes by the upper end of its interval: the share of records that are unique in both may be beyond it in
2.5 % of the populations by chance, and in at most 7 %. Where Pitman's model gives no number, Zayatz's is
asked. `individual-risk … at 95%` says that no more than 2.5 % of the records have a risk above its far end;
and of files whose small classes are suppressed until it is at most 0.1, how many have more.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.datasets import load
from sfumato.risk.individual import IndividualRisk
from sfumato.risk.population import PopulationUniqueness

SMALL = None  # it is about truth, not speed
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
FRACTIONS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
TAIL, LEVEL, PEOPLE = 0.025, 0.1, 20_000
SEVERAL = (
    ((0.05, 0.15, 0.8), (1, 5, 200)),
    ((0.02, 0.3, 0.3, 0.38), (1, 3, 10, 100)),
    ((0.3, 0.2, 0.5), (1, 2, 50)),
)
ADULT = ("age", "capital-gain", "native-country", "occupation")


def mixed(rng, shares, sizes):
    """People in groups of these sizes, on average: a group of 1 is one person."""
    kinds, found = rng.choice(len(sizes), PEOPLE, p=shares), np.zeros(PEOPLE, dtype=np.int64)
    for kind, size in enumerate(sizes):
        rows = np.flatnonzero(kinds == kind)
        groups = np.arange(len(rows)) if size == 1 else rng.integers(0, max(len(rows) // size, 1), len(rows))
        found[rows] = kind * PEOPLE + groups
    return found


def mixtures(rng):
    for alone in (0.5, 0.2, 0.09, 0.05, 0.03):
        for size in (3, 8, 30, 100, 400):
            for fraction in FRACTIONS:
                yield "one alone beside groups", mixed(rng, (alone, 1 - alone), (1, size)), fraction
    for shares, sizes in SEVERAL:
        for fraction in FRACTIONS:
            yield "groups of several sizes", mixed(rng, shares, sizes), fraction


def smooth(rng):
    for spread in (1.0, 2.0, 3.0):
        for fraction in FRACTIONS:
            chances = rng.lognormal(0, spread, 8000)
            yield "log-normal", rng.choice(8000, PEOPLE, p=chances / chances.sum()), fraction
            yield "zipf", np.minimum(rng.zipf(1 + spread / 4, PEOPLE), 10**9), fraction


def alike(frame, names):
    return frame.select(pl.struct(names).rank("dense")).to_series().to_numpy().astype(np.int64)


def coarse(frame):
    """Columns with few values; numbers with many in twenty ranges."""
    many = [each.name for each in frame if each.dtype.is_numeric() and each.n_unique() > 100]
    ranges = frame.with_columns((pl.col(many).rank("min") * 20 / len(frame)).floor())
    few = [each.name for each in ranges if 1 < each.n_unique() <= 200]
    return ranges.select(pl.col(few).cast(pl.String).fill_null(""))


def files(folder):
    """The built-in files, and those of a folder that have enough records."""
    yield from ((name, load(name).frame) for name in ("patients", "rand"))
    for path in sorted(folder.rglob("*.csv")):
        separator = ";" if path.open(errors="replace").readline().count(";") > 2 else ","
        frame = pl.read_csv(
            path, separator=separator, infer_schema_length=None, ignore_errors=True, encoding="utf8-lossy"
        )
        if len(frame) >= 1000 and len(frame.columns) > 3:
            yield path.stem, frame


def real(rng, folder):
    for name, whole in files(folder):
        if set(ADULT) <= set(whole.columns):
            for fraction in (0.02, 0.05, 0.1):
                yield "Adult as in the report", alike(whole, ADULT), fraction
        frame = coarse(whole)
        for draw in range(12 if len(frame.columns) > 2 else 0):
            chosen = rng.choice(frame.columns, min(2 + draw % 4, len(frame.columns)), replace=False).tolist()
            fraction = float(rng.choice([f for f in FRACTIONS if f * len(frame) >= 40]))
            yield name, alike(frame, chosen), fraction


def table_of(keys):
    return Table(pl.DataFrame({"key": keys}), Schema((Column("key", Kind.NOMINAL, Role.KEY),)))


def suppressed(measure, keys):
    """The records that are left if classes whose far end is above the level go until none is."""
    left = np.arange(len(keys))
    while len(left):
        evidence = Evidence(table_of(keys[left]))
        classes = measure.classes(evidence)
        failing = (measure.far_of_classes(evidence, classes) > LEVEL)[classes.of_record]
        if not failing.any():
            break
        left = left[~failing]
    return left


def judged(rng, population, fraction):
    """What is said of one sample, and whether it is so."""
    _, cell, sizes = np.unique(population, return_inverse=True, return_counts=True)
    rows = rng.choice(len(cell), int(fraction * len(cell)), replace=False)
    people, keys = sizes[cell[rows]], cell[rows]
    evidence, alone = Evidence(table_of(keys)), np.bincount(keys)[keys] == 1
    for model in ("pitman", "zayatz"):
        unique = PopulationUniqueness(fraction=fraction, model=model).score(evidence, Run(seed=1))
        if unique.status is not Status.NOT_ESTIMABLE:
            break
    may = unique.status is Status.APPROXIMATE and unique.confidence is not None
    truth, far = float((alone & (people == 1)).mean()), unique.interval[1] if may else np.nan
    risk = IndividualRisk(fraction=fraction)
    high = risk.score(evidence, Run(seed=1)).interval[1] * (1 + 1e-9)
    left = suppressed(risk, keys)
    return (
        1, may, may and truth > far,
        truth / far if may and far > 0 else np.nan, far / max(alone.mean(), 1e-9),
        float((1 / people > high).mean()) > TAIL,
        len(left) > 0, len(left) > 0 and float((1 / people[left] > LEVEL * (1 + 1e-9)).mean()) > TAIL,
        len(left) / len(keys),
    )  # fmt: skip


TITLES = {
    "populations": np.sum, "may gate": np.sum, "truth beyond": np.sum, "truth/far": np.nanmedian,
    "far/uniques": np.nanmedian, "risk beyond": np.sum, "left some": np.sum, "left beyond": np.sum,
    "share left": np.mean,
}  # fmt: skip


def main(folder: Path) -> None:
    rng, found = np.random.default_rng(31), {}
    for kind in (mixtures(rng), smooth(rng), real(rng, folder)):
        for name, population, fraction in kind:
            found.setdefault(name, []).append(judged(rng, population, fraction))
    print(f"{'':24s}" + "".join(f"{title:>13s}" for title in TITLES))
    found["all"] = [each for ours in found.values() for each in ours]
    for name, ours in found.items():
        columns = zip(TITLES.values(), np.array(ours, dtype=float).T, strict=True)
        print(f"{name:24s}" + "".join(f"{of(column):13.4g}" for of, column in columns), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
