"""Writes the reference pages from what the package says of itself, before every build.

One page per method and per measure in the registry, the command line from its own ``--help``, the errors
from ``errors.py`` and the front door from its signatures. Nothing is listed here by hand: a file dropped
into ``src/sfumato/methods`` has its page at the next build. The pages go to ``reference/generated``, which
is not under version control.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

import click
from docutils import nodes
from sphinx.util.docutils import SphinxRole

import sfumato
from sfumato import errors, front
from sfumato.core import registry
from sfumato.core.component import Component
from sfumato.core.measure import Measure
from sfumato.core.method import Method
from sfumato.core.references import cite
from sfumato.core.synonyms import told_words
from sfumato.core.vetting import Vetting, VettingLevel
from sfumato.reproduce import survey

FOLDER = "reference/generated"
#: Where a method works that looks at all records at once.
NOT_SHARED = "in the process that you started: it looks at all records at once"
NATURES = {
    "non-perturbative": "shown with less detail, or suppressed",
    "perturbative": "replaced by a different value",
    "de-associative": "shown, but separated from its record",
    "synthetic": "not shown: values are generated from a model",
}
#: Columns a line of help may take, so that a page does not depend on who builds it.
WIDTH = 100
#: A verb with more verbs of its own than this shows the last of them.
MAX_INNER = 5
_SECTION = re.compile(r"^(?P<title>\w[\w ]*)\n-{3,}$", re.MULTILINE)
_SEE_ALSO = re.compile(r"^(?P<name>[\w-]+) : (?P<text>.+)$", re.MULTILINE)


def pages() -> dict[str, str]:
    """Every generated page, by its path below the folder."""
    methods, measures = registry.methods(), registry.measures()
    return {
        "methods.rst": methods_page(methods.values()),
        "measures.rst": measures_page(measures.values()),
        **{f"methods/{name}.rst": method_page(cls) for name, cls in methods.items()},
        **{f"measures/{name}.rst": measure_page(cls) for name, cls in measures.items()},
        "command-line.rst": command_line_page(),
        "other-names.rst": other_names_page((*methods.values(), *measures.values())),
        "vetted.rst": vetted_page((*methods.values(), *measures.values())),
        "survey.rst": survey_page(),
        "errors.rst": errors_page(),
        "python.rst": python_page(),
        "files.rst": files_page(),
    }


# ------------------------------------------------------------------------------------ methods and measures


def method_page(cls: type[Method]) -> str:
    """Describe one method in full."""
    facts = [
        ("name", literal(cls.name)),
        ("family", cls.family),
        ("nature", cls.nature),
        ("kinds of column", words(cls.kinds)),
        ("shape", cls.shape()),
        ("drive", drive_of(cls)),
        ("uses random numbers", "yes" if cls.randomness.stochastic else "no"),
        ("preserves", ", ".join(cls.gives.kept) or "—"),
        ("cost", cls.cost),
        ("vetted", vetted_by(cls)),
    ]
    return described_page(cls, facts, usage=block(method_command(cls)))


def measure_page(cls: type[Measure]) -> str:
    """Describe one measure in full."""
    facts = [
        ("name", literal(cls.name)),
        ("aspect", cls.aspect),
        ("family", cls.family),
        ("direction", f"{cls.better} is better"),
        ("bounds", bounds_of(cls)),
        ("kinds of column", words(cls.kinds)),
        ("computed from", cls.computed_from()),
        ("cost", cls.cost),
        ("vetted", vetted_by(cls)),
    ]
    return described_page(cls, facts)


def described_page(cls: type[Component], facts: Sequence[tuple[str, str]], usage: Sequence[str] = ()) -> str:
    """Put together what methods and measures have in common: facts, docstring, parameters, literature."""
    names, values = zip(*facts, strict=True)
    lines = [*title(cls.title or cls.name), *table(names, [values])]
    lines += [f"Also known as {', '.join(map(escape, cls.synonyms))}.", ""] if cls.synonyms else []
    lines += [docstring(cls), ""]
    if issubclass(cls, Method):
        lines += [*section("For analysts"), escape(cls.analyst_note), ""]
        lines += [escape(cls.kept_sentence()), ""] if cls.gives.kept else []
    if issubclass(cls, Measure) and cls.tells.not_seen:
        lines += [*section("What it cannot see"), escape(cls.tells.not_seen), ""]
    lines += section("Parameters")
    rows = [
        [literal(p.name), escape(p.symbol), escape(p.domain), literal(p.default), escape(p.unit), meaning(p)]
        for p in cls.parameters()
    ]
    if rows:
        lines += table(["name", "symbol", "domain", "default", "unit", "meaning"], rows)
    else:
        lines += ["None.", ""]
    lines += [*section("In use"), *code(f"from {cls.__module__} import {cls.__name__}\n\n{cls()!r}"), *usage]
    lines += [*section("References"), *(f"- {escape(cite(key))}" for key in cls.references), ""]
    return "\n".join(lines)


def vetted_by(cls: type[Component]) -> str:
    """Say how it was checked, with a link to the proof or the name of the test."""
    level, by = cls.vetting()
    where = f":doc:`/{by.removesuffix('.md')}`" if level == "proved" else literal(by) if by else ""
    return f"{level} ({where})" if where else f":doc:`{level} </{FOLDER}/vetted>`"


def vetted_page(classes: Iterable[type[Component]]) -> str:
    """List how methods and measures were checked, and what shows it."""
    classes = list(classes)
    count = Counter(cls.vetting().level for cls in classes)
    lines = [
        *title("How each was checked"),
        "Each method and measure declares how it was checked, and by which proof or test; a test looks",
        "whether that is there and is about it. It holds for the settings that are tried there.",
        "``--only vetted`` of ``release``, ``run``, ``gate``, ``tune`` and ``compare``, in Python",
        '``only="vetted"``, in a plan ``only = "vetted"``, refuses methods and requirements that are only',
        "*empirical*.",
        "",
    ]
    for level in get_args(VettingLevel):
        there = [cls for cls in classes if cls.vetting().level == level]
        rows = [[page_link(cls), escape(cls.title), vetted_by(cls)] for cls in there]
        words = Vetting(level).sentence.partition(": ")[2]
        lines += [*section(level.capitalize()), f"{count[level]} of {len(classes)}: {words}.", ""]
        lines += table(["name", "title", "by"], rows)
    return "\n".join(lines)


def meaning(declared) -> str:
    """Say what a parameter does, and what a level search does with it."""
    said = escape(declared.explanation)
    if declared.drive and declared.tune:
        low, high = (number(end) for end in declared.tune)
        said += f" *Drive*: searched from {low} to {high}{', on a log scale' * declared.log}."
    return said


def drive_of(cls: type[Method]) -> str:
    """Name the parameter that a level search moves."""
    drive = cls.drive()
    return literal(drive.name) if drive else "—"


def bounds_of(cls: type[Measure]) -> str:
    """Say between what a score lies."""
    return " to ".join(number(end) for end in cls.bounds)


def method_command(cls: type[Method]) -> str:
    """Show one call, with every parameter at its default."""
    options = [
        f"--{p.name.replace('_', '-')} {p.default}" for p in cls.parameters() if p.default not in {None, ""}
    ]
    last = "--require 'k >= 3' --out protected.csv"
    return " \\\n    ".join([f"$ sfumato protect {cls.name} people.csv", *options, last])


def methods_page(methods: Iterable[type[Method]]) -> str:
    """List the methods, and which shape each is written in."""
    methods = list(methods)
    rows = [
        [page_link(cls), cls.family, words(cls.kinds), drive_of(cls), cls.cost, escape(cls.summary())]
        for cls in methods
    ]
    engines = [[page_link(cls), cls.shape(), "✓", *past_memory(cls)] for cls in methods]
    natures = [
        [nature, said, ", ".join(page_link(cls) for cls in methods if cls.nature == nature) or "—"]
        for nature, said in NATURES.items()
    ]
    return "\n".join(
        [
            *title("Methods"),
            "A method turns an original into a protected table. ``sfumato methods`` prints the same list.",
            "",
            *table(["method", "family", "kinds of column", "drive", "cost", "what it does"], rows),
            *section("Methods by nature"),
            "What happens to a true value. This is the taxonomy of Carvalho et al., Survey on",
            "Privacy-Preserving Techniques for Data Publishing (2023, Figure 3), with the methods here.",
            "",
            *table(["nature", "a true value is", "methods"], natures),
            *section("Methods and engines"),
            "A *column* method treats each column alone, a *block* method runs of records after rounds of",
            "summaries, a *table* method needs the whole table; see :doc:`/developing/architecture`. Every",
            "method runs on every engine and gives the same bytes (:doc:`/guides/large-tables`). The table",
            "says what ``stream`` holds in memory, and whether the workers of ``local:N`` and ``tls://``",
            "share the work of one step; strata, and trials of ``compare`` and ``tune``, they share for all.",
            "",
            *table(["method", "shape", "memory", "stream", "cluster"], engines),
            *hidden_toctree(f"methods/{cls.name}" for cls in methods),
        ]
    )


def past_memory(cls: type[Method]) -> tuple[str, str]:
    """Say what a method holds in memory with ``stream``, and whether workers share its work."""
    state = cls.state
    amounts = {"a record": state.per_record, "a record and column": state.per_cell}
    held = " and ".join(f"{amount} bytes {of}" for of, amount in amounts.items() if amount)
    if state.scale == "blocks":
        return "✓ one block; one column where it is put together", "✓ blocks"
    if state.scale == "ranks":
        return f"✓ {held or 'all columns, as numbers'}", "✓ columns"
    if state.scale == "parts":
        return f"✓ {held}", "✓ parts"
    return f"✓ {held or 'all records; not measured'}", f"✓ {NOT_SHARED}"


def measures_page(measures: Iterable[type[Measure]]) -> str:
    """List the measures."""
    measures = list(measures)
    rows = [
        [page_link(cls), cls.aspect, f"{cls.better} is better", bounds_of(cls), words(cls.kinds), said]
        for cls in measures
        for said in [escape(cls.summary())]
    ]
    return "\n".join(
        [
            *title("Measures"),
            "A measure gives a release a score. ``sfumato measures`` prints the same list.",
            "",
            *table(["measure", "aspect", "direction", "bounds", "kinds of column", "what it measures"], rows),
            *hidden_toctree(f"measures/{cls.name}" for cls in measures),
        ]
    )


def other_names_page(classes: Iterable[type[Component]]) -> str:
    """List what the literature and other tools call things, and what that is here."""
    found: dict[str, list[str]] = {}
    for cls in classes:
        for word in cls.synonyms:
            found.setdefault(word, []).append(page_link(cls))
        for p in cls.parameters():
            for word, choice in p.synonyms.items():
                found.setdefault(word, []).append(f"{page_link(cls)} with {literal(f'{p.name}={choice}')}")
    for word, sentence in told_words():
        found.setdefault(word, []).append(escape(sentence))
    rows = [[escape(word), ", ".join(here)] for word, here in sorted(found.items(), key=_by_word)]
    return "\n".join(
        [
            *title("Other names"),
            "Names in papers, sdcMicro, ARX, μ-ARGUS and Amnesia, and the names here.",
            "``sfumato methods WORD`` and ``sfumato measures WORD`` find the same, in any spelling.",
            "",
            *table(["there", "here"], rows),
        ]
    )


def survey_page() -> str:
    """List the terms of the survey, what each is here, what tests it, or why it is left out."""
    rows = survey.catalogue()
    count = Counter(row.verdict for row in rows)
    found = ", ".join(f"{count[each]} {each}" for each in get_args(survey.RowStatus) if count[each])
    lines = [
        *title("The survey, term by term"),
        "What T. Carvalho, N. Moniz, P. Faria and L. Antunes list in their *Survey on Privacy-Preserving",
        f"Techniques for Data Publishing* (2022), and what it is here: {len(rows)} rows, {found}.",
        "Each term, typed after ``sfumato methods`` or ``sfumato measures``, leads to what the row names.",
        "",
    ]
    for place, about in survey.titles().items():
        there = [row for row in rows if row.place == place]
        cells = [
            [escape(row.of), escape(row.term), _survey_home(row), literal(row.test), row.verdict]
            for row in there
        ]
        lines += [
            *section(f"{place}: {about}"),
            *table(["heading", "term", "here", "test", "verdict"], cells),
        ]
    names = list(dict.fromkeys(has for tool in survey.tools() for has in tool.has))
    cells = [
        [escape(tool.name), *("yes" if name in tool.has else "no" for name in names), _prose(tool.here)]
        for tool in survey.tools()
    ]
    lines += [*section("Table 5: privacy tools"), *table(["tool", *names, "here"], cells)]
    return "\n".join(lines)


def _survey_home(row: survey.CatalogueRow) -> str:
    """What a term is here, and with what setting, or why there is nothing."""
    links = [
        page_link(survey.component_of(each)) + (f" with {literal(setting[:-1])}" if setting else "")
        for each in row.ours
        for setting in [each.partition("(")[2]]
    ]
    return " ".join(filter(None, [", ".join(links), _prose(row.note), _prose(row.reason)]))


def _prose(text: str) -> str:
    """Text in which what stands in single backticks is literal."""
    return text.replace("`", "``")


def _by_word(row: tuple[str, list[str]]) -> str:
    return row[0].lower()


# ----------------------------------------------------------------------------------------------- the doors


def command_line_page() -> str:
    """Show the help of every verb and of its own verbs; of the methods under ``protect`` that of one."""
    lines = [*title("Command line"), "Data go to stdout; messages, progress and errors go to stderr.", ""]
    for name, text in verbs():
        lines += [*section(name), *block(text)]
    return "\n".join(lines)


def verbs() -> Iterator[tuple[str, str]]:
    """Yield every command with its help, as the command line itself finds them."""
    from sfumato.cli import cli

    settings = {**cli.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    root = click.Context(cli, info_name="sfumato", **settings)
    yield "sfumato", cli.get_help(root)
    for name in cli.list_commands(root):
        command = cli.get_command(root, name)
        here = click.Context(command, parent=root, info_name=name)
        yield f"sfumato {name}", command.get_help(here)
        if isinstance(command, click.Group):
            inside = command.list_commands(here)
            for example in inside if len(inside) <= MAX_INNER else inside[-1:]:
                inner = command.get_command(here, example)
                yield (
                    f"sfumato {name} {example}",
                    inner.get_help(click.Context(inner, parent=here, info_name=example)),
                )


def errors_page() -> str:
    """Show the tree of errors, and each with its exit code."""
    tree = (inspect.getdoc(errors) or "").partition("::\n")
    found = [
        cls for cls in vars(errors).values() if inspect.isclass(cls) and issubclass(cls, errors.SfumatoError)
    ]
    rows = [[literal(cls.__name__), str(cls.exit_code), escape(first_line(cls))] for cls in found]
    return "\n".join(
        [
            *title("Errors and exit codes"),
            "All errors raised on purpose are in ``sfumato.errors`` and derive from ``SfumatoError``.",
            "",
            "::",
            tree[2],
            "",
            *section("Exit codes"),
            *table(["code", "meaning"], exit_codes(found)),
            *section("Every error"),
            *table(["error", "exit code", "when"], rows),
        ]
    )


def exit_codes(found: Iterable[type[errors.SfumatoError]]) -> list[list[str]]:
    """Say what each exit code means, from the errors that have it."""
    from sfumato.cli import INTERNAL_ERROR, INTERRUPTED

    meanings: dict[int, list[str]] = {0: ["done"], 2: ["the command line was not understood"]}
    for cls in found:
        if cls is not errors.SfumatoError:
            meanings.setdefault(cls.exit_code, []).append(literal(cls.__name__))
    meanings.setdefault(INTERNAL_ERROR, []).append("something went wrong inside sfumato: please report it")
    meanings.setdefault(INTERRUPTED, []).append("stopped with Ctrl-C; nothing is left half-written")
    return [[str(code), "; ".join(said)] for code, said in sorted(meanings.items())]


def python_page() -> str:
    """Show the front door: its verbs in full, its nouns in a line."""
    lines = [
        *title("Python"),
        "Everything a script needs is in ``sfumato`` itself; each name is loaded on first use.",
        "",
    ]
    others = {name: getattr(sfumato, name) for name in sfumato.__all__}
    for name, item in {**vars(front), **others}.items():
        if name in sfumato.__all__ and inspect.isfunction(item):
            lines += [*section(f"sfumato.{name}"), *code(signature(name, item)), docstring(item), ""]
    nouns = [item for item in (getattr(sfumato, name) for name in sfumato.__all__) if inspect.isclass(item)]
    rows = [
        [literal(f"sfumato.{item.__name__}"), literal(item.__module__), escape(first_line(item))]
        for item in nouns
    ]
    lines += [*section("Classes"), *table(["name", "lives in", "what it is"], rows)]
    lines += [*section("One line for each method and measure"), *_FUNCTIONS]
    for name in ("methods.mdav", "risk.k_anonymity", "risk.singling_out"):
        room, _, function = name.partition(".")
        lines += code(signature(function, getattr(getattr(sfumato, room), function)))
    lines += [*section("sfumato.arrays"), docstring(sfumato.arrays)]
    for name in sfumato.arrays.__all__:
        item = getattr(sfumato.arrays, name)
        lines += [*section(f"sfumato.arrays.{name}"), *code(signature(name, item)), docstring(item), ""]
    return "\n".join(lines)


#: What is said of the functions of the rooms.
_FUNCTIONS = (
    "Each method and measure is a function of ``sfumato.methods``, ``sfumato.risk`` or ``sfumato.utility``,",
    "named as in the lists, with underscores. A method takes the data and the columns to protect, and gives",
    "a ``Release``, as ``sfumato.protect`` does. A measure gives a ``Score``, as ``sfumato.assess`` does: a",
    "measure of one table takes the data and the keys, a measure of a release takes the original and the",
    "release, and an attack takes a control group as well. Parameters are given by keyword;",
    "``help(sfumato.methods.mdav)`` lists them.",
    "",
)


def files_page() -> str:
    """List the files of each room with the first line of their docstrings, read without importing them."""
    root = Path(sfumato.__file__).parent
    lines = [*title("Rooms and their files"), "What each file is for, in its own words.", ""]
    for room in sorted(path.parent for path in root.glob("*/__init__.py")):
        files = [path for path in sorted(room.rglob("*.py")) if path != room / "__init__.py"]
        rows = [[literal(path.relative_to(room)), escape(_sentence_of(path))] for path in files]
        lines += [*section(room.name), escape(_sentence_of(room / "__init__.py")), ""]
        lines += table(["file", "what it is for"], rows)
    return "\n".join(lines)


def _sentence_of(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def signature(name: str, function) -> str:
    """Write a signature as its author would: one parameter per line when it is long."""
    found = inspect.signature(function)
    given = [_unquoted(str(parameter)) for parameter in found.parameters.values()]
    keywords = [p.kind is p.KEYWORD_ONLY for p in found.parameters.values()]
    if any(keywords):
        given.insert(keywords.index(True), "*")
    back = "" if found.return_annotation is found.empty else f" -> {found.return_annotation}"
    short = f"def {name}({', '.join(given)}){back}"
    if len(short) <= WIDTH:
        return short
    return "\n".join([f"def {name}(", *(f"    {each}," for each in given), f"){back}"])


def _unquoted(parameter: str) -> str:
    """Take the quotes off an annotation, which is text until someone asks."""
    return re.sub(r"^(\w+): '([^']*)'", r"\1: \2", parameter)


# ---------------------------------------------------------------------------------------- reStructuredText


#: What examples do not import, said where they stand (`sfumato.testing.components.example_names`).
_GIVEN = (
    "After ``import numpy as np``, ``import polars as pl``, ``import sfumato``, ``from sfumato import *``,\n"
    "``from sfumato.core.run import Run`` and ``from sfumato.core.evidence import Evidence``:\n\n"
)


def docstring(item) -> str:
    """Take a docstring as it is, its underlined sections made rubrics and its "See Also" a list of links."""
    # `for_` alone on a line would be a link.
    text = re.sub(r"^(\w+)_$", r"\1\_", inspect.getdoc(item) or "", flags=re.MULTILINE)
    head, *rest = _SECTION.split(text)
    parts = [head]
    for name, body in zip(rest[::2], rest[1::2], strict=True):
        parts.append(f".. rubric:: {name}\n")
        parts.append(_SEE_ALSO.sub(_see_also, body) if name == "See Also" else body)
        if name == "Examples":
            parts.insert(-1, _GIVEN)
    return "\n".join(parts).rstrip() + "\n"


def _see_also(entry: re.Match[str]) -> str:
    classes = (*registry.methods().values(), *registry.measures().values())
    known = {word: cls for cls in classes for word in (cls.__name__, cls.name)}
    cls = known.get(entry["name"])
    return f"- {page_link(cls) if cls else literal(entry['name'])}: {entry['text']}"


def page_link(cls: type[Component]) -> str:
    """Link to the page of a method or measure."""
    room = "measures" if issubclass(cls, Measure) else "methods"
    return f":doc:`{cls.name} </{FOLDER}/{room}/{cls.name}>`"


def first_line(item) -> str:
    """Take the first line of a docstring."""
    return (inspect.getdoc(item) or "").partition("\n")[0]


def escape(text: object) -> str:
    """Keep plain words plain; single and double backticks are literals, as in our docstrings."""
    parts = re.split(r"(`+[^`]+`+)", str(text))
    return "".join(
        literal(part.strip("`")) if part.startswith("`") else re.sub(r"([\\*_|])", r"\\\1", part)
        for part in parts
    )


def literal(text: object) -> str:
    """Set a word as code; an empty list of columns is no word."""
    return f"``{text}``" if str(text) else "—"


def words(kinds: Iterable[str]) -> str:
    """List kinds of column."""
    return ", ".join(sorted(kinds))


def number(value: float) -> str:
    """Write a bound."""
    return {float("inf"): "∞", float("-inf"): "−∞"}.get(value, f"{value:g}")


def title(text: str) -> list[str]:
    """Head a page."""
    return [text, "=" * len(text), ""]


def section(text: str) -> list[str]:
    """Head a section."""
    return [text, "-" * len(text), ""]


def block(text: str) -> list[str]:
    """Set text as it stands."""
    return [".. code-block:: text", "", *(f"   {line}".rstrip() for line in text.splitlines()), ""]


def code(text: str) -> list[str]:
    """Set text as Python."""
    return [".. code-block:: python", "", *(f"   {line}".rstrip() for line in text.splitlines()), ""]


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Set a table."""
    lines = [".. list-table::", "   :header-rows: 1", "   :align: left", ""]
    for row in (headers, *rows):
        lines += [f"   {'*' if i == 0 else ' '} - {cell}".rstrip() for i, cell in enumerate(row)]
    return [*lines, ""]


