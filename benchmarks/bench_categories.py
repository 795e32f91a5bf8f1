"""PRAM, sampling and date shifting against a gather of the same columns by polars; and k² of many baskets.

    python benchmarks/bench_categories.py [records] [baskets]

CPU seconds of one run each, kernels compiled before. The first three may cost at most 3 gathers of their
columns in random order (categories as words); a million baskets must become k²-anonymous in less than 4 GB.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
import polars as pl

from sfumato.core.run import Run
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.date_shifting import DateShifting
from sfumato.methods.itemset_generalisation import ItemsetGeneralisation
from sfumato.methods.pram import Pram
from sfumato.methods.sampling import Sampling

N_ITEMS = 1_000


def cpu(work):
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def people(records: int, rng: np.random.Generator) -> Table:
    """Words, numbers of a few categories, dates, and persons with three records each."""
    words = pl.Series([f"category {i}" for i in range(12)])
    came = pl.Series((18_000 + rng.integers(0, 900, records)).astype(np.int32)).cast(pl.Date)
    frame = pl.DataFrame(
        {
            "person": rng.integers(0, max(records // 3, 1), records),
            "word": words.gather(rng.integers(0, 12, records)),
            "code": rng.integers(0, 12, records),
            "came": came,
            "left": came.dt.offset_by("3d"),
        }
    )
    kinds = {"person": Kind.NOMINAL, "came": Kind.DATE, "left": Kind.DATE}
    columns = [Column(name, kinds.get(name, Kind.NOMINAL), Role.KEY) for name in frame.columns[1:]]
    return Table(frame, Schema((Column("person", Kind.NOMINAL, Role.PERSON), *columns)))


def baskets(count: int, rng: np.random.Generator) -> tuple[Table, Hierarchy]:
    """Baskets of 1 to 14 items, a few of which are in most of them."""
    chances = 1 / np.arange(1, N_ITEMS + 1)
    sizes = rng.integers(1, 15, count)
    names = pl.Series([f"item {i:04d}" for i in range(N_ITEMS)])
    items = rng.permutation(N_ITEMS)[rng.choice(N_ITEMS, sizes.sum(), p=chances / chances.sum())]
    rows = pl.DataFrame({"row": np.repeat(np.arange(count), sizes), "basket": names.gather(items)})
    frame = rows.group_by("row", maintain_order=True).agg("basket").select("basket")
    groups = {
        str(n): [f"{name} {i // n}" for i in range(N_ITEMS)] for name, n in (("shelf", 10), ("hall", 100))
    }
    tree = Hierarchy.from_levels(pl.DataFrame({"item": names, **groups}))
    return Table(frame, Schema((Column("basket", Kind.SET, Role.KEY, hierarchy="tree"),))), tree


def main(records: int = 10_000_000, n_baskets: int = 1_000_000) -> None:
    rng = np.random.default_rng(1)
    table = people(records, rng)
    order = pl.Series(rng.permutation(records).astype(np.uint32))
    tasks = (
        (Pram(), ("word",), ("word",)),
        (Pram(), ("code",), ("code",)),
        (Sampling(by="record"), ("word", "came"), ("word", "came")),
        (Sampling(by="person"), ("word", "came"), ("person", "word", "came")),
        (DateShifting(), ("came", "left"), ("person", "came", "left")),
    )
    for method, targets, columns in tasks:
        part = table.select(columns).aimed_at(targets)
        method.apply(part.take(np.arange(1_000)), Run(seed=1))  # compile
        gather, _ = cpu(lambda part=part, order=order: part.frame[order])
        taken, _ = cpu(lambda part=part, method=method: method.apply(part, Run(seed=1)))
        named = ", ".join(columns)
        print(f"  {method!s:22s} of {named:20s} {taken:6.2f} s CPU = {taken / gather:.2f} gathers")
    del table, part, order
    sets, tree = baskets(n_baskets, rng)
    run = Run(seed=1, resources={"tree": tree})
    taken, release = cpu(lambda: ItemsetGeneralisation(k=5, m=2).apply(sets.aimed_at(["basket"]), run))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  k² of {n_baskets:,} baskets: {taken:.0f} s CPU, {peak:.1f} GB at most; {dict(release.figures)}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))
