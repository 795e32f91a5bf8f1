"""The intersection of five releases against their k-anonymity; m-invariance, and draws keyed by person.

    python benchmarks/bench_series.py [records]

CPU seconds of one run each. The intersection of five releases may take 4 times as long as their k-anonymity.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core.person_generator import PersonGenerator
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.core.waves import Waves
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.anonymity import KAnonymity
from sfumato.risk.intersection import IntersectionRisk
from sfumato.risk.invariance import MInvariance

RELEASES = 5
SCHEMA = Schema(
    (
        Column("who", Kind.NOMINAL, Role.PERSON),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("sex", Kind.NOMINAL, Role.KEY),
        Column("area", Kind.NOMINAL, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    )
)


def wave(turn: int, records: int):
    """A release of a register in which a tenth of the people is new each time, in another order."""
    rng = np.random.default_rng(turn)
    who = rng.permutation(np.arange(records) + turn * records // 10)
    fixed = np.random.default_rng(99)
    traits = fixed.integers(0, (80, 2, 200, 50), (2 * records, 4))[who % (2 * records)]
    age = (traits[:, 0] + turn) // 5 * 5
    frame = pl.DataFrame(
        {
            "who": who,
            "age": age,
            "sex": np.array(["f", "m"])[traits[:, 1]],
            "area": np.array([f"area {each}" for each in range(200)])[traits[:, 2]],
            "ill": np.array([f"ill {each}" for each in range(50)])[traits[:, 3]],
        }
    )
    table = Table(frame, SCHEMA)
    shown = Release.of(
        table.select([name for name in table.names if name != "who"]), source_rows=np.arange(records)
    )
    return shown.against(table)


def seconds(work):
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def main(records: int) -> None:
    run = Run(seed=1)
    IntersectionRisk().score(replace(wave(1, 100), resources={"series": Waves.of([wave(0, 100)])}), run)
    waves = [wave(turn, records) for turn in range(RELEASES)]
    alone, _ = seconds(lambda: [KAnonymity().score(replace(each), run) for each in waves])
    known, series = seconds(lambda: Waves.of(waves[:-1]))
    last = replace(waves[-1], resources={"series": series})
    print(f"{records:,} records, {RELEASES} releases; CPU seconds, and times their k-anonymity")
    print(f"  k-anonymity of each        {alone:6.2f}")
    print(f"  who is who in the earlier  {known:6.2f}  {known / alone:5.2f}")
    for measure in (IntersectionRisk(), IntersectionRisk(candidates="persons"), MInvariance()):
        took, score = seconds(lambda: measure.score(replace(last), run))  # noqa: B023  — called at once
        print(f"  {str(measure)[:60]:60} {took:6.2f}  {took / alone:5.2f}  = {score.value:.4g}")
    people = np.arange(1, records + 1, dtype=np.uint64)
    draws = PersonGenerator(bytes(32), people)
    draws.standard_normal(records)
    keyed, _ = seconds(lambda: draws.standard_normal(records))
    plain, _ = seconds(lambda: np.random.default_rng(1).standard_normal(records))
    print(f"  normal draws by person     {keyed:6.3f}, those of numpy {plain:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
