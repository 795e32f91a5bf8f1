"""The same work on engines: processor time and memory of ``stream`` against ``memory``, by size.

``python benchmarks/bench_engines.py 1000000 10000000`` writes ``builtin:patients`` of these sizes as Parquet,
protects them by one method of each shape and counts classes, each in a process of its own. It prints CPU
seconds, the peak of memory that lies in no file, bytes per record, and the ratio of stream to memory.
``--stream-only`` is for sizes that memory does not hold; ``--scratch DIR`` says where files go. ``--cluster``
compares ``stream`` with ``local:1`` and ``local:2`` instead: processor time of all processes against that of
stream, and how much sooner two workers are done than one, for methods that workers share and for the trials
of ``compare``. It takes free cores, and tables of millions, beside which starting workers is nothing.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path

KEYS = ("age_yrs", "los", "charge")
WORK = {
    "k-anonymity": None,
    "uniqueness": None,
    "correlated-noise": KEYS,
    "rank-swapping": KEYS,
    "pram": ("sex", "race"),
    "sorted-generalisation(k=50)": (),
    "mondrian(k=50)": (),
}
#: What workers share: blocks, columns, trials.
SHARED = ("correlated-noise", "rank-swapping", "compare")
TRIALS = ("rank-swapping", "rank-shuffling", "correlated-noise", "uniform-noise")


def work(name, engine, path, scratch):
    """One piece of work in this process; what it took is written to stdout."""
    import sfumato
    from sfumato import datasets, io
    from sfumato.engines.stream import memory_in_use

    peak, done = [0], threading.Event()

    def watch():
        while not done.wait(0.01):
            peak[0] = max(peak[0], memory_in_use())

    before = memory_in_use()
    threading.Thread(target=watch, daemon=True).start()
    schema = datasets.from_uri("builtin:patients?n=100").schema
    opened = nullcontext() if engine == "memory" else sfumato.engine(engine, scratch=scratch)
    with opened:
        table = io.read_table(path, schema=schema)
        columns, began = WORK.get(name), time.perf_counter()
        if name == "compare":
            study = sfumato.compare(
                table, TRIALS, columns=["charge"], hold="uniqueness", level=0.5, rank_by="il1s", repeats=1,
                seed=1,
            )  # fmt: skip
            answer = repr([(each.step.method.name, each.level.value) for each in study.outcomes])
        elif columns is None:
            answer = sfumato.assess(table, None, [name])[name].value
        else:
            answer = sfumato.protect(table, name, columns=columns, seed=1).table.digest.hex()[:16]
        seconds = time.perf_counter() - began
    done.set()
    spent = os.times()  # with that of workers, which have ended
    cpu = spent.user + spent.system + spent.children_user + spent.children_system
    print(json.dumps({"cpu": cpu, "peak": peak[0] - before, "answer": answer, "seconds": seconds}))


def measure(name, engine, path, scratch):
    command = [sys.executable, "-W", "ignore", __file__, "--work", name, engine, str(path), str(scratch)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def _cells(found, n):
    if found is None:
        return f"{'failed':>34}"
    return f"{found['cpu']:14.1f} {found['peak'] / 1e6:9.0f} {found['peak'] / n:9.0f}"


def main_cluster(sizes, scratch):
    from sfumato import datasets

    engines = ("stream", "local:1", "local:2")
    titles = " ".join(f"{each + ' CPU s':>14} {'seconds':>8}" for each in engines)
    print(f"{'work':30} {'records':>12} {titles}   CPU of 2 / stream   seconds of 1 / of 2")
    for n in sizes:
        path = Path(scratch) / f"patients{n}.parquet"
        datasets.from_uri(f"builtin:patients?n={n}").frame.write_parquet(path)
        for name in SHARED:
            found = [measure(name, engine, path, scratch) for engine in engines]
            if None in found:
                print(f"{name:30} {n:12,} failed", flush=True)
                continue
            line = " ".join(f"{each['cpu']:14.1f} {each['seconds']:8.1f}" for each in found)
            stream, one, two = found
            line += f"   {two['cpu'] / stream['cpu']:17.2f}   {one['seconds'] / two['seconds']:19.2f}"
            same = len({each["answer"] for each in found}) == 1
            print(f"{name:30} {n:12,} {line}{'' if same else ' DIFFERENT'}", flush=True)
        path.unlink()


def main(sizes, scratch, engines):
    from sfumato import datasets

    titles = " ".join(f"{each + ' CPU s':>14} {'peak MB':>9} {'B/record':>9}" for each in engines)
    print(f"{'work':30} {'records':>12} {titles}   stream/memory")
    for n in sizes:
        path = Path(scratch) / f"patients{n}.parquet"
        datasets.from_uri(f"builtin:patients?n={n}").frame.write_parquet(path)
        for name in WORK:
            found = [measure(name, engine, path, scratch) for engine in engines]
            line = " ".join(_cells(each, n) for each in found)
            if len(found) == 2 and None not in found:
                line += f"   {found[1]['cpu'] / found[0]['cpu']:.2f}"
                line += "" if found[0]["answer"] == found[1]["answer"] else " DIFFERENT"
            print(f"{name:30} {n:12,} {line}", flush=True)
        path.unlink()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--work"]:
        work(*arguments[1:])
    else:
        stream_only = "--stream-only" in arguments
        place = (
            arguments[arguments.index("--scratch") + 1] if "--scratch" in arguments else tempfile.gettempdir()
        )
        wanted = [int(each) for each in arguments if each.isdecimal()] or [1_000_000]
        if "--cluster" in arguments:
            main_cluster(wanted, place)
        else:
            main(wanted, place, ("stream",) if stream_only else ("memory", "stream"))