def hidden_toctree(entries: Iterable[str]) -> list[str]:
    """Put pages below this one in the table of contents."""
    return [".. toctree::", "   :hidden:", "", *(f"   {entry}" for entry in entries), ""]


# -------------------------------------------------------------------------------------------------- Sphinx


def write(folder: Path) -> None:
    """Write the pages that changed, and take away those whose method is gone."""
    made = pages()
    for path in folder.rglob("*.rst"):
        if path.relative_to(folder).as_posix() not in made:
            path.unlink()
    for name, text in made.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")


class ComponentRole(SphinxRole):
    """Link to a method or measure: {measure}`dbrl(scale=rank)`. A name that is none is a warning."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        name = self.text.partition("(")[0]
        try:
            cls = getattr(registry, self.name)(name)
        except errors.SfumatoError as error:
            message = self.inliner.reporter.warning(str(error), line=self.lineno)
            return [nodes.literal(text=self.text)], [message]
        target = self.env.app.builder.get_relative_uri(self.env.docname, f"{FOLDER}/{self.name}s/{cls.name}")
        link = nodes.reference("", "", nodes.literal(text=self.text), refuri=target, internal=True)
        return [link], []


def setup(app):
    """Tell Sphinx."""
    app.add_role("method", ComponentRole())
    app.add_role("measure", ComponentRole())
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / FOLDER))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
