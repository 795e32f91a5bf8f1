"""Assignment: our kernel against SciPy's dense solver, and alone where a matrix of all pairs does not fit.

    python benchmarks/bench_assignment.py [records] [families] [--alone]

The records are correlated log-normal (13 attributes, z-scores), protected by one family after the other
and shuffled. Both solvers get the same files, each in a process of its own; processor seconds and peak
memory say more than the clock does: of the whole process with its libraries, and, in brackets, above what
it had before it began. Without ``--alone`` the two must agree on the
total distance. The kernels are compiled before the clock starts. Families: noise, heavy-noise,
rank-swapping, rank-shuffling, synthetic.
"""

import json
import resource
import subprocess
import sys
import time

import numpy as np
import polars as pl
import ratios

N_COLUMNS = 13
SMALL = "500 noise,synthetic"
FAMILIES = ("noise", "heavy-noise", "rank-swapping", "rank-shuffling", "synthetic")


def lognormal(n, rng):
    mixing = np.random.default_rng(0).normal(size=(N_COLUMNS, N_COLUMNS)) * 0.4 + np.eye(N_COLUMNS)
    values = np.exp(0.5 * rng.normal(size=(n, N_COLUMNS)) @ mixing)
    return (values - values.mean(axis=0)) / values.std(axis=0)


def protected(original, family, rng):
    n = len(original)
    if family == "synthetic":
        return lognormal(n, rng)
    if family in {"noise", "heavy-noise"}:
        return original + (0.15 if family == "noise" else 1.0) * rng.normal(size=original.shape)
    released = original.copy()
    for column in range(N_COLUMNS):
        order = np.argsort(original[:, column])
        if family == "rank-swapping":  # to a place at most 5 % of the records further
            moved = np.argsort(np.arange(n) + rng.uniform(0, 0.05 * n, size=n))
        else:  # within blocks of 3 % of the records
            blocks = np.arange(n) // max(1, int(0.03 * n))
            moved = np.lexsort((rng.random(n), blocks))
        released[order, column] = original[order[moved], column]
    return released


def files(n, family):
    rng = np.random.default_rng([n, FAMILIES.index(family)])
    original = lognormal(n, rng)
    order = rng.permutation(n)
    return original, protected(original, family, rng)[order], order


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def run_ours(n, family):
    from sfumato.kernels import assignment

    original, released, order = files(n, family)
    some, others, _ = files(3000, "noise")  # compile
    assignment.solve(some, others, "euclidean")
    before, began = peak_memory(), time.process_time()
    found = assignment.solve(original, released, "euclidean")
    seconds = time.process_time() - began
    links = float((order[found.partners] == np.arange(n)).mean())
    return {"seconds": seconds, "memory": peak_memory(), "before": before, "distance": found.distance,
            "links": links, "certified": found.certified}  # fmt: skip


def run_scipy(n, family):
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    original, released, order = files(n, family)
    before, began = peak_memory(), time.process_time()
    distances = cdist(original, released)
    rows, columns = linear_sum_assignment(distances)
    seconds = time.process_time() - began
    return {"seconds": seconds, "memory": peak_memory(), "before": before,
            "distance": float(distances[rows, columns].sum()), "certified": True,
            "links": float((order[columns] == np.arange(n)).mean())}  # fmt: skip


def run_call(n, family, measure="gdbrl"):
    """The user's call: `gdbrl` of the same files."""
    from sfumato.core.release import Release
    from sfumato.data.schema import Column, Kind, Role, Schema
    from sfumato.data.table import Table

    names = [f"c{i:02}" for i in range(N_COLUMNS)]
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in names))

    def call(n, family):
        original, released, order = files(n, family)
        first, second = (Table(pl.DataFrame(each, schema=names), schema) for each in (original, released))
        return ratios.assessing(first, measure, Release.of(second, source_rows=order))

    call(3000, "noise")()  # compile
    seconds, _ = ratios.least(call(n, family), times=1)
    return {"seconds": seconds, "memory": peak_memory()}


def run_learned(n, family):
    """The same by the strongest of fixed and learned metrics: six linkages."""
    return run_call(n, family, "gdbrl(metric=learned)")


def in_process(solver, n, family):
    done = subprocess.run(
        [sys.executable, __file__, "--solver", solver, str(n), family], capture_output=True, check=True
    )
    return json.loads(done.stdout)


def main(arguments):
    if arguments[:1] == ["--solver"]:
        run = {"ours": run_ours, "scipy": run_scipy, "call": run_call, "learned": run_learned}[arguments[1]]
        print(json.dumps(run(int(arguments[2]), arguments[3])))
        return 0
    alone = "--alone" in arguments
    arguments = [argument for argument in arguments if argument != "--alone"]
    n = int(arguments[0]) if arguments else 3000
    families = arguments[1].split(",") if len(arguments) > 1 else FAMILIES
    print(f"assignment, {n:,} × {N_COLUMNS} records, processor seconds and peak memory")
    is_well = True
    for family in families:
        ours = in_process("ours", n, family)
        is_well &= ours["certified"]
        theirs = {"seconds": None} if alone else in_process("scipy", n, family)
        kinds = {"kernel": ours, "sfumato.assess of gdbrl": in_process("call", n, family),
                 "sfumato.assess of gdbrl(metric=learned)": in_process("learned", n, family)}  # fmt: skip
        for kind, row in kinds.items():
            ratios.beside(
                f"{family}, {kind}", n, row["seconds"], "scipy: linear_sum_assignment", theirs["seconds"],
                memory=1000 * row["memory"], at_least=0,
            )  # fmt: skip
        is_well &= alone or abs(ours["distance"] / theirs["distance"] - 1) < 1e-9
        print(f"    true links {ours['links']:.4f}", "certified" if ours["certified"] else "NOT CERTIFIED")
    print("  all certified, totals agree" if is_well else "  FAILED")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
