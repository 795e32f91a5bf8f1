"""What the gate decided, in the formats that build servers and code hosts read: JUnit and SARIF."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from sfumato.releasing.decide import RULES, Decision
from sfumato.version import __version__

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_MISSED, _ESTIMATED = "requirement-missed", "requirement-estimated"


def as_junit(decision: Decision) -> str:
    """A test for each rule that holds, each requirement and each finding; those overridden are skipped."""
    named = [(f"{each.scenario}: {each.requirement.short}", each.is_met) for each in decision.judgements]
    missed = (name for name, is_met in named if not is_met)
    broken = {finding.rule for finding in decision.findings}
    passed = [*(rule for rule in RULES if rule not in broken), *(name for name, is_met in named if is_met)]
    skipped = len(decision.findings) if decision.override else 0
    suite = ET.Element(
        "testsuite", name="sfumato gate", tests=str(len(passed) + len(decision.findings)),
        failures=str(len(decision.findings) - skipped), skipped=str(skipped), errors="0",
    )  # fmt: skip
    for name in passed:
        ET.SubElement(suite, "testcase", classname=decision.subject, name=_printable(name))
    for finding in decision.findings:
        name = next(missed, _MISSED) if finding.rule == _MISSED else finding.rule
        case = ET.SubElement(suite, "testcase", classname=decision.subject, name=_printable(name))
        if decision.override:
            message = f"overridden: {decision.override} ({finding.message})"
            ET.SubElement(case, "skipped", message=_printable(message))
        else:
            message = _printable(finding.message)
            ET.SubElement(case, "failure", message=message, type=finding.rule).text = RULES[finding.rule]
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """A text without the control characters that XML cannot hold, as names of columns may have."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def as_sarif(decision: Decision) -> str:
    """An error for each finding, a warning where it is overridden; a note where an estimate decided."""
    level = "warning" if decision.override else "error"
    found = [(finding.rule, level, finding.message) for finding in decision.findings]
    found += [
        (_ESTIMATED, "note", f"{each} is met by an estimate") for each in decision.estimated_requirements
    ]
    place = {"physicalLocation": {"artifactLocation": {"uri": quote(decision.subject, safe="/:")}}}
    results: list[dict[str, Any]] = [
        {"ruleId": rule, "level": level, "message": {"text": message}, "locations": [place]}
        for rule, level, message in found
    ]
    for result in results[: len(decision.findings)] if decision.override else ():
        result["suppressions"] = [{"kind": "external", "justification": decision.override}]
    musts = {**RULES, _ESTIMATED: "a requirement met by an estimate should be known as such"}
    rules = [{"id": rule, "shortDescription": {"text": must}} for rule, must in musts.items()]
    driver = {"name": "sfumato", "version": __version__, "rules": rules}
    runs = [{"tool": {"driver": driver}, "results": results}]
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": runs}, indent=2) + "\n"
