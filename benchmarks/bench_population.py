"""Population risk: SUDA against rare combinations, individual risk against k-anonymity, and many keys.

    python benchmarks/bench_population.py [records]

CPU seconds. SUDA of six keys may cost at most twice `unsafe-combinations` of the same depth,
at 100,000 and at a million records; 25 keys to a depth of 4 of 100,000 records must stay below 2 GB.
individual-risk may cost at most three times k-anonymity, and six times with 2 % of the keys missing; it is
asked of ten times the records that are named. Where Rscript and sdcMicro are installed, SUDA is to be 3 times
as fast as their suda2.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import ratios

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk._subsets import KeyCodes
from sfumato.risk.anonymity import KAnonymity
from sfumato.risk.combinations import UnsafeCombinations
from sfumato.risk.copula import CopulaRisk
from sfumato.risk.individual import IndividualRisk
from sfumato.risk.log_linear import LogLinearRisk
from sfumato.risk.suda import Suda

SIZES = (90, 2, 8, 60, 12, 5)
SMALL = "20000"


def people(records, sizes, *, missing=0.0):
    """Keys of so many values, of which few are common, each leaning on the one before."""
    rng = np.random.default_rng(1)
    columns, before = {}, np.zeros(records, dtype=np.int64)
    for place, size in enumerate(sizes):
        values = np.minimum(rng.geometric(min(2.5 / size, 0.6), records) - 1, size - 1)
        before = np.where(rng.random(records) < 0.3, before % size, values)
        column = pl.Series(before.astype(np.int16))
        if missing:
            column = column.set(pl.Series(rng.random(records) < missing), None)
        columns[f"k{place}"] = column
    schema = Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in columns))
    return Table(pl.DataFrame(columns), schema)


def beside_sdcmicro(table):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        table.frame.write_csv(path)
        peer, theirs = ratios.by_r("sdcMicro", f"data <- read.csv('{path.as_posix()}')", "suda2(data)")
    if theirs is None:
        ratios.skip("suda of up to 3 keys, sdcMicro's suda2", peer)
        return True
    return ratios.assess("suda of up to 3 keys", table, Suda(), peer, theirs, at_least=3)


def many_keys(records):
    """25 keys: 15,275 subsets of up to 4; and both ways to count them."""
    sizes = [4 + place % 6 for place in range(25)]
    many, fewer = people(records // 10, sizes), people(records // 200, sizes)
    for measure in (Suda(dimension=4), LogLinearRisk(fraction=0.1), CopulaRisk(fraction=0.1)):
        taken, _ = ratios.least(ratios.assessing(many, measure), times=1)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        ratios.beside(f"{measure} of 25 keys, sfumato.assess", len(many), taken, memory=memory)
    measure, keys = Suda(dimension=4), KeyCodes.of(fewer, fewer.schema.with_role(Role.KEY))
    measure.by_recursion(keys, Run(seed=1))  # compile it
    levels, _ = ratios.least(lambda: measure.by_levels(keys, Run(seed=1)))
    taken, _ = ratios.least(lambda: measure.by_recursion(keys, Run(seed=1)))
    ratios.beside("suda of 25 keys, by the recursion", len(fewer), taken, "level by level", levels)


def main(records: int = 1_000_000) -> int:
    fine = True
    for measure in (Suda(), UnsafeCombinations()):  # load and compile what is loaded on first use
        ratios.assessing(people(2000, SIZES), measure)()
    for n in (records // 10, records):
        table = people(n, SIZES)
        peer, _ = ratios.least(ratios.assessing(table, UnsafeCombinations()))
        fine &= ratios.assess(
            "suda of 6 keys", table, Suda(), "unsafe combinations of up to 3 keys", peer, at_most=2
        )
    fine &= beside_sdcmicro(people(records // 10, SIZES))
    many_keys(records)
    for missing, most in ((0.0, 3), (0.02, 6)):
        table, policy = people(records * 10, SIZES, missing=missing), "any" if missing else "category"
        peer, _ = ratios.least(ratios.assessing(table, KAnonymity(missing=policy)))
        fine &= ratios.assess(
            f"individual-risk, {missing:.0%} missing", table, IndividualRisk(fraction=0.1, missing=policy),
            "k-anonymity of them, sfumato.assess", peer, at_most=most,
        )  # fmt: skip
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:2])))
