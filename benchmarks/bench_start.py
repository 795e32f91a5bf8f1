"""What each verb costs: with nothing compiled yet, with all compiled, and by size; against `import polars`.

    python benchmarks/bench_start.py [records …] [--verb NAME …] [--minutes 5] [--sizes-only]

CPU seconds and peak memory of one process each, on mixed records (`datasets.patients`) and a release of them
by rank swapping of the keys. Cold means an empty NUMBA_CACHE_DIR, on 1,000 and 10,000 records; warm is the
same command again. Modules are compiled to bytecode before, as an installation does. The docs' capacity page
has what it prints. No start may cost more than 3 × `import polars` and the work itself: what is in QUICK is
held to it on 100 records, warm, each the least of five.
"""

from __future__ import annotations

import argparse
import compileall
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import ratios

import sfumato

TINY, LIGHT, STARTS = 100, 3.0, (1_000, 10_000)
SMALL = "2000 --verb measures inspect release --starts 1000"
SEED = 2**127 + 1  # a smaller one is refused before anything is written
#: Columns of which no role is guessed. The first has another name in the data, by which it is an identifier.
UNSURE = ("hospital", "patzip", "patcnty", "adm_qtr")
#: The commands of each verb; FILE and RELEASE are the two tables, OUT is where something may be written, PLAN
#: a plan that is written before, ROLES what a person says of columns.
VERBS = {
    "--help": "--help",
    "measures": "measures",
    "protect NAME --help": "protect mondrian --help",
    "risk -m k": "risk FILE -m k",
    "inspect": "inspect FILE",
    "gate": "gate PLAN",
    "run": f"run PLAN --seed {SEED} --overwrite",
    "protect rank-swapping": f"protect rank-swapping FILE ROLES -o OUT --seed {SEED} --unjudged",
    "protect mondrian": f"protect mondrian FILE ROLES -o OUT --seed {SEED} --require k>=5",
    "protect mdav": f"protect mdav FILE ROLES -o OUT --seed {SEED} --unjudged",
    "protect mdav-in-parts": f"protect mdav-in-parts FILE ROLES -o OUT --seed {SEED} --unjudged",
    "protect local-suppression": f"protect local-suppression FILE ROLES -o OUT --seed {SEED} --require k>=3",
    "risk": "risk FILE RELEASE --aligned --seed 1",
    "utility": "utility FILE RELEASE --aligned --seed 1",
    "compare": "compare FILE -m rank-swapping -m uncorrelated-noise --seed 1",
    "release": f"release PLAN --out FOLDER --yes --seed {SEED} --override benchmark",
    "doctor --warm": "doctor --warm",
    "tune": "tune FILE ROLES --require dbrl<=0.05 -m rank-swapping -m mdav-in-parts --minutes 2 --seed 1",
}
QUICK = (
    "--help", "measures", "protect NAME --help", "risk -m k", "gate", "run", "protect rank-swapping",
    "protect mondrian", "risk",
)  # fmt: skip
PLAN = """
[data]
path = "{file}"
{columns}
[[scenarios]]
requirements = ["k >= 5"]
[[steps]]
method = "mondrian"
columns = ["@key"]
[output]
path = "{out}"
"""


