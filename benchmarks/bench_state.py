"""What methods and measures hold in memory: bytes for each record, and for each record and column.

``python benchmarks/bench_state.py mondrian pram k-anonymity`` runs each with the engine ``stream`` on a table
of one million records and of three, with two columns and with four, each in a process of its own. What grows
with the records is the state; the load of the machine does not change it. Without names all methods run that
do not take n², and the usual measures. What is declared as ``state`` of a class is what this prints.
"""

import json
import subprocess
import sys
import tempfile
import threading

import ratios

SIZES, WIDTHS = (1_000_000, 3_000_000), (2, 4)
SMALL = "pram k-anonymity --small"
MEASURES = ("k-anonymity", "uniqueness", "l-diversity", "il1s", "dis-suda", "hellinger", "individual-risk")


def _table(n, width, kinds):
    import numpy as np
    import polars as pl

    from sfumato.data.schema import Column, Role, Schema
    from sfumato.data.table import Table

    rng = np.random.default_rng(1)
    kind = next(each for each in ("continuous", "ordinal", "nominal") if each in kinds)
    most = 1000 if kind == "continuous" else 20
    names = [f"x{i}" for i in range(width)]
    frame = pl.DataFrame({name: rng.integers(0, most, n) for name in (*names, "s")})
    columns = [Column(name, kind, Role.KEY) for name in names]
    return Table(frame, Schema((*columns, Column("s", "nominal", Role.SENSITIVE)))), names


def work(name, n, width):
    """One piece of work in this process; the peak of what lies in no file is written to stdout."""
    import sfumato
    from sfumato.core import registry
    from sfumato.engines.stream import memory_in_use

    peak, done = [0], threading.Event()

    def watch():
        while not done.wait(0.005):
            peak[0] = max(peak[0], memory_in_use())

    method = registry.methods().get(name)
    with sfumato.engine("stream"):
        table, names = _table(n, width, method.kinds if method else registry.measures()[name].kinds)
        before = memory_in_use()
        threading.Thread(target=watch, daemon=True).start()
        if method is None:
            sfumato.assess(table, table, [name], aligned=True)
        else:
            sfumato.protect(table, name, columns=names, seed=1)
        done.set()
    print(json.dumps(max(peak[0] - before, 0)))


def measure(name, n, width):
    command = [sys.executable, "-W", "ignore", __file__, "--work", name, str(n), str(width)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir())
    if done.returncode:
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main(names):
    print(f"{'':30} {'bytes/record':>14} {'and column':>12}")
    for name in names:
        peaks = {(n, width): measure(name, n, width) for n in SIZES for width in WIDTHS}
        if None in peaks.values():
            print(f"{name:30} {'does not apply':>14}", flush=True)
            continue
        grown = [
            (peaks[SIZES[1], width] - peaks[SIZES[0], width]) / (SIZES[1] - SIZES[0]) for width in WIDTHS
        ]
        by_column = (grown[1] - grown[0]) / (WIDTHS[1] - WIDTHS[0])
        print(f"{name:30} {grown[0] - WIDTHS[0] * by_column:14.0f} {by_column:12.0f}", flush=True)
        found = {"bytes": round(grown[0] - WIDTHS[0] * by_column), "by_column": round(by_column)}
        ratios.keep(name, str(SIZES[1]), found)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--work"]:
        work(arguments[1], *map(int, arguments[2:]))
    else:
        from sfumato.core import registry

        quick = [name for name, cls in registry.methods().items() if "²" not in cls.cost]
        if "--small" in arguments:
            SIZES = 100_000, 300_000
        main([each for each in arguments if each != "--small"] or [*quick, *MEASURES])
