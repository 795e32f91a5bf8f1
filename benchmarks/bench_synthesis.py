"""Sequential trees against scikit-learn's, on records of 15 mixed columns.

    python benchmarks/bench_synthesis.py [records]

CPU seconds, kernels compiled before, and the most memory that ours took. `synthesis` may
cost at most a third of scikit-learn's trees (the same least leaf, each column from those before it, values
drawn from the leaves), and at a million records less than 4 GB.
"""

from __future__ import annotations

import resource
import sys

import numpy as np
import polars as pl
import ratios
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.synthesis import Synthesis

LEAF = 5
SMALL = "10000"


def mixed(n: int) -> Table:
    """Ages, amounts that follow them, and codes that follow a region: 15 columns."""
    rng = np.random.default_rng(0)
    age, sex, region = rng.integers(0, 95, n), rng.integers(0, 2, n), rng.integers(0, 20, n)
    level = np.clip((age / 12 + rng.normal(0, 2, n)).astype(int), 0, 12)
    income = np.exp(8 + 0.02 * age + 0.15 * level + rng.normal(0, 0.6, n)).round(2)
    columns = {"age": age, "sex": sex, "region": region, "level": level, "income": income}
    for i in range(5):
        columns[f"amount{i}"] = (income * rng.lognormal(0, 0.3, n) + i * age).round(1)
        columns[f"code{i}"] = (region * (i + 1) + level + rng.integers(0, 4, n)) % (8 + 4 * i)
    kinds = {name: Kind.NOMINAL for name in columns if name in {"sex", "region"} or name.startswith("code")}
    kinds["level"] = Kind.ORDINAL
    schema = Schema(tuple(Column(name, kinds.get(name, Kind.CONTINUOUS), Role.KEY) for name in columns))
    return Table(pl.DataFrame(columns), schema, targets=tuple(columns))


def with_scikit_learn(table: Table) -> None:
    """Fit and draw each column from those before it, in the order in which `synthesis` visits them."""
    rng, n = np.random.default_rng(1), len(table)
    names = sorted(table.names, key=lambda name: (table.frame[name].n_unique(), name))
    original = table.matrix(names).astype(np.float32)
    drawn = np.empty_like(original)
    drawn[:, 0] = original[rng.integers(0, n, n), 0]
    for place in range(1, len(names)):
        numeric = table.schema[names[place]].kind is Kind.CONTINUOUS
        model = (DecisionTreeRegressor if numeric else DecisionTreeClassifier)(
            min_samples_leaf=LEAF, random_state=0
        )
        model.fit(original[:, :place], original[:, place])
        leaves, wanted = model.apply(original[:, :place]), model.apply(drawn[:, :place])
        order = np.argsort(leaves, kind="stable")
        first, after = (np.searchsorted(leaves[order], wanted, side=side) for side in ("left", "right"))
        drawn[:, place] = original[order[first + (rng.random(n) * (after - first)).astype(int)], place]


def main(records: int = 1_000_000) -> None:
    Synthesis(leaf=LEAF).apply(mixed(2000), Run(seed=1))  # compile
    table = mixed(records)
    method = Synthesis(leaf=LEAF)
    taken, _ = ratios.least(ratios.protecting(table, method), times=1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    ratios.beside("synthesis of 15 columns, memory", records, taken, memory=memory)
    theirs, _ = ratios.least(lambda: with_scikit_learn(table), times=1)
    ratios.protect("synthesis of 15 columns", table, method, "scikit-learn: trees", theirs, at_least=3)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
