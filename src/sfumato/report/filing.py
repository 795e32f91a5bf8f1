"""The evidence of a release: what an officer files, by the headings of ISO/IEC 27559 and as others ask.

Whatever is measured stands in the report beside it: evidence says where (``see``, a JSON pointer). What
nobody has said or measured is said to be missing. `evidence.schema.json` in ``static`` is its schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files as package_files
from typing import TYPE_CHECKING, Any

from sfumato.recipes.plan import About
from sfumato.releasing.folder import TWIN
from sfumato.releasing.trail import environment
from sfumato.report.data_card import CARD, NOT_STATED, stated
from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.report.released import Released

FORM = "sfumato-evidence/1"
CONFIDENTIAL = "confidential: with the owner"
#: What the owner says that stays with them.
_INTERNAL = ("threats", "intruder_test", "basis", "expert")


def schema() -> dict[str, Any]:
    """The JSON schema of the evidence."""
    text = package_files("sfumato.report").joinpath("static", "evidence.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def evidence_of(released: Released, told: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """The evidence of a release in the form that ``told`` has: for its owner, or public.

    Parameters
    ----------
    released
        What was released, and what its plan says of it.
    told
        What the report tells, which the evidence points to.
    files
        The hashes of the released files by their names.
    """
    about = _about(released.plan.about, public=told["public"])
    return {
        "form": FORM,
        "public": told["public"],
        "sfumato": __version__,
        "generated": told["generated"],
        "title": told["title"],
        "context": {
            name: about[name]
            for name in ("purpose", "recipients", "terms", "safeguards", "threats", "transparency")
        },
        "data": _data(about, told, files),
        "identifiability": _identifiability(released, about, told),
        "governance": _governance(released, about, told),
        "views": {
            "gdpr": _gdpr(about, told),
            "hipaa": _hipaa(about, told),
            "nist": _nist(told),
            "essnet": _essnet(told),
        },
    }


def _about(about: About, *, public: bool) -> dict[str, str]:
    """What the owner says, by name; of what stays with them the public form says that it does."""
    said = {name: stated(getattr(about, name)) for name in (*CARD, *_INTERNAL)}
    if public:
        said |= {name: CONFIDENTIAL for name in _INTERNAL if said[name] != NOT_STATED}
    return said


def _see(told: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Where the report tells something, and whether it does."""
    if told.get(key) in (None, [], {}):
        return {"see": None, "says": CONFIDENTIAL if told["public"] and key not in told else NOT_STATED}
    return {
        "see": _where(told, key),
        "says": "measured" if key in {"risks", "attacks", "utility", "series"} else "told",
    }


def _where(told: Mapping[str, Any], key: str) -> str:
    """Where in the report something stands: of several tables in each of them."""
    return f"{TWIN}#/tables" if "tables" in told else f"{TWIN}#/{key}"


def _data(about: Mapping[str, str], told: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    return {
        "population": about["population"],
        "period": about["period"],
        "records": dict(told["records"]),
        "attributes": _see(told, "roles"),
        "attack_model": {
            "risk": "of the record at most risk, or the mean of all: each score says which",
            "reference": "the persons of the file, known to be in it, unless a scenario says otherwise",
        },
        "files": [{"name": name, "sha256": sha} for name, sha in files.items()],
    }


def _identifiability(released: Released, about: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, Any]:
    in_series = any(part.member for part in released.outcome.parts.values())
    alone = {"see": None, "says": "it is not one of a series"}
    return {
        "requirements": _judged(told),
        "quantified": _see(told, "risks"),
        "adversarial_test": {**_see(told, "attacks"), "intruder_test": about["intruder_test"]},
        "mitigation": [{key: step[key] for key in ("method", "title", "columns")} for step in told["steps"]],
        "information_loss": _see(told, "lost"),
        "utility": _see(told, "utility"),
        "not_estimated": _see(told, "not_estimated"),
        "rejected_alternatives": _see(told, "rejected"),
        "earlier_releases": _see(told, "series") if in_series else alone,
        "re_evaluation": about["review_date"],
    }


def _judged(told: Mapping[str, Any]) -> dict[str, int]:
    judged = told["requirements"]
    if isinstance(judged, Mapping):
        return {"met": judged["met"], "of": judged["of"]}
    return {"met": sum(bool(each["met"]) for each in judged), "of": len(judged)}


def _governance(released: Released, about: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, Any]:
    gate = released.decision
    found = gate.findings if gate else ()
    overridden: dict[str, Any] = {"rules": sorted({each.rule for each in found})}
    if not told["public"] and gate is not None and found:
        overridden |= {"reason": gate.override, "findings": [each.to_dict() for each in found]}
    return {
        "publisher": about["publisher"],
        "contact": about["contact"],
        "legal_basis": about["legal_basis"],
        "basis": about["basis"],
        "expert": about["expert"],
        "review_date": about["review_date"],
        "overridden": overridden,
        "environment": {} if told["public"] else environment(),
        "verification": "sha256sum -c SHA256SUMS; the owner: sfumato verify FOLDER",
    }


def _gdpr(about: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, Any]:
    """Singling out, linkability and inference, for each recipient."""
    attacks = told.get("attacks") or {}
    return {
        "legal_basis": about["legal_basis"],
        "purpose": about["purpose"],
        **{
            name.replace(" ", "_"): {"see": _where(told, f"attacks/{name}"), "says": "measured"}
            if attacks.get(name)
            else {"see": None, "says": CONFIDENTIAL if told["public"] else NOT_STATED}
            for name in ("singling out", "linkability", "inference")
        },
        "recipients": [dict(each) for each in told.get("recipients") or ()],
    }


def _hipaa(about: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, Any]:
    """What an expert determination says (45 CFR 164.514(b)(1)); the signature is put to it by hand."""
    return {
        "scope": f"{told['records']['released']} records; {about['description']}",
        "method": [step["title"] for step in told["steps"]],
        "quantified_risk": _see(told, "risks"),
        "practice": "a risk below 0.09 is usual practice, and no threshold of the rule",
        "conditions": about["safeguards"],
        "expiry": about["review_date"],
        "expert": about["expert"],
        "signature": NOT_STATED,
    }


def _nist(told: Mapping[str, Any]) -> dict[str, Any]:
    """What NIST SP 800-226 asks of a claim of differential privacy; ε is public."""
    budget = told.get("budget")
    if not budget:
        return {"claimed": False, "says": "no differential privacy is claimed"}
    steps = budget["steps"]
    return {
        "claimed": "guarantee" not in budget,
        "says": budget.get("guarantee", "differential privacy as stated"),
        "unit": sorted({each["unit"] for each in steps}),
        "neighbours": sorted({each["neighbours"] for each in steps}),
        "epsilon": budget.get("epsilon"),
        "delta": budget.get("delta"),
        "meaning": {"membership_advantage_at_most": budget.get("advantage_at_most")},
        "mechanisms": [each["mechanism"] for each in steps],
        "budget": {"see": _where(told, "budget"), "says": "told"},
    }


def _essnet(told: Mapping[str, Any]) -> dict[str, Any]:
    """As in the handbook of the ESSnet: information loss is public, values of risk are confidential."""
    return {
        "information_loss": _see(told, "lost"),
        "by_column": [dict(each) for each in told["lost"]],
        "utility": _see(told, "utility"),
        "risk": _see(told, "risks") if not told["public"] else {"see": None, "says": CONFIDENTIAL},
        "change_note": "change-note.md",
    }
