"""Make a case that convicts a release as small as it can be, and keep it for good."""

import json
import tempfile
from copy import deepcopy
from pathlib import Path

from independent.judging import convictions

KEPT = Path(__file__).parent.parent / "regressions"


def keep(case, name):
    """Write the smallest case that is convicted of the same to ``tests/regressions/NAME.json``."""
    small = minimise(case)
    (KEPT / f"{name}.json").write_text(json.dumps(small, indent=1) + "\n", encoding="utf-8")
    return small


def minimise(case):
    """Leave out records, columns and steps as long as the same claims are convicted."""
    wanted = _sins(case)
    assert wanted, "a case that is not convicted has no smallest one"
    shrunk = True
    while shrunk:
        shrunk = False
        for smaller in _smaller(case):
            if wanted <= _sins(smaller):
                case, shrunk = smaller, True
                break
    return case


def _sins(case):
    """Which measures are understated or overstated."""
    with tempfile.TemporaryDirectory() as folder:
        found = convictions(case, Path(folder))
    return {sentence.split("(")[0].split(" is said")[0] for sentence in found or ()}


def _smaller(case):
    n = len(next(iter(case["values"].values())))
    for size in sorted({n // 2, n // 4, 1} - {0}, reverse=True):
        for start in range(0, n, size):
            if size < n:
                yield _without_rows(case, start, start + size)
    register = case.get("register") or {"": []}
    for place in range(len(next(iter(register.values())))):
        less = {name: cells[:place] + cells[place + 1 :] for name, cells in register.items()}
        yield {**case, "register": less}
    for name in list(case["values"]):
        written = len(case["values"]) - len(case["plan"]["output"]["drop"])
        if written > 2 and not any(step["columns"] == [name] for step in case["plan"]["steps"]):
            yield _without_column(case, name)
    for place in range(len(case["plan"]["steps"]) if len(case["plan"]["steps"]) > 1 else 0):
        smaller = deepcopy(case)
        del smaller["plan"]["steps"][place]
        yield smaller


def _without_rows(case, start, stop):
    values = {name: cells[:start] + cells[stop:] for name, cells in case["values"].items()}
    return {**case, "values": values}


def _without_column(case, name):
    smaller = deepcopy(case)
    plan = smaller["plan"]
    del smaller["values"][name], plan["columns"][name]
    smaller.get("register", {}).pop(name, None)
    plan["output"]["drop"] = [each for each in plan["output"]["drop"] if each != name]
    for step in plan["steps"]:
        step["columns"] = [each for each in step["columns"] if each != name]
    return smaller
