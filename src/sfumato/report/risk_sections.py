"""The sections on risks: singling out, linkability, inference, each with its measures and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report.charts import class_charts
from sfumato.report.frame import OUTCOMES, Spec
from sfumato.report.pictures import Cell, Section
from sfumato.report.release_charts import (
    attack_chart,
    before_after,
    drawable,
    gauge_chart,
    risk_bars,
    slider_chart,
    strip_chart,
)
from sfumato.report.words import named_in_row, setting

Told = Mapping[str, Any]

#: What is said of each risk, and its key in the twin; columns that say nothing are left out.
_SAID = (
    ("measure", "title"), ("against", "scenario"), ("release", "value"), ("between", "interval"),
    ("original", "original"), ("blind guess", "baseline"), ("right of people in it", "rate"),
    ("right of others", "control"), ("what it is", "what"),
)  # fmt: skip
#: What is told of each sensitive column, by measure.
_TOLD = {
    "l-diversity": "smallest l", "t-closeness": "largest t", "attribute-disclosure": "told for sure",
}  # fmt: skip
_RISKS = (
    "Each line is a risk: the grey dot is the original, the blue one the release. The farther blue lies to "
    "the left of grey, the more was gained."
)
_LOSSES = (
    "Each line is a loss, of which the original (grey) has none. The farther the blue dot lies to the right, "
    "the more was lost."
)
_CLASSES = (
    "Of records alike in all keys: how many different values of the sensitive column the poorest class has "
    "(l, more is safer), how far a class is from the whole table (t, less is safer), and the share of "
    "records whose value everybody in their class has."
)


def strip(told: Told, place: int) -> Section | None:
    """Risks and losses at a glance."""
    charts: dict[str, Spec] = {}
    risks, losses = told["strip"].get("risks"), told["strip"]["losses"]
    if risks:
        charts[f"strip-risks-{place}"] = strip_chart(risks, title="risk, lower is safer", reads=_RISKS)
    if losses:
        title = "loss, lower is more useful"
        charts[f"strip-losses-{place}"] = strip_chart(losses, title=title, reads=_LOSSES, least=0.1)
    if not charts:
        return None
    title = "How much safer, and how much was lost?" if risks else "How much was lost?"
    return Section(title, charts=charts, layout="pair")


def singled_out(told: Told, place: int) -> Section | None:
    """Who can be told apart from everybody else."""
    made = (_class_sizes, _individual, _gauges, _combinations)
    parts = [part for make in made if (part := make(told, place)) is not None]
    synthetic = (
        " The records are synthetic and nobody’s: how many of them are alike says nothing of people."
        if told["synthetic"]
        else ""
    )
    words = (
        "Singled out is who can be told apart from everybody else by what an intruder knows. Who shares all "
        f"of that with others hides among them.{synthetic}"
    )
    title = "Who could be singled out?"
    return _threat(told, place, "singling out", title=title, words=words, parts=parts)


def linked(told: Told, place: int) -> Section | None:
    """Who is found again by their values."""
    words = (
        "Linked is who is found again by an intruder who holds their values, exact or nearly so, and looks "
        "for the nearest record."
    )
    title = "Could records be linked to people?"
    return _threat(told, place, "linkability", title=title, words=words)


def learnt(told: Told, place: int) -> Section | None:
    """What the release tells of a person, and not of everybody."""
    words = "Learnt is a sensitive value that the release tells of a person more surely than of everybody."
    parts = [_given_away(told["learnt"])] if told.get("learnt") else []
    title = "What could be learnt about somebody?"
    return _threat(told, place, "inference", title=title, words=words, parts=parts)


def _threat(
    told: Told, place: int, threat: str, *, title: str, words: str, parts: Sequence[Section] = ()
) -> Section | None:
    if not told["attacks"]:
        return None
    entries = told["attacks"][threat]
    known = [each for each in entries if each["value"] is not None]
    titles = dict.fromkeys(each["title"] for each in known)
    headers, rows = _table([each for name in titles for each in known if each["title"] == name])
    notes = []
    if missing := dict.fromkeys(each["title"] for each in entries if each["value"] is None):
        notes.append(f"Without a number here (see below why): {', '.join(missing)}.")
    if told["control"]:
        notes.append(f"Attacks on people and on strangers were not carried out: {told['control']}.")
    if not rows:
        words += " Nothing could be measured here."
    shown = drawable(entries)
    charts = {f"attacks-{threat.replace(' ', '-')}-{place}": attack_chart(shown)} if shown else {}
    return Section(title, words, headers, rows, charts, notes=notes, parts=parts)


def _table(entries: Sequence[Told]) -> tuple[list[str], list[list[Cell]]]:
    """Risks as a table: what none of them has is no column of it, and what a measure is is said once."""
    said = [{**each, "interval": _interval(each["interval"]), "what": _explained(each)} for each in entries]
    there = [(header, key) for header, key in _SAID if any(each[key] is not None for each in said)]
    rows: list[list[Cell]] = []
    for place, each in enumerate(said):
        again = place > 0 and said[place - 1]["title"] == each["title"]
        rows.append(["" if again and key in {"title", "what"} else each[key] for _, key in there])
    return [header for header, _ in there] if rows else [], rows


def _explained(entry: Told) -> str:
    return f"{entry['what'].rstrip('.')}. {'Lower' if entry['better'] == 'low' else 'Higher'} is safer."


def _interval(ends: Sequence[float] | None) -> str | None:
    return None if ends is None else f"{setting(ends[0])} – {setting(ends[1])}"


def _class_sizes(told: Told, place: int) -> Section | None:
    found = told.get("class_sizes")
    if not found:
        return None
    words = (
        f"A class is the records that are equal in {named_in_row(found['columns'])}. First the share of "
        "records by the size of their class, then the share in classes of fewer than k, by k. Grey is the "
        "original."
    )
    charts = class_charts(found, OUTCOMES, suffix=f"-{place}")
    notes = [found["note"]] if "note" in found else []
    return Section("How many records are alike?", words, charts=charts, layout="pair", notes=notes)


def _individual(told: Told, place: int) -> Section | None:
    found = told.get("individual_risk")
    if not found:
        return None
    above, expected = found["at_risk"], found["expected"]
    before = found["records"]["original"] > 0
    words = (
        f"{found['title']} of each record, by the intruder who knows most. Above {found['threshold']:g} are "
        f"{above['release']:,} of {found['records']['release']:,} records"
        + (f"; in the original it is {above['original']:,}. " if before else ". ")
        + f"If every record were attacked, {expected['release']:,.1f} would be expected to be found"
        + (f", and of the original {expected['original']:,.1f}." if before else ".")
    )
    charts = {
        f"risks-{place}": risk_bars(found),
        f"slider-{place}": slider_chart(found["title"], found["slider"]),
    }
    return Section("How many records are at risk?", words, charts=charts, layout="pair")


def _gauges(told: Told, place: int) -> Section | None:
    gauges = told.get("gauges") or []
    shown = [each for each in gauges if each["release"]]
    if not shown:
        return None
    words = (
        "A prosecutor knows that somebody is in the file, a journalist does not and wants any one success, a "
        "marketer looks for everybody. At risk is a record with a chance above "
        f"{shown[0]['release']['threshold']:g}."
    )
    notes = [f"{each['title']}: {each['reason']}." for each in gauges if not each["release"]]
    return Section("Who might look?", words, charts={f"gauges-{place}": gauge_chart(shown)}, notes=notes)


def _combinations(told: Told, place: int) -> Section | None:
    found = told.get("combinations")
    if not found:
        return None
    sizes = [{**each, "said": _keys(each["keys"])} for each in found["keys"]]
    reads = "How many records are rare in one key, in up to two, in up to three."
    charts = {f"combinations-{place}": before_after(sizes, "said", title="records", reads=reads)}
    reads = "In how many of these records a key takes part: make the one with the longest bar coarser first."
    name = f"combination-columns-{place}"
    charts[name] = before_after(found["columns"], "column", title="records", reads=reads)
    if any(each["release"] or each["original"] for each in found["suda"]):
        reads = "What each key adds to the scores of SUDA, which weigh small combinations more."
        title = "part of the score"
        charts[f"suda-{place}"] = before_after(found["suda"], "column", title=title, reads=reads)
    words = (
        f"A combination of values that fewer than {found['fewer_than']} records have makes them rare, though "
        "an intruder knows only these few keys."
    )
    return Section("Which combinations of keys are rare?", words, charts=charts, layout="pair")


def _keys(number: int) -> str:
    return "one key" if number == 1 else f"up to {number} keys"


def _given_away(found: Told) -> Section:
    measures = [key for key in found["columns"][0] if key != "column"] if found["columns"] else []
    pairs = [
        (each, key, when) for each in measures for key, when in (("original", "before"), ("release", "after"))
    ]
    headers = ("sensitive column", *(f"{_TOLD.get(each, each)} ({when})" for each, _, when in pairs))
    rows: list[list[Cell]] = [
        [each["column"], *(each[measure][key] for measure, key, _ in pairs)] for each in found["columns"]
    ]
    notes = [
        f"{each['records']:,} of {each['of']:,} records violate {each['requirement']} ({each['scenario']})."
        for each in found["violations"]
    ]
    return Section("What do classes give away?", _CLASSES, headers, rows, notes=notes)
