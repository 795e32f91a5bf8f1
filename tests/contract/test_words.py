"""Pages deny nothing that the registry or the command line has, and print no number that it does not have."""

import re
from pathlib import Path

import click
import pytest

import sfumato.arrays
from sfumato.cli import cli
from sfumato.core import registry
from sfumato.engines import cluster, stream
from sfumato.recipes.profile import Profile
from sfumato.version import __version__

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
VERBS = frozenset(cli.list_commands(click.Context(cli)))
COMPONENTS = (*registry.methods().values(), *registry.measures().values())

#: What people call what is there: by the verb or the engine that shows it.
CALLED = {
    "web page": "web" in VERBS,
    "papers' tables by one command": "reproduce" in VERBS,
    "several owners": "party" in VERBS,
    "out-of-core": bool(stream),
    "cluster": bool(cluster),
}
NAMES = frozenset(
    word.lower()
    for cls in COMPONENTS
    for word in (cls.name, cls.title, *cls.aliases, *cls.synonyms)
    if len(word) > 3
)
NO_SUCH = re.compile(
    r"\b(?:there (?:is|are)|has|have|offers?) no (?:attack|measure|method|command|verb|engine|test)s?\b(.*)",
    re.IGNORECASE,
)
#: What is denied stands before these words, or after them.
IS_NOT = re.compile(
    r"(.*)\b(?:is|are) (?:not|nowhere) (?:yet )?(?:supported|implemented|built|offered|covered)\b"
    r"|\b(?:sfumato|it) (?:does not (?:have|support|offer|measure|know)|cannot (?:do|measure))\b(.*)",
    re.IGNORECASE,
)
ALONE = re.compile(r"\b(?:one|each|a single) release\b.*\b(?:at a time|alone)\b", re.IGNORECASE)


def sentences(text):
    """What a page says outside of its code: sentences and cells of tables, with names as they are written."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\{\w+\}`([^`]*)`", r"\1", text).replace("`", "").replace("*", "")
    for block in re.split(r"\n\s*\n|\n(?=[-*|#] ?)|\|", text):
        yield from re.split(r"(?<=[.!?])\s+", " ".join(block.split()))


def named_in(text):
    """Whatever of ours a text names, as whole words."""
    there = {word for word, is_there in CALLED.items() if is_there} | NAMES
    return sorted(word for word in there if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text.lower()))


def lies(text):
    """Sentences that deny what is there."""
    for sentence in sentences(text):
        denied, undone = NO_SUCH.search(sentence), IS_NOT.search(sentence)
        if (
            (denied and named_in(denied[1]))
            or (undone and named_in(undone[1] or undone[2]))
            or (sentence.lower().startswith("not yet") and named_in(sentence))
            or (ALONE.search(sentence) and "series" not in sentence and registry.measures_for("series"))
        ):
            yield sentence


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_denies_what_is_there(page):
    assert list(lies(page.read_text(encoding="utf-8"))) == []


def test_no_docstring_denies_what_is_there():
    assert [(cls.name, lie) for cls in COMPONENTS for lie in lies(cls.__doc__)] == []


@pytest.mark.parametrize(
    "lie",
    [
        "* **Not yet:** out-of-core and cluster engines; the papers' tables by one command; the web page.",
        "There is no attack on inference with a control group.",
        "| Averaging | Somebody has several. | Only one release is judged at a time. |",
        "sfumato has no measure of `population-uniqueness`.",
        "Membership inference is not yet supported.",
        "sfumato does not measure `inference`.",
    ],
)
def test_a_lie_is_found(lie):
    assert list(lies(lie))


@pytest.mark.parametrize(
    "truth",
    [
        "There is no number, but a reason.",
        "Outside a series each release is judged alone.",
        "There is no method that makes a release safe by itself.",
    ],
)
def test_what_is_true_may_be_said(truth):
    assert not list(lies(truth))


def test_against_what_nothing_is_done_nothing_is_there():
    text = (ROOT / "docs" / "concepts" / "what-it-cannot-see.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|[^|]*\| (.*?) \|", text, re.MULTILINE)
    helpless = [attack for attack, does in rows if does.startswith("Nothing")]
    assert 0 < len(helpless) < len(rows)
    assert [attack for attack in helpless if registry.search(attack)] == []


WORDS = [
    "none",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
]


def choices(measure, parameter):
    """How many words a parameter takes."""
    cls = registry.measure(measure)
    return len(next(each for each in cls.parameters() if each.name == parameter).choices)


@pytest.mark.parametrize(
    ("page", "claim", "count"),
    [
        ("README.md", r"\((\w+) models, SUDA", choices("population-uniqueness", "model") + 2),  # copula, log-linear
        ("docs/guides/release-profiles.md", r"(\w+) profiles come with", len(Profile.names())),
        ("docs/guides/attacks.md", r"by the best of (\w+) tests", choices("membership", "test") - 1),
        ("docs/guides/attacks.md", r"`membership` tries (\w+) tests", choices("membership", "test") - 1),
        ("docs/concepts/what-it-cannot-see.md", r"tries (\w+) models", choices("inference", "by") - 1),
        ("docs/guides/python-and-jupyter.md", r"(\w+) algorithms take plain", len(sfumato.arrays.__all__)),
        ("docs/developing/architecture.md", r"(\w+) algorithms on plain arrays", len(sfumato.arrays.__all__)),
    ],
)  # fmt: skip
def test_a_number_that_is_printed_is_counted(page, claim, count):
    found = re.findall(claim, (ROOT / page).read_text(encoding="utf-8"))
    assert [each.lower() for each in found] == [WORDS[count]]


def test_the_version_that_is_printed_is_this_one():
    assert re.findall(r"Version ([\d.]+\d)", (ROOT / "README.md").read_text(encoding="utf-8")) == [
        __version__
    ]
