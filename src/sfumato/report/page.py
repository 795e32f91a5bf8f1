"""The report as one HTML file that needs no network, beside its JSON twin."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from sfumato.errors import ParameterError, counted
from sfumato.io import atomic
from sfumato.report.charts import charts
from sfumato.report.content import twin
from sfumato.report.fates import intruder_sentence, loss_sentences
from sfumato.report.frame import Spec
from sfumato.report.pictures import Pictures, Section, specs_of
from sfumato.report.release_sections import sections_of
from sfumato.report.words import figure, rounded, setting, shared_decimals
from sfumato.study.compare import Study

#: In the order in which they must be loaded.
_SCRIPTS = ("vega.min.js", "vega-lite.min.js", "vega-embed.min.js", "report.js")
_SOURCE_MAP = re.compile(r"\n//# sourceMappingURL=\S*\s*$")


def render(study: Study, *, public: bool, generated: str = "") -> str:
    """Write a study's report as HTML: everything it shows is in its JSON twin, which it holds."""
    return _page(twin(study, public=public, generated=generated))


def write_report(
    study: Study,
    path: Path,
    *,
    public: bool,
    overwrite: bool = False,
    generated: str = "",
    originals: Sequence[str | Path] = (),
) -> tuple[Path, Path]:
    """Write the report to ``path`` and its JSON twin beside it; returns both places."""
    told = twin(study, public=public, generated=generated)
    return write_twins(path, _page(told), told, originals=originals, overwrite=overwrite)


def write_pictures(
    pictures: Pictures, path: Path, *, overwrite: bool = False, originals: Sequence[str | Path] = ()
) -> tuple[Path, Path]:
    """Write a page of pictures to ``path`` and its JSON twin beside it; returns both places."""
    told = pictures.to_dict()
    page = _page_of(pictures.sections, told, pictures.verdict)
    return write_twins(path, page, told, originals=originals, overwrite=overwrite)


def write_twins(
    path: Path,
    page: str,
    told: Mapping[str, Any],
    *,
    originals: Sequence[str | Path] = (),
    overwrite: bool = False,
) -> tuple[Path, Path]:
    """Write a page to ``path`` and what it says as JSON beside it, both or none; returns both places."""
    places = check_report(path, originals=originals, overwrite=overwrite)
    with atomic.Staging(originals=originals, overwrite=overwrite) as staging:
        for place, text in zip(places, (page, as_json(told) + "\n"), strict=True):
            staging.write_text(place, text)
    return places


def check_report(
    path: Path, *, originals: Sequence[str | Path] = (), overwrite: bool = False
) -> tuple[Path, Path]:
    """Raise now what writing the report or its twin would raise later; returns where both go."""
    places = twins(path)
    for place in places:
        atomic.check_writable(place, originals=originals, overwrite=overwrite)
    return places


def twins(path: Path) -> tuple[Path, Path]:
    """Where a page and its JSON twin go."""
    beside = path.with_suffix(".json")
    if beside == path:
        raise ParameterError(f"`{path}` must not end in .json, which its twin does", hint="call it .html")
    return path, beside


def page_of_release(told: Mapping[str, Any]) -> str:
    """The page of one release, of what its twin says; several tables stand one after the other."""
    tables = told.get("tables") or {"": told}
    sections = [
        replace(section, title=f"{name}: {section.title}" if name else section.title)
        for place, (name, each) in enumerate(tables.items())
        for section in sections_of({**told, **each}, place)
    ]
    brief = [told["verdict"], *_in_brief(tables, public=told["public"])]
    return _page_of(sections, told, brief, facts=_facts(told, tables), signed=not told["public"])


def page_of_evidence(evidence: Mapping[str, Any]) -> str:
    """The evidence as a page to be read and printed: what its JSON says, and nothing else."""
    page = _environment().get_template("evidence.html.j2")
    return page.render(evidence=evidence, policy=_policy(())).strip() + "\n"


def _page_of(
    sections: Sequence[Section],
    told: Mapping[str, Any],
    brief: Sequence[str],
    *,
    facts: Mapping[str, Sequence[str]] | None = None,
    signed: bool = False,
) -> str:
    """The page of sections, under what must be known first; one that is ``signed`` has lines for it."""
    more = {"sections": [each.to_dict() for each in sections], "facts": facts or {}, "signed": signed}
    return _drawn("pictures.html.j2", told, specs_of(sections), brief=brief, **more)


