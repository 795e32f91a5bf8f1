"""The same work on engines, and releases past the memory: processor time, memory, and growth by size.

    python benchmarks/bench_engines.py [records …] [--part families releases cluster] [--only NAME …]
        [--stream-only] [--memory 4GB] [--scratch DIR] [--resume]

Patients of these sizes are written as Parquet, five million at a time. With ``--resume`` they stay in the
scratch folder, rows are kept in ``ratios.json`` one by one, and work whose row is kept is not done again.
Each piece of work is a process of its own: CPU seconds of it and of its workers, and the peak of memory that
lies in no file, which is what ``--memory`` limits (RssAnon).

- families: one method of each shape, and classes, by ``stream`` and by ``memory`` (at most 1.3 times its
  CPU); classes beside a bare streaming group-by of polars. With ``--stream-only`` not by ``memory``.
- releases: k = 50 by S2 (`sorted-generalisation`), S4 (`close-generalisation`), Mondrian and the lattice
  (`global-recoding`): the verb `sfumato run` of a plan, from the file to the release and its report, under
  ``--memory``.
- cluster: ``local:1`` and ``local:2`` beside ``stream``; it takes free cores, and tables of millions.

Rows of limits say what was asked: 4.5 GB within ``--memory 4GB``, 1,500 CPU seconds of the lattice, 25 bytes
a record for classes, 1 GB for block methods, and from one size to the next no more growth than n log n.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import polars as pl
import ratios

from sfumato.data.schema import Role
from sfumato.datasets import patients
from sfumato.engines.stream import memory_in_use

SMALL = "20000 40000 --part families releases"
PIECE, LOOK, FEW = 5_000_000, 0.05, "few.parquet"
COLUMNS = ("age_yrs", "los", "charge")
#: What is protected, by columns (none: all keys), or measured.
WORK = {
    "correlated-noise": COLUMNS,
    "rank-swapping": COLUMNS,
    "pram": ("sex", "race"),
    "sorted-generalisation(k=50)": (),
    "mondrian(k=50)": (),
}
CLASSES = {
    "k": ("k-anonymity",),
    "k-family": ("k-anonymity", "uniqueness", "prosecutor-risk", "marketer-risk", "distinction"),
}
GROUP_BY = "polars: a streaming group-by"
RELEASES = ("sorted-generalisation", "close-generalisation", "mondrian", "global-recoding")
#: What work may take, by the beginning of its row.
GIGABYTES = {
    "correlated-noise, stream": 1.0,
    "pram, stream": 1.0,
    **{f"{method}(k=50), release": 4.5 for method in RELEASES},
}
SECONDS = {"global-recoding(k=50), release": 1500.0}
BYTES_A_RECORD = {"k, stream": 25.0, "k-family, stream": 25.0}
#: What workers share: blocks, columns, trials.
SHARED = ("correlated-noise", "rank-swapping", "compare")
TRIALS = ("rank-swapping", "rank-shuffling", "correlated-noise", "uniform-noise")
PLAN = """
[data]
path = "{file}"
{columns}
[[scenarios]]
requirements = ["k >= 50"]
[[steps]]
method = "{method}"
columns = ["@key"]
parameters = {{ k = 50 }}
[output]
path = "released.parquet"
"""


def write_patients(path, n):
    """Draw five million at a time, each with a seed of its own; all of them are never in memory."""
    pieces = [path.with_suffix(f".{i}") for i in range(math.ceil(n / PIECE))]
    for i, piece in enumerate(pieces):
        patients(min(PIECE, n - i * PIECE), seed=2009 + i).frame.write_parquet(piece)
    pl.scan_parquet(pieces).sink_parquet(path)
    for piece in pieces:
        piece.unlink()


def spent():
    """CPU seconds of this process, and of workers that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def carry_out(name, path):
    """Do one piece of work, and give what tells whether two engines did the same."""
    import sfumato
    from sfumato import io

    schema = patients(100).schema
    if name == GROUP_BY:
        keys = list(schema.with_role(Role.KEY))
        return pl.scan_parquet(path).group_by(keys).len().collect(engine="streaming")["len"].min()
    table = io.read_table(path, schema=schema)
    if name == "compare":
        study = sfumato.compare(
            table, TRIALS, columns=["charge"], hold="uniqueness", level=0.5, rank_by="il1s", repeats=1, seed=1
        )
        return repr([(each.step.method.name, each.level.value) for each in study.outcomes])
    if name in CLASSES:
        return sfumato.assess(table, None, CLASSES[name])["k"].value
    return sfumato.protect(table, name, columns=WORK[name], seed=1).table.digest.hex()[:16]


