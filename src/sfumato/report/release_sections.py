"""The sections of a release's report, each a question: words, tables and charts of what the twin says.

Whatever a form does not tell has no section in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

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
from sfumato.report.words import named_in_row

Content = Mapping[str, Any]

#: What is said of each risk, and its key in the twin; columns that say nothing are left out.
_SAID = (
    ("measure", "title"), ("against", "scenario"), ("release", "value"), ("between", "between"),
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
_MEANT = {
    "processor": "companies that work on it under an agreement",
    "researcher": "researchers",
    "public": "everybody",
}


def sections_of(content: Content, place: int = 0) -> list[Section]:
    """All sections of one table; ``place`` tells the charts of several tables apart."""
    sections = (
        _requirements_section(content), _columns(content, place), _strip(content, place),
        _singled_out(content, place), _linkage_section(content, place),
        _attribute_disclosure_section(content, place), _recipients(content), _distributions(content, place),
        _associations(content, place), _analyses(content), _to_report(content), _rejected_section(content),
        _unestimated_section(content), _series(content), _steps_section(content),
    )  # fmt: skip
    return [each for each in sections if each is not None]


def _requirements_section(content: Content) -> Section | None:
    requirements = content["requirements"]
    if isinstance(requirements, Mapping):
        return _judged_in_public(requirements) if requirements["of"] else None
    notes = [f"Warning: {each}." for each in content["warnings"]]
    notes += [f"Note: {each}." for each in content["notes"]]
    notes += [
        f"{each['records']:,} records break the promise that {each['promise']}."
        for each in content["broken_promises"]
    ]
    unjudged = (
        "Nobody can say: nothing was required of its risk. What was measured stands below; a requirement "
        "such as k >= 3 in the plan makes it a judgement."
    )
    if not requirements:
        return Section("Is it safe enough?", unjudged, notes=notes)
    judged = [{**each, "met": "yes" if each["met"] else "NO"} for each in requirements]
    knows = " ".join(
        f"“{each['name']}” knows {named_in_row(each['columns'])}."
        for each in content["scenarios"]
        if each["judged"]
    )
    words = f"Each line is a requirement against one intruder, and what the release scores. {knows}"
    if all(each["judges"] != "risk" for each in requirements):
        words = f"{unjudged} {words}"
    columns = {
        "met": "met", "required": "asked", "against": "scenario", "what it scores": "verdict",
        "why this much": "reason",
    }  # fmt: skip
    return Section.table("Is it safe enough?", words, columns, judged, notes=notes)


def _judged_in_public(tally: Content) -> Section:
    yes = "Yes" if tally["met"] == tally["of"] else "Yes, and its owner let it out though some are missed"
    words = (
        f"{yes}: {tally['met']} of {tally['of']} requirements on it are met. What they are, and by how much "
        "they are met, stays with the owner, since it would help an intruder."
    )
    return Section("Was it judged before it was released?", words)


def _columns(content: Content, place: int) -> Section | None:
    words = (
        "By what happened to them. A key may be known to others; a sensitive column is what nobody should "
        "learn; an identifier names somebody, and is left out."
    )
    files = content.get("files", {})
    notes = [f"Table {name}: {named_in_row(each['columns'])}." for name, each in files.items()]
    columns = {"column": "column", "what happened": "happened", "role": "role", "kind": "kind"}
    if not content["public"]:
        columns |= {"who decided on the role": "decided_by", "how": "reason"}
    rows = [
        {**each, "happened": happened(heading, each)}
        for heading, own in by_fate(content["roles"], content["steps"]).items()
        for each in own
    ]
    table = Section.table("What happened to each column?", words, columns, rows, notes=notes)
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
        charts[f"strip-risks-{place}"] = strip_chart(risks, title="risk, lower is safer", reads=_RISKS)
    if losses:
        title = "loss, lower is more useful"
        charts[f"strip-losses-{place}"] = strip_chart(losses, title=title, reads=_LOSSES, least=0.1)
    if not charts:
        return None
    title = "How much safer, and how much was lost?" if risks else "How much was lost?"
    return Section(title, charts=charts, layout="pair")


def _singled_out(content: Content, place: int) -> Section | None:
    """Who can be told apart from everybody else."""
    made = (_class_sizes, _individual, _gauges, _combinations)
    parts = [part for make in made if (part := make(content, place)) is not None]
    synthetic = (
        " The records are synthetic and nobody’s: how many of them are alike says nothing of people."
        if content["synthetic"]
        else ""
    )
    words = (
        "Singled out is who can be told apart from everybody else by what an intruder knows. Who shares all "
        f"of that with others hides among them.{synthetic}"
    )
    title = "Who could be singled out?"
    return _threat(content, place, "singling out", title=title, words=words, parts=parts)


def _linkage_section(content: Content, place: int) -> Section | None:
    """Who is found again by their values."""
    words = (
        "Linked is who is found again by an intruder who holds their values, exact or nearly so, and looks "
        "for the nearest record."
    )
    title = "Could records be linked to people?"
    return _threat(content, place, "linkability", title=title, words=words)


def _attribute_disclosure_section(content: Content, place: int) -> Section | None:
    """What the release tells of a person, and not of everybody."""
    words = "Learnt is a sensitive value that the release tells of a person more surely than of everybody."
    parts = [_disclosed_values_section(content["learnt"])] if content.get("learnt") else []
    title = "What could be learnt about somebody?"
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
        notes.append(f"Without a number here (see below why): {', '.join(missing)}.")
    notes.append(f"By attacks on people and on strangers: {content['tests'][threat]}.")
    if not rows:
        words += " Nothing could be measured here."
    shown = drawable(entries)
    charts = {f"attacks-{threat.replace(' ', '-')}-{place}": attack_chart(shown)} if shown else {}
    return Section(title, words, headers, rows, charts, notes=notes, parts=parts)


def _table(entries: Sequence[Content]) -> tuple[list[str], list[list[Cell]]]:
    """Risks as a table: what none of them has is no column of it, and what a measure is is said once."""
    explained_entries = [{**each, "what": _measure_sentence(each)} for each in entries]
    there = [
        (header, key) for header, key in _SAID if any(each[key] is not None for each in explained_entries)
    ]
    rows: list[list[Cell]] = []
    for place, each in enumerate(explained_entries):
        again = place > 0 and explained_entries[place - 1]["title"] == each["title"]
        rows.append(["" if again and key in {"title", "what"} else each[key] for _, key in there])
    return [header for header, _ in there] if rows else [], rows


def _measure_sentence(entry: Content) -> str:
    return f"{entry['what'].rstrip('.')}. {'Lower' if entry['better'] == 'low' else 'Higher'} is safer."


def _class_sizes(content: Content, place: int) -> Section | None:
    found = content.get("class_sizes")
    if not found:
        return None
    words = (
        f"A class is the records that are equal in {named_in_row(found['columns'])}. First the share of "
        "records by the size of their class, then the share in classes of fewer than k, by k. Grey is the "
        "original."
    )
    charts = charts_of_classes(found, OUTCOMES, suffix=f"-{place}")
    notes = [found["note"]] if "note" in found else []
    return Section("How many records are alike?", words, charts=charts, layout="pair", notes=notes)


def _individual(content: Content, place: int) -> Section | None:
    found = content.get("individual_risk")
    if not found:
        return None
    above, expected = found["at_risk"], found["expected"]
    before = found["records"]["original"] > 0
    words = (
        f"{found['title']} of each record, by the intruder who knows most. Above {found['threshold']:g} are "
        f"{above['release']:,} of {found['records']['release']:,} records"
        + (f"; in the original it is {above['original']:,}. " if before else ". ")
        + f"If every record were attacked, {_expected_people(expected['release'])} would be expected"
        + (f", and of the original {_expected_people(expected['original'])}." if before else ".")
    )
    charts = {
        f"risks-{place}": risk_bars(found),
        f"slider-{place}": slider_chart(found["title"], found["slider"]),
    }
    return Section("How many records are at risk?", words, charts=charts, layout="pair")


def _expected_people(people: float) -> str:
    """An expected number of people: whole ones, or a tenth where they are few."""
    return f"{people:,.0f}" if people >= 10 else f"{people:.1f}"  # noqa: PLR2004


def _gauges(content: Content, place: int) -> Section | None:
    gauges = content.get("gauges") or []
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


def _combinations(content: Content, place: int) -> Section | None:
    found = content.get("combinations")
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


def _disclosed_values_section(found: Content) -> Section:
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


def _recipients(content: Content) -> Section | None:
    found = content["recipients"]
    if "meant" in found[0]:
        meant = [_MEANT[each["recipient"]] for each in found if each["meant"] and each["recipient"] in _MEANT]
        return Section("For whom is it?", f"It is made for {', '.join(meant)}.") if meant else None
    words = (
        "The same release is safe for one recipient and not for another: it depends on what they hold and "
        "what binds them. Each line holds what was measured against the profile for that recipient."
    )
    columns = {
        "recipient": "recipient", "singling out": "singling_out", "linkability": "linkability",
        "inference": "inference", "why": "why",
    }  # fmt: skip
    return Section.table("Who may have it?", words, columns, found)


# Losses ---------------------------------------------------------------------------------------------------


def _distributions(content: Content, place: int) -> Section | None:
    """Each column that changed, before and after."""
    entries, left = content["distributions"], content["not_drawn"]
    if not entries and not left:
        return None
    parts = [_column(entry, f"{place}-{number}") for number, entry in enumerate(entries)]
    words = (_SHAPES if parts else "No column was changed.") + (
        _MERGED if content["public"] and parts else ""
    )
    notes = [f"As they were, or not drawn: {named_in_row(left)}."] if left else []
    return Section("Do the columns still look the same?", words, notes=notes, parts=parts)


def _column(entry: Content, place: str) -> Section:
    notes = [entry["note"]] if "note" in entry else []
    missing = {key: share for key, share in entry["missing"].items() if share != 0}
    if missing:
        shares = (
            f"{key} {'fewer than 10 records' if share is None else f'{share:.1%}'}"
            for key, share in missing.items()
        )
        notes.append(f"Missing: {', '.join(shares)}.")
    charts = charts_of_column(entry, OUTCOMES, place)
    return Section(entry["label"] or entry["column"], charts=charts, layout="pair", notes=notes)


def _associations(content: Content, place: int) -> Section | None:
    """Correlations and tables of two columns, before and after."""
    charts = charts_of_pairs(content["mosaics"], content["correlations"], suffix=f"-{place}")
    triptych = {name: spec for name, spec in charts.items() if name.startswith("correlation-")}
    parts = [Section("Numbers", _CORRELATIONS, charts=triptych, layout="triptych")] if triptych else []
    for number, entry in enumerate((content["mosaics"] or {}).get("pairs", ())):
        names = [f"mosaic-{number}-{part}-{place}" for part in PARTS]
        own = {name: charts[name] for name in names if name in charts}
        if len(own) > 1:
            title = f"{entry['columns'][1]} by {entry['columns'][0]}"
            parts.append(Section(title, charts=own, layout="triptych"))
    return Section("Do columns still go together as before?", _MOSAICS, parts=parts) if parts else None


def _analyses(content: Content) -> Section | None:
    """Every loss that was measured, models last."""
    known = [
        {**each, "better": "lower" if each["better"] == "low" else "higher"}
        for each in sorted(content["utility"], key=lambda each: each["model"])
        if each["value"] is not None
    ]
    columns = {
        "measure": "title", "value": "value", "to compare with": "baseline", "better is": "better",
        "what it is": "what",
    }  # fmt: skip
    return Section.table("Do analyses still give the same answers?", _ANALYSES, columns, known)


def _to_report(content: Content) -> Section | None:
    """What the profile asks to be reported."""
    asked = [{"scenario": "", "words": each["what"], **each} for each in content["listed"]]
    words = "Measures that nothing is required of, and that whoever decides should have seen."
    columns = {"measure": "title", "against": "scenario", "value": "value", "in words": "words"}
    return Section.table("What does the profile ask to be reported?", words, columns, asked)


# How it came about -----------------------------------------------------------------------------------------


def _rejected_section(content: Content) -> Section | None:
    if not content["rejected"]:
        return None
    loss = f"loss ({content['rejected'][0]['measure']})"
    columns = {"recipe": "recipe", "why it was rejected": "why", loss: "loss"}
    words = "Held to the same requirements. The loss is the mean of fresh runs."
    title = "Which other ways were looked at, and rejected?"
    return Section.table(title, words, columns, content["rejected"])


def _unestimated_section(content: Content) -> Section | None:
    unknown = content["not_estimated"]
    if content["public"]:
        columns = {"measure": "title", "why": "reason"}
        return Section.table("What could not be measured?", "", columns, unknown)
    unknown = [{**each, "scenarios": ", ".join(dict.fromkeys(each["scenarios"]))} for each in unknown]
    words = "A risk without a number is not a small one: nobody has seen it."
    columns = {"measure": "title", "against": "scenarios", "why": "reason"}
    return Section.table("What could not be estimated?", words, columns, unknown)


def _series(content: Content) -> Section | None:
    """What all releases of a series tell together."""
    found = content.get("series")
    if not found:
        return None
    words = (
        f"{found['earlier']} releases came before this one, which tells of {found['persons_in_common']:,} "
        "people who were in one of them. Whoever has all of them can put them together."
    )
    title, notes = "What do all releases tell together?", [f"Note: {each}." for each in found["notes"]]
    scores = [{"baseline": None, **each, "reason": each.get("reason") or ""} for each in found["measures"]]
    columns = {
        "measure": "measure", "value": "value", "by the last alone": "baseline", "status": "status",
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
        rows.append([number, each["title"], named_in_row(each["columns"]), *settings, each["what"]])
        notes += [f"Step {number}: {note}." for note in each.get("notes", ())]
    if content.get("copies"):
        notes.append(f"{content['copies']} copies were drawn; numbers are those of the worst of them.")
    how = content.get("how", "")
    words = [f"The recipe was found so: {how}."] if how else []
    if not rows:
        words.append("No step was taken: columns left as they were, or left out.")
    elif not own:
        words.append("Parameters are suppressed, since they would help an intruder.")
    headers = ("step", "method", "columns", *(("parameters",) if own else ()), "what it does")
    return Section("How was it made?", " ".join(words), headers if rows else (), rows, notes=notes)


def _budget(content: Content) -> list[str]:
    """What differential privacy promises, which may be published."""
    found = content.get("budget")
    if not found or "epsilon" not in found:
        return []
    units = ", ".join(dict.fromkeys(each["unit"] for each in found["steps"]))
    if "coverage" in found:
        return [
            f"Private steps spent ε = {found['epsilon']:.4g}, δ = {found['delta']:.2g}; {found['coverage']}."
        ]
    sentence = (
        f"Differential privacy: ε = {found['epsilon']:.4g}, δ = {found['delta']:.2g}, hiding each {units}. "
        f"No test of whether somebody is in the data gains more than {found['advantage_at_most']:.3f}."
    )
    return [sentence, f"It is {found['guarantee']}."] if "guarantee" in found else [sentence]
