"""Mondrian against a plain recursive one, and sorted and close generalisation of patients.

    python benchmarks/bench_local_recoding.py [records of Mondrian] [patients]

CPU seconds. Mondrian, with the release it makes and what is measured of that, must be at
least 5 times as fast as a recursive Mondrian on numpy arrays, which finds the ranges of the groups and no
more. That is run on 1 in 50 of the records and taken 50 times, which flatters it. 10 million records of 6
keys may take 2 minutes.
"""

from __future__ import annotations

import resource
import sys

import numpy as np
import polars as pl
import ratios

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.datasets import patients
from sfumato.methods.close_generalisation import CloseGeneralisation
from sfumato.methods.mondrian import Mondrian
from sfumato.methods.sorted_generalisation import SortedGeneralisation

K = 5
PART = 50
SMALL = "50000 10000"


def drawn(records):
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "income": rng.lognormal(10, 1, records),
            "wealth": rng.normal(0, 1, records),
            "age": rng.integers(0, 100, records),
            "area": rng.integers(0, 5000, records),
            "stay": rng.geometric(0.2, records),
            "height": rng.random(records),
        }
    )


def table_of(frame):
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame.columns)))


def recursive(columns, spans, rows, k, parts):
    """Mondrian as one would write it: the widest column, its median, both halves."""
    own = [column[rows] for column in columns]
    widths = [np.ptp(values) / span for values, span in zip(own, spans, strict=True)]
    for place in np.argsort(widths)[::-1]:
        values = own[place]
        left = values < np.median(values) if widths[place] else np.zeros(len(rows), dtype=bool)
        if k <= left.sum() <= len(rows) - k:
            recursive(columns, spans, rows[left], k, parts)
            recursive(columns, spans, rows[~left], k, parts)
            return
    parts.append([(values.min(), values.max()) for values in own])


def against_a_recursion(records):
    Mondrian(k=K).apply(table_of(drawn(1000)), Run(seed=1))  # loads and compiles
    table, few = table_of(drawn(records)), drawn(records // PART)
    same = int(Mondrian(k=K).apply(table_of(few), Run(seed=1)).classes.max()) + 1
    small, parts = [series.to_numpy() for series in few], []
    looped, _ = ratios.least(
        lambda: recursive(small, [np.ptp(each) for each in small], np.arange(len(small[0])), K, parts),
        times=1,
    )
    print(f"  of {few.height:,} records a recursion makes {len(parts):,} groups, and we {same:,}")
    peer = f"a recursion on numpy, from 1 in {PART}"
    return ratios.protect("mondrian of 6 keys", table, Mondrian(k=K), peer, PART * looped, at_least=5)


def of_patients(records):
    table = patients(records)
    table = table.aimed_at(table.schema.with_role(Role.KEY))
    for method in (SortedGeneralisation(k=3), CloseGeneralisation(k=3, sensitive="charge")):
        ratios.protecting(table.take(np.arange(1000)), method)()
        taken, _ = ratios.least(ratios.protecting(table, method))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        ratios.beside(f"{method} of patients, sfumato.protect", records, taken, memory=memory)


def main(records: int = 1_000_000, people: int = 400_000) -> int:
    fast = against_a_recursion(records)
    of_patients(people)
    return 0 if fast else 1


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:3])))
