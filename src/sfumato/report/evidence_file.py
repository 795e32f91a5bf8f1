"""What is filed with a release: the evidence for an officer, the change note for analysts, the data card.

The evidence has the headings of ISO/IEC 27559 and what others ask. The report beside it
holds what is measured; the evidence says where (``see``, a JSON pointer). What was not stated or not measured
is marked as missing. `evidence.schema.json` in ``static`` is its schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files as package_files
from typing import Any

from sfumato.core import registry
from sfumato.errors import quoted
from sfumato.recipes.parts import About
from sfumato.releasing.claims import PublicClaims
from sfumato.releasing.decide import Decision
from sfumato.releasing.folder import TWIN
from sfumato.releasing.outcome import tally
from sfumato.releasing.trail import environment
from sfumato.report import fates
from sfumato.report.words import sample_words
from sfumato.version import __version__

Content = Mapping[str, Any]

FORM = "sfumato-evidence/1"
CONFIDENTIAL = "confidential: with the owner"
#: What the owner says that stays with them.
_INTERNAL = ("threats", "intruder_test", "basis", "expert")
NOT_STATED = "not stated"
#: What the owner says that may leave, and its heading.
CARD: Mapping[str, str] = {
    "description": "Description",
    "population": "Population",
    "period": "Reference period",
    "publisher": "Publisher",
    "contact": "Contact",
    "purpose": "Purpose",
    "legal_basis": "Legal basis",
    "recipients": "Recipients",
    "terms": "Terms of use",
    "safeguards": "Safeguards",
    "transparency": "Information given to the people concerned",
    "review_date": "Review date",
}
#: What of that is on the first page of a report.
FIRST_PAGE = ("purpose", "recipients", "contact")
#: Holds of every release, whatever else its terms are.
_NO_REIDENTIFICATION = "Recipients must not try to re-identify anyone, also not by linking with other data."
_INTRODUCTION = (
    "What was done to the data before their release, and what to correct for in an analysis. Parameters are "
    "not published, because they would help an intruder."
)
_SAMPLES = (
    "By these measures the released data are off by as much as a simple random sample of so many per cent of "
    "the original records is (in brackets: the shares that fit as well)."
)
#: What is meant by headings whose columns are only named.
_MEANING = {
    fates.RENAMED: "Equal pseudonyms mean the same person or household; they have no other meaning.",
    fates.UNCHANGED: "Their values are those of the original.",
    fates.REMOVED: "They could identify people or link their records.",
    fates.EMPTIED: "No cell has a value.",
}
#: What happened, and what to correct for, where no step of the recipe says it.
_WITHOUT_STEP = {
    fates.WEIGHTS: (
        "Each record has the mean weight of its class: exact weights show which records belong together.",
        "Totals by the columns that define the classes stay; others are smoothed, and the design is lost.",
    ),
    fates.CORRECTED: ("Corrected, or changed with another column, so that the edit rules hold again.", ""),
}


def schema(what: str = "evidence") -> dict[str, Any]:
    """The JSON schema of the evidence, of a release's report or of a study's."""
    text = package_files("sfumato.report").joinpath("static", f"{what}.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def evidence_of(
    about: About,
    content: Content,
    files: Mapping[str, str],
    *,
    decision: Decision | None = None,
    in_series: bool = False,
    claims: PublicClaims | None = None,
) -> dict[str, Any]:
    """The evidence of a release in the form that ``content`` has: for its owner, or public.

    Parameters
    ----------
    about
        What the owner says of the release.
    content
        The report, which the evidence points to.
    files
        The hashes of the released files by their names.
    decision
        What was overridden to let it out.
    in_series
        Whether it is one of several releases of the same people.
    claims
        What of it anybody can count again.
    """
    claims = claims or PublicClaims()
    owner = _about(about, public=content["public"])
    return {
        "form": FORM,
        "public": content["public"],
        "sfumato": __version__,
        "generated": content["generated"],
        "title": content["title"],
        "context": {
            name: owner[name]
            for name in ("purpose", "recipients", "terms", "safeguards", "threats", "transparency")
        },
        "data": {**_data(owner, content, files), "tables": list(claims.tables)},
        "identifiability": {
            **_identifiability(owner, content, in_series=in_series),
            "claims": list(claims.claims),
        },
        "governance": _governance(owner, content, decision),
        "views": {
            "gdpr": _gdpr(owner, content),
            "hipaa": _hipaa(owner, content),
            "nist": _nist(content),
            "essnet": _essnet(content),
        },
    }


def _about(about: About, *, public: bool) -> dict[str, str]:
    """What the owner says, by name; of what stays with them the public form says that it does."""
    facts = {name: text_or_unknown(getattr(about, name)) for name in (*CARD, *_INTERNAL)}
    if public:
        facts |= {name: CONFIDENTIAL for name in _INTERNAL if facts[name] != NOT_STATED}
    return facts


def _see(content: Content, key: str) -> dict[str, Any]:
    """Where the report has something, and whether it does."""
    if content.get(key) in (None, [], {}):
        return {"see": None, "says": CONFIDENTIAL if content["public"] and key not in content else NOT_STATED}
    says = "measured" if key in {"risks", "utility", "series"} else "told"
    return {"see": _place_in_report(content, key), "says": says}


def _attack_tests(content: Content) -> dict[str, Any]:
    """Whether attacks were carried out, and why not: in the words of the report."""
    reasons = dict.fromkeys((content.get("tests") or {}).values())
    if not reasons:
        return _see(content, "tests")
    of_each = [f"{threat}: {each}" for threat, each in content["tests"].items()]
    says = "; ".join(reasons if len(reasons) == 1 else of_each)
    return {"see": _place_in_report(content, "tests"), "says": says}


def _place_in_report(content: Content, key: str) -> str:
    """Where in the report something stands: of several tables in each of them."""
    return f"{TWIN}#/tables" if "tables" in content else f"{TWIN}#/{key}"


def _data(about: Mapping[str, str], content: Content, files: Mapping[str, str]) -> dict[str, Any]:
    return {
        "population": about["population"],
        "period": about["period"],
        "records": dict(content["records"]),
        "source": _see(content, "source"),
        "attributes": _see(content, "roles"),
        "attack_model": {
            "risk": "of the record at most risk, or the mean over all records: each score says which",
            "reference": "people in the file, whom the intruder knows to be in it, unless a scenario differs",
        },
        "files": [{"name": name, "sha256": sha} for name, sha in files.items()],
        **({"tables_beside": content["tables_beside"]} if "tables_beside" in content else {}),
    }


def _identifiability(about: Mapping[str, str], content: Content, *, in_series: bool) -> dict[str, Any]:
    alone = {"see": None, "says": "the release is not part of a series"}
    return {
        "requirements": _requirement_tally(content),
        "quantified": _see(content, "risks"),
        "adversarial_test": {**_attack_tests(content), "intruder_test": about["intruder_test"]},
        "mitigation": [
            {key: step[key] for key in ("method", "title", "columns")} for step in content["steps"]
        ],
        "vetted": _vetting_levels(content),
        "information_loss": _see(content, "lost"),
        "utility": _see(content, "utility"),
        "not_estimated": _see(content, "not_estimated"),
        "rejected_alternatives": _see(content, "rejected"),
        "earlier_releases": _see(content, "series") if in_series else alone,
        "re_evaluation": about["review_date"],
    }


def _vetting_levels(content: Content) -> dict[str, Any]:
    """How the methods, and for the owner the measures that were required, were checked."""
    judged = [] if content["public"] else content["requirements"]
    names = [step["method"] for step in content["steps"]]
    return {
        "methods": {name: registry.method(name).vetting().level for name in names},
        "measures": {each["requirement"]: each["vetted"] for each in judged},
    }


def _requirement_tally(content: Content) -> dict[str, int]:
    judged = content["requirements"]
    return dict(judged) if isinstance(judged, Mapping) else tally(judged)


def _governance(about: Mapping[str, str], content: Content, decision: Decision | None) -> dict[str, Any]:
    found = decision.findings if decision else ()
    overridden: dict[str, Any] = {"rules": sorted({each.rule for each in found})}
    if not content["public"] and decision is not None and found:
        overridden |= {"reason": decision.override, "findings": [each.to_dict() for each in found]}
    return {
        "publisher": about["publisher"],
        "contact": about["contact"],
        "legal_basis": about["legal_basis"],
        "basis": about["basis"],
        "expert": about["expert"],
        "review_date": about["review_date"],
        "overridden": overridden,
        "environment": {} if content["public"] else environment(),
        "verification": "python3 check_release.py; the owner: sfumato verify FOLDER",
    }


def _gdpr(about: Mapping[str, str], content: Content) -> dict[str, Any]:
    """Singling out, linkability and inference, for each recipient."""
    attacks, tests = content.get("attacks") or {}, content.get("tests") or {}
    unknown = CONFIDENTIAL if content["public"] else NOT_STATED
    return {
        "legal_basis": about["legal_basis"],
        "purpose": about["purpose"],
        **{
            name.replace(" ", "_"): {
                "see": _place_in_report(content, f"attacks/{name}") if attacks.get(name) else None,
                "says": tests.get(name, unknown),
            }
            for name in ("singling out", "linkability", "inference")
        },
        "recipients": [dict(each) for each in content.get("recipients") or ()],
    }


def _hipaa(about: Mapping[str, str], content: Content) -> dict[str, Any]:
    """What an expert determination says (45 CFR 164.514(b)(1)); the signature is put to it by hand."""
    return {
        "scope": f"{content['records']['released']} records; {about['description']}",
        "method": [step["title"] for step in content["steps"]],
        "quantified_risk": _see(content, "risks"),
        "practice": "a risk below 0.09 is common practice; the rule itself sets no threshold",
        "conditions": about["safeguards"],
        "expiry": about["review_date"],
        "expert": about["expert"],
        "signature": NOT_STATED,
    }


def _nist(content: Content) -> dict[str, Any]:
    """What NIST SP 800-226 asks of a claim of differential privacy; ε is public."""
    budget = content.get("budget")
    if not budget:
        return {"claimed": False, "says": "no differential privacy is claimed"}
    steps = budget["steps"]
    return {
        "claimed": "guarantee" not in budget,
        "says": budget.get("coverage") or budget.get("guarantee", "differential privacy as stated"),
        "unit": [] if "coverage" in budget else sorted({each["unit"] for each in steps}),
        "neighbours": sorted({each["neighbours"] for each in steps}),
        "epsilon": budget.get("epsilon"),
        "delta": budget.get("delta"),
        "meaning": {"membership_advantage_at_most": budget.get("advantage_at_most")},
        "mechanisms": [each["mechanism"] for each in steps],
        "budget": {"see": _place_in_report(content, "budget"), "says": "told"},
    }


def _essnet(content: Content) -> dict[str, Any]:
    """As in the handbook of the ESSnet: information loss is public, values of risk are confidential."""
    return {
        "information_loss": _see(content, "lost"),
        "by_column": [dict(each) for each in content["lost"]],
        "utility": _see(content, "utility"),
        "risk": _see(content, "risks") if not content["public"] else {"see": None, "says": CONFIDENTIAL},
        "change_note": "change-note.md",
    }


# The change note ------------------------------------------------------------------------------------------


def change_note(content: Content) -> str:
    """The note as Markdown, from the public form of a report: by what happened to the columns."""
    steps, paragraphs = content["steps"], dict[str, str]()
    return "\n".join(
        [
            f"# Change note: {content['title']}",
            "",
            _INTRODUCTION,
            "",
            *_on_all(steps, paragraphs),
            *(
                line
                for heading, columns in fates.by_fate(content["roles"], steps).items()
                for line in _under(heading, columns, steps, paragraphs)
            ),
        ]
    )


def _on_all(steps: Sequence[Content], paragraphs: dict[str, str]) -> Iterator[str]:
    """Steps that change which records there are: they concern every column."""
    found = [step for step in steps if registry.method(step["method"]).gives.other_records]
    if found:
        yield from ("## All records", "")
        what = [(step["title"], step["what"]) for step in found]
        yield from dict.fromkeys(f"- {title}: {words[:1].lower()}{words[1:]}" for title, words in what)
        yield from (*_corrections("All records", found, paragraphs), "")


def _under(
    heading: str,
    columns: Sequence[Content],
    steps: Sequence[Content],
    paragraphs: dict[str, str],
) -> Iterator[str]:
    """One heading: its columns, each with its loss, and once what to correct for."""
    yield from (f"## {heading}", "")
    what, correct = _WITHOUT_STEP.get(heading, (fates.VALUES.get(heading, ""), ""))
    if heading in _MEANING:
        what = f"{', '.join(each['column'] for each in columns)}. {_MEANING[heading]}"
    if what:
        yield from (what, "")
    is_named = heading in _MEANING
    own = [each for each in columns if not is_named or fates.more_than_fate(each)]
    yield from (f"- **{each['column']}**: {_without_name(each['became'], each)}." for each in own)
    yield from [f"- **To correct for:** {correct}"] if correct else ()
    yield from () if is_named else _corrections(heading, fates.steps_on(columns, steps), paragraphs)
    yield from [""] if own else ()


def _corrections(heading: str, steps: Sequence[Content], paragraphs: dict[str, str]) -> Iterator[str]:
    """What to correct for, each sentence once in the note; ``paragraphs`` says under which heading."""
    titles: dict[str, dict[str, None]] = {}
    for step in steps:
        note = step.get("analyst_note") or registry.method(step["method"]).analyst_note
        note = fates.CORRECTIONS.get(heading, note)
        titles.setdefault(note, {})[step["title"]] = None
    for note, own in titles.items():
        where = paragraphs.setdefault(note, heading)
        words = note if where == heading else f"see “{where}”."
        yield f"- **To correct for** ({', '.join(own)}): {words}"


# The data card --------------------------------------------------------------------------------------------


def _without_name(sentence: str, column: Mapping[str, Any]) -> str:
    """What became of a column, where its name stands before."""
    return sentence.removeprefix(f"{column['column']} ")


def data_card(about: About, content: Content) -> str:
    """The card as Markdown, from what the owner says and the public form of the report.

    What the owner has not stated is named at its end, with where to state it.
    """
    texts = {name: text_or_unknown(getattr(about, name)) for name in CARD}
    unknown = [name for name, text in texts.items() if text == NOT_STATED]
    further = "" if "terms" in unknown else f" Further terms: {texts['terms']}"
    facts = {name: text for name, text in texts.items() if name == "terms" or name not in unknown}
    facts["terms"] = f"{_NO_REIDENTIFICATION}{further}"
    columns = [
        f"| {_cell(each['column'])} | {each['kind']} "
        f"| {_cell(_without_name(fates.happened(heading, each), each))} |"
        for heading, own in fates.by_fate(content["roles"], content["steps"]).items()
        for each in own
    ]
    records = content["records"]["released"]
    return "\n".join(
        [
            f"# {about.title or content['title']}",
            "",
            f"{records:,} records, protected by sfumato {content['sfumato']} on {content['generated']}.",
            "",
            *(line for name, text in facts.items() for line in (f"## {CARD[name]}", "", text, "")),
            *_lines_of_unstated(unknown),
            "## Columns",
            "",
            "| column | kind | what happened |",
            "|---|---|---|",
            *columns,
            "",
            *_sample_lines(content),
            *_tables_beside(content),
            "`change-note.md` explains what to correct for in an analysis.",
            "",
        ]
    )


def _lines_of_unstated(names: Sequence[str]) -> list[str]:
    """What the owner has not said, in one place, and where they can."""
    titles = ", ".join(CARD[name].lower() if name != "terms" else "further terms of use" for name in names)
    keys = quoted(names)
    sentence = f"{titles}. The owner states it in the part `[release]` of the plan, as {keys}."
    return ["## Not stated", "", sentence[0].upper() + sentence[1:], ""] if names else []


def _sample_lines(content: Content) -> list[str]:
    """Which random sample of the original a release of one table is as good as, by each loss that tells."""
    entries = () if "tables" in content else content.get("utility") or ()
    lines = [f"- {each['title']}: {words}" for each in entries if (words := sample_words(each))]
    return ["## As good as a random sample of the original", "", _SAMPLES, "", *lines, ""] if lines else []


def _tables_beside(content: Content) -> list[str]:
    """A line for each table that leaves beside the file, and what missing values are in it."""
    found = content.get("tables_beside") or {}
    lines = [f"- `{name}`: {_cell(what)}." for name, what in found.items()]
    gaps = "A missing value to count by is a category; records without an amount are in no mean."
    return ["## Tables", "", *lines, "", gaps, ""] if lines else []


def text_or_unknown(value: str | tuple[str, ...]) -> str:
    """What was stated, or that nothing was."""
    text = value if isinstance(value, str) else "; ".join(value)
    return text.strip() or NOT_STATED


def _cell(text: str) -> str:
    """A text that does not end its cell of a table."""
    return " ".join(text.replace("|", "\\|").split())
