"""Finds methods and measures by looking in their rooms: what exists is registered because it exists."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType, ModuleType
from typing import TypeVar

from sfumato.core.measure import Measure
from sfumato.core.method import Described, Method
from sfumato.errors import UnknownNameError, note_renamed

D = TypeVar("D", bound=Described)


@cache
def methods() -> Mapping[str, type[Method]]:
    """Every method by name: those in ``sfumato.methods`` and those of installed plugins."""
    return _registered(Method, rooms=("methods",), group="sfumato.methods")


@cache
def measures() -> Mapping[str, type[Measure]]:
    """Every measure by name: those in ``sfumato.risk`` and ``sfumato.utility`` and those of plugins."""
    return _registered(Measure, rooms=("risk", "utility"), group="sfumato.measures")


def method(name: str) -> type[Method]:
    """One method by name."""
    return _named("method", name, methods())


def measure(name: str) -> type[Measure]:
    """One measure by name."""
    return _named("measure", name, measures())


def _named(what: str, name: str, known: Mapping[str, type[D]]) -> type[D]:
    words = {word: cls for cls in known.values() for word in _words(cls)}
    former = {word: cls for cls in known.values() for word in vars(cls).get("former", ())}
    if name in words:
        return words[name]
    if name in former:
        note_renamed(f"the {what}", name, former[name].name)
        return former[name]
    raise UnknownNameError.of(what, name, words)


def _words(cls: type[Described]) -> tuple[str, ...]:
    """The words that mean this class; those of a class it derives from mean that."""
    return (cls.name, *vars(cls).get("aliases", ()))


def _registered(base: type[D], *, rooms: tuple[str, ...], group: str) -> Mapping[str, type[D]]:
    found: dict[str, type[D]] = {}
    words: dict[str, type[D]] = {}
    modules = [*(module for room in rooms for module in _modules_of(room)), *_plugins(group)]
    for module in modules:
        for cls in _defined_in(module, base):
            for word in _words(cls):
                if words.setdefault(word, cls) is not cls:
                    where = f"{words[word].__module__} and {module.__name__}"
                    raise TypeError(f"the name `{word}` must be given once, got: twice, in {where}")
            found[cls.name] = cls
    return MappingProxyType(dict(sorted(found.items())))


def _modules_of(room: str) -> Iterator[ModuleType]:
    package = importlib.import_module(f"sfumato.{room}")
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        yield importlib.import_module(f"{package.__name__}.{info.name}")


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
