"""Finds methods and measures by looking in their rooms: what exists is registered because it exists."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Literal, NamedTuple, TypeVar, cast

from sfumato.core.component import Component
from sfumato.core.measure import Measure, Place
from sfumato.core.method import Method
from sfumato.core.synonyms import Match, hint_for
from sfumato.core.synonyms import search as _search
from sfumato.errors import UnknownNameError, note_renamed

D = TypeVar("D", bound=Component)


@cache
def methods() -> Mapping[str, type[Method]]:
    """Every method by name: those in ``sfumato.methods`` and those of installed plugins."""
    return _load_classes(Method, rooms=("methods",), group="sfumato.methods")


@cache
def measures() -> Mapping[str, type[Measure]]:
    """Every measure by name: those in ``sfumato.risk`` and ``sfumato.utility`` and those of plugins."""
    return _load_classes(Measure, rooms=("risk", "utility"), group="sfumato.measures")


def method(name: str) -> type[Method]:
    """One method by name; nothing but its own module is imported."""
    return _class_by_name("method", name, rooms=("methods",), everything=methods)


def measure(name: str) -> type[Measure]:
    """One measure by name; nothing but its own module is imported."""
    return _class_by_name("measure", name, rooms=("risk", "utility"), everything=measures)


def search(word: str) -> list[Match]:
    """The methods and measures that a word of the field means, plugins' too; all are imported for it."""
    return _search(word, {"method": methods().values(), "measure": measures().values()})


