"""Who may have a release: whether it meets the requirements for each kind of recipient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from sfumato.core.measure import Score, Status, Threat
from sfumato.core.requirement import Requirement
from sfumato.recipes.profile import Profile
from sfumato.report.release_scores import RECIPIENTS, ReleaseScores

#: What an intruder may do, in the order in which it is shown.
THREATS: tuple[Threat, ...] = tuple(each for each in get_args(Threat) if each)

#: For whom the profiles of sfumato are meant: what the public may have, others may have too.
_MEANT = {
    "secure": ("researcher",),
    "scientific": ("researcher",),
    "industry": ("processor",),
    "public": ("processor", "researcher", "public"),
}
_OWNER = "possible: the owner holds the original"


def recipients(found: ReleaseScores) -> list[dict[str, Any]]:
    """For each recipient and each threat whether the release meets what the profile for them requires."""
    schema = found.part.original.schema
    rows = [
        {
            "recipient": "owner",
            **{_key(threat): _OWNER for threat in THREATS},
            "why": "The owner holds the original and the private files, and can trace each record to its "
            "person: for the owner the release is still personal data.",
        }
    ]
    for recipient, name in RECIPIENTS.items():
        profile = Profile.load(name)
        verdicts = list(found.verdicts(profile.requirements(schema)))
        rows.append(
            {
                "recipient": recipient,
                **{
                    _key(threat): _worst_verdict(
                        [each for each in verdicts if each[0].measure.threat == threat]
                    )
                    for threat in THREATS
                },
                "why": f"Requirements of the profile {name}. {profile.summary}",
            }
        )
    return rows


def meant_for(profile: Profile | None) -> list[dict[str, Any]]:
    """For each recipient whether a release is meant for them; None where that was not stated."""
    meant = _MEANT.get(profile.name) if profile else None
    return [
        {"recipient": each, "meant": None if meant is None else each == "owner" or each in meant}
        for each in ("owner", *RECIPIENTS)
    ]


def _key(threat: str) -> str:
    return threat.replace(" ", "_")


def _worst_verdict(verdicts: Sequence[tuple[Requirement, Score]]) -> str:
    """The worst of some verdicts in words: what is not met, else what is unknown, else what is met."""
    missed, unknown, met = [], [], []
    for requirement, score in verdicts:
        if requirement.met_by(score):
            met.append(f"{requirement.short} (is {requirement.worst(score):.3g})")
        elif score.status is Status.OK:
            missed.append(f"{requirement.short} (is {score.value:.3g})")
        else:
            unknown.append(f"{requirement.short} ({score.reason or score.status.value})")
    if missed:
        return "not met: " + "; ".join(missed)
    if unknown:
        return "unknown: " + "; ".join(unknown)
    return "met: " + "; ".join(met) if met else "no requirement"
