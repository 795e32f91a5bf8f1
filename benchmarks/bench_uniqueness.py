"""Uniqueness and rare combinations against bare polars group-bys, on invented hospital discharges.

    python benchmarks/bench_uniqueness.py [records]

CPU seconds of one run each. The peer of uniqueness, which sees equal values only, is one group-by over all
nine keys; that of the combinations is a group-by for each of the 129 subsets of up to three. The paper
on such a file has 3,985,166 records.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.datasets import patients
from sfumato.risk.combinations import LkcPrivacy, UnsafeCombinations
from sfumato.risk.disclosure import AttributeDisclosure
from sfumato.risk.itemsets import KmAnonymity
from sfumato.risk.uniqueness import Uniqueness


def cpu(work):
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


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


def show(what, taken, peer, score):
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"  {what:44s} {taken:7.2f} s CPU = {taken / peer:5.1f} × the group-by   value {score.value:.4f}"
        f" ({score.status}), {memory:.1f} GB so far"
    )


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
        measure.score(Evidence(small, masked(small)), Run(seed=1))
    KmAnonymity(m=3).score(Evidence(baskets(2000)), Run(seed=1))
    table = patients(records)
    peer, _ = cpu(lambda: table.frame.group_by(keys).len())
    print(f"{records:,} records, 9 keys; a bare group-by takes {peer:.2f} s CPU")
    taken, score = cpu(lambda: Uniqueness().score(Evidence(table), Run(seed=1)))
    show("uniqueness, exact values", taken, peer, score)
    for resolution in (32, 8):
        coarse = coarsened(table, resolution)
        taken, score = cpu(lambda coarse=coarse: Uniqueness().score(Evidence(table, coarse), Run(seed=1)))
        show(f"uniqueness, ranges of 1/{resolution}", taken, peer, score)
    coarse = masked(table)
    taken, score = cpu(lambda: Uniqueness().score(Evidence(table, coarse), Run(seed=1)))
    show("uniqueness, masked here and there", taken, peer, score)
    print("   ", {name: score.details[name] for name in ("alone", "fitted", "undecided")})
    taken, score = cpu(lambda: measures[3].score(Evidence(table), Run(seed=1)))
    show("attribute disclosure", taken, peer, score)

    subsets = [subset for size in (1, 2, 3) for subset in combinations(keys, size)]
    peer, _ = cpu(lambda: [table.frame.group_by(subset).len() for subset in subsets])
    print(f"{len(subsets)} subsets of up to 3 keys; bare group-bys take {peer:.2f} s CPU")
    taken, score = cpu(lambda: UnsafeCombinations().score(Evidence(table), Run(seed=1)))
    show("unsafe combinations of up to 3 keys", taken, peer, score)
    taken, score = cpu(lambda: LkcPrivacy(l=2).score(Evidence(table, scenario=Scenario()), Run(seed=1)))
    show("LKC-privacy, 2 keys, 2 sensitive columns", taken, peer, score)

    sets = baskets(records // 4)
    pairs = sets.frame.with_row_index("r").explode("items").unique()
    peer, _ = cpu(lambda: pairs.join(pairs, on="r").group_by("items", "items_right").len())
    print(f"{len(sets):,} sets; counting pairs by a join takes {peer:.2f} s CPU")
    for size in (2, 3):
        taken, score = cpu(lambda size=size: KmAnonymity(m=size).score(Evidence(sets), Run(seed=1)))
        show(f"k^m-anonymity, {size} items", taken, peer, score)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
