"""The sections of a release's report: text, tables and charts of what the twin holds.

What a form does not hold has no section in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sfumato.errors import count_noun
from sfumato.report.column_charts import charts_of_column
from sfumato.report.fates import by_fate, happened
from sfumato.report.frame import OUTCOMES, Spec
from sfumato.report.pair_charts import PARTS, charts_of_pairs
from sfumato.report.pictures import Cell, Section
from sfumato.report.release_charts import (
    loss_bars,
    strip_chart,
)
from sfumato.report.risk_sections import (
    MERGED,
    Content,
    attribute_disclosure_section,
    groups_section,
    linkage_section,
    singled_out_section,
)
from sfumato.report.words import name_list, sample_words

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
        singled_out_section(content, place), linkage_section(content, place),
        attribute_disclosure_section(content, place), groups_section(content), _recipients(content),
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
    words += MERGED if content["public"] and parts else ""
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
