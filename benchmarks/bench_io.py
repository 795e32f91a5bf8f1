"""Reading CSV and Parquet against a bare polars read of the same file.

    python benchmarks/bench_io.py [records]

Ours also sniffs the dialect, keeps leading zeros, types a column by all its values and finds ragged lines.
Each side is read three times, turn about; the ratio is of the best wall times. Ten million records may cost
twice a bare read.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from sfumato import io

ROUNDS = 3


def people(records: int) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "age": rng.integers(0, 100, records),
            "income": rng.lognormal(10, 1, records).round(2),
            "postcode": pl.Series(rng.integers(0, 100_000, records)).cast(pl.String).str.zfill(5),
            "region": rng.choice(["north", "south", "east", "west"], records),
            "visits": rng.poisson(3, records),
        }
    )


def wall(read, path) -> float:
    start = time.perf_counter()
    read(path)
    return time.perf_counter() - start


def main(records: int = 10_000_000) -> None:
    frame = people(records)
    with tempfile.TemporaryDirectory() as folder:
        for suffix, bare, write in (
            (".csv", pl.read_csv, frame.write_csv),
            (".parquet", pl.read_parquet, frame.write_parquet),
        ):
            path = Path(folder) / f"people{suffix}"
            write(path)
            times = [(wall(bare, path), wall(io.read, path)) for _ in range(ROUNDS)]
            polars, ours = (min(side) for side in zip(*times, strict=True))
            size = f"{path.stat().st_size / 1e6:.0f} MB"
            print(
                f"{records:,} × 5 {suffix}, {size}: polars {polars:.2f} s, ours {ours:.2f} s,",
                f"{ours / polars:.2f} ×",
            )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
