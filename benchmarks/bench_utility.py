"""Measures of distributions, associations and estimates, as multiples of sorting both tables.

    python benchmarks/bench_utility.py [n] [--columns d] [--peers]

An original of n records × d columns (correlated, skewed numbers) and a release under noise. The clock is
processor time, all in one run: "× sort" is how often both tables, column by column, could have been sorted
meanwhile. Measures by column are to stay below 4. With `--peers` SciPy scores the same columns.
"""

import resource
import sys

import numpy as np
import polars as pl
import ratios
from scipy.stats import ks_2samp, wasserstein_distance

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.utility import associations, distributions, estimates
from sfumato.utility.slices import SlicedEarthMoversDistance

BY_COLUMN = (
    distributions.ColumnEarthMoversDistance(),
    distributions.KolmogorovSmirnov(),
    distributions.TotalVariation(),
    distributions.Hellinger(),
    distributions.JensenShannon(),
)
OTHERS = (
    associations.ContingencyDifference(),
    associations.CramersVDifference(),
    associations.MutualInformationDifference(),
    associations.CorrelationDifference(),
    estimates.IntervalOverlap(),
    estimates.IntervalOverlap(of="variance"),
    estimates.IntervalOverlap(of="quantile"),
    estimates.IntervalOverlap(of="correlation"),
    SlicedEarthMoversDistance(directions=10),
)
LIMIT = 4.0
SMALL = "5000 --peers"


def tables(n, d, rng, suppressed=0.0):
    common = rng.normal(size=n)
    schema = Schema(tuple(Column(f"c{i}", Kind.CONTINUOUS) for i in range(d)))
    first, second = {}, {}
    for i in range(d):
        values = np.exp(0.5 * (common + rng.normal(size=n)))
        noisy = values + 0.1 * values.std() * rng.normal(size=n)
        noisy[rng.random(n) < suppressed] = np.nan
        first[f"c{i}"], second[f"c{i}"] = values, noisy
    return Table(pl.DataFrame(first), schema), Table(pl.DataFrame(second), schema)


def sort_both(original, protected):
    for name in original.names:
        np.sort(original.frame[name].to_numpy())
        np.sort(protected.frame[name].to_numpy())


def by_peers(original, protected):
    for name in original.names:
        x, y = original.frame[name].to_numpy(), protected.frame[name].to_numpy()
        yield name, ks_2samp(x, y, method="asymp").statistic, wasserstein_distance(x, y) / np.ptp(x)


def main():
    words = sys.argv[1:]
    d = int(words[words.index("--columns") + 1]) if "--columns" in words else 10
    sizes = [int(word) for i, word in enumerate(words) if word.isdigit() and words[i - 1] != "--columns"]
    n = sizes[0] if sizes else 200_000
    rng = np.random.default_rng(1)
    for measure in (*BY_COLUMN, *OTHERS):  # compile before the clock starts
        for hole in (0.0, 0.2):
            small, shown = tables(200, 2, rng, hole)
            measure.score(Evidence(small, Release.of(shown)), Run(seed=1))
    original, protected = tables(n, d, rng)
    sorting, _ = ratios.least(lambda: sort_both(original, protected))
    name, release, kept = "numpy: sorting both tables", Release.of(protected), True
    for measure in (*BY_COLUMN, *OTHERS):
        claim = {"at_most": LIMIT} if measure in BY_COLUMN else {}
        kept &= ratios.assess(str(measure), original, measure, name, sorting, release=release, **claim)
    _, held_back = tables(n, d, rng, 0.05)
    release = Release.of(held_back)
    ratios.assess("column-emd, 5 % suppressed", original, BY_COLUMN[0], name, sorting, release=release)
    if "--peers" in words:
        seconds, theirs = ratios.least(lambda: list(by_peers(original, protected)), times=1)
        evidence = Evidence(original, Release.of(protected))
        taken, ours = ratios.least(
            lambda: [each.score(evidence, Run(seed=1)).by_column for each in (BY_COLUMN[1], BY_COLUMN[0])]
        )
        ratios.beside("ks and column-emd, score", n, taken, "scipy: KS and EMD", seconds, at_least=0)
        same = all(np.allclose((ours[0][name], ours[1][name]), found, atol=1e-9) for name, *found in theirs)
        print(f"  the same numbers: {same}")
        kept &= same
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
