"""Writes what is kept of the benchmarks into the documentation: its page of ratios, and the capacity page.

The page of ratios is whole; on the capacity page a table stands between ``<!-- table: NAME -->`` and
``<!-- end -->``. Every figure is a row of ``ratios.json``; a test compares the pages with it.
"""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

from bench_start import VERBS
from ratios import NOT_RUN, claim_text, holds, ratio_text

from sfumato.core import registry

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
#: A method that takes less at the largest size is named in a list.
QUICK = 0.3
LONGEST = 12
COMPUTED = (10**6, 10**7, 10**8)
HEAD = """# Benchmarks

Written by `make bench` from `benchmarks/ratios.json`; do not edit. A ratio is of CPU seconds (user, system)
of this package and of a peer on the same data in the same run; short work is the least of three runs. Claims
that fail stay here, and say so. Rows of a `small` run show that a benchmark works: they are not judged, since
a start-up cost hides the rest. A row that has lost 30 % of its lead since the run before says what it was.
How each is measured is told in the script's first lines.
"""


def texts(kept):
    """The pages, by their path."""
    capacity = DOCS / "guides" / "capacity.md"
    tables = {"starts": starts, "sizes": sizes, "quick": quick, "methods": methods, "measures": measures,
              "engines": engines, "memory": memory}  # fmt: skip
    full = {
        name: {row: {size: each for size, each in found.items() if not each.get("small")}
               for row, found in rows.items()}
        for name, rows in kept.items() if name != "engines"
    } | {"engines": kept.get("engines", {})}  # fmt: skip
    filled = TABLE.sub(
        lambda found: f"{found[1]}{tables[found[2]](full).strip()}\n\n{found[3]}",
        capacity.read_text(encoding="utf-8"),
    )
    return {DOCS / "reference" / "benchmarks.md": benchmarks_page(kept), capacity: filled}


def table_of(head, rows):
    """A table in Markdown; a dash where it would be empty."""
    if not rows:
        return "Not run yet."
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '∣') for cell in line)} |" for line in lines)


def measured(found):
    """The rows of one piece of work that have a time, by size, smallest first."""
    return {int(size): row for size, row in sorted(found.items(), key=lambda of: (len(of[0]), of[0]))
            if size != NOT_RUN and "cpu" in row}  # fmt: skip


def growth(found):
    """The exponent of the growth from the smallest size to the largest."""
    rows = measured(found)
    if len(rows) < 2 or min(rows) == 0:
        return ""
    (few, less), (many, more) = min(rows.items()), max(rows.items())
    if not (less["cpu"] > 0 and more["cpu"] > 0):
        return ""
    return f"{math.log(more['cpu'] / less['cpu']) / math.log(many / few):.1f} (from {few:,})"


# --------------------------------------------------------------------------------------- the page of ratios


def benchmarks_page(kept):
    parts = [HEAD]
    for path in sorted(HERE.glob("bench_*.py")):
        name = path.stem.removeprefix("bench_")
        title = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).partition("\n")[0]
        rows = [line for row, found in sorted(kept.get(name, {}).items()) for line in lines_of(row, found)]
        if name not in {"state", "far_end"}:
            head = ("what", "records", "CPU seconds", "ratio", "claim", "grows with n to the", "date")
            parts.append(f"## {name}\n\n{title} (`benchmarks/{path.name}`)\n\n{table_of(head, rows)}\n")
    return "\n".join(parts)


def lines_of(row, found):
    """The line of the largest size, or of why there is none."""
    rows = measured(found)
    if not rows:
        reason = next(iter(found.values())).get("reason", "")
        return [(row, "—", "—", f"not run: {reason}", "", "", "")]
    records, last = max(rows.items())
    ratio = ratio_text(last) if "peer" in last else "—"
    if "before" in last:
        ratio += f"; **fell**, it was {last['before']}"
    claim = claim_text(last) if "peer" in last else ""
    claim += "" if not claim or last.get("small") or holds(last) else ", **fails**"
    date = f"{last['date']}{', small' if last.get('small') else ''}"
    return [
        (row, f"{records:,}" if records else "—", f"{last['cpu']:.3g}", ratio, claim, growth(found), date)
    ]


# -------------------------------------------------------------------------------------- tables of capacity


def took(row, *, with_memory=True):
    """Seconds and memory of a row; why it has none."""
    if not row or "cpu" not in row:
        return (row or {}).get("reason", "not run")
    seconds = f"{row['cpu']:.1f}" if row["cpu"] < 10 else f"{row['cpu']:.0f}"
    return f"{seconds} s" + (f", {row['memory']} MB" if with_memory and "memory" in row else "")


