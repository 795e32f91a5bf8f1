"""What a release tells: measured once, for its owner and in a form that may leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sfumato.core import registry
from sfumato.core.run import Run
from sfumato.report.page import page_of_release
from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.report.released import Released

#: What may leave of what is told; everything else stays.
_PUBLIC = (
    "sfumato", "kind", "generated", "title", "profile", "roles", "lost", "utility", "budget", "recipients",
)  # fmt: skip


@dataclass(frozen=True)
class Told:
    """What a release tells, all of it; what may leave is picked from it by name."""

    said: dict[str, Any]

    def to_dict(self, *, public: bool) -> dict[str, Any]:
        """The JSON twin of the page."""
        if not public:
            return {**self.said, "public": False}
        said = {key: self.said[key] for key in _PUBLIC}
        met = self.said["requirements"]
        return {
            **said,
            "public": True,
            "records": {"released": self.said["records"]["released"]},
            "steps": [
                {key: value for key, value in step.items() if key != "parameters"}
                for step in self.said["steps"]
            ],
            "requirements": {"met": sum(each["met"] for each in met), "of": len(met)},
            "attacks": None,
        }

    def page(self, *, public: bool) -> str:
        """The page, which needs no network."""
        told = self.to_dict(public=public)
        profile = told["profile"] or {"name": "its", "title": "", "summary": ""}
        return page_of_release(
            {
                **told,
                "profile": profile["name"],
                "verdict": f"{profile['title']}. {profile['summary']}" if public else told["verdict"],
                "how": told.get("how", ""),
                "notes": told.get("notes", []),
                "warnings": told.get("warnings", []),
                "against": told.get("against", []),
                "lost": told["roles"],
                "by_column": {each["column"]: each["became"] for each in told["roles"]},
                "requirements": told.get("against", []),
                "files": [],
            }
        )


def tell(released: Released, *, run: Run) -> Told:  # noqa: ARG001  — measures will be asked by it
    """Gather what a release tells."""
    outcome, profile = released.outcome, released.profile
    said = {
        "sfumato": __version__,
        "kind": "release",
        "generated": datetime.now(UTC).date().isoformat(),
        "title": released.plan.about.title or (profile.title if profile.thresholds else "A release"),
        "verdict": released.verdict,
        "profile": {"name": profile.name, "title": profile.title, "summary": profile.summary},
        "records": {
            "original": sum(len(part.original) for part in outcome.parts.values()),
            "released": sum(len(part.release.first) for part in outcome.parts.values()),
        },
        "roles": list(_roles(released)),
        "steps": list(_steps(released)),
        "requirements": [each.to_dict() for each in outcome.judgements],
        "attacks": None,
        "recipients": [],
        "lost": [
            {"column": f"{name}.{loss.column}" if name else loss.column, "sentence": loss.sentence()}
            for name, part in outcome.parts.items()
            for loss in part.lost
        ],
        "utility": [],
        "risks": [],
        "not_estimated": [],
        "rejected": [],
        "notes": list(released.notes),
        "warnings": list(released.warnings),
        "budget": next((part.budget.to_dict() for part in outcome.parts.values() if part.budget), None),
        "against": released.against(),
        "how": released.how,
    }
    return Told(said)


def _roles(released: Released) -> Iterator[dict[str, Any]]:
    for name, part in released.outcome.parts.items():
        for loss in part.lost:
            column = part.original.schema[loss.column]
            yield {
                "column": f"{name}.{loss.column}" if name else loss.column,
                "role": loss.role,
                "kind": column.kind.value,
                "reason": "declared",
                "became": loss.sentence(),
            }


def _steps(released: Released) -> Iterator[dict[str, Any]]:
    for name, part in released.outcome.parts.items():
        for taken in part.release.provenance:
            method = registry.method(taken.method)
            yield {
                "method": taken.method,
                "title": method.title,
                "columns": [f"{name}.{each}" if name else each for each in taken.columns],
                "what": method.summary(),
                "parameters": dict(taken.parameters),
            }
