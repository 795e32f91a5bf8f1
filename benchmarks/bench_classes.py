"""Measures of classes against one bare polars group-by, and t-closeness against a loop over classes.

    python benchmarks/bench_classes.py [records]

CPU seconds of one run each. All k-family measures of five text keys and one sensitive column, every
record's number among them, may cost at most 3 bare group-bys over these columns, and each further sensitive
column about one more. t-closeness must be at least 50 times faster than a plain loop with one filter of the
frame and one distribution for each class, and than pycanon where that is installed. individual-risk may cost
at most 3 times k-anonymity, and 6 times with 2 % of the keys missing. k-anonymity itself, with every record's
number, may cost at most 1.5 bare group-bys, whatever the keys are.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

KEYS = {"region": 50, "age": 90, "sex": 2, "occupation": 400, "marital": 6}
FAMILY = (
    "k-anonymity", "l-diversity", "recursive-diversity", "p-sensitivity", "alpha-k-anonymity", "t-closeness",
    "delta-disclosure", "beta-likeness", "prosecutor-risk", "marketer-risk", "distinction", "separation",
)  # fmt: skip


def cpu(work):
    start = time.process_time()
    done = work()
    return done, time.process_time() - start


def words(name, kinds, records, rng):
    shares = 1 / np.arange(1, kinds + 1)
    drawn = rng.choice(kinds, records, p=shares / shares.sum())
    return pl.Series(name, np.array([f"{name} {i:04d}" for i in range(kinds)])[drawn])


def table_of(frame, sensitive):
    roles = [Role.SENSITIVE if name in sensitive else Role.KEY for name in frame.columns]
    columns = zip(frame.columns, roles, strict=True)
    return Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, role) for name, role in columns)))


def family(table):
    """Score all measures on fresh evidence: the classes are found anew."""
    evidence = Evidence(table)
    return {name: registry.measure(name)().score(evidence, Run(seed=1)) for name in FAMILY}


def against_group_by(records):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame([words(name, kinds, records, rng) for name, kinds in KEYS.items()])
    frame = frame.with_columns(words(name, 200, records, rng) for name in ("diagnosis", "therapy"))
    one = frame.drop("therapy")
    family(table_of(one.head(1000), ("diagnosis",)))
    combinations, bare = cpu(lambda: one.group_by(one.columns).len().height)
    scores, taken = cpu(lambda: family(table_of(one, ("diagnosis",))))
    _, with_two = cpu(lambda: family(table_of(frame, ("diagnosis", "therapy"))))
    classes = scores["k-anonymity"].details["classes"]
    print(f"{records:,} records, {classes:,} classes, {combinations:,} with the sensitive value")
    print(f"  a bare group-by takes {bare:.2f} s CPU")
    print(f"  {len(FAMILY)} measures        {taken:6.2f} s = {taken / bare:.2f} group-bys (at most 3)")
    print(f"  one sensitive more {with_two - taken:6.2f} s = {(with_two - taken) / bare:.2f} group-bys")
    return taken <= 3 * bare


def k_against_group_by(records):
    """k-anonymity of text, whole numbers and numbers, with few classes and with many."""
    within = True
    for keys in (("region", "age", "sex", "marital"), tuple(KEYS)):
        for kind in ("text", "whole numbers", "numbers"):
            rng = np.random.default_rng(4)
            made = [words(name, KEYS[name], records, rng) for name in keys]
            if kind != "text":
                dtype = pl.Int64 if kind == "whole numbers" else pl.Float64
                made = [column.cast(pl.Categorical).to_physical().cast(dtype) for column in made]
            frame, measure, run = pl.DataFrame(made), registry.measure("k-anonymity")(), Run(seed=1)
            measure.score(Evidence(table_of(frame.head(1000), ())), run)
            _, bare = cpu(lambda frame=frame: frame.group_by(frame.columns).len()["len"].min())
            score, taken = cpu(
                lambda frame=frame, m=measure, r=run: m.score(Evidence(table_of(frame, ())), r)
            )
            print(
                f"k-anonymity, {len(keys)} keys of {kind}, {score.details['classes']:,} classes: "
                f"{taken:.2f} s CPU = {taken / bare:.2f} group-bys (at most 1.5)"
            )
            within &= taken <= 1.5 * bare
    return within


def against_k_anonymity(records):
    """Individual risk by weights, which make nearly every class a case of its own."""
    rng, within = np.random.default_rng(3), True
    frame = pl.DataFrame([words(name, kinds, records, rng) for name, kinds in KEYS.items()])
    frame = frame.with_columns(pl.Series("weight", rng.uniform(10, 100, records)))
    for share, most in ((0.0, 3), (0.02, 6)):
        holes = {name: pl.Series(rng.random(records) < share) for name in KEYS}
        shown = frame.with_columns(pl.when(~hole).then(pl.col(name)) for name, hole in holes.items())
        table = table_of(shown, ())
        table = replace(table, schema=table.schema.replace(Column("weight", Kind.CONTINUOUS, Role.WEIGHT)))
        times = []
        for name in ("k-anonymity", "individual-risk"):
            measure, run = registry.measure(name)(), Run(seed=1)
            measure.score(Evidence(table.take(np.arange(1000))), run)  # loads what is loaded on first use
            times.append(cpu(lambda m=measure, t=table, r=run: m.score(Evidence(t), r))[1])
        ratio = times[1] / times[0]
        print(
            f"individual-risk, {share:.0%} missing: {times[1]:.2f} s CPU = {ratio:.1f} k-anonymity ({most})"
        )
        within &= ratio <= most
    return within


def loop_over_classes(frame, keys, sensitive, first):
    """The largest distance among the first classes, one by one: filter the frame, count, compare."""
    everybody = frame[sensitive].value_counts()
    distribution = dict(zip(everybody[sensitive], everybody["count"] / frame.height, strict=True))
    largest = 0.0
    for values in frame.select(keys).unique(maintain_order=True).head(first).iter_rows():
        part = frame.filter(pl.col(key) == value for key, value in zip(keys, values, strict=True))
        mine = part[sensitive].value_counts()
        shares = dict(zip(mine[sensitive], mine["count"] / part.height, strict=True))
        distance = sum(abs(shares.get(value, 0.0) - share) for value, share in distribution.items()) / 2
        largest = max(largest, distance)
    return largest


def drawn_classes(records, n_classes):
    rng = np.random.default_rng(2)
    drawn = rng.integers(0, n_classes, records)
    frame = pl.DataFrame({"area": (drawn // 100).astype(str), "group": (drawn % 100).astype(str)})
    return frame.with_columns(words("diagnosis", 200, records, rng))


def closeness(frame):
    table = table_of(frame, ("diagnosis",))
    score, taken = cpu(lambda: registry.measure("t-closeness")().score(Evidence(table), Run(seed=1)))
    print(
        f"t-closeness of {frame.height:,} records in {score.details['classes']:,} classes: {taken:.3f} s CPU"
    )
    return score.value, taken


def against_a_loop(part=50):
    """The loop goes over a part of the classes only, pycanon over a small table: all would take hours."""
    closeness(drawn_classes(1_000, 50))  # loads what is loaded on first use
    keys, frame = ["area", "group"], drawn_classes(1_000_000, 15_000)
    _, taken = closeness(frame)
    _, looped = cpu(lambda: loop_over_classes(frame, keys, "diagnosis", 15_000 // part))
    ratios = [part * looped / taken]
    print(f"  a loop over the classes, from 1 in {part}: {part * looped:.0f} s = {ratios[0]:.0f} times (50)")
    try:
        from pycanon import anonymity
    except ImportError:
        return ratios[0] >= 50
    small = drawn_classes(30_000, 450)
    ours, taken = closeness(small)
    data = small.to_pandas()
    theirs, their_time = cpu(lambda: anonymity.t_closeness(data, keys, ["diagnosis"], gen=True))
    ratios.append(their_time / taken)
    print(f"  pycanon: {their_time:.1f} s = {ratios[1]:.0f} times (50); {ours:.9f} and {theirs:.9f}")
    return min(ratios) >= 50


def main(records: int = 10_000_000) -> int:
    fast = against_group_by(records) & k_against_group_by(records) & against_k_anonymity(records)
    return 0 if against_a_loop() and fast else 1


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:2])))