def run(command, minutes=5.0, **environment):
    """CPU seconds and peak memory (MB) of a process; None if it had to be stopped."""
    process = subprocess.Popen(
        command, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    late = threading.Timer(60 * minutes, process.kill)
    late.start()
    _, status, used = os.wait4(process.pid, 0)
    late.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode < 0:
        return None
    if process.returncode not in {0, 4}:  # 4: a search finds nothing in time
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def tables(folder, records):
    """Have the records and a release of them written by another process: a child is charged our memory."""
    run([sys.executable, __file__, "--write", str(folder), str(records)])
    names = (f"patients{records}.csv", f"released{records}.csv", f"plan{records}.toml")
    return [folder / name for name in names]


def write(folder, records):
    from sfumato.core.run import Run
    from sfumato.datasets import patients
    from sfumato.methods.swapping import RankSwapping

    file, release = (folder / f"{name}{records}.csv" for name in ("patients", "released"))
    table = patients(records)
    renamed = {"oshpd_id": "hospital"}
    table.frame.rename(renamed).write_csv(file)
    keys = [column.name for column in table.schema.columns if column.kind in RankSwapping.kinds]
    RankSwapping().apply(table.aimed_at(keys), Run(seed=1)).table.frame.rename(renamed).write_csv(release)
    told = "".join(
        f'[columns.{renamed.get(each.name, each.name)}]\nkind = "{each.kind}"\n'
        f'role = "{each.role or "other"}"\n'
        for each in table.schema.columns
    )
    out = folder / f"planned{records}.csv"
    (folder / f"plan{records}.toml").write_text(PLAN.format(file=file, columns=told, out=out))


def command_of(verb, files, out):
    words = {
        "FILE": str(files[0]),
        "RELEASE": str(files[1]),
        "PLAN": str(files[2]),
        "OUT": str(out / f"out{os.urandom(4).hex()}.csv"),
        "FOLDER": str(out / f"release{os.urandom(4).hex()}"),
    }
    command = VERBS[verb].replace("ROLES", " ".join(f"--role {name}=key" for name in UNSURE))
    return [sys.executable, "-m", "sfumato", *(words.get(word, word) for word in command.split())]


def show(row, records, found, minutes):
    """Print and keep what a command took."""
    if found is None:
        print(f"  {row:52} {records:>11,} more than {minutes:g} minutes", flush=True)
        ratios.keep(row, str(records), {"reason": f"did not end in {minutes:g} minutes", "late": True})
    else:
        ratios.beside(row, records, found[0], memory=found[1])


def starts(asked, folder):
    """Cold and warm, on a few records; whether the quick verbs are."""
    compileall.compile_dir(Path(sfumato.__file__).parent, quiet=1)
    polars = least(lambda: [sys.executable, "-c", "import polars"])
    fine = True
    for verb in (each for each in QUICK if each in asked.verb):
        fine &= is_quick(verb, folder, polars)
    for records in asked.starts:
        files = tables(folder, records)
        for verb in asked.verb:
            with tempfile.TemporaryDirectory() as empty:
                for state in ("cold", "warm"):
                    found = run(command_of(verb, files, folder), asked.minutes, NUMBA_CACHE_DIR=empty)
                    show(f"{verb}, {state}", records, found, asked.minutes)
    return fine


def least(command):
    """The fewest CPU seconds of five runs, each of a command of its own: what one wrote, none replaces."""
    return min(run(command())[0] for _ in range(5))


def is_quick(verb, folder, polars):
    """Whether the start of a command that has hardly anything to do is as quick as it must be."""
    files = tables(folder, TINY)
    taken = least(lambda: command_of(verb, files, folder))
    return ratios.beside(f"{verb}, warm", TINY, taken, "polars: import", polars, at_most=LIGHT)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", nargs="*", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--verb", nargs="+", choices=list(VERBS), default=list(VERBS))
    parser.add_argument("--minutes", type=float, default=5, help="most for one command")
    parser.add_argument("--starts", nargs="*", type=int, default=STARTS, help="sizes of cold starts")
    parser.add_argument("--sizes-only", action="store_true", help="leave the starts out")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.write:
        write(asked.write, asked.records[0])
        return 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        fine = asked.sizes_only or starts(asked, folder)
        for records in asked.records:
            files = tables(folder, records)
            for verb in (each for each in asked.verb if {"FILE", "PLAN"} & set(VERBS[each].split())):
                show(
                    f"{verb}, warm",
                    records,
                    run(command_of(verb, files, folder), asked.minutes),
                    asked.minutes,
                )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
