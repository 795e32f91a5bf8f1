"""Reading CSV and Parquet against a bare polars read of the same file.

    python benchmarks/bench_io.py [records]

Ours also sniffs the dialect, keeps leading zeros, types a column by all its values and finds ragged lines.
CPU seconds, the least of three; `sfumato.read`, which also guesses what columns are, is beside. Ten million
records may cost twice a bare read.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import ratios

import sfumato
from sfumato import io

SMALL = "100000"


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


def main(records: int = 10_000_000) -> None:
    frame = people(records)
    with tempfile.TemporaryDirectory() as folder:
        for suffix, bare, write in (
            (".csv", pl.read_csv, frame.write_csv),
            (".parquet", pl.read_parquet, frame.write_parquet),
        ):
            path = Path(folder) / f"people{suffix}"
            write(path)
            polars, _ = ratios.least(lambda bare=bare, path=path: bare(path))
            calls = {
                "io.read": lambda path=path: io.read(path),
                "sfumato.read": lambda path=path: sfumato.read(path),
            }
            ratios.two_rows(suffix, records, calls, f"polars: {bare.__name__}", polars, at_most=2)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
