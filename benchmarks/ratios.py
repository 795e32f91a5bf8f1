"""Rows of a benchmark: CPU seconds beside a peer's, printed, compared with the kept ones, and kept as JSON.

A row is one piece of work at one size. ``ratios.json`` has the last of each, by benchmark, row and records:
seconds, those of the peer in the same run, what is claimed, date and versions. A row whose lead over its peer
has fallen by 30 % says so. Rows are kept if ``SFUMATO_BENCH_KEEP`` names the file, as `run.py` does.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import sfumato
from sfumato.core.evidence import Evidence
from sfumato.core.run import Run

KEPT = Path(__file__).with_name("ratios.json")
NOT_RUN = "not run"
FALL = 0.7


def least(work, times=3):
    """CPU seconds, the least of some runs, and what the work gives."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        done = work()
        taken.append(time.process_time() - start)
    return min(taken), done


def read(path=None):
    path = path or KEPT
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(kept, path=KEPT):
    path.write_text(json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def versioned(peer):
    """The peer with its version, where what is before the colon is a package."""
    name, colon, work = peer.partition(":")
    try:
        return f"{name} {metadata.version(name)}{colon}{work}"
    except metadata.PackageNotFoundError:
        return peer


def lead(row):
    """How many times the peer's cost is ours."""
    return row["peer_cpu"] / max(row["cpu"], 1e-9)


def ratio_text(row):
    """The ratio as it is claimed: times as fast, or a multiple of the peer."""
    if "at_least" in row:
        return f"{lead(row):.3g} times as fast as {row['peer']}"
    return f"{1 / max(lead(row), 1e-9):.3g} × {row['peer']}"


def claim_text(row):
    return f"at least {row['at_least']:g}" if row.get("at_least") else \
        f"at most {row['at_most']:g}" if "at_most" in row else ""  # fmt: skip


def holds(row):
    """Whether the claim of a row is so; a row without one claims nothing, nor does a row of a small run."""
    if row.get("small"):
        return True
    if "at_least" in row:
        return lead(row) >= row["at_least"]
    return lead(row) * row.get("at_most", float("inf")) >= 1


def beside(row, records, cpu, peer="", peer_cpu=None, *, memory=None, unit="s CPU", **claim):
    """Print and keep a row; whether its claim, ``at_most`` or ``at_least``, holds.

    With ``at_least`` (0: no claim) the ratio is how many times as fast as the peer it is, else how many times
    what the peer takes. ``memory`` is in MB; what is no time is told by its ``unit``.
    """
    found = {"cpu": round(cpu, 4), "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
             "sfumato": sfumato.__version__}  # fmt: skip
    if peer_cpu is not None:
        found |= {"peer": versioned(peer), "peer_cpu": round(peer_cpu, 4), **claim}
    found |= {"memory": round(memory)} if memory is not None else {}
    found |= {"small": True} if os.environ.get("SFUMATO_BENCH_SMALL") else {}
    before = read().get(benchmark(), {}).get(row, {}).get(str(records))
    text = f"  {row:52} {records:>11,} {cpu:9.3f} {unit}"
    text += f" {memory:7.0f} MB" if memory is not None else ""
    fine = True
    if peer_cpu is not None:
        fine = holds(found)
        text += f" = {ratio_text(found)}"
        text += f" ({claim_text(found)}{'' if fine else ': FAILS'})" if claim_text(found) else ""
        if before and "peer_cpu" in before and lead(found) < FALL * lead(before):
            found["before"] = ratio_text(before)
            text += f"   FELL by {1 - lead(found) / lead(before):.0%} since {before['date']}"
    print(text, flush=True)
    keep(row, str(records), found)
    return fine


def skip(row, reason):
    """Print and keep why a row was not run."""
    print(f"  {row:52} not run: {reason}", flush=True)
    keep(row, NOT_RUN, {"reason": reason})


def keep(row, size, found):
    place = os.environ.get("SFUMATO_BENCH_KEEP")
    if not place:
        return
    kept = read(Path(place))
    sizes = kept.setdefault(benchmark(), {}).setdefault(row, {})
    if found.get("small") and not sizes.get(size, found).get("small"):
        return  # a small run replaces no full one
    sizes.pop(NOT_RUN, None)
    sizes[size] = found
    write(kept, Path(place))


def benchmark():
    return Path(sys.argv[0]).stem.removeprefix("bench_")


def by_r(package, before, call):
    """Package and version with the call, and its CPU seconds, the least of three; or why not, and None."""
    code = (
        f"suppressMessages(library({package})); {before}; used <- sapply(1:3, function(i) "
        f"sum(system.time({call})[1:2])); cat(as.character(packageVersion('{package}')), min(used))"
    )
    if shutil.which("Rscript") is None:
        return "Rscript is not installed", None
    done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=False)
    if done.returncode or len(done.stdout.split()) < 2:
        return f"{package} of R is not installed, or failed", None
    version, seconds = done.stdout.split()[-2:]
    return f"{package} {version}: {call.partition('(')[0]}", float(seconds)


def protecting(table, method, resources=None):
    """The user's call, of a frame that nothing is remembered of."""
    return lambda: sfumato.protect(
        table.frame, method, columns=table.chosen, schema=table.schema, resources=resources, seed=1
    )


def assessing(table, measure, release=None, resources=None):
    """The user's call, of tables that nothing is remembered of."""
    return lambda: sfumato.assess(
        table.frame, fresh(release), [measure], schema=table.schema, resources=resources, seed=1
    )


def fresh(release):
    """The release, which remembers nothing of its tables."""
    if release is None:
        return None
    return replace(release, tables={name: replace(each) for name, each in release.tables.items()})


def protect(row, table, method, peer, peer_cpu, *, resources=None, times=3, **claim):
    """Two rows: the method alone, which is held to the claim, and the user's call."""
    run = Run(seed=1, resources=resources or {})
    calls = {
        "apply": lambda: method.apply(replace(table), run),
        "sfumato.protect": protecting(table, method, resources),
    }
    return two_rows(row, len(table), calls, peer, peer_cpu, times=times, **claim)


def assess(row, table, measure, peer, peer_cpu, *, release=None, resources=None, times=3, **claim):
    """Two rows: the measure alone, which is held to the claim, and the user's call."""

    def score():
        evidence = Evidence(replace(table), fresh(release), resources=resources or {})
        return measure.score(evidence, Run(seed=1))

    calls = {"score": score, "sfumato.assess": assessing(table, measure, release, resources)}
    return two_rows(row, len(table), calls, peer, peer_cpu, times=times, **claim)


def two_rows(row, records, calls, peer, peer_cpu, *, times=3, **claim):
    """One row for each call; the claim is on the first, and others are shown in the same form."""
    fine = True
    for call, work in calls.items():
        fine &= beside(f"{row}, {call}", records, least(work, times)[0], peer, peer_cpu, **claim)
        claim = {"at_least": 0} if "at_least" in claim else {}
    return fine