def work(name, engine, path, scratch):
    """One piece of work in this process; what it took is written to stdout."""
    import sfumato

    peak, done = [0], threading.Event()

    def watch():
        while not done.wait(0.01):
            peak[0] = max(peak[0], memory_in_use())

    with nullcontext() if engine == "memory" else sfumato.engine("stream", scratch=scratch):
        carry_out(name, Path(path).with_name(FEW))  # loads and compiles what is loaded on first use
    before, cpu, began = memory_in_use(), spent(), time.perf_counter()
    threading.Thread(target=watch, daemon=True).start()
    with nullcontext() if engine == "memory" else sfumato.engine(engine, scratch=scratch):
        found = carry_out(name, path)
    done.set()
    told = {"cpu": spent() - cpu, "peak": max(peak[0] - before, 0), "answer": found}
    print(json.dumps({**told, "seconds": time.perf_counter() - began}))


def measure(name, engine, path, scratch):
    command = [sys.executable, "-W", "ignore", __file__, "--work", name, engine, str(path), str(scratch)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"reason": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def show(row, n, found, peer="", other=None, **claim):
    """A row of the work, beside the same work on another engine if both were done; and rows of its limits."""
    if "reason" in found:
        ratios.skip(row, found["reason"][:200])
        return
    beside = (peer, other["cpu"]) if other and "reason" not in other else ()
    limits = (
        (GIGABYTES, "peak", found["peak"] / 1e9, "GB"), (SECONDS, "time", found["cpu"], "CPU s"),
        (BYTES_A_RECORD, "memory of a record", found["peak"] / n, "bytes"),
    )  # fmt: skip
    for limit_of, what, value, unit in limits:
        for beginning, limit in limit_of.items():
            if row.startswith(beginning) and not row.endswith("beside polars"):
                name = f"{row}: {what}, {unit}"
                ratios.beside(name, n, value, f"a limit of {limit:g} {unit}", limit, unit=unit, at_most=1)
    less = max((size for size in kept_sizes(row) if size < n), default=0)
    if less:
        growth = found["cpu"] / max(kept_sizes(row)[less]["cpu"], 1e-9)
        most = n * math.log(n) / (less * math.log(less))
        ratios.beside(f"{row}: growth since {less:,}", n, growth, "n log n", most, unit="times", at_most=1)
    ratios.beside(row, n, found["cpu"], *beside, memory=found["peak"] / 1e6, **claim)
    DONE.setdefault(row, {})[n] = found
    if other and "answer" in found and found["answer"] != other.get("answer", found["answer"]):
        print("    DIFFERENT results", flush=True)


DONE = {}


def kept_sizes(row):
    """What is known of a row by size: of this run, and of former ones."""
    kept = ratios.read(Path(os.environ.get("SFUMATO_BENCH_KEEP") or ratios.KEPT))
    rows = kept.get(ratios.benchmark(), {}).get(row, {})
    kept = {int(size): each for size, each in rows.items() if size.isdecimal() and "small" not in each}
    return {**kept, **DONE.get(row, {})}


def is_wanted(asked, name, n, row):
    """Whether work was asked for, and is not kept already."""
    return (not asked.only or name in asked.only) and not (asked.resume and n in kept_sizes(row))


def families(n, path, asked):
    """Each family by both engines, and classes beside polars alone."""
    works = [
        name for name in (*CLASSES, *WORK)
        if is_wanted(asked, name, n, f"{name}, stream{' alone' if asked.stream_only else ''}")
    ]  # fmt: skip
    group_by = {"reason": "nothing to lay beside it"}
    if {*works} & {*CLASSES}:
        group_by = measure(GROUP_BY, "memory", path, asked.scratch)
        show(f"{GROUP_BY.partition(': ')[2]} of nine keys", n, group_by)
    for name in works:
        stream = measure(name, "stream", path, asked.scratch)
        if not asked.stream_only:
            memory = measure(name, "memory", path, asked.scratch)
            show(f"{name}, memory", n, memory)
            show(f"{name}, stream", n, stream, "the engine memory", memory, at_most=1.3)
        else:
            show(f"{name}, stream alone", n, stream)
        if name in CLASSES:
            show(f"{name}, stream, beside polars", n, {**stream}, GROUP_BY, group_by, at_most=1)


def tree_of(process):
    """A process and those that it started."""
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:  # it has ended
            continue
        for child in children:
            yield from tree_of(int(child))


def watched(command, log):
    """CPU seconds of a command with its children, and the most memory that one of them held in no file."""
    with log.open("w") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    peak = 0
    while True:
        done, status, used = os.wait4(process.pid, os.WNOHANG)
        if done:
            break
        peak = max(peak, *(memory_in_use(each) for each in tree_of(process.pid)))
        time.sleep(LOOK)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        return {"reason": log.read_text().strip().replace("\n", " ") or f"ended with {process.returncode}"}
    return {"cpu": used.ru_utime + used.ru_stime, "peak": peak}


def releases(n, path, asked):
    """From the file to the release and its report, as a user does it."""
    columns = "".join(
        f'[columns.{each.name}]\nkind = "{each.kind}"\nrole = "{each.role or "other"}"\n'
        for each in patients(10).schema.columns
    )
    for method in RELEASES:
        row = f"{method}(k=50), release, stream within {asked.memory}"
        if not is_wanted(asked, method, n, row):
            continue
        with tempfile.TemporaryDirectory(dir=asked.scratch) as made:
            plan = Path(made) / "plan.toml"
            plan.write_text(PLAN.format(file=path, columns=columns, method=method))
            command = [
                sys.executable, "-W", "ignore", "-m", "sfumato", "run", str(plan), "--quiet",
                "--engine", "stream", "--memory", asked.memory, "--scratch", str(asked.scratch),
                "--report", str(Path(made) / "report.html"), "--override", "a benchmark",
            ]  # fmt: skip
            found = watched(command, Path(made) / "log")
        show(row, n, found)


def cluster(n, path, asked):
    """Two workers and one beside stream."""
    for name in SHARED:
        if not is_wanted(asked, name, n, f"{name}, local:2"):
            continue
        stream, one, two = (
            measure(name, each, path, asked.scratch) for each in ("stream", "local:1", "local:2")
        )
        for workers, found in (("local:1", one), ("local:2", two)):
            show(f"{name}, {workers}", n, found, "the engine stream", stream, at_most=1.3)
        if "reason" not in {**one, **two}:
            row = f"{name}, wall seconds of local:2"
            ratios.beside(row, n, two["seconds"], "local:1", one["seconds"], at_least=1.6)


PARTS = {"families": families, "releases": releases, "cluster": cluster}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", nargs="*", type=int, default=[1_000_000, 4_000_000])
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of the parts, this work alone")
    parser.add_argument("--resume", action="store_true", help="keep rows and tables; leave out what is kept")
    parser.add_argument("--stream-only", action="store_true", help="leave the engine memory out")
    parser.add_argument("--memory", default="4GB", help="limit of a release")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(*asked.work)
        return
    if asked.resume:
        os.environ.setdefault("SFUMATO_BENCH_KEEP", str(ratios.KEPT))
    for n in asked.records:
        with tempfile.TemporaryDirectory(dir=asked.scratch) as made:
            path = (asked.scratch if asked.resume else Path(made)) / f"patients{n}.parquet"
            if not path.exists():
                write_patients(Path(made) / path.name, n)
                (Path(made) / path.name).replace(path)
            patients(1000).frame.write_parquet(path.with_name(FEW))
            for part in asked.part:
                PARTS[part](n, path, asked)


if __name__ == "__main__":
    main()