def _facts(told: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """What it is for, for whom, of what it was made, and who has decided on the roles."""
    facts = {name.capitalize(): [text] for name, text in told["about"].items()}
    for name, own in tables.items():
        where, found = f" ({name})" if name else "", own.get("source")
        if found is None:
            continue
        file = [f"SHA-256 {found['sha256']}"] if found["sha256"] else []
        facts[f"Source{where}"] = [
            found["name"] or "a table in memory", *file, f"fingerprint of its records {found['contents']}",
        ]  # fmt: skip
        counts = Counter(each["decided_by"] for each in own["roles"])
        facts[f"Roles decided by{where}"] = [f"{who}: {counted(n, 'column')}" for who, n in counts.items()]
    return facts


def _in_brief(tables: Mapping[str, Mapping[str, Any]], *, public: bool) -> list[str]:
    """Against whom it was judged, what was lost, how large it is, and what else must be known first."""
    said = []
    for name, told in tables.items():
        count, where = told["records"]["released"], f"{name}: " if name else ""
        if not public:
            said.append(where + intruder_sentence(told["scenarios"], told["requirements"]))
        said.append(where + loss_sentences(told["roles"], told["steps"]))
        of = f" of {told['records']['original']:,}" if "original" in told["records"] else ""
        synthetic = ", made anew: they are nobody’s" if told["synthetic"] else ""
        said.append(f"{where}{count:,} records{of}, {len(told['columns'])} columns{synthetic}.")
        said += [f"Warning: {where}{each}." for each in told["warnings"]]
    return said


def _page(told: Mapping[str, Any]) -> str:
    return _drawn("report.html.j2", told, charts(told), rows=_rows(told))


def _drawn(template: str, told: Mapping[str, Any], specs: Mapping[str, Spec], **more: Any) -> str:
    """A page with its charts, and all that is needed to draw them."""
    scripts = [_script(name) for name in _SCRIPTS]
    page = (
        _environment()
        .get_template(template)
        .render(
            told=told,
            specs=specs,
            **more,
            scripts=[Markup(text) for text in scripts],  # noqa: S704  — our own files, which hold no user text
            policy=_policy(scripts),
            twin_json=_in_html(told),
            specs_json=_in_html(specs),
        )
    )
    return page.strip() + "\n"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sfumato.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"figure": figure, "setting": setting, "rounded": rounded}
    return environment


@cache
def _script(name: str) -> str:
    text = files("sfumato.report").joinpath("static", name).read_text(encoding="utf-8")
    return _SOURCE_MAP.sub("", text)  # a browser's tools would look for a file that is not there


def _policy(scripts: Sequence[str]) -> str:
    """Forbid every connection, and every script but our own, whatever a column may be called."""
    hashes = " ".join(f"'sha256-{_hash(text)}'" for text in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def as_json(said: Any) -> str:
    """The twin as it stands in its file."""
    return _json(said, indent=1)


def _json(said: Any, *, indent: int | None = None) -> str:
    separators = (",", ": ") if indent else (",", ":")
    return json.dumps(said, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)


def _in_html(said: Any) -> Markup:
    """JSON that cannot end the element it stands in, nor open a comment."""
    text = _json(said)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704  — nothing is left in it that HTML would read


def _rows(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ranking as texts, each column with the same decimals so that it lines up."""
    outcomes = told["outcomes"]
    decimals = {
        part: shared_decimals([o[part]["mean"] for o in outcomes if o[part]]) for part in ("held", "ranked")
    }
    return [
        {
            **outcome,
            **{f"{part}_said": _mean_and_doubt(outcome[part], decimals[part]) for part in decimals},
            "range_said": " to ".join(
                figure(end, decimals=decimals["ranked"]) for end in outcome["ranked_range"] or ()
            ),
            "runs": outcome["held"]["runs"] if outcome["held"] else None,
        }
        for outcome in outcomes
    ]


def _mean_and_doubt(spread: Mapping[str, Any] | None, decimals: int) -> tuple[str, str]:
    if spread is None:
        return "–", ""
    low, high = spread["interval"]
    doubt = f"± {figure((high - low) / 2, decimals=decimals)}" if high > low else ""
    return figure(spread["mean"], decimals=decimals), doubt
