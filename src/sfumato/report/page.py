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

from sfumato.errors import ParameterError, count_noun
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
    content = twin(study, public=public, generated=generated)
    return write_twins(path, _page(content), content, originals=originals, overwrite=overwrite)


def write_pictures(
    pictures: Pictures, path: Path, *, overwrite: bool = False, originals: Sequence[str | Path] = ()
) -> tuple[Path, Path]:
    """Write a page of pictures to ``path`` and its JSON twin beside it; returns both places."""
    content = pictures.to_dict()
    page = _page_of(pictures.sections, content, pictures.verdict)
    return write_twins(path, page, content, originals=originals, overwrite=overwrite)


def write_twins(
    path: Path,
    page: str,
    content: Mapping[str, Any],
    *,
    originals: Sequence[str | Path] = (),
    overwrite: bool = False,
) -> tuple[Path, Path]:
    """Write a page to ``path`` and what it says as JSON beside it, both or none; returns both places."""
    places = check_report(path, originals=originals, overwrite=overwrite)
    with atomic.Staging(originals=originals, overwrite=overwrite) as staging:
        for place, text in zip(places, (page, as_json(content) + "\n"), strict=True):
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
        raise ParameterError(f"`{path}` must not end in .json, as its JSON file does", hint="call it .html")
    return path, beside


def sections_of_release(content: Mapping[str, Any]) -> list[Section]:
    """The sections of what its twin says; of several tables one after the other."""
    return [
        replace(section, title=f"{name}: {section.title}" if name else section.title)
        for place, (name, each) in enumerate(_tables_of(content).items())
        for section in sections_of({**content, **each}, place)
    ]


def _tables_of(content: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    return content.get("tables") or {"": content}


def page_of_release(content: Mapping[str, Any]) -> str:
    """The page of one release, of what its twin says."""
    tables, sections = _tables_of(content), sections_of_release(content)
    summary = [content["verdict"], *_summary(tables, public=content["public"])]
    return _page_of(sections, content, summary, facts=_facts(content, tables), signed=not content["public"])


def page_of_evidence(evidence: Mapping[str, Any]) -> str:
    """The evidence as a page to be read and printed: what its JSON holds, but for prices of each record."""
    page = _environment().get_template("evidence.html.j2")
    judged = {name: each for name, each in evidence["identifiability"].items() if name != "certificates"}
    return page.render(evidence={**evidence, "identifiability": judged}, policy=_policy(())).strip() + "\n"


def _page_of(
    sections: Sequence[Section],
    content: Mapping[str, Any],
    summary: Sequence[str],
    *,
    facts: Mapping[str, Sequence[str]] | None = None,
    signed: bool = False,
) -> str:
    """The page of sections under a summary; one that is ``signed`` has lines for signatures."""
    more = {"sections": [each.to_dict() for each in sections], "facts": facts or {}, "signed": signed}
    return _render_page("pictures.html.j2", content, specs_of(sections), summary=summary, **more)


def _facts(content: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Purpose, recipients and contact, the source, and who decided on the roles."""
    facts = {name.capitalize(): [text] for name, text in content["about"].items()}
    for name, own in tables.items():
        where, found = f" ({name})" if name else "", own.get("source")
        if found is None:
            continue
        file = [f"SHA-256 {found['sha256']}"] if found["sha256"] else []
        facts[f"Source{where}"] = [
            found["name"] or "a table in memory", *file, f"fingerprint of the records {found['contents']}",
        ]  # fmt: skip
        counts = Counter(each["decided_by"] for each in own["roles"])
        facts[f"Roles decided by{where}"] = [f"{who}: {count_noun(n, 'column')}" for who, n in counts.items()]
    return facts


def _summary(tables: Mapping[str, Mapping[str, Any]], *, public: bool) -> list[str]:
    """The intruders it was judged against, the information loss, its size, and warnings."""
    sentences = []
    for name, content in tables.items():
        count, where = content["records"]["released"], f"{name}: " if name else ""
        if not public:
            sentences.append(where + intruder_sentence(content["scenarios"], content["requirements"]))
        sentences.append(where + loss_sentences(content["roles"], content["steps"]))
        of = f" (original: {content['records']['original']:,})" if "original" in content["records"] else ""
        kind = "synthetic record" if content["synthetic"] else "record"
        columns = count_noun(len(content["columns"]), "column")
        sentences.append(f"{where}{count_noun(count, kind)}{of}, {columns}.")
        sentences += [f"Warning: {where}{each}." for each in content["warnings"]]
    return sentences


def _page(content: Mapping[str, Any]) -> str:
    return _render_page("report.html.j2", content, charts(content), rows=_rows(content))


def _render_page(template: str, content: Mapping[str, Any], specs: Mapping[str, Spec], **more: Any) -> str:
    """A page with its charts, and all that is needed to draw them."""
    scripts = [_script(name) for name in _SCRIPTS]
    page = (
        _environment()
        .get_template(template)
        .render(
            content=content,
            specs=specs,
            **more,
            scripts=[Markup(text) for text in scripts],  # noqa: S704  — our own files, which hold no user text
            policy=_policy(scripts),
            twin_json=_in_html(content),
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


def as_json(content: Any) -> str:
    """The twin as text of its file."""
    return _json(content, indent=1)


def _json(content: Any, *, indent: int | None = None) -> str:
    separators = (",", ": ") if indent else (",", ":")
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)


def _in_html(content: Any) -> Markup:
    """JSON that cannot end its element, nor open a comment."""
    text = _json(content)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704  — nothing is left in it that HTML would read


def _rows(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ranking as texts, each column with the same decimals so that it lines up."""
    outcomes = content["outcomes"]
    means = {part: [o[part]["mean"] for o in outcomes if o[part]] for part in ("held", "ranked")}
    decimals = {part: shared_decimals(values) for part, values in means.items()}
    return [
        {
            **outcome,
            **{f"{part}_text": _mean_and_doubt(outcome[part], decimals[part]) for part in decimals},
            "range_text": " to ".join(
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
