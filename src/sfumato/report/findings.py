"""What the gate found, in the forms that build servers and code hosts read: JUnit and SARIF."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

from sfumato.releasing.decide import RULES, Decision
from sfumato.version import __version__

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def as_junit(decision: Decision) -> str:
    """A test for each rule and each requirement that is met; what was overridden counts as skipped."""
    broken = {finding.rule for finding in decision.findings}
    passed = [*(rule for rule in RULES if rule not in broken), *decision.met_requirements]
    skipped = len(decision.findings) if decision.override else 0
    suite = ET.Element(
        "testsuite", name="sfumato gate", tests=str(len(passed) + len(decision.findings)),
        failures=str(len(decision.findings) - skipped), skipped=str(skipped), errors="0",
    )  # fmt: skip
    for name in passed:
        ET.SubElement(suite, "testcase", classname=decision.subject, name=name)
    for finding in decision.findings:
        case = ET.SubElement(suite, "testcase", classname=decision.subject, name=finding.rule)
        if decision.override:
            message = f"overridden: {decision.override} ({finding.message})"
            ET.SubElement(case, "skipped", message=message)
        else:
            ET.SubElement(case, "failure", message=finding.message).text = RULES[finding.rule]
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def as_sarif(decision: Decision) -> str:
    """A result for each finding; what was overridden is suppressed, with the reason as justification."""
    suppression = {"kind": "external", "justification": decision.override}
    results: list[dict[str, Any]] = [
        {
            "ruleId": finding.rule,
            "level": "error",
            "message": {"text": finding.message},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": decision.subject}}}],
            **({"suppressions": [suppression]} if decision.override else {}),
        }
        for finding in decision.findings
    ]
    rules = [{"id": rule, "shortDescription": {"text": must}} for rule, must in RULES.items()]
    driver = {"name": "sfumato", "version": __version__, "rules": rules}
    runs = [{"tool": {"driver": driver}, "results": results}]
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": runs}, indent=2) + "\n"
