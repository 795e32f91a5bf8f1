"""Who may have a release: whether what was measured meets what is asked for each sort of recipient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from sfumato.core.measure import Score, Status, Threat
from sfumato.core.requirement import Requirement
from sfumato.recipes.profile import Profile
from sfumato.report.release_scores import RECIPIENTS, ReleaseScores

#: What an intruder may do, in the order in which it is told.
THREATS: tuple[Threat, ...] = tuple(each for each in get_args(Threat) if each)

#: For whom the profiles that come with sfumato are meant: what everybody may have, others may have too.
_MEANT = {
    "secure": ("researcher",),
    "scientific": ("researcher",),
    "industry": ("processor",),
    "public": ("processor", "researcher", "public"),
}
_OWNER = "can: holds the original"


def recipients(found: ReleaseScores) -> list[dict[str, Any]]:
    """For each recipient and each threat whether the release meets what the profile for them requires."""
    schema = found.part.original.schema
    rows = [
        {
            "recipient": "owner",
            **{_key(threat): _OWNER for threat in THREATS},
            "why": "who holds the original and the private trail knows whose each record is: to them it "
            "stays personal data",
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
                "why": f"by what the profile {name} requires. {profile.summary}",
            }
        )
    return rows


def meant_for(profile: Profile | None) -> list[dict[str, Any]]:
    """For each recipient whether a release is meant for them; None where nobody has said for whom it is."""
    meant = _MEANT.get(profile.name) if profile else None
    return [
        {"recipient": each, "meant": None if meant is None else each == "owner" or each in meant}
        for each in ("owner", *RECIPIENTS)
    ]


def _key(threat: str) -> str:
    return threat.replace(" ", "_")


def _worst_verdict(verdicts: Sequence[tuple[Requirement, Score]]) -> str:
    """The worst of some verdicts in words: what is missed, else what nobody knows, else what is met."""
    missed, unknown, met = [], [], []
    for requirement, score in verdicts:
        if requirement.met_by(score):
            met.append(f"{requirement.short} (is {requirement.worst(score):.3g})")
        elif score.status is Status.OK:
            missed.append(f"{requirement.short} (is {score.value:.3g})")
        else:
            unknown.append(f"{requirement.short} ({score.reason or score.status.value})")
    if missed:
        return "too high. Misses " + "; ".join(missed)
    if unknown:
        return "not known. Asked is " + "; ".join(unknown)
    return "low enough. Meets " + "; ".join(met) if met else "nothing is required"
