"""Runs the benchmarks, each in a process of its own; keeps their rows, and writes the pages of them.

    python benchmarks/run.py [NAME …] [--small] [--minutes 60] [--pages]

A benchmark says in ``SMALL`` with what arguments a round takes seconds (None: it is not about speed); rows of
a small run are kept beside those of a full one and marked. ``--pages`` writes the pages alone.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
from pathlib import Path

import ratio_pages
import ratios

HERE, WHOLE = Path(__file__).parent, "the whole benchmark"


def benchmarks():
    """The files by name, and their arguments for a small run."""
    for path in sorted(HERE.glob("bench_*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        yield path, next(value for node in body if (value := small_of(node)) is not Ellipsis)


def small_of(node):
    """What a statement says of ``SMALL``; an ellipsis if it says nothing."""
    if isinstance(node, ast.Assign):
        names, values = node.targets[0], node.value
        names, values = ([names], [values]) if isinstance(names, ast.Name) else (names.elts, values.elts)
        for name, value in zip(names, values, strict=True):
            if name.id == "SMALL":
                return ast.literal_eval(value)
    return ...


def run(path, arguments, asked):
    """Run one; why it has no rows, or nothing."""
    keep = {"SFUMATO_BENCH_KEEP": str(ratios.KEPT), "SFUMATO_BENCH_SMALL": "1" if asked.small else ""}
    print(f"== {path.name} {' '.join(arguments)}", flush=True)
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(path), *arguments], check=False, env={**os.environ, **keep},
            timeout=60 * asked.minutes,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"did not end in {asked.minutes:g} minutes"
    return "" if done.returncode in {0, 1} else f"ended with code {done.returncode}"  # 1: a claim fails


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="such as mdav (default: all)")
    parser.add_argument("--small", action="store_true", help="sizes at which all take minutes")
    parser.add_argument("--minutes", type=float, default=60, help="most for one benchmark")
    parser.add_argument("--pages", action="store_true", help="run nothing")
    asked = parser.parse_args()
    for path, small in benchmarks() if not asked.pages else ():
        name = path.stem.removeprefix("bench_")
        if small is None or (asked.names and name not in asked.names):
            continue
        reason, kept = run(path, small.split() if asked.small else [], asked), ratios.read()
        rows = kept.setdefault(name, {})
        rows.pop(WHOLE, None)
        if reason:
            print(f"  {reason}")
            rows[WHOLE] = {ratios.NOT_RUN: {"reason": reason}}
        ratios.write(kept)
    for path, text in ratio_pages.texts(ratios.read()).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
