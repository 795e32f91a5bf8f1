"""Sections of a report on what an intruder may find: people, their values, groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.report.column_charts import charts_of_classes
from sfumato.report.frame import OUTCOMES
from sfumato.report.pictures import Cell, Section
from sfumato.report.release_charts import (
    attack_chart,
    before_after,
    drawable,
    gauge_chart,
    risk_bars,
    slider_chart,
)
from sfumato.report.words import name_list
from sfumato.risk._sample_classes import RiskThreshold

Content = Mapping[str, Any]


#: The columns of a table of risks, each with its key in the twin; empty columns are left out.
_RISK_COLUMNS = (
    ("measure", "title"), ("intruder", "scenario"), ("release", "value"), ("interval", "between"),
    ("original", "original"), ("blind guess", "baseline"), ("right in the release", "rate"),
    ("right in the control group", "control"), ("meaning", "what"),
)  # fmt: skip


#: What is shown of each sensitive column, by measure.
_DISCLOSURE = {
    "l-diversity": "smallest l", "t-closeness": "largest t", "attribute-disclosure": "disclosed for sure",
}  # fmt: skip


_CLASSES = (
    "For each sensitive column: the smallest number of different values in a class (l, higher is safer), the "
    "largest distance of a class from the whole table (t, lower is safer), and the share of records in whose "
    "class all records have the same value."
)


MERGED = " Bins of fewer than 10 records are merged with their neighbours; counts are rounded to fives."


def singled_out_section(content: Content, place: int) -> Section | None:
    """Which records an intruder can single out, and the equivalence classes behind it."""
    made = (_class_sizes, _individual, _gauges, _combinations)
    parts = [part for make in made if (part := make(content, place)) is not None]
    synthetic = (
        " These records are synthetic and belong to no real person: class sizes say nothing about people."
        if content["synthetic"]
        else ""
    )
    words = (
        "A person is singled out if what an intruder knows fits only this person. People whose records are "
        f"equal in all of that form an equivalence class (short: class), which hides each of them.{synthetic}"
    )
    title = "Equivalence classes (singling out)"
    return _threat(content, place, "singling out", title=title, words=words, parts=parts)


def linkage_section(content: Content, place: int) -> Section | None:
    """Which records can be linked to people."""
    words = (
        "A record is re-identified if an intruder who holds a person’s values, exact or approximate, links "
        "them to the person’s record, for example as the nearest one."
    )
    title = "Re-identification (linkability)"
    return _threat(content, place, "linkability", title=title, words=words)


def attribute_disclosure_section(content: Content, place: int) -> Section | None:
    """What the release discloses about a person, beyond what it says about people in general."""
    words = "A value is disclosed if the release predicts it better for a person than for people in general."
    parts = [_disclosed_values_section(content["learnt"])] if content.get("learnt") else []
    title = "Attribute disclosure (inference)"
    return _threat(content, place, "inference", title=title, words=words, parts=parts)


def _threat(
    content: Content, place: int, threat: str, *, title: str, words: str, parts: Sequence[Section] = ()
) -> Section | None:
    if not content["attacks"]:
        return None
    entries = content["attacks"][threat]
    known = [each for each in entries if each["value"] is not None]
    titles = dict.fromkeys(each["title"] for each in known)
    headers, rows = _table([each for name in titles for each in known if each["title"] == name])
    notes = []
    if missing := dict.fromkeys(each["title"] for each in entries if each["value"] is None):
        notes.append(f"Not measured (reasons below): {', '.join(missing)}.")
    notes.append(f"Attacks compared with a control group: {content['tests'][threat]}.")
    if not rows:
        words += " No measure of it has a number."
    shown = drawable(entries)
    charts = {f"attacks-{threat.replace(' ', '-')}-{place}": attack_chart(shown)} if shown else {}
    return Section(title, words, headers, rows, charts, notes=notes, parts=parts)


def _table(entries: Sequence[Content]) -> tuple[list[str], list[list[Cell]]]:
    """Risks as a table: columns that are empty are left out, and a measure is explained once."""
    side = {"low": "Lower is safer.", "high": "Higher is safer."}
    risks = [{**each, "what": f"{each['what'].rstrip('.')}. {side[each['better']]}"} for each in entries]
    there = {key: header for header, key in _RISK_COLUMNS if any(each[key] is not None for each in risks)}
    rows: list[list[Cell]] = []
    for place, each in enumerate(risks):
        again = place > 0 and risks[place - 1]["title"] == each["title"]
        rows.append(["" if again and key in {"title", "what"} else each[key] for key in there])
    return list(there.values()), rows


def _class_sizes(content: Content, place: int) -> Section | None:
    found = content.get("class_sizes")
    if not found:
        return None
    words = f"A class is the records that are equal in {name_list(found['columns'])}. Larger is safer."
    charts = charts_of_classes(found, OUTCOMES, suffix=f"-{place}")
    notes = [found["note"]] if "note" in found else []
    return Section("Class sizes", words, charts=charts, layout="pair", notes=notes)


def _individual(content: Content, place: int) -> Section | None:
    found = content.get("individual_risk")
    if not found:
        return None
    above, expected = found["at_risk"], found["expected"]
    before = found["records"]["original"] > 0
    words = (
        f"{found['title']} of each record, for the intruder who knows most. It is above "
        f"{found['threshold']:g} for {above['release']:,} of {found['records']['release']:,} records"
        + (f" (original: {above['original']:,}). " if before else ". ")
        + "If every record were attacked, the expected number of re-identifications is "
        + _expected_people(expected["release"])
        + (f" (original: {_expected_people(expected['original'])})." if before else ".")
    )
    own = next(RiskThreshold(*row) for row in found["slider"] if row[0] == found["threshold"])
    slider = slider_chart(found["title"], found["slider"], own, movable=True)
    charts = {f"risks-{place}": risk_bars(found), f"slider-{place}": slider}
    return Section("Records at risk", words, charts=charts, layout="pair")


def _expected_people(people: float) -> str:
    """An expected number of people: whole ones, or a tenth where they are few."""
    return f"{people:,.0f}" if people >= 10 else f"{people:.1f}"  # noqa: PLR2004


def _gauges(content: Content, place: int) -> Section | None:
    gauges = content.get("gauges") or []
    shown = [each for each in gauges if each["release"]]
    if not shown:
        return None
    words = (
        "A prosecutor knows that a person is in the file; a journalist does not, and needs only one success; "
        "a marketer tries to re-identify everyone. A record is at risk if its risk is above "
        f"{shown[0]['release']['threshold']:g}."
    )
    notes = [f"{each['title']}: {each['reason']}." for each in gauges if not each["release"]]
    charts = {f"gauges-{place}": gauge_chart(shown)}
    return Section("Prosecutor, journalist and marketer", words, charts=charts, notes=notes)


def _combinations(content: Content, place: int) -> Section | None:
    found = content.get("combinations")
    if not found:
        return None
    sizes = [{**each, "text": _keys(each["keys"])} for each in found["keys"]]
    caption, reads = "Records with a rare combination, by number of keys", "Shorter bars are safer."
    charts = {f"combinations-{place}": before_after(sizes, "text", caption, reads, title="records")}
    caption = "Records with a rare combination, by key in it"
    reads = "Coarsen the key with the longest bar first."
    name = f"combination-columns-{place}"
    charts[name] = before_after(found["columns"], "column", caption, reads, title="records")
    if any(each["release"] or each["original"] for each in found["suda"]):
        caption, reads = "Contribution of each key to SUDA", "SUDA weighs rare combinations of few keys more."
        title = "part of the score"
        charts[f"suda-{place}"] = before_after(found["suda"], "column", caption, reads, title=title)
    words = (
        f"A combination of values is rare if fewer than {found['fewer_than']} records have it. It exposes "
        "them to an intruder who knows only these few keys."
    )
    return Section("Rare combinations of keys", words, charts=charts, layout="pair")


def _keys(number: int) -> str:
    return "one key" if number == 1 else f"up to {number} keys"


def _disclosed_values_section(found: Content) -> Section:
    measures = [key for key in found["columns"][0] if key != "column"] if found["columns"] else []
    pairs = [
        (each, key, when) for each in measures for key, when in (("original", "before"), ("release", "after"))
    ]
    headers = ("sensitive column", *(f"{_DISCLOSURE.get(each, each)} ({when})" for each, _, when in pairs))
    rows: list[list[Cell]] = [
        [each["column"], *(each[measure][key] for measure, key, _ in pairs)] for each in found["columns"]
    ]
    notes = [
        f"{each['records']:,} of {each['of']:,} records violate {each['requirement']} ({each['scenario']})."
        for each in found["violations"]
    ]
    return Section("Sensitive columns", _CLASSES, headers, rows, notes=notes)


def groups_section(content: Content) -> Section | None:
    """Risk and loss of every group, where something is required in every group."""
    words = (
        "Each score is that of the records of one group alone, as if everybody’s group were known. The worst "
        "group is judged. Names and sizes of groups are confidential."
    )
    parts = []
    for each in content.get("groups") or ():
        titles = list(dict.fromkeys(title for row in each["rows"] for title in row["scores"]))
        rows: list[list[Cell]] = [
            [row["group"], row["records"], *(row["scores"].get(title) for title in titles)]
            for row in each["rows"]
        ]
        notes = [f"Worst by {title}: {group}." for title, group in each["worst"].items()]
        headers = ("group", "records", *titles)
        parts.append(Section(each["groups"].capitalize(), "", headers, rows, notes=notes))
    return Section("Groups", words, parts=parts) if parts else None
