"""Propose a hierarchy of coarser values for a column, or check one from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import _options
from sfumato.cli._resources import request_of
from sfumato.cli._screen import emit_json, emit_table, say
from sfumato.errors import DataError, ParameterError

if TYPE_CHECKING:
    import polars as pl

    from sfumato.data.hierarchy.tree import Hierarchy


#: How many labels of a level are shown.
_EXAMPLES = 3


@click.command("hierarchy", help=__doc__, epilog=f"SOURCE is {_options.SOURCE}.")
@click.argument("source")
@click.argument("column")
@_options.plan_option
@click.option(
    "--check", "check_path", type=click.Path(path_type=Path), help="Check this hierarchy file instead (CSV)."
)
@click.option(
    "-k", type=click.IntRange(2), default=5, show_default=True, help="Classes below this size are small."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write the proposal here, in the format of ARX (CSV)."
)
@_options.reading_options
@_options.overwrite_option
@_options.json_option
@_options.quiet_option
def command(source: str, column: str, **options: Any) -> None:
    """Propose or check a hierarchy."""
    from sfumato.data.hierarchy.grow import present_values, propose
    from sfumato.io import check_writable
    from sfumato.io.hierarchies import read_hierarchy, write_hierarchy
    from sfumato.releasing.request import require_columns, resolve

    out, quiet = options["out"], options["quiet"]
    if out is not None and options["check_path"] is not None:
        raise ParameterError("only one of --check and --out can be given")
    if out is not None:
        originals = [] if source.startswith("builtin:") else [source]
        check_writable(out, originals=originals, overwrite=options["overwrite"])
    request = request_of(source, options)
    table = resolve(request).read(request)
    require_columns(table.schema, [column])
    if table.is_generalised(column):
        raise DataError(f"`{column}` is generalised already; a hierarchy is built from exact values")
    described = table.schema[column]
    values = present_values(described, table.frame[column])
    if options["check_path"] is not None:
        hierarchy = read_hierarchy(options["check_path"], name=column)
    else:
        hierarchy = propose(described, values)
    _show(hierarchy, values, column, options)
    if out is not None:
        write_hierarchy(hierarchy, out, overwrite=options["overwrite"])
        say(f"written: {out}; edit it as you like, then check it with --check {out}", quiet=quiet)


def _show(hierarchy: Hierarchy, values: pl.Series, column: str, options: dict[str, Any]) -> None:
    """Write the levels, then stop if the hierarchy lacks a value."""
    k, faults = options["k"], hierarchy.check(values, column)
    levels = _levels(hierarchy, values, k)
    if options["as_json"]:
        unseen = _count_unseen(hierarchy, values)
        payload = {"column": column, "leaves": hierarchy.n_leaves, "k": k, "levels": levels, "unseen": unseen}
        emit_json(payload)
    else:
        rows = [
            [
                str(each["level"]),
                str(each["labels"]),
                "—" if each["small"] is None else f"{each['small']:.1%}",
                _examples(hierarchy, values, each["level"], k),
            ]
            for each in levels
        ]
        emit_table(["level", "labels", f"records in classes below {k}", "such as"], rows, right=[0, 1, 2])
    if faults:
        raise DataError(
            f"the hierarchy of `{column}` does not fit the column: {faults[0]}",
            hint="add the rows to the file, or declare the codes as missing in a plan",
        )


def _levels(hierarchy: Hierarchy, values: pl.Series, k: int) -> list[dict[str, Any]]:
    """For each level its labels, and the share of the records with a value that are in a small class."""
    import numpy as np

    levels = []
    for level in range(hierarchy.height):
        sizes = np.bincount(hierarchy.codes(values, level, unseen="root"))
        share = float(sizes[sizes < k].sum() / sizes.sum()) if len(values) else None
        levels.append({"level": level, "labels": len(hierarchy.labels(level)), "small": share})
    return levels


def _examples(hierarchy: Hierarchy, values: pl.Series, level: int, k: int) -> str:
    """The labels that most records have, and at least k."""
    import numpy as np

    labels = hierarchy.labels(level)
    sizes = np.bincount(hierarchy.codes(values, level, unseen="root"), minlength=len(labels))[: len(labels)]
    shown = [place for place in np.argsort(-sizes, kind="stable").tolist() if sizes[place] >= k]
    texts = [str(labels[place]) for place in shown[:_EXAMPLES]]
    return ", ".join([*texts, *(["…"] if len(labels) > len(texts) else [])])


def _count_unseen(hierarchy: Hierarchy, values: pl.Series) -> dict[str, int]:
    from sfumato.data.generalised.nodes import UNSEEN, match_leaves

    found = match_leaves(values, hierarchy.levels[:, 0]) == UNSEEN
    return {"values": int(values.filter(found).n_unique()), "records": int(found.sum())}
