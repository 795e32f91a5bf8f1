"""What methods and measures have in common: an identity, and parameters."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, ClassVar

from sfumato.core.params import Parameters, PerColumn, Resource
from sfumato.core.state import State
from sfumato.core.vetting import Vetting
from sfumato.data.schema import Kind
from sfumato.errors import quoted


class Named(Parameters):
    """What something is called: here, here once, and elsewhere."""

    name: ClassVar[str]  # kebab-case: the word in the CLI, in URLs and in plans
    aliases: ClassVar[tuple[str, ...]] = ()  # other words for it, as in `k >= 5`
    former: ClassVar[tuple[str, ...]] = ()  # what it was called once: still understood, with a note
    synonyms: ClassVar[tuple[str, ...]] = ()  # what others call it: found by who looks for it, not a name
    title: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.synonyms = vars(cls).get("synonyms", ())  # those of a class it derives from mean that


class Component(Named):
    """What methods and measures say of themselves."""

    family: ClassVar[str] = "other"  # a few plain words: what the lists are grouped by
    kinds: ClassVar[frozenset[Kind]] = frozenset()
    references: ClassVar[tuple[str, ...]] = ()
    cost: ClassVar[str] = "n"
    state: ClassVar[State] = State()  # what it holds in memory
    vetted: ClassVar[str] = ""  # how it was checked, and by which proof or test: see `Vetting`; not inherited
    #: Flags that stand in groups now: a class that still declares one would be taken for what it is not.
    _former_flags: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if loose := sorted(cls._former_flags & vars(cls).keys() - cls.__annotations__.keys()):
            raise TypeError(
                f"{cls.__name__} must declare {quoted(loose)} in a group, such as `gives` of a method or "
                "`counts` of a measure, got: flags of their own"
            )
        cls.vetting()

    def undeclared_resources(self, declared: Container[str]) -> list[str]:
        """Sentences about parameters that name resources which are not there."""
        named = {each.name: getattr(self, each.name) for each in self.parameters() if each.type is Resource}
        named = {
            key: value.to_plain() if isinstance(value, PerColumn) else value for key, value in named.items()
        }
        return [
            f"`{key}` of {self.name} names a resource that is not declared: `{each}`"
            for key, value in named.items()
            for each in (value.values() if isinstance(value, dict) else (value,))
            if each is not None and each not in declared
        ]

    @classmethod
    def vetting(cls) -> Vetting:
        """How this very class was checked."""
        return Vetting.parse(vars(cls).get("vetted", ""))

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def description(cls) -> str:
        """The summary, and what must be said beside it wherever a report says what this is."""
        return cls.summary()

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """As a dictionary for JSON (``--json``) and for the docs."""
        return {
            "name": cls.name,
            "aliases": list(cls.aliases),
            "synonyms": list(cls.synonyms),
            "title": cls.title,
            "family": cls.family,
            "summary": cls.summary(),
            "kinds": sorted(kind.value for kind in cls.kinds),
            "cost": cls.cost,
            "references": list(cls.references),
            "vetted": cls.vetting().to_dict(),
            "parameters": [declared.to_dict() for declared in cls.parameters()],
        }