def unknown(what: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for a name that is none: what it means here, or else what is spelt nearly so."""
    hint = hint_for(what, name, search(name))
    error = UnknownNameError.of(what, name, known)
    return UnknownNameError(error.message, hint=hint) if hint else error


def measures_for(*places: Place) -> list[Measure]:
    """The measures shown in one of these places, by their rank in the first of them that they declare.

    With their parameters as declared; no other measure is imported.
    """

    def rank(entry: Entry) -> tuple[int, str]:
        return next(entry.places[place] for place in places if place in entry.places), entry.name

    there = [entry for entry in entries("measures") if set(places) & set(entry.places)]
    return [entry.load()() for entry in sorted(there, key=rank)]


class Entry(NamedTuple):
    """What the source of a room says of a class that has a name."""

    module: str
    cls: str
    name: str
    aliases: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    room: str = ""  # methods, risk or utility
    family: str = "other"
    summary: str = ""
    places: Mapping[Place, int] = MappingProxyType({})  # of measures: where they are shown, and their rank

    def load(self) -> Any:
        """Import the class."""
        return getattr(importlib.import_module(self.module), self.cls)


def entries(what: Literal["methods", "measures"]) -> list[Entry]:
    """What there is, plugins too, by family: nothing of our own is imported for it."""
    rooms = {"methods": ("methods",), "measures": ("risk", "utility")}[what]
    found = [entry for room in rooms for entry in index(room).values()]
    base: type[Component] = Method if what == "methods" else Measure
    found += [_entry_of(cls) for module in _plugins(f"sfumato.{what}") for cls in _defined_in(module, base)]
    return sorted(found, key=lambda entry: (entry.room, entry.family, entry.name))


def index(room: str) -> Mapping[str, Entry]:
    """The classes of a room that have a name, by the class: read from its source, not imported."""
    package = importlib.import_module(f"sfumato.{room}")
    return _read(package.__name__, tuple(package.__path__))


def offer(room: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a room: its classes and functions, each loaded on first use.

    A function has the name of its method or measure, with underscores.
    """
    package = sys.modules[f"sfumato.{room}"]
    package.__class__ = _RoomModule

    def functions() -> dict[str, Entry]:
        return {each.name.replace("-", "_"): each for each in index(room).values()}

    def load(name: str) -> Any:
        if name == "__all__":
            return list(index(room))
        if not name.startswith("_") and name in index(room):
            return index(room)[name].load()
        if name.startswith("_") or name not in functions():
            raise AttributeError(f"module `sfumato.{room}` has no attribute `{name}`", name=name)
        cls = functions()[name].load()
        return vars(package).get(name) or _function_of(cls)  # a module of that name is there now

    return load, lambda: sorted({*index(room), *functions()})


def _function_of(cls: type[Component]) -> Callable[..., Any]:
    """A method or measure as a function; the room above is asked by its name, when it is needed."""
    made: Callable[..., Any] = importlib.import_module("sfumato.functions").function_of(cls)
    return made


class _RoomModule(ModuleType):
    """A room, whose modules can be called if one has the name of a method or measure that it holds."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _namesake(value) is not None:
            value.__class__ = _CallableModule
        super().__setattr__(name, value)


class _CallableModule(ModuleType):
    """A module that has the name of its method or measure: to call it is to call that function."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return _function_of(cast("type[Component]", _namesake(self)))(*args, **keywords)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(_function_of(cast("type[Component]", _namesake(self))))


def _namesake(module: ModuleType) -> type[Component] | None:
    """The method or measure in a module that has its name; None if there is none."""
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    return next((each for each in _defined_in(module, Component) if each.name == name), None)


#: A class, another beginning of a line (which ends the class before), the first line of what a class says
#: of itself, what it is called, or where a measure is shown.
_SAID = re.compile(
    r'\n(?:class (\w+)|([A-Za-z_@])|    (?:r?"""(\S.*?)(?:""")?$'
    r'|(name|aliases|former|family) = (?:"([^"\n]+)"|\(([^)]*)\))$'
    r"|tells = Tells\(\s*places=\{([^}]*)\}))",
    re.MULTILINE,
)  # all begin with the same character, which is found at once


@cache
def _read(package: str, folders: tuple[str, ...]) -> Mapping[str, Entry]:
    """Look through the files of a room, and of the packages in it, for what its classes are called."""
    found: dict[str, Entry] = {}
    room = package.rpartition(".")[2]
    files = [(Path(folder), file) for folder in folders for file in sorted(Path(folder).rglob("[!_]*.py"))]
    for folder, file in files:
        module = ".".join((package, *file.relative_to(folder).with_suffix("").parts))
        facts: dict[str, Any] = {}  # of what stands before any class
        entries: dict[str, dict[str, Any]] = {}
        source = "\n" + file.read_text(encoding="utf-8")
        for cls, other, summary, fact, text, texts, places in _SAID.findall(source):
            if cls or other:
                facts = entries.setdefault(cls, {})
            elif summary:
                facts["summary"] = summary
            elif places:
                facts["places"] = {place: int(rank) for place, rank in re.findall(r'"(\w+)": (\d+)', places)}
            else:
                facts[fact] = text or tuple(re.findall(r'"([^"]+)"', texts))
        found |= {
            cls: Entry(module, cls, room=room, **facts)
            for cls, facts in entries.items()
            if cls and "name" in facts
        }
    return MappingProxyType(found)


def _class_by_name(
    what: str, name: str, *, rooms: tuple[str, ...], everything: Callable[[], Mapping[str, type[D]]]
) -> type[D]:
    found = _among(what, name, [entry for room in rooms for entry in index(room).values()])
    if found is None:  # what plugins bring is known only once it is imported
        found = _among(what, name, map(_entry_of, everything().values()))
    if found is None:
        raise unknown(what, name, (word for cls in everything().values() for word in _words(cls)))
    return found.load()  # type: ignore[no-any-return]


def _among(what: str, name: str, entries: Iterable[Entry]) -> Entry | None:
    """The entry that a word means now, or meant once, which is noted."""
    former = None
    for entry in entries:
        if name == entry.name or name in entry.aliases:
            return entry
        former = entry if name in entry.former else former
    if former is not None:
        note_renamed(f"the {what}", name, former.name)
    return former


def _entry_of(cls: type[Component]) -> Entry:
    own = vars(cls)
    words = (own.get("aliases", ()), own.get("former", ()))
    room, places = (cls.aspect, cls.places()) if issubclass(cls, Measure) else ("methods", {})
    return Entry(cls.__module__, cls.__name__, cls.name, *words, room, cls.family, cls.summary(), places)


def _words(cls: type[Component]) -> tuple[str, ...]:
    """The words that mean this class; those of a class it derives from mean that."""
    return (cls.name, *vars(cls).get("aliases", ()))


def _load_classes(base: type[D], *, rooms: tuple[str, ...], group: str) -> Mapping[str, type[D]]:
    found: dict[str, type[D]] = {}
    words: dict[str, type[D]] = {}
    modules = [*(module for room in rooms for module in _modules_of(room)), *_plugins(group)]
    for module in modules:
        for cls in _defined_in(module, base):
            for word in _words(cls):
                if words.setdefault(word, cls) is not cls:
                    where = f"{words[word].__module__} and {module.__name__}"
                    raise TypeError(f"the name `{word}` is given twice, in {where}")
            found[cls.name] = cls
    return MappingProxyType(dict(sorted(found.items())))


def _modules_of(room: str) -> Iterator[ModuleType]:
    package = importlib.import_module(f"sfumato.{room}")
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(info.name)


def _plugins(group: str) -> Iterator[ModuleType]:
    """Yield the modules third parties announce under the entry-point group."""
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        loaded = entry.load()
        yield loaded if inspect.ismodule(loaded) else importlib.import_module(loaded.__module__)


def _defined_in(module: ModuleType, base: type[D]) -> Iterator[type[D]]:
    """Yield the classes defined in a module that have a name of their own; bases and imports have none."""
    for cls in vars(module).values():
        if (
            inspect.isclass(cls)
            and issubclass(cls, base)
            and cls.__module__ == module.__name__
            and cls.__dict__.get("name")
        ):
            yield cls
