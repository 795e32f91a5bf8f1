"""The intersection of five releases against their k-anonymity; m-invariance, and draws keyed by person.

    python benchmarks/bench_series.py [records]

CPU seconds. The intersection of five releases may take 4 times as long as their k-anonymity.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import polars as pl
import ratios

import sfumato
from sfumato.core.evidence import Evidence
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
SMALL = "20000"
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
    return Evidence(table, shown)


def main(records: int) -> None:
    run = Run(seed=1)
    IntersectionRisk().score(replace(wave(1, 100), resources={"series": Waves.of([wave(0, 100)])}), run)
    waves = [wave(turn, records) for turn in range(RELEASES)]
    peer = "k-anonymity of each"
    alone, _ = ratios.least(lambda: [KAnonymity().score(replace(each), run) for each in waves])
    known, series = ratios.least(lambda: Waves.of(waves[:-1]))
    ratios.beside("who is who in the earlier", records, known, peer, alone)
    last = replace(waves[-1], resources={"series": series})
    for measure in (IntersectionRisk(), IntersectionRisk(candidates="persons"), MInvariance()):
        calls = {
            "score": lambda: measure.score(replace(last), run),  # noqa: B023
            "sfumato.assess": lambda: sfumato.assess(
                last.original, last.release, [measure], resources=last.resources, seed=1  # noqa: B023
            ),
        }  # fmt: skip
        claim = {"at_most": 4} if measure == IntersectionRisk() else {}
        ratios.two_rows(str(measure), records, calls, peer, alone, **claim)
    draws = PersonGenerator(bytes(32), np.arange(1, records + 1, dtype=np.uint64))
    draws.standard_normal(records)
    keyed, _ = ratios.least(lambda: draws.standard_normal(records))
    plain, _ = ratios.least(lambda: np.random.default_rng(1).standard_normal(records))
    ratios.beside("normal draws by person", records, keyed, "numpy: normal draws", plain)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
