"""The sections of a release's report: text, tables and charts of what the twin holds.

What a form does not hold has no section in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato.errors import count_noun
from sfumato.report.column_charts import charts_of_classes, charts_of_column
from sfumato.report.fates import by_fate, happened
from sfumato.report.frame import OUTCOMES, Spec
from sfumato.report.pair_charts import PARTS, charts_of_pairs
from sfumato.report.pictures import Cell, Section
from sfumato.report.release_charts import (
    attack_chart,
    before_after,
    drawable,
    gauge_chart,
    loss_bars,
    risk_bars,
    slider_chart,
    strip_chart,
)
from sfumato.report.words import name_list, sample_words
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
_MERGED = " Bins of fewer than 10 records are merged with their neighbours; counts are rounded to fives."
_CORRELATIONS = (
    "Correlations run from −1 (orange) to 1 (blue). The paler the difference, the better; a grey cell has no "
    "correlation."
)
_MOSAICS = (
    "Each tile is as large as its share of the records. Blue tiles have more records than if the two columns "
    "were independent, orange tiles fewer; the third picture shows what changed."
)
_ANALYSES = (
    "Losses of values, distributions and associations come first, then models and queries. Reference: the "
    "score of the original, or of a fresh sample of the same people."
)
_MEANT = {"processor": "processors under an agreement", "researcher": "researchers", "public": "the public"}


def sections_of(content: Content, place: int = 0) -> list[Section]:
    """All sections of one table; ``place`` tells the charts of several tables apart."""
    sections = (
        _requirements_section(content), _columns(content, place), _strip(content, place),
        _singled_out(content, place), _linkage_section(content, place),
        _attribute_disclosure_section(content, place), _groups_section(content), _recipients(content),
        _distributions(content, place), _associations(content, place), _analyses(content),
        _to_report(content), _rejected_section(content), _unestimated_section(content), _series(content),
        _steps_section(content), _tables_beside(content),
    )  # fmt: skip
    return [each for each in sections if each is not None]


def _requirements_section(content: Content) -> Section | None:
    requirements = content["requirements"]
    if isinstance(requirements, Mapping):
        return _judged_in_public(requirements) if requirements["of"] else None
    notes = [f"Warning: {each}." for each in content["warnings"]]
    notes += [f"Note: {each}." for each in content["notes"]]
    notes += [
        f"Violations of the rule that {each['promise']}: {count_noun(each['records'], 'record')}."
        for each in content["broken_promises"]
    ]
    unjudged = (
        "Not judged: there is no requirement on risk. The measured risks are below; add a requirement to the "
        "plan, such as k >= 3."
    )
    if not requirements:
        return Section("Requirements", unjudged, notes=notes)
    judged = [{**each, "met": "yes" if each["met"] else "NO"} for each in requirements]
    knows = " ".join(
        f"The intruder “{each['name']}” knows {name_list(each['columns'])}."
        for each in content["scenarios"]
        if each["judged"]
    )
    words = f"Each line is one requirement, its intruder, and the score of the release. {knows}"
    if all(each["judges"] != "risk" for each in requirements):
        words = f"{unjudged} {words}"
    columns = {
        "met": "met", "requirement": "asked", "intruder": "scenario", "result": "verdict",
        "measure checked": "vetted", "reason for the limit": "reason",
    }  # fmt: skip
    return Section.table("Requirements", words, columns, judged, notes=notes)


def _judged_in_public(tally: Content) -> Section:
    overridden = "" if tally["met"] == tally["of"] else ", and its owner released it nevertheless"
    words = (
        f"The release meets {tally['met']} of {count_noun(tally['of'], 'requirement')}{overridden}. The "
        "requirements and scores are confidential, because they would help an intruder."
    )
    return Section("Requirements", words)


def _columns(content: Content, place: int) -> Section | None:
    words = (
        "A key (quasi-identifier) may be known to an intruder; a sensitive column must not be disclosed. "
        "Identifiers name people: they are removed. The columns are ordered by what happened to them."
    )
    files = content.get("files", {})
    notes = [f"Table {name}: {name_list(each['columns'])}." for name, each in files.items()]
    columns = {"column": "column", "what happened": "happened", "role": "role", "kind": "kind"}
    if not content["public"]:
        columns |= {"role decided by": "decided_by", "reason": "reason"}
    rows = [
        {**each, "happened": happened(heading, each)}
        for heading, own in by_fate(content["roles"], content["steps"]).items()
        for each in own
    ]
    table = Section.table("Columns", words, columns, rows, notes=notes)
    is_drawn = any(each.get("shares") for each in rows)  # only the owner has them
    if table is None or not is_drawn:
        return table
    return replace(table, charts={f"columns-{place}": loss_bars(rows)})


# Risks ----------------------------------------------------------------------------------------------------


def _strip(content: Content, place: int) -> Section | None:
    """Risks and losses at a glance."""
    charts: dict[str, Spec] = {}
    risks, losses = content["strip"].get("risks"), content["strip"]["losses"]
    if risks:
        reads = "Grey is the original, blue the release: the farther blue is left of grey, the safer."
        title = "risk, lower is safer"
        charts[f"strip-risks-{place}"] = strip_chart(risks, "Disclosure risk", reads, title=title)
    if losses:
        reads = "Grey is the original, which has no loss; the farther right the blue dot, the more was lost."
        title = "loss, lower is more useful"
        chart = strip_chart(losses, "Information loss", reads, title=title, least=0.1)
        charts[f"strip-losses-{place}"] = chart
    if not charts:
        return None
    title = "Risk and information loss" if risks else "Information loss"
    return Section(title, charts=charts, layout="pair")


def _singled_out(content: Content, place: int) -> Section | None:
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


def _linkage_section(content: Content, place: int) -> Section | None:
    """Which records can be linked to people."""
    words = (
        "A record is re-identified if an intruder who holds a person’s values, exact or approximate, links "
        "them to the person’s record, for example as the nearest one."
    )
    title = "Re-identification (linkability)"
    return _threat(content, place, "linkability", title=title, words=words)


def _attribute_disclosure_section(content: Content, place: int) -> Section | None:
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


def _groups_section(content: Content) -> Section | None:
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


def _recipients(content: Content) -> Section | None:
    found = content["recipients"]
    if "meant" in found[0]:
        meant = [_MEANT[each["recipient"]] for each in found if each["meant"] and each["recipient"] in _MEANT]
        return Section("Recipients", f"The release is made for {', '.join(meant)}.") if meant else None
    words = (
        "A release can be safe for one recipient and not for another, depending on what they hold and what "
        "binds them. Each line compares the release with the profile for that recipient."
    )
    columns = {
        "recipient": "recipient", "singling out": "singling_out", "linkability": "linkability",
        "inference": "inference", "remark": "why",
    }  # fmt: skip
    return Section.table("Recipients", words, columns, found)


# Losses ---------------------------------------------------------------------------------------------------


def _distributions(content: Content, place: int) -> Section | None:
    """Each column that changed, before and after."""
    entries, left = content["distributions"], content["not_drawn"]
    if not entries and not left:
        return None
    parts = [_column(entry, f"{place}-{number}") for number, entry in enumerate(entries)]
    words = "Grey is the original, blue the release." if parts else "No column changed."
    words += _MERGED if content["public"] and parts else ""
    notes = [f"Unchanged, or not drawn: {name_list(left)}."] if left else []
    return Section("Distributions", words, notes=notes, parts=parts)


def _column(entry: Content, place: str) -> Section:
    notes = [entry["note"]] if "note" in entry else []
    missing = {key: share for key, share in entry["missing"].items() if share != 0}
    if missing:
        few = "fewer than 10 records"
        shares = (f"{key} {few if share is None else f'{share:.1%}'}" for key, share in missing.items())
        notes.append(f"Missing values: {', '.join(shares)}.")
    charts = charts_of_column(entry, OUTCOMES, place)
    return Section(entry["label"] or entry["column"], charts=charts, layout="pair", notes=notes)


def _associations(content: Content, place: int) -> Section | None:
    """Correlations and tables of two columns, before and after."""
    charts = charts_of_pairs(content["mosaics"], content["correlations"], suffix=f"-{place}")
    triptych = {name: spec for name, spec in charts.items() if name.startswith("correlation-")}
    parts = [Section("Correlations", _CORRELATIONS, charts=triptych, layout="triptych")] if triptych else []
    for number, entry in enumerate((content["mosaics"] or {}).get("pairs", ())):
        names = [f"mosaic-{number}-{part}-{place}" for part in PARTS]
        own = {name: charts[name] for name in names if name in charts}
        if len(own) > 1:
            title = f"{entry['columns'][1]} by {entry['columns'][0]}"
            parts.append(Section(title, charts=own, layout="triptych"))
    words = _MOSAICS if len(parts) > bool(triptych) else ""
    return Section("Associations", words, parts=parts) if parts else None


def _analyses(content: Content) -> Section | None:
    """Every loss that was measured, models last."""
    known = [
        {
            **each,
            "better": "lower" if each["better"] == "low" else "higher",
            "like": sample_words(each),
        }
        for each in sorted(content["utility"], key=lambda each: each["model"])
        if each["value"] is not None
    ]
    columns = {
        "measure": "title", "value": "value", "reference": "baseline", "better is": "better",
        "as good as": "like", "meaning": "what",
    }  # fmt: skip
    return Section.table("Utility", _ANALYSES, columns, known)


def _to_report(content: Content) -> Section | None:
    """What the profile asks to be reported."""
    asked = [{"scenario": "", "words": each["what"], **each} for each in content["listed"]]
    words = "The profile sets no limit for these measures, but asks to report them to whoever decides."
    columns = {"measure": "title", "intruder": "scenario", "value": "value", "in words": "words"}
    return Section.table("Reported for the profile", words, columns, asked)


# How it came about -----------------------------------------------------------------------------------------


def _rejected_section(content: Content) -> Section | None:
    if not content["rejected"]:
        return None
    loss = f"loss ({content['rejected'][0]['measure']})"
    columns = {"recipe": "recipe", "reason for rejection": "why", loss: "loss"}
    words = "All were held to the same requirements. The loss is the mean over fresh runs."
    return Section.table("Alternatives considered", words, columns, content["rejected"])


def _unestimated_section(content: Content) -> Section | None:
    unknown = content["not_estimated"]
    if content["public"]:
        return Section.table("Not measured", "", {"measure": "title", "reason": "reason"}, unknown)
    unknown = [{**each, "scenarios": ", ".join(dict.fromkeys(each["scenarios"]))} for each in unknown]
    columns = {"measure": "title", "intruder": "scenarios", "reason": "reason"}
    return Section.table("Not measured", "Not measured does not mean low.", columns, unknown)


def _series(content: Content) -> Section | None:
    """What all releases of a series disclose together."""
    found = content.get("series")
    if not found:
        return None
    words = (
        f"Earlier releases: {found['earlier']}; {found['persons_in_common']:,} people of this release were "
        "in one of them. An intruder who holds all releases can combine them."
    )
    title, notes = "Longitudinal releases", [f"Note: {each}." for each in found["notes"]]
    scores = [{"baseline": None, **each, "reason": each.get("reason") or ""} for each in found["measures"]]
    columns = {
        "measure": "measure", "value": "value", "last release alone": "baseline", "status": "status",
        "remark": "reason",
    }  # fmt: skip
    table = Section.table(title, words, columns, scores, notes=notes)
    return table or Section(title, words, notes=notes)


def _steps_section(content: Content) -> Section:
    own = any("parameters" in each for each in content["steps"])
    rows: list[list[Cell]] = []
    notes = _budget(content)
    for number, each in enumerate(content["steps"], start=1):
        settings = [", ".join(f"{key} = {value}" for key, value in each["parameters"].items())] if own else []
        rows.append(
            [number, each["title"], name_list(each["columns"]), *settings, each["what"], each["vetted"]]
        )
        notes += [f"Step {number}: {note}." for note in each.get("notes", ())]
    if content.get("copies"):
        notes.append(f"{content['copies']} copies were generated; scores are those of the worst copy.")
    how = content.get("how", "")
    words = [f"Choice of the recipe: {how}."] if how else []
    if not rows:
        words.append("No method was applied: columns are unchanged or removed.")
    elif not own:
        words.append("Parameters are not published, because they would help an intruder.")
    headers = ("step", "method", "columns", *(("parameters",) if own else ()), "what it does", "checked")
    return Section("Steps", " ".join(words), headers if rows else (), rows, notes=notes)


def _tables_beside(content: Content) -> Section | None:
    """Which tables leave with the file, and what they are."""
    found = content.get("tables_beside")
    if not found:
        return None
    words = (
        "Tables that leave beside the file. One of the original leaves only if no cell, and no difference of "
        "cells, tables and released records, shows few people or an amount of one, unless its owner decided "
        "otherwise."
    )
    rows: list[list[Cell]] = [[name, what] for name, what in found.items()]
    return Section("Tables", words, ("table", "what it has"), rows)


def _budget(content: Content) -> list[str]:
    """What differential privacy guarantees, which may be published."""
    found = content.get("budget")
    if not found or "epsilon" not in found:
        return []
    units = ", ".join(dict.fromkeys(each["unit"] for each in found["steps"]))
    spent = f"ε = {found['epsilon']:.4g}, δ = {found['delta']:.2g}"
    if "coverage" in found:
        return [f"Differentially private steps spent {spent}; {found['coverage']}."]
    sentence = (
        f"Differential privacy: {spent}, hiding each {units}. "
        f"No test of whether a person is in the data has an advantage above {found['advantage_at_most']:.3f}."
    )
    return [sentence, f"It is {found['guarantee']}."] if "guarantee" in found else [sentence]