def starts(kept):
    rows, start = [], kept.get("start", {})
    for verb in VERBS:
        cold, warm = (start.get(f"{verb}, {state}", {}) for state in ("cold", "warm"))
        cells = [took(of.get(n), with_memory=False) for n in ("1000", "10000") for of in (cold, warm)]
        there = warm.get("10000", {})
        rows.append((f"`{verb}`", *cells, f"{there['memory']} MB" if "memory" in there else "—"))
    head = ("command", "1,000 records, first run (cold)", "again (warm)", "10,000, first run (cold)",
            "again (warm)", "memory (warm)")  # fmt: skip
    return table_of(head, rows)


def sizes(kept):
    places, rows = ("10000", "100000", "1000000"), []
    for verb in (each for each, command in VERBS.items() if {"FILE", "PLAN"} & set(command.split())):
        warm = kept.get("start", {}).get(f"{verb}, warm", {})
        of_sizes = {place: warm[place] for place in places if place in warm}
        cells = [took(warm.get(place)) for place in places]
        rows.append((f"`{verb}`", *cells, growth(of_sizes).partition(" ")[0] or "not known"))
    return table_of(("command", "10,000 records", "100,000", "1,000,000", "grows with n to the"), rows)


def quick(kept):
    rows = [
        (f"`{row.rpartition(', ')[0]}`", took(found["100"], with_memory=False), ratio_text(found["100"]))
        for row, found in sorted(kept.get("start", {}).items())
        if "peer" in found.get("100", {})
    ]
    return table_of(("command", "100 records (warm)", "beside `import polars`"), rows)


def methods(kept):
    found = {name: rows for name, rows in kept.get("methods", {}).items() if name in registry.methods()}
    timed = {name: rows for name, rows in found.items() if set(rows) - {NOT_RUN}}
    largest = max((size for rows in timed.values() for size in measured(rows)), default=0)
    slow, fast = [], []
    for name, rows in timed.items():
        last = rows.get(str(largest), {})
        (fast if last.get("cpu", math.inf) < QUICK else slow).append((name, rows, last.get("cpu", math.inf)))
    shown = sorted({size for rows in timed.values() for size in rows if size != NOT_RUN}, key=int)
    lines = [
        (
            f"{{method}}`{name}`",
            *(took(rows.get(size)) for size in shown),
            growth(rows).partition(" ")[0] or "not known",
        )
        for name, rows, _ in sorted(slow, key=lambda each: -each[2])
    ]  # fmt: skip
    text = table_of(("method", *(f"{int(size):,} records" for size in shown), "grows with n to the"), lines)
    if fast:
        text += f"\n\nLess than {QUICK} s at {largest:,} records take {named(name for name, *_ in fast)}."
    if rest := sorted(set(registry.methods()) - set(timed)):
        text += f"\n\nNo row is kept of {named(rest)}; some need what these tables lack."
    return text


def named(names):
    return ", ".join(f"{{method}}`{name}`" for name in sorted(names))


def measures(kept):
    rows = kept.get("measures", {})
    largest = max((size for found in rows.values() for size in measured(found)), default=0)
    there = [(row, found[str(largest)]) for row, found in rows.items() if str(largest) in found]
    there.sort(key=lambda each: -each[1]["cpu"])
    lines = [(re.sub(r"^([\w-]+)", r"{measure}`\1`", row), took(found)) for row, found in there[:LONGEST]]
    return table_of(("measure", f"{largest:,} records"), lines)


def memory(kept):
    lines = [
        (row, f"{size:,}", took(last))
        for row, found in kept.get("usual", {}).items()
        if measured(found)
        for size, last in [max(measured(found).items())]
        if "memory" in last
    ]
    return table_of(("what", "records", "CPU seconds and peak memory so far"), lines)


def engines(kept):
    """Memory by engine: measured up to a size, and computed beyond from the bytes that a record adds."""
    lines = []
    for row, found in sorted(kept.get("engines", {}).items()):
        rows = {size: each for size, each in measured(found).items() if "memory" in each}
        work, comma, engine = row.rpartition(", ")
        if not comma or not rows or not engine.startswith(("memory", "stream")):
            continue
        last, (cells, each) = max(rows), to_many(rows)
        small = ", small" if rows[last].get("small") else ""
        lines.append((work, engine, f"{last:,}{small}", f"{each:.0f}", *cells))
    head = ("work", "engine", "measured up to", "bytes a record", *(f"{n:,} records" for n in COMPUTED))
    return table_of(head, lines)


def to_many(rows):
    """Memory at each size, measured (of the next size that was) or computed, and the bytes of a record."""
    last = max(rows)
    few = max((size for size in rows if size <= last / 2), default=0)
    each = max(rows[last]["memory"] - (rows[few]["memory"] if few else 0), 0) / (last - few)
    cells = []
    for n in COMPUTED:
        there = min((size for size in rows if size >= n), default=last)
        cells.append(f"{rows[there]['memory'] + max(n - there, 0) * each:,.0f} MB")
    return cells, 1e6 * each
