"""Explain a measure or a method: what it means, how to read it, its limits, and its literature.

The words are those of its docstring and of what it declares.
"""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.core.component import Component
from sfumato.core.measure import Measure, Score, Status
from sfumato.core.method import Method
from sfumato.core.references import cite
from sfumato.explain.formulas import in_letters

_SECTION = re.compile(r"^(?P<title>[^\n]+)\n-{3,}\n", re.MULTILINE)
_HEAD = re.compile(r"\*\*(?P<head>[^*]+?)\.?\*\*")
_FORMULA = re.compile(
    r"^\.\. math::[ \t]*(?P<formula>(?:[^\n]+\n|\n(?=\n))(?:\n(?=[ \t])|[ \t]+[^\n]*\n)*)", re.MULTILINE
)
_MATHS = re.compile(r":math:`([^`]*)`")
_ROLE = re.compile(r":\w+:`([^`]*)`")
_GUESS = re.compile(r"\bbaseline\b|\bguess", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.;:])\s+(?=[A-Z`])")


@dataclass(frozen=True)
class Meaning:
    """The documentation of a measure or method, in parts.

    ``definition`` is the text that follows the first line, with its formulas in letters; ``notes`` are the
    parts under bold heads; ``side`` says which numbers are good and ``guessing`` what they are held against.
    """

    name: str
    title: str
    synonyms: tuple[str, ...]
    what: str
    summary: str
    definition: str
    notes: Mapping[str, str]
    side: str
    guessing: str
    cost: str
    literature: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return asdict(self)


def meaning_of(cls: type[Component]) -> Meaning:
    """What a measure or method means, from its docstring and what it declares.

    Examples
    --------
    >>> from sfumato.risk.anonymity import KAnonymity
    >>> meaning_of(KAnonymity).side
    'higher is safer; it is at least 1'
    """
    text = plain(inspect.cleandoc(cls.__doc__ or ""))
    first = _SECTION.search(text)
    body = text[: first.start()] if first else text
    summary, _, definition = body.partition("\n")
    notes = _notes(_sections(text).get("Notes", ""))
    if issubclass(cls, Method) and (sentence := cls.kept_sentence()):
        notes["What it keeps"] = sentence
    if issubclass(cls, Measure) and cls.tells.not_seen:
        notes["What it cannot see"] = cls.tells.not_seen
    notes["How it was checked"] = cls.vetting().sentence
    return Meaning(
        name=cls.name,
        title=cls.title or cls.name,
        synonyms=cls.synonyms,
        what=_what(cls),
        summary=summary.strip(),
        definition=definition.strip("\n").rstrip(),
        notes=notes,
        side=_side(cls) if issubclass(cls, Measure) else "",
        guessing=_guessing(text) if issubclass(cls, Measure) else "",
        cost=cls.cost,
        literature=tuple(cite(key) for key in cls.references),
    )


def plain(text: str) -> str:
    """A docstring without its markup, formulas in letters."""
    text = _FORMULA.sub(lambda found: _set_in(in_letters(found["formula"])), text)
    text = _MATHS.sub(lambda found: in_letters(found[1]), text)
    return _ROLE.sub(r"\1", text).replace("``", "`")


def _set_in(formula: str) -> str:
    """A formula set in by four spaces."""
    return textwrap.indent(textwrap.dedent(formula.strip("\n")), "    ") + "\n"


def _sections(text: str) -> dict[str, str]:
    found = list(_SECTION.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {match["title"].strip(): text[match.end() : end] for match, end in zip(found, ends, strict=True)}


def _notes(text: str) -> dict[str, str]:
    """The parts of the notes by their bold heads, each as one paragraph after another."""
    found = [match for match in _HEAD.finditer(text) if not text[: match.start()].rpartition("\n")[2].strip()]
    ends = [match.start() for match in found[1:]] + [len(text)]
    parts = {}
    for match, end in zip(found, ends, strict=True):
        paragraphs = text[match.end() : end].strip().split("\n\n")
        parts[match["head"].strip()] = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    return parts


def _what(cls: type[Component]) -> str:
    if issubclass(cls, Measure):
        return f"measure of {cls.aspect}"
    return "method of protection" if issubclass(cls, Method) else ""


def _side(cls: type[Measure]) -> str:
    low, high = cls.bounds
    if math.isfinite(low) and math.isfinite(high):
        return f"{cls.side()}; it lies between {low:g} and {high:g}"
    ends = [f"at least {low:g}"] * math.isfinite(low) + [f"at most {high:g}"] * math.isfinite(high)
    return "; it is ".join([cls.side(), *ends])


def _guessing(text: str) -> str:
    """What the docstring says of guessing; the number itself comes with a score."""
    notes = " ".join(" ".join(_notes(_sections(text).get("Notes", "")).values()).split())
    guesses = [sentence for sentence in _SENTENCE_END.split(notes) if _GUESS.search(sentence)]
    return (
        " ".join(f"{sentence.rstrip(';:.')}." for sentence in guesses)
        or "no reference value is given; compare with the original, or with other releases"
    )


# A score in words ----------------------------------------------------------------------------------------


def explain_score(measure: Measure, score: Score) -> tuple[str, ...]:
    """A score in sentences: the number, its uncertainty, what guessing gives, and its parts.

    Examples
    --------
    >>> from sfumato.risk.linkage import DistanceLinkage
    >>> for sentence in explain_score(DistanceLinkage(), Score(0.25, baseline=0.05)):
    ...     print(sentence)
    Distance-based record linkage is 0.25, where lower is safer; it lies between 0 and 1.
    Guessing gives 0.05: this is 5 times as much.
    """
    return tuple(_sentences(measure, score))


def _sentences(measure: Measure, score: Score) -> Iterator[str]:
    if score.status in {Status.REFUSED, Status.NOT_ESTIMABLE}:
        word = "does not apply" if score.status is Status.REFUSED else "cannot be estimated from these data"
        yield f"{measure.title} {word}: {score.reason}."
    else:
        yield f"{measure.title} is {score.value:.4g}, where {_side(type(measure))}."
    if score.status is Status.APPROXIMATE:
        proved = score.interval is not None and score.interval_is_proved
        judged = "Requirements are judged by its worse end" if proved else "It meets no requirement"
        if not proved and score.confidence is not None:
            judged += f" unless that allows estimates: `at {score.confidence:g}%`"
        yield f"It is an estimate: {score.reason or 'not all was examined'}. {judged}."
    if score.interval is not None and score.interval == measure.bounds:
        yield "The error of the estimate is unknown."
    elif score.interval is not None:
        word = "The true value is" + ("" if score.interval_is_proved else " probably")
        sure = "" if score.confidence is None else f", with a confidence of {score.confidence:g} %"
        yield f"{word} between {score.interval[0]:.4g} and {score.interval[1]:.4g}{sure}."
    if score.baseline is not None and math.isfinite(score.value):
        yield f"Guessing gives {score.baseline:.4g}{_against(score.value, score.baseline)}."
    if score.by_column:
        yield "By column, the worst first: " + ", ".join(
            f"`{name}` {value:.4g}" for name, value in _columns_from_worst(measure, score.by_column)
        )
    if score.details:
        values = [f"{each:.4g}" if isinstance(each, float) else each for each in score.details.values()]
        details = zip(score.details, values, strict=True)
        yield "Details: " + "; ".join(f"{key.replace('_', ' ')}: {value}" for key, value in details)


def _against(value: float, baseline: float) -> str:
    if baseline <= 0 or value < 0:
        return ""
    times = value / baseline
    return f": this is {times:.3g} times as much" if times > 1 else ": this is no more than that"


def _columns_from_worst(measure: Measure, by_column: Mapping[str, float]) -> list[tuple[str, float]]:
    """Columns from the worst; a measure of which more is better has its lowest first."""
    sign = 1 if measure.better == "high" else -1
    return sorted(by_column.items(), key=lambda item: (sign * item[1], item[0]))
