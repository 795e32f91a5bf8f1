"""What keying chance by the data costs: the fingerprint against a bare BLAKE2b, and calls with and without.

    python benchmarks/bench_chance.py [records]

CPU seconds, each the least of three. The fingerprint of a table may cost at most 1.3 bare BLAKE2b of the same
bytes; `sfumato.assess` by k-anonymity, which draws nothing, at most one bare polars group-by of numbers and
1.5 of text. PRAM is beside a gather of its column, noise beside plain noise by numpy, each of a fresh table.
"""

from __future__ import annotations

import hashlib
import sys
import time

import numpy as np
import polars as pl

import sfumato
from sfumato.data import digest
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

KEYS = {"region": 50, "age": 90, "sex": 2, "occupation": 400, "marital": 6}


def least(work):
    taken = []
    for _ in range(3):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


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
    bare = least(lambda: [hashlib.blake2b(part, digest_size=32).digest() for part in parts])
    taken = least(lambda: Table(frame, schema).digest)
    print(f"  fingerprint of {what:8s} {taken:.2f} s CPU = {taken / bare:.2f} bare BLAKE2b (at most 1.3)")
    return taken <= 1.3 * bare


def assess(what, frame, most):
    schema = schema_of(frame, Kind.NOMINAL)
    sfumato.assess(frame.head(1000), None, ["k"], schema=schema)
    bare = least(lambda: frame.group_by(frame.columns).len())
    taken = least(lambda: sfumato.assess(frame, None, ["k"], schema=schema))
    print(f"  assess k of {what:11s} {taken:.2f} s CPU = {taken / bare:.2f} group-bys (at most {most})")
    return taken <= most * bare


def protect(method, frame, kind, peer, plain):
    schema, columns = schema_of(frame, kind), frame.columns
    sfumato.protect(frame.head(10_000), method, columns=columns, schema=schema, seed=1)
    bare = least(plain)
    taken = least(lambda: sfumato.protect(frame, method, columns=columns, schema=schema, seed=1))
    print(f"  protect {method:15s} {taken:.2f} s CPU = {taken / bare:.1f} × {peer}")


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
    protect("pram", word, Kind.NOMINAL, "a gather", lambda: word[order])
    matrix = amounts.to_numpy()
    noise = lambda: matrix + rng.normal(size=matrix.shape) * matrix.std(0)  # noqa: E731
    protect("uncorrelated-noise", amounts, Kind.CONTINUOUS, "plain noise", noise)
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:2])))
