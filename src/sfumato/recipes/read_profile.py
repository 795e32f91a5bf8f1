"""Read what a profile's file says, noting every fault in it: a user mends a file once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sfumato.core.references import references
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.data.schema import Kind, Role
from sfumato.errors import PlanError, SfumatoError, UnknownNameError

_TEXT, _LIST, _NUMBER, _WHOLE, _FLAG = (
    "a text",
    "a list of texts",
    "a number",
    "a whole number",
    "true or false",
)
_TABLE, _TABLES = "a table", "a list of tables"

_FITS: Mapping[str, Callable[[Any], bool]] = {
    _TEXT: lambda value: isinstance(value, str),
    _LIST: lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    _NUMBER: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    _WHOLE: lambda value: isinstance(value, int) and not isinstance(value, bool),
    _FLAG: lambda value: isinstance(value, bool),
    _TABLE: lambda value: isinstance(value, dict),
    _TABLES: lambda value: isinstance(value, list) and all(isinstance(each, dict) for each in value),
}

#: The words of each part with the sort of their values.
_PROFILE = {
    "title": _TEXT, "summary": _TEXT, "report": _LIST, "defaults": _TABLE, "scenarios": _TABLES,
    "requirements": _TABLES,
}  # fmt: skip
_DEFAULTS = {"rank_by": _TEXT, "repeats": _WHOLE, "shuffle": _FLAG}
_SCENARIO = {
    "name": _TEXT, "reason": _TEXT, "roles": _LIST, "kinds": _LIST, "columns": _LIST, "records": _NUMBER,
    "membership": _FLAG, "external": _TEXT,
}  # fmt: skip
_REQUIREMENT = {"require": _TEXT, "reason": _TEXT, "scenarios": _LIST, "references": _LIST}


def read_profile(said: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    """Give the facts of a profile, its scenarios and requirements as tables of facts; or all its faults."""
    reader = _Reader()
    top = reader.part("the profile", said, _PROFILE, needs=("title", "summary", "scenarios"))
    defaults = reader.part("`defaults`", top.get("defaults", {}), _DEFAULTS)
    scenarios = [
        reader.scenario(f"scenario {number}", each)
        for number, each in enumerate(top.get("scenarios", []), start=1)
    ]
    known = [each["name"] for each in scenarios if "name" in each]
    twice = sorted({each for each in known if known.count(each) > 1})
    if twice:
        reader.faults.append(f"each scenario must have a name of its own, got twice: {_ticked(twice)}")
    if "scenarios" in top and not scenarios:
        reader.faults.append("a profile must have at least one scenario, got: none")
    requirements = [
        reader.requirement(f"requirement {number}", each, known)
        for number, each in enumerate(top.get("requirements", []), start=1)
    ]
    report = [reader.make(parse_measure, "`report`", text) for text in top.get("report", [])]
    rank_by = reader.make(parse_measure, "`rank_by`", defaults["rank_by"]) if "rank_by" in defaults else None
    if defaults.get("repeats", 1) < 1:
        reader.faults.append(f"`repeats` must be at least 1, got: `{defaults['repeats']}`")
    if reader.faults:
        raise PlanError.gather(f"the profile `{name}`", reader.faults)
    return {
        "title": top["title"],
        "summary": top["summary"],
        "scenarios": scenarios,
        "requirements": requirements,
        "report": tuple(report),
        "rank_by": rank_by,
        **{key: defaults[key] for key in ("repeats", "shuffle") if key in defaults},
    }


class _Reader:
    """Reads parts of a profile, noting what is wrong with each and going on."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def part(
        self, what: str, said: Mapping[str, Any], words: Mapping[str, str], *, needs: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Keep the words that are known and hold the right sort of value."""
        kept = {}
        for key, value in said.items():
            if key not in words:
                error = UnknownNameError.of("setting", key, words)
                self.faults.append(f"{what}: {error.message} ({error.hint})")
            elif not _FITS[words[key]](value):
                self.faults.append(f"{what}: `{key}` must be {words[key]}, got: {type(value).__name__}")
            else:
                kept[key] = value
        self.faults += [f"{what} must say its `{key}`, got: nothing" for key in needs if not said.get(key)]
        return kept

    def make(self, make: Callable[[str], Any], what: str, text: str) -> Any:
        """Make something of a text, or note why not."""
        try:
            return make(text)
        except SfumatoError as error:
            hint = f" ({error.hint})" if error.hint else ""
            self.faults.append(f"{what}: {error.message}{hint}")
            return None

    def scenario(self, what: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """The facts of an intruder."""
        facts = self.part(what, said, _SCENARIO, needs=("name", "reason"))
        if not 0 < facts.get("records", 1.0) <= 1:
            self.faults.append(
                f"{what}: `records` must be a share above 0 and at most 1, got: `{facts['records']}`"
            )
        for key, kind in (("roles", Role), ("kinds", Kind)):
            if key in facts:
                facts[key] = tuple(self.words(what, key, facts[key], kind))
        if "columns" in facts:
            facts["columns"] = tuple(facts["columns"])
        return facts

    def words(self, what: str, key: str, said: list[str], kind: type[Role | Kind]) -> Iterator[Any]:
        """Words of a fixed list, such as roles."""
        known = [each.value for each in kind]
        for word in said:
            if word in known:
                yield kind(word)
            else:
                error = UnknownNameError.of(key.removesuffix("s"), word, known)
                self.faults.append(f"{what}: {error.message} ({error.hint})")

    def requirement(self, what: str, said: Mapping[str, Any], scenarios: list[str]) -> dict[str, Any]:
        """The facts of a threshold."""
        facts = self.part(what, said, _REQUIREMENT, needs=("require", "reason"))
        made = self.make(Requirement.parse, what, facts.pop("require")) if "require" in facts else None
        for key, known in (("scenarios", scenarios), ("references", references())):
            facts[key] = tuple(facts.get(key, ()))
            for word in facts[key]:
                if word not in known:
                    error = UnknownNameError.of(key.removesuffix("s"), word, known)
                    self.faults.append(f"{what}: {error.message} ({error.hint})")
        return {**facts, "requirement": made}


def _ticked(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
