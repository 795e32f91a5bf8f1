"""The sections of a release's report, each a question: words, tables and charts of what the twin says.

Whatever a form does not tell has no section in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.report.loss_sections import analyses, associations, distributions, listed
from sfumato.report.pictures import Cell, Section
from sfumato.report.risk_sections import learnt, linked, singled_out, strip
from sfumato.report.words import named_in_row

Told = Mapping[str, Any]


def sections_of(told: Told, place: int = 0) -> list[Section]:
    """All sections of one table; ``place`` tells the charts of several tables apart."""
    found = (
        _judged(told), _columns(told), strip(told, place), singled_out(told, place), linked(told, place),
        learnt(told, place), _recipients(told), distributions(told, place), associations(told, place),
        analyses(told), listed(told), _rejected(told), _not_estimated(told), _series(told), _made(told),
    )  # fmt: skip
    return [each for each in found if each is not None]


def _judged(told: Told) -> Section | None:
    said = told["requirements"]
    if isinstance(said, Mapping):
        return _judged_in_public(said) if said["of"] else None
    notes = [f"Warning: {each}." for each in told["warnings"]]
    notes += [f"Note: {each}." for each in told["notes"]]
    notes += [
        f"{each['records']:,} records break the promise that {each['promise']}."
        for each in told["broken_promises"]
    ]
    if not said:
        words = (
            "Nobody can say: nothing was required of it. What was measured stands below; a requirement such "
            "as k >= 3 in the plan makes it a judgement."
        )
        return Section("Is it safe enough?", words, notes=notes)
    rows: list[list[Cell]] = [
        ["yes" if each["met"] else "NO", each["asked"], each["scenario"], each["verdict"], each["reason"]]
        for each in said
    ]
    knows = " ".join(
        f"“{each['name']}” knows {named_in_row(each['columns'])}."
        for each in told["scenarios"]
        if each["judged"]
    )
    words = f"Each line is a requirement against one intruder, and what the release scores. {knows}"
    headers = ("met", "required", "against", "what it scores", "why this much")
    return Section("Is it safe enough?", words, headers, rows, notes=notes)


def _judged_in_public(said: Told) -> Section:
    yes = "Yes" if said["met"] == said["of"] else "Yes, and its owner let it out though some are missed"
    words = (
        f"{yes}: {said['met']} of {said['of']} requirements on it are met. What they are, and by how much "
        "they are met, stays with the owner, since it would help an intruder."
    )
    return Section("Was it judged before it was released?", words)


def _columns(told: Told) -> Section:
    rows: list[list[Cell]] = [
        [each["column"], each["role"], each["kind"], each["reason"], each["became"]] for each in told["roles"]
    ]
    words = (
        "What each column is to others, why it is thought so, and what became of it. A key may be known to "
        "others; a sensitive column is what nobody should learn; an identifier names somebody, and stays."
    )
    files = told.get("files", {})
    notes = [f"Table {name}: {named_in_row(each['columns'])}." for name, each in files.items()]
    headers = ("column", "role", "kind", "why this role", "what became of it")
    return Section("What happened to each column?", words, headers, rows, notes=notes)


_MEANT = {
    "processor": "companies that work on it under an agreement",
    "researcher": "researchers",
    "public": "everybody",
}


def _recipients(told: Told) -> Section | None:
    found = told["recipients"]
    if "meant" in found[0]:
        meant = [_MEANT[each["recipient"]] for each in found if each["meant"] and each["recipient"] in _MEANT]
        return Section("For whom is it?", f"It is made for {', '.join(meant)}.") if meant else None
    rows: list[list[Cell]] = [
        [each["recipient"], each["singling_out"], each["linkability"], each["inference"], each["why"]]
        for each in found
    ]
    words = (
        "The same release is safe for one recipient and not for another: it depends on what they hold and "
        "what binds them. Each line holds what was measured against the profile for that recipient."
    )
    headers = ("recipient", "singling out", "linkability", "inference", "why")
    return Section("Who may have it?", words, headers, rows)


def _rejected(told: Told) -> Section | None:
    if not told["rejected"]:
        return None
    rows: list[list[Cell]] = [[each["recipe"], each["why"], each["loss"]] for each in told["rejected"]]
    headers = ("recipe", "why it was rejected", f"loss ({told['rejected'][0]['measure']})")
    words = "Held to the same requirements. The loss is the mean of fresh runs."
    return Section("Which other ways were looked at, and rejected?", words, headers, rows)


def _not_estimated(told: Told) -> Section | None:
    found = told["not_estimated"]
    if not found:
        return None
    if told["public"]:
        rows: list[list[Cell]] = [[each["title"], each["reason"]] for each in found]
        return Section("What could not be measured?", "", ("measure", "why"), rows)
    rows = [[each["title"], ", ".join(dict.fromkeys(each["scenarios"])), each["reason"]] for each in found]
    words = "A risk without a number is not a small one: nobody has seen it."
    return Section("What could not be estimated?", words, ("measure", "against", "why"), rows)


def _series(told: Told) -> Section | None:
    """What all releases of a series tell together."""
    found = told.get("series")
    if not found:
        return None
    words = (
        f"{found['earlier']} releases came before this one, which tells of {found['persons_in_common']:,} "
        "people who were in one of them. Whoever has all of them can put them together."
    )
    rows: list[list[Cell]] = [
        [each["measure"], each["value"], each.get("baseline"), each["status"], each.get("reason") or ""]
        for each in found["measures"]
    ]
    headers = ("measure", "value", "by the last alone", "status", "remark") if rows else ()
    notes = [f"Note: {each}." for each in found["notes"]]
    return Section("What do all releases tell together?", words, headers, rows, notes=notes)


def _made(told: Told) -> Section:
    own = any("parameters" in each for each in told["steps"])
    rows: list[list[Cell]] = []
    for number, each in enumerate(told["steps"], start=1):
        settings = [", ".join(f"{key} = {value}" for key, value in each["parameters"].items())] if own else []
        rows.append([number, each["title"], named_in_row(each["columns"]), *settings, each["what"]])
    notes = _budget(told)
    if told.get("copies"):
        notes.append(f"{told['copies']} copies were drawn; numbers are those of the worst of them.")
    how = told.get("how", "")
    words = [f"The recipe was found so: {how}."] if how else []
    if not rows:
        words.append("No step was taken: columns left as they were, or left out.")
    elif not own:
        words.append("Parameters are suppressed, since they would help an intruder.")
    headers = ("step", "method", "columns", *(("parameters",) if own else ()), "what it does")
    return Section("How was it made?", " ".join(words), headers if rows else (), rows, notes=notes)


def _budget(told: Told) -> list[str]:
    """What differential privacy promises, which may be published."""
    found = told.get("budget")
    if not found or "epsilon" not in found:
        return []
    units = ", ".join(dict.fromkeys(each["unit"] for each in found["steps"]))
    said = (
        f"Differential privacy: ε = {found['epsilon']:.4g}, δ = {found['delta']:.2g}, hiding each {units}. "
        f"No test of whether somebody is in the data gains more than {found['advantage_at_most']:.3f}."
    )
    return [said, f"It is {found['guarantee']}."] if "guarantee" in found else [said]
