"""The sections on what was lost: columns before and after, how they go together, what analyses come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.report.charts import column_charts, pair_charts
from sfumato.report.frame import OUTCOMES
from sfumato.report.pair_charts import PARTS
from sfumato.report.pictures import Cell, Section
from sfumato.report.words import named_in_row

Told = Mapping[str, Any]

_SHAPES = (
    "Grey is the original, blue the release. First the shape, then the share of records at or below each "
    "value, then the quantiles of the release against the original’s: on the grey diagonal nothing changed."
)
_MERGED = " Bins of fewer than 10 records are merged with their neighbours; counts are rounded to fives."
_CORRELATIONS = (
    "Correlations from −1 (orange) to 1 (blue), of the original, of the release, and the difference: the "
    "paler the last, the better. A grey cell has none."
)
_MOSAICS = (
    "What analysts study is how columns go together. In a mosaic a tile is as large as its share of the "
    "records; blue has more than chance would give, orange fewer, and the third picture is what changed."
)
_ANALYSES = (
    "Losses of values, distributions and associations first, then what models and queries of the release "
    "come to. To compare with is what the original scores, or a fresh sample of the same people."
)


def distributions(told: Told, place: int) -> Section | None:
    """Each column that changed, before and after."""
    entries, left = told["distributions"], told["not_drawn"]
    if not entries and not left:
        return None
    parts = [_column(entry, f"{place}-{number}") for number, entry in enumerate(entries)]
    words = (_SHAPES if parts else "No column was changed.") + (_MERGED if told["public"] and parts else "")
    notes = [f"As they were, or not drawn: {named_in_row(left)}."] if left else []
    return Section("Do the columns still look the same?", words, notes=notes, parts=parts)


def _column(entry: Told, place: str) -> Section:
    notes = [entry["note"]] if "note" in entry else []
    missing = {key: share for key, share in entry["missing"].items() if share != 0}
    if missing:
        shares = (
            f"{key} {'fewer than 10 records' if share is None else f'{share:.1%}'}"
            for key, share in missing.items()
        )
        notes.append(f"Missing: {', '.join(shares)}.")
    charts = column_charts(entry, OUTCOMES, place)
    return Section(entry["label"] or entry["column"], charts=charts, layout="pair", notes=notes)


def associations(told: Told, place: int) -> Section | None:
    """Correlations and tables of two columns, before and after."""
    charts = pair_charts(told["mosaics"], told["correlations"], suffix=f"-{place}")
    triptych = {name: spec for name, spec in charts.items() if name.startswith("correlation-")}
    parts = [Section("Numbers", _CORRELATIONS, charts=triptych, layout="triptych")] if triptych else []
    for number, entry in enumerate((told["mosaics"] or {}).get("pairs", ())):
        names = [f"mosaic-{number}-{part}-{place}" for part in PARTS]
        own = {name: charts[name] for name in names if name in charts}
        if len(own) > 1:
            title = f"{entry['columns'][1]} by {entry['columns'][0]}"
            parts.append(Section(title, charts=own, layout="triptych"))
    return Section("Do columns still go together as before?", _MOSAICS, parts=parts) if parts else None


def analyses(told: Told) -> Section | None:
    """Every loss that was measured, models last."""
    rows: list[list[Cell]] = [
        [
            each["title"], each["value"], each["baseline"],
            "lower" if each["better"] == "low" else "higher", each["what"],
        ]
        for each in sorted(told["utility"], key=lambda each: each["model"])
        if each["value"] is not None
    ]  # fmt: skip
    headers = ("measure", "value", "to compare with", "better is", "what it is")
    return Section("Do analyses still give the same answers?", _ANALYSES, headers, rows) if rows else None


def listed(told: Told) -> Section | None:
    """What the profile asks to be reported."""
    if not told["listed"]:
        return None
    rows: list[list[Cell]] = [
        [each["title"], each.get("scenario", ""), each["value"], each.get("words", each["what"])]
        for each in told["listed"]
    ]
    words = "Measures that nothing is required of, and that whoever decides should have seen."
    headers = ("measure", "against", "value", "in words")
    return Section("What does the profile ask to be reported?", words, headers, rows)
