"""Carry out the experiments of a paper: what the ledger knows is not computed again."""

from __future__ import annotations

import datetime as dt
import gc
import hashlib
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sfumato.core.run import Run
from sfumato.releasing.trail import environment
from sfumato.reproduce.bench import Bench, Experiment, Paper
from sfumato.reproduce.cells import Cell
from sfumato.tuning.ledger import Ledger, fingerprint
from sfumato.version import __version__

LEDGER = "ledger.sqlite"
#: Rooms of which no number depends: they show what others computed.
_SHOWING = frozenset({"cli", "web", "report"})


@cache
def code_digest() -> str:
    """A fingerprint of the code that makes the numbers, and of the libraries it uses."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(repr(sorted(environment().items())).encode())
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0] not in _SHOWING:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def open_ledger(folder: Path) -> Ledger:
    """The ledger of a folder of results; work of other seeds, data and code has stages of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    return Ledger(folder / LEDGER, fingerprint(Run(seed=0), {"kind": "reproduce"}))


def carry_out(
    paper: Paper,
    bench: Bench,
    run: Run,
    *,
    ledger: Ledger,
    seed: int,
    before: Callable[[float, int, int], None] | None = None,
    known_only: bool = False,
) -> dict[str, Any]:
    """Do the work of a paper, and say what came of it as a dictionary for JSON.

    ``before`` is told the seconds that are left to do, and how many pieces of work are left and known. With
    ``known_only`` nothing is computed: what the ledger does not know is not run.
    """
    hashes = bench.hashes()
    mode = "quick" if bench.quick else "full"
    stage = "/".join([paper.number, str(seed), mode, code_digest(), *hashes.values()])
    experiments = list(paper.experiments(bench))
    left = [experiment for experiment in experiments if ledger.get(stage, experiment.key) is None]
    left_out = len(left) if known_only else 0
    if known_only:
        experiments, left = [each for each in experiments if each not in left], []
    if before is not None:
        before(sum(experiment.seconds for experiment in left), len(left), len(experiments) - len(left))
    for experiment in run.track(f"paper {paper.number}", left, total=len(left)):
        ledger.keep(stage, experiment.key, None, _work(experiment, run.at("reproduce", paper.number)))
        gc.collect()  # tables of millions of records are not to wait for it
    done = {experiment.key: dict(ledger.get(stage, experiment.key)["values"]) for experiment in experiments}
    return content_of(paper, experiments, done, one_run=bench.quick) | {
        "paper": paper.number,
        "version": __version__,
        "code": code_digest()[:16],
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "mode": mode,
        "seed": seed,
        "left_out": left_out,
        "data": hashes,
    }


def _work(experiment: Experiment, run: Run) -> dict[str, Any]:
    """The values of an experiment in their order, and the processor time that it took."""
    start = time.process_time()
    values = experiment.work(run.silent().at(experiment.key))
    return {"values": list(values.items()), "seconds": round(time.process_time() - start, 2)}


def content_of(
    paper: Paper,
    experiments: list[Experiment],
    done: Mapping[str, Mapping[str, Any]],
    *,
    one_run: bool = False,
) -> dict[str, Any]:
    """Every number beside what was printed, by table; and every number, as figures need them."""
    varies = {key: experiment.varies for experiment in experiments for key in done[experiment.key]}
    values = {key: value for experiment in experiments for key, value in done[experiment.key].items()}
    more = paper.conclude(values)
    values, varies = {**values, **more}, {**varies, **{key: "noise" if "ε" in key else "" for key in more}}
    published = paper.published
    printed, tables = published.cells, []
    for name, table in published.tables.items():
        own = [cell for cell in printed.values() if cell.key.split("/")[0] == name]
        others = [key for key in values if key.split("/")[0] == name and key not in printed]
        cells = [*own, *(table.cell(key.split("/")[1], key.split("/")[2]) for key in others)]
        rows = [
            _row(cell, values[cell.key], table.varies or varies[cell.key], one_run=one_run)
            for cell in cells
            if cell.key in values
        ]
        left_out = [cell for cell in own if cell.published is not None and cell.key not in values]
        tables.append(
            {"name": name, "title": table.title, "place": table.place, "reading": table.reading,
             "why": table.why, "columns": list(table.columns), "cells": rows, "not_run": len(left_out)}
        )  # fmt: skip
    return {
        "subject": published.title, "source": published.source, "notes": list(published.notes),
        "tables": tables, "values": values,
    }  # fmt: skip


def _row(cell: Cell, value: Any, varies: str, *, one_run: bool) -> dict[str, Any]:
    _, row, column = cell.key.split("/")
    ours, *band = value if isinstance(value, list) else [value]
    is_number = isinstance(ours, int | float)
    difference = ours - cell.published if is_number and cell.published is not None else None
    return {
        "row": row, "column": column, "published": cell.published, "ours": ours, "band": band,
        "difference": difference, "tolerance": cell.margin(one_run=one_run),
        "verdict": cell.verdict(ours if is_number else None, one_run=one_run),
        "why": cell.why, "unreachable": cell.unreachable, "post_hoc": cell.post_hoc, "varies": varies,
    }  # fmt: skip
