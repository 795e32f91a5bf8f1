"""The lattice of a global recoding as a picture: which combinations of levels meet what is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import prod
from typing import Any

from sfumato.core.params import PerColumn
from sfumato.core.run import Run
from sfumato.data.table import Table
from sfumato.methods.global_recoding import GlobalRecoding, LatticeOverview
from sfumato.methods.recoding import Recoding
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.report import frame
from sfumato.report.frame import Row, Spec, chart, layer, nominal, quantitative, tips

#: Nodes that are drawn, and those that meet what is asked that are listed, the lowest levels first.
MAX_NODES, _LISTED = 500, 20
#: A suppression of all records, in per cent.
_ALL = 100.0
#: What may be known of a node, with its words, colour and shape.
_STATES = {
    "optimum": ("taken: it loses least", "#D55E00", "diamond"),
    "met": ("meets what is asked", frame.COLOR, "circle"),
    "failed": ("does not meet it", "#5c646d", "cross"),
    "ruled out": ("cannot meet it: a coarser one does not", "#b8bec5", "triangle-down"),
    "not looked at": ("not looked at", "#d3d6d9", "square"),
}


def lattices_of(recipe: Recipe, table: Table, run: Run) -> list[dict[str, Any]]:
    """The lattice of each step that searches one, as data with its chart."""
    found = []
    for place, step in enumerate(recipe.steps):
        if not isinstance(step.method, GlobalRecoding) or not len(table):
            continue
        if step.method.local and step.method.suppression >= _ALL:
            found.append(
                {"step": place, "words": "Each record has levels of its own: none are taken for all."}
            )
            continue
        if step.within or step.together:
            found.append(
                {"step": place, "words": "It is searched in each stratum: there is no single lattice."}
            )
            continue
        before = Recipe(recipe.steps[:place]).apply(table, run).table
        overview = step.method.explore(before.aimed_at(step.resolve(before.schema)), run, most=MAX_NODES)
        found.append({"step": place, **_describe(overview, recipe, place)})
    return found


def _describe(overview: LatticeOverview, recipe: Recipe, place: int) -> dict[str, Any]:
    n_nodes = prod(overview.heights)
    if not overview.states:
        words = f"The lattice has {n_nodes:,} combinations of levels: too many to draw (at most {MAX_NODES})."
        return {"words": words}
    rows, states = _rows(overview), list(overview.states.values())
    looked = sum(each in {"optimum", "met", "failed"} for each in states)
    sure = "It is proved that none loses less." if overview.proved else "It is not proved to lose least."
    met = [row for row in rows if row["state"] in {"optimum", "met"}]
    return {
        "words": f"{looked:,} of {n_nodes:,} combinations of levels were evaluated. {sure}",
        "nodes": [
            {**row, "steps": _with_levels(recipe, place, overview.keys, row["levels"]).to_list()}
            for row in met[:_LISTED]
        ],
        "met": len(met),
        "chart": lattice_chart(rows),
    }


def _rows(overview: LatticeOverview) -> list[Row]:
    """The nodes from the finest to the coarsest, each in its place in the row of its sum of levels."""
    ordered = sorted(overview.states, key=lambda levels: (sum(levels), levels))
    return [
        {
            "id": "-".join(map(str, levels)),
            "levels": list(levels),
            "row": total,
            "place": at - (len(own) - 1) / 2,
            "state": overview.states[levels],
            "words": _STATES[overview.states[levels]][0],
            "text": ", ".join(f"{key} {level}" for key, level in zip(overview.keys, levels, strict=True)),
        }
        for total, group in groupby(ordered, key=sum)
        for own in [list(group)]
        for at, levels in enumerate(own)
    ]


def _with_levels(recipe: Recipe, place: int, keys: Sequence[str], levels: Sequence[int]) -> Recipe:
    """The recipe with these levels instead of the search for them."""
    old = recipe.steps[place]
    fixed = Recoding(levels=PerColumn(0, tuple(zip(keys, levels, strict=True))))
    step: Step = replace(old, method=fixed)
    return Recipe((*recipe.steps[:place], step, *recipe.steps[place + 1 :]))


def lattice_chart(rows: Sequence[Mapping[str, Any]]) -> Spec:
    """A mark for each node: the sum of its levels upwards, and what is known of it."""
    seen = [words for state, (words, *_) in _STATES.items() if any(row["state"] == state for row in rows)]
    styles = {words: (color, shape) for words, color, shape in _STATES.values()}
    color, shape = (
        nominal(
            "words",
            scale={"domain": seen, "range": [styles[words][part] for words in seen]},
            title=None,
            legend={"orient": "bottom", "columns": 2, "labelLimit": 300},
        )
        for part in (0, 1)
    )
    encoding = {
        "x": quantitative("place", axis=None, scale={"padding": 12}),
        "y": quantitative("row", "sum of the levels (coarser upwards)", axis={"tickMinStep": 1}),
        "color": color,
        "shape": shape,
        "tooltip": tips(text="Levels", words="What is known"),
    }
    return chart(
        "Combinations of levels",
        "Each mark is one combination of levels of the keys; lower is finer.",
        layer("point", encoding, filled=True, size=70, opacity=1),
        rows=[{name: each for name, each in row.items() if name != "levels"} for row in rows],
        height=max(26 * (1 + max((row["row"] for row in rows), default=0)), 120),
    )
