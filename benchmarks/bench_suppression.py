"""Local suppression: how long it takes, and how near to the fewest cells it comes.

    python benchmarks/bench_suppression.py [records] [k]

The records are `patients`, of which most are unique in all nine keys. Processor seconds are those of the
whole step: finding the cells, and measuring the release. Beside the cells suppressed stands the least there
can be: under ``any`` what is found is the least in which each record fits k originals (by trying all
patterns), and no division into classes, under ``category``, can do with fewer. The kernels are compiled
before the clock starts.

The peer is simple: suppress all keys of every record that is not one of k alike.
"""

import sys

import numpy as np
import ratios

from sfumato.data.schema import Role
from sfumato.datasets import patients
from sfumato.methods.local_suppression import LocalSuppression
from sfumato.methods.suppression import RecordSuppression

SMALL = "10000"


def taken(table, method, keys):
    """Processor seconds of the user's call, and the cells that are gone."""
    seconds, release = ratios.least(ratios.protecting(table.aimed_at(keys), method))
    return seconds, int(sum(release.table.missing(name).sum() for name in keys))


def main(n=100_000, k=5):
    some = patients(2000)
    names = tuple(column.name for column in some.schema.columns if column.role is Role.KEY)
    for policy in ("any", "category"):
        taken(some, LocalSuppression(k=k, missing=policy), names)
    table = patients(n)
    for keys in (names[:5], names[:7], names):
        _, classes = np.unique(table.frame.select(keys).hash_rows(seed=1).to_numpy(), return_counts=True)
        print(f"\n{n} records, {len(keys)} keys, k = {k}: {(classes == 1).sum() / n:.0%} unique")
        peer, most = taken(table, RecordSuppression(k=k, show="missing"), keys)
        least = None
        for method in (LocalSuppression(k=k, missing="any"), LocalSuppression(k=k)):
            seconds, cells = taken(table, method, keys)
            least = cells if least is None else least
            ratios.beside(f"{method} of {len(keys)} keys", n, seconds, "record-suppression", peer)
            print(f"    {cells:,} cells, {cells / least:.3f} of the least; record-suppression {most:,}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
