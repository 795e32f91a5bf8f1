"""Measures of classes against one bare polars group-by, and t-closeness against a loop over classes.

    python benchmarks/bench_classes.py [records]

CPU seconds, the least of three. All k-family measures of five text keys and one sensitive column, every
record's number among them, may cost at most 3 bare group-bys over these columns, and each further sensitive
column about one more. t-closeness must be at least 50 times faster than a plain loop with one filter of the
frame and one distribution for each class, and than pycanon where that is installed. individual-risk may cost
at most 3 times k-anonymity, and 6 times with 2 % of the keys missing. k-anonymity itself, with every record's
number, may cost at most 1.5 bare group-bys, whatever the keys are.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import polars as pl
import ratios

import sfumato
from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

SMALL = "50000"
KEYS = {"region": 50, "age": 90, "sex": 2, "occupation": 400, "marital": 6}
FAMILY = (
    "k-anonymity", "l-diversity", "recursive-diversity", "p-sensitivity", "alpha-k-anonymity", "t-closeness",
    "delta-disclosure", "beta-likeness", "prosecutor-risk", "marketer-risk", "distinction", "separation",
)  # fmt: skip


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
    peer, row = "polars: a group-by", f"{len(FAMILY)} measures of classes"
    bare, _ = ratios.least(lambda: one.group_by(one.columns).len().height)
    taken, _ = ratios.least(lambda: family(table_of(one, ("diagnosis",))))
    with_two, _ = ratios.least(lambda: family(table_of(frame, ("diagnosis", "therapy"))))
    schema = table_of(one, ("diagnosis",)).schema
    call, _ = ratios.least(lambda: sfumato.assess(one, None, FAMILY, schema=schema, seed=1))
    ratios.beside(f"{row}, sfumato.assess", records, call, peer, bare)
    ratios.beside("one sensitive column more", records, with_two - taken, peer, bare)
    return ratios.beside(f"{row}, score", records, taken, peer, bare, at_most=3)


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
            bare, _ = ratios.least(lambda frame=frame: frame.group_by(frame.columns).len()["len"].min())
            row = f"k-anonymity, {len(keys)} keys of {kind}"
            table = table_of(frame, ())
            within &= ratios.assess(row, table, measure, "polars: a group-by", bare, at_most=1.5)
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
        peer, measure = (registry.measure(name)() for name in ("k-anonymity", "individual-risk"))
        ratios.assessing(table.take(np.arange(1000)), measure)()  # loads what is loaded on first use
        theirs, _ = ratios.least(ratios.assessing(table, peer))
        row = f"individual-risk, {share:.0%} missing"
        within &= ratios.assess(row, table, measure, "k-anonymity, sfumato.assess", theirs, at_most=most)
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


def against_a_loop(records, part=50):
    """The loop goes over a part of the classes only, pycanon over a small table: all would take hours."""
    measure, keys = registry.measure("t-closeness")(), ["area", "group"]
    frame, small = drawn_classes(records, records // 66), drawn_classes(30_000, 450)
    ratios.assessing(table_of(small, ("diagnosis",)), measure)()  # loads what is loaded on first use
    looped, _ = ratios.least(
        lambda: loop_over_classes(frame, keys, "diagnosis", records // 66 // part), times=1
    )
    fine = ratios.assess(
        "t-closeness", table_of(frame, ("diagnosis",)), measure, f"a loop over 1 in {part} classes",
        part * looped, at_least=50,
    )  # fmt: skip
    try:
        from pycanon import anonymity
    except ImportError:
        ratios.skip("t-closeness of pycanon", "pycanon is not installed")
        return fine
    data = small.to_pandas()
    theirs, _ = ratios.least(lambda: anonymity.t_closeness(data, keys, ["diagnosis"], gen=True), times=1)
    table = table_of(small, ("diagnosis",))
    return fine & ratios.assess(
        "t-closeness beside pycanon", table, measure, "pycanon: t_closeness", theirs, at_least=50
    )


def main(records: int = 10_000_000) -> int:
    fast = against_group_by(records) & k_against_group_by(records) & against_k_anonymity(records)
    return 0 if against_a_loop(records // 10) and fast else 1


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:2])))
