"""Do the tests notice? ``make mutants [ROOM=…] [SAMPLE=…]`` changes the code in one place at a time, and looks.

A mutant that every test passes is a survivor: a test is missing, or the change is none (``equivalent.toml`` says why).
Results are kept by the hash of each function, so only what has changed is tried again; survivors also when tests have.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

os.environ.update(OPENBLAS_NUM_THREADS="1", POLARS_MAX_THREADS="1", PYTHONDONTWRITEBYTECODE="1")

import pytest

from mutants.changes import SOURCE, Mutant, mutants_of
from mutants.equivalents import equivalents
from mutants.rooms import ROOMS, Room, bar_of
from mutants.trying import UNNOTICED, Trying

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".mutants"


def main() -> int:
    """Try the mutants of some rooms or files, and print how many of each file are noticed."""
    options = _options()
    room = _room_of(options.room)
    mutants = [each for file in room.files for each in _sample(mutants_of(file), options.sample)]
    mutants = [each for each in mutants if options.only in f"{each.function} {each.change}"]
    KEPT.mkdir(exist_ok=True)
    excused = equivalents()
    tried = [each for each in mutants if (each.function, each.digest, each.change) not in excused]
    trying = Trying(tried, list(room.files), KEPT, budget=options.seconds)
    tests = options.tests or [each for each in room.tests if (ROOT / each).exists()]
    arguments = [
        "-qq",
        "-n",
        "0",
        "-m",
        "not slow",
        "--capture=no",
        "-p",
        "no:cacheprovider",
        f"--rootdir={ROOT}",
    ]
    with tempfile.TemporaryDirectory() as scratch:
        places = [f"--basetemp={scratch}/tests", *(str(ROOT / each) for each in tests)]
        code = pytest.main([*arguments, *places], [trying])
    if code not in {0, 5}:
        return int(code)
    return _print(tried, {file: sum(each.file == file for each in mutants) for file in room.files}, trying)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("room", nargs="?", default="all", help=f"{', '.join(ROOMS)}, all, or a file")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants of each file, always the same")
    parser.add_argument("--only", default="", help="only mutants whose function or change contains this")
    parser.add_argument("--seconds", type=float, default=20, help="of tests for each mutant, fastest first")
    parser.add_argument("--tests", nargs="*", help="folders or files of tests, instead of the room's")
    return parser.parse_args()


def _room_of(name: str) -> Room:
    if name == "all":
        files = [file for room in ROOMS.values() for file in room.files]
        tests = [each for room in ROOMS.values() for each in room.tests]
        return Room(tuple(dict.fromkeys(files)), tuple(dict.fromkeys(tests)))
    if name in ROOMS:
        return ROOMS[name]
    for room in ROOMS.values():
        if name in room.files:
            return Room((name,), room.tests)
    raise SystemExit(f"no room or file `{name}`: choose of {', '.join(ROOMS)}, or a file of one")


def _sample(mutants: list[Mutant], size: int) -> list[Mutant]:
    if not size or not mutants:
        return mutants
    rng = random.Random(mutants[0].file)
    return rng.sample(mutants, min(size, len(mutants)))


def _print(mutants: list[Mutant], counts: dict[str, int], trying: Trying) -> int:
    """Print the survivors and the share of mutants that are noticed, by file; 1 if a share is below its bar."""
    low = 0
    by_file: dict[str, list[tuple[Mutant, str | None]]] = {}
    for each in mutants:
        by_file.setdefault(each.file, []).append((each, trying.result_of(each)))
    for file, tried in by_file.items():
        lines = (SOURCE / file).read_text(encoding="utf-8").splitlines()
        for each, result in tried:
            if result in UNNOTICED:
                print(f"{result}: {file}:{each.lines[0]} {each.owner} {each.digest}\n    {each.change}")
                print(f"    {lines[each.lines[-1] - 1].strip()}")
    print(f"\n{'file':<44}{'mutants':>8}{'noticed':>9}{'share':>8}{'bar':>6}{'equivalent':>12}")
    for file, tried in by_file.items():
        known = [result for _, result in tried if result]
        noticed = sum(result not in UNNOTICED for result in known)
        share, bar = noticed / len(known) if known else 1.0, bar_of(file)
        left_out = counts[file] - len(tried)
        mark = " untried: " + str(len(tried) - len(known)) if len(known) < len(tried) else ""
        print(f"{file:<44}{len(known):>8}{noticed:>9}{share:>8.1%}{bar:>6.0%}{left_out:>12}{mark}")
        low += share < bar
    return int(bool(low))


if __name__ == "__main__":
    started = time.monotonic()
    code = main()
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    raise SystemExit(code)
