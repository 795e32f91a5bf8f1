"""Uniqueness and rare combinations against bare polars group-bys, on invented hospital discharges.

    python benchmarks/bench_uniqueness.py [records]

CPU seconds. The peer of uniqueness, which sees equal values only, is one group-by over all
nine keys; that of the combinations is a group-by for each of the 129 subsets of up to three. The paper
on such a file has 3,985,166 records.
"""

from __future__ import annotations

import resource
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import ratios

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.datasets import patients
from sfumato.risk.combinations import LkcPrivacy, UnsafeCombinations
from sfumato.risk.disclosure import AttributeDisclosure
from sfumato.risk.itemsets import KmAnonymity
from sfumato.risk.uniqueness import Uniqueness

SMALL = "20000"


def ends_of(table):
    lows = {name: table.frame[name].cast(pl.Int64).to_numpy() for name in table.schema.with_role(Role.KEY)}
    return lows, {name: values.copy() for name, values in lows.items()}


def with_ranges(table, lows, highs):
    return replace(
        table,
        frame=table.frame.with_columns([intervals(lows[name], highs[name], name=name) for name in lows]),
    )


def coarsened(table, resolution):
    """Fixed ranges in every key (algorithm S3 of the paper)."""
    lows, highs = ends_of(table)
    for name, values in list(lows.items()):
        low, high = values.min(), values.max()
        bounds = low + np.arange(resolution + 1) * (high - low + 1) // resolution
        cell = np.searchsorted(bounds, values, side="right") - 1
        lows[name], highs[name] = bounds[cell], bounds[cell + 1] - 1
    return with_ranges(table, lows, highs)


def masked(table):
    """Ranges and wildcards in some keys of a third of the records, as in the file the paper starts from."""
    lows, highs = ends_of(table)
    rng = np.random.default_rng(1)
    unlucky = rng.random(len(table)) < 1 / 3
    age = lows["age_yrs"] // 5 * 5
    lows["age_yrs"] = np.where(unlucky, age, lows["age_yrs"])
    highs["age_yrs"] = np.where(unlucky, np.minimum(age + 4, 85), highs["age_yrs"])
    for name, share in (("ethncty", 0.8), ("race", 0.6), ("sex", 0.3), ("adm_qtr", 0.05)):
        wild = unlucky & (rng.random(len(table)) < share)
        low, high = lows[name].min(), lows[name].max()
        lows[name], highs[name] = np.where(wild, low, lows[name]), np.where(wild, high, highs[name])
    return with_ranges(table, lows, highs)


def baskets(records):
    """Sets of up to ten items, of which few are common and many rare."""
    rng = np.random.default_rng(2)
    sizes = rng.integers(0, 11, records)
    items = np.minimum(rng.zipf(1.3, sizes.sum()), 2000)
    sets = (
        pl.Series("items", items)
        .reshape((-1,))
        .to_frame()
        .with_columns(r=np.repeat(np.arange(records), sizes))
    )
    lists = sets.group_by("r", maintain_order=True).agg("items")
    return Table(lists.select("items"), Schema((Column("items", Kind.SET, Role.KEY),)))


def main(records: int = 1_000_000) -> None:
    small = patients(2000)
    keys = list(small.schema.with_role(Role.KEY))
    measures = [
        Uniqueness(),
        UnsafeCombinations(),
        LkcPrivacy(l=2),
        AttributeDisclosure(low=1e5, sensitive=("charge",)),
    ]
    for measure in measures:  # load and compile what is loaded on first use
        measure.score(Evidence(small, Release.of(masked(small))), Run(seed=1))
    KmAnonymity(m=3).score(Evidence(baskets(2000)), Run(seed=1))
    table = patients(records)
    whole, _ = ratios.least(lambda: table.frame.group_by(keys).len())
    name = "polars: a group-by of nine keys"
    ratios.assess("uniqueness, exact values", table, Uniqueness(), name, whole)
    shown = {f"ranges of 1/{each}": coarsened(table, each) for each in (32, 8)}
    for what, coarse in {**shown, "masked here and there": masked(table)}.items():
        ratios.assess(f"uniqueness, {what}", table, Uniqueness(), name, whole, release=Release.of(coarse))
    ratios.assess("attribute disclosure", table, measures[3], name, whole)

    subsets = [subset for size in (1, 2, 3) for subset in combinations(keys, size)]
    peer, _ = ratios.least(lambda: [table.frame.group_by(subset).len() for subset in subsets])
    name = f"polars: group-bys of {len(subsets)} subsets of keys"
    ratios.assess("unsafe combinations of up to 3 keys", table, UnsafeCombinations(), name, peer)
    ratios.assess("LKC-privacy, 2 keys, 2 sensitive columns", table, LkcPrivacy(l=2), name, peer)

    sets = baskets(records // 4)
    pairs = sets.frame.with_row_index("r").explode("items").unique()
    peer, _ = ratios.least(lambda: pairs.join(pairs, on="r").group_by("items", "items_right").len())
    for size in (2, 3):
        ratios.assess(
            f"k^m-anonymity, {size} items",
            sets,
            KmAnonymity(m=size),
            "polars: counting pairs by a join",
            peer,
        )
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
