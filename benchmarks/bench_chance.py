"""What keying chance by the data costs: the fingerprint against a bare BLAKE2b, and calls with and without.

    python benchmarks/bench_chance.py [records]

CPU seconds, each the least of three. The fingerprint of a table may cost at most 1.3 bare BLAKE2b of the same
bytes; `sfumato.assess` by k-anonymity, which draws nothing, at most one bare polars group-by of numbers and
1.5 of text. PRAM is beside a gather of its column, noise beside plain noise by numpy, each of a fresh table.
"""

from __future__ import annotations

import hashlib
import sys

import numpy as np
import polars as pl
import ratios

import sfumato
from sfumato.data import digest
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

SMALL = "50000"
KEYS = {"region": 50, "age": 90, "sex": 2, "occupation": 400, "marital": 6}


def schema_of(frame, kind):
    return Schema(tuple(Column(name, kind, Role.KEY) for name in frame.columns))


class Bytes(list):
    """Takes what a fingerprint is made of."""

    def update(self, part):
        self.append(bytes(part))


def bytes_of(frame):
    for block in frame.iter_slices(digest.BLOCK_RECORDS):
        part = Bytes()
        for name in sorted(block.columns):
            digest._add(part, block[name])  # noqa: SLF001  — the very bytes
        yield b"".join(part)


def fingerprint(what, frame, kind):
    parts, schema = list(bytes_of(frame)), schema_of(frame, kind)
    bare, _ = ratios.least(lambda: [hashlib.blake2b(part, digest_size=32).digest() for part in parts])
    taken, _ = ratios.least(lambda: Table(frame, schema).digest)
    return ratios.beside(f"fingerprint of {what}", len(frame), taken, "a bare BLAKE2b", bare, at_most=1.3)


def assess(what, frame, most):
    schema = schema_of(frame, Kind.NOMINAL)
    sfumato.assess(frame.head(1000), None, ["k"], schema=schema)
    bare, _ = ratios.least(lambda: frame.group_by(frame.columns).len())
    taken, _ = ratios.least(lambda: sfumato.assess(frame, None, ["k"], schema=schema))
    row = f"k of {what}, sfumato.assess"
    return ratios.beside(row, len(frame), taken, "polars: a group-by", bare, at_most=most)


def protect(method, frame, kind, peer, plain):
    schema, columns = schema_of(frame, kind), frame.columns
    sfumato.protect(frame.head(10_000), method, columns=columns, schema=schema, seed=1)
    bare, _ = ratios.least(plain)
    taken, _ = ratios.least(lambda: sfumato.protect(frame, method, columns=columns, schema=schema, seed=1))
    ratios.beside(f"{method}, sfumato.protect", len(frame), taken, peer, bare)


def main(records=4_000_000):
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, count, records) for name, count in KEYS.items()}
    numbers = pl.DataFrame(codes)
    words = {name: pl.Series([f"{name} {i:04d}" for i in range(count)]) for name, count in KEYS.items()}
    text = pl.DataFrame([words[name].gather(codes[name]).alias(name) for name in KEYS])
    amounts = pl.DataFrame({name: rng.normal(size=records) for name in "abcdefgh"})
    print(f"{records:,} records")
    tables = (("text", text, Kind.NOMINAL), ("numbers", numbers, Kind.NOMINAL))
    fine = [fingerprint(*each) for each in (*tables, ("amounts", amounts, Kind.CONTINUOUS))]
    fine += [assess("numbers", numbers, 1.0), assess("text", text, 1.5)]
    order, word = rng.permutation(records), text.select("occupation")
    protect("pram", word, Kind.NOMINAL, "polars: a gather", lambda: word[order])
    matrix = amounts.to_numpy()
    noise = lambda: matrix + rng.normal(size=matrix.shape) * matrix.std(0)  # noqa: E731
    protect("uncorrelated-noise", amounts, Kind.CONTINUOUS, "numpy: plain noise", noise)
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:2])))
