"""PRAM, sampling and date shifting against a gather of the same columns by polars; and k² of many baskets.

    python benchmarks/bench_categories.py [records] [baskets]

CPU seconds, the least of three, kernels compiled before. The first three may cost at most 3 gathers of their
columns in random order (categories as words); a million baskets must become k²-anonymous in less than 4 GB.
"""

from __future__ import annotations

import resource
import sys

import numpy as np
import polars as pl
import ratios

import sfumato
from sfumato.core.run import Run
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.date_shifting import DateShifting
from sfumato.methods.itemset_generalisation import ItemsetGeneralisation
from sfumato.methods.pram import Pram
from sfumato.methods.sampling import Sampling

N_ITEMS = 1_000
SMALL = "200000 5000"


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


def main(records: int = 10_000_000, n_baskets: int = 1_000_000) -> int:
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
    fine = True
    for method, targets, columns in tasks:
        part = table.select(columns).aimed_at(targets)
        method.apply(part.take(np.arange(1_000)), Run(seed=1))  # compile
        gather, _ = ratios.least(lambda part=part, order=order: part.frame[order])
        row = f"{method} of {', '.join(columns)}"
        fine &= ratios.protect(row, part, method, "polars: a gather", gather, at_most=3)
    del table, part, order
    sets, tree = baskets(n_baskets, rng)
    taken, _ = ratios.least(
        lambda: sfumato.protect(
            sets.frame, ItemsetGeneralisation(k=5, m=2), columns=["basket"], schema=sets.schema,
            resources={"tree": tree}, seed=1,
        ), times=1,
    )  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    ratios.beside("k² of baskets, sfumato.protect", n_baskets, taken, memory=peak)
    return 0 if fine and peak < 4000 else 1


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:3])))
