"""How a method or measure was checked: by proof, by brute force, by a published value, or by experiments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, Protocol, get_args

from sfumato.errors import RefusedError, quoted

#: The ways to check, the strongest first; the last is what nobody has declared.
VettingLevel = Literal["proved", "brute-forced", "published", "empirical"]

#: What somebody may confine a release, a search or a comparison to.
Only = Literal["", "vetted"]

#: What is said of each way.
_WORDS: dict[str, str] = {
    "proved": "what it claims follows by a proof",
    "brute-forced": "compared with a plain computation that shares no code with it",
    "published": "matched to a published value",
    "empirical": "checked by worked examples and experiments only",
}


class Vetting(NamedTuple):
    """How something was checked, and the page of the proof or the test that shows it.

    A class declares it as ``vetted = "brute-forced: unit/risk/test_suda.py::test_scores_by_enumeration"``: a
    page below ``docs`` or a test below ``tests``. It holds for the parameters that are declared as defaults,
    and for others as far as the page or the test tries them.
    """

    level: VettingLevel
    by: str = ""

    @classmethod
    def parse(cls, declared: str) -> Vetting:
        """Read what a class declares."""
        level, _, by = declared.partition(": ")
        if not declared:
            return cls("empirical")
        if level not in get_args(VettingLevel)[:-1] or not by:
            raise TypeError(
                f"`vetted` must be proved, brute-forced or published, and by what, got: {declared!r}"
            )
        return cls(level, by)  # type: ignore[arg-type]  # it is one of them

    @property
    def sentence(self) -> str:
        """Say it in words, and where to look."""
        return f"{self.level}: {_WORDS[self.level]}" + (f" (`{self.by}`)" if self.by else "")

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return {"level": self.level, "by": self.by, "meaning": _WORDS[self.level]}


class Checked(Protocol):
    """What says how it was checked: the class of a method or measure."""

    name: str

    def vetting(self) -> Vetting:
        """How it was checked."""


def unvetted(components: Iterable[Checked]) -> list[str]:
    """The names of those that were checked by examples and experiments only, each once."""
    return sorted({each.name for each in components if each.vetting().level == "empirical"})


def require_vetted(only: Only, components: Iterable[Checked]) -> None:
    """Refuse what was checked by experiments only, where somebody asked for what is vetted alone."""
    if names := unvetted(components) if only else []:
        raise RefusedError(
            f"only what is vetted was asked for, and {quoted(names)} {'is' if len(names) == 1 else 'are'} "
            f"{_WORDS['empirical']}",
            hint="use others (`sfumato methods --for vetted`, `sfumato measures --for vetted`), or leave out "
            "`only`",
        )
