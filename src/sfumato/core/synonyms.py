"""What a word of the field means here: other names of a class or a choice, and words that have no class."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from sfumato.core.component import Component
from sfumato.core.notation import same_word, words_in
from sfumato.errors import quoted

What = Literal["method", "measure"]

#: How many meanings an error names, and from how many letters on a word may be a part of a longer name.
_NAMED, _LETTERS = 6, 3


class Match(NamedTuple):
    """A method or measure that a word means, with the setting if it means a choice."""

    what: What
    cls: type[Component]
    setting: str = ""

    def __str__(self) -> str:
        return f"{self.cls.name}({self.setting})" if self.setting else self.cls.name


def search(word: str, classes: Mapping[What, Iterable[type[Component]]]) -> list[Match]:
    """What a word means: by a name; else by a choice and, unless a sentence is told, as part of a name."""
    each = [(what, cls) for what, some in classes.items() for cls in some]
    has_sentence = bool(sentence_of(word))
    found = [match for what, cls in each for match in _meanings(word, what, cls, choices=not has_sentence)]
    named = any(not match.setting for match in found)
    if named or has_sentence or len(same_word(word)) < _LETTERS:
        return found if same_word(word) else []  # of a class without a title, nothing is the title
    parts, there = set(words_in(word)), {match.cls for match in found}
    return found + [
        Match(what, cls)
        for what, cls in each
        if cls not in there
        and (
            same_word(cls.family) == same_word(word)
            or any(parts <= set(words_in(name)) for name in _names(cls))
        )
    ]


def _meanings(word: str, what: What, cls: type[Component], *, choices: bool) -> list[Match]:
    """The class, if the word is a name of it, or else each of its settings that the word is a choice of."""
    if same_word(word) in set(map(same_word, _names(cls))):
        return [Match(what, cls)]
    chosen = [(each.name, each.choice_of(word)) for each in cls.parameters() if choices]
    return [Match(what, cls, f"{name}={choice}") for name, choice in chosen if choice]


def _names(cls: type[Component]) -> tuple[str, ...]:
    """What a class is called; the aliases and former names of one it derives from mean that."""
    own = vars(cls)
    return (cls.name, cls.title, *own.get("aliases", ()), *own.get("former", ()), *cls.synonyms)


def hint_for(what: str, word: str, found: list[Match]) -> str:
    """Say in an error what a word means here, what was asked for first; nothing if nobody knows."""
    found = sorted(found, key=lambda match: match.what not in what)
    meanings = [
        quoted([match]) if match.what in what else f"the {match.what} {quoted([match])}" for match in found
    ]
    if not meanings:
        return sentence_of(word)
    more = f", and {len(meanings) - _NAMED} more" if len(meanings) > _NAMED else ""
    return f"here it is {' or '.join(meanings[:_NAMED])}{more}"


def sentence_of(word: str) -> str:
    """What is done here in place of what a word means that is no method or measure, or why nothing is."""
    return terms().get(same_word(word), "")


@cache
def terms() -> Mapping[str, str]:
    """The words that have a sentence instead of a class, in the form in which notations are equal."""
    return {same_word(word): sentence for word, sentence in told_words()}


def told_words() -> Iterator[tuple[str, str]]:
    """The same as they are written in ``terms.toml``."""
    read = tomllib.loads(files("sfumato.core").joinpath("terms.toml").read_text(encoding="utf-8"))
    return ((word, term["here"]) for term in read["term"] for word in term["words"])
