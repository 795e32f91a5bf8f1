"""The documentation says what is so: its code runs, its output is right, and nothing that exists is left out.

Conventions on the pages that are run (guides, README, add-a-method), one folder and namespace per page:

* a ``python`` block is executed; a ``text`` block after it is what it prints;
* a ``toml`` block is written to ``plan.toml``;
* in a ``console`` block every ``$ sfumato …`` is run and must end with exit code 0, or with the one that a
  following ``$ echo $?`` shows; other commands are not run.

Of shown output, every line must be among the lines that came; ``…`` stands for anything, and spaces do not count.
Tables are as on a screen of 100 columns.
"""

import contextlib
import dataclasses
import doctest
import importlib
import importlib.util
import io
import re
import shlex
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given

import sfumato
import sfumato.methods
from effort import examples
from sfumato.cli import cli, main
from sfumato.core import registry
from sfumato.core.references import references
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role
from sfumato.errors import SfumatoError
from sfumato.recipes import parts as plan_parts
from sfumato.recipes import plan as plans
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.testing import METHOD_CHECKS, instances, table_of
from sfumato.testing.components import example_names

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ADD_A_METHOD = DOCS / "developing" / "add-a-method.md"
METHOD_HEADS = ("When to use.", "Guarantees.", "Risk to know.", "Ties, missing, weights.", "Cost.")
MEASURE_HEADS = ("How to read it.", "Doubt.", "Missing.", "Cost.")


def extension(name):
    """An extension of the documentation, as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference():
    """The extension that writes the reference pages."""
    return extension("sfumato_reference")


@pytest.fixture(scope="module")
def pages(reference):
    """The reference pages of what lives in the house."""
    return reference.pages()


# ------------------------------------------------------------------------------------------ running a page


def blocks(page: Path) -> list[tuple[str, str]]:
    """The fenced blocks of a page: language and text."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run_page(parts):
    """Run the blocks of a page in the present folder, as the conventions say."""
    namespace, printed = {"__name__": "page"}, ""
    for language, text in parts:
        if language == "python":
            printed = run_python(text, namespace)
        elif language == "text":
            assert_shown(text.splitlines(), printed)
        elif language == "toml":
            Path("plan.toml").write_text(text, encoding="utf-8")
        elif language == "console":
            run_console(text)


def run_python(text, namespace):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(text, "page", "exec"), namespace)
        for name in [name for name in namespace if name.startswith("test_")]:
            namespace.pop(name)()
    return out.getvalue()


def run_console(text):
    commands = []
    for line in text.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    for (command, shown), (following, code) in zip(commands, [*commands[1:], ("", [])], strict=True):
        words = shlex.split(command, comments=True)
        if words[:1] == ["sfumato"]:
            expected = int(code[0]) if following == "echo $?" else 0
            assert_shown(shown, run_command(words[1:], expected))


def run_command(arguments, expected):
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        pytest.raises(SystemExit) as ended,
    ):
        main(arguments)
    assert ended.value.code == expected, f"sfumato {shlex.join(arguments)}\n{out.getvalue()}"
    return out.getvalue()


def assert_shown(shown, came):
    """Every line a page shows is among those that came."""
    lines = [" ".join(line.split()) for line in came.splitlines()]
    for line in (" ".join(line.split()) for line in shown):
        pattern = ".*".join(re.escape(part) for part in re.split(r"\s*…\s*", line))
        assert any(re.fullmatch(pattern, each) for each in lines), f"`{line}` is not in:\n{came}"


SLOW_PAGES = {"compare-at-equal-risk", "enforce-k-anonymity"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page.stem in SLOW_PAGES else (), id=page.stem)
        for page in [
            ROOT / "README.md",
            DOCS / "install.md",
            DOCS / "concepts" / "permutation-view.md",
            *sorted((DOCS / "guides").glob("*.md")),
        ]
    ],
)
def test_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    parts = blocks(page)
    assert any(language in {"python", "console"} for language, _ in parts)
    run_page(parts)


# -------------------------------------------------------------------------------------- a method in one file


@pytest.fixture
def flooring(tmp_path, monkeypatch):
    """The method of the guide, dropped into the methods' room for the time of a test."""
    text = next(text for language, text in blocks(ADD_A_METHOD) if language == "python")
    folder = tmp_path / "methods"
    folder.mkdir()
    (folder / "flooring.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sfumato.methods, "__path__", [*sfumato.methods.__path__, str(folder)])
    importlib.invalidate_caches()
    registry.methods.cache_clear()
    try:
        yield registry.method("flooring")
    finally:
        sys.modules.pop("sfumato.methods.flooring", None)
        vars(sfumato.methods).pop("flooring", None)
        registry.methods.cache_clear()


def test_one_file_is_enough(flooring, reference):
    """The command line and the documentation find it by themselves."""
    assert registry.methods()["flooring"] is flooring
    for command in (["methods"], ["protect", "--help"]):
        assert "flooring" in CliRunner().invoke(cli, command).output
    assert "--base" in CliRunner().invoke(cli, ["protect", "flooring", "--help"]).output
    pages = reference.pages()
    assert "``base``" in pages["methods/flooring.rst"]
    assert "methods/flooring" in pages["methods.rst"]
    assert "flooring" in pages["command-line.rst"]
    assert_has_heads(flooring, METHOD_HEADS)


def test_the_one_file_keeps_the_contract(flooring):
    for check in METHOD_CHECKS:
        check(flooring)


def test_the_one_file_keeps_its_bounds(flooring):
    @given(method=instances(flooring))
    @examples(50)
    def holds(method):
        with contextlib.suppress(SfumatoError):
            Recipe((Step(method, ("a", "b")),)).apply(table_of(Kind.CONTINUOUS, 30, missing=0.1), Run(seed=1))

    holds()


def test_the_rest_of_its_page_runs(flooring, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, *rest = blocks(ADD_A_METHOD)
    assert rest
    run_page(rest)


def test_the_one_file_is_gone_again(reference):
    assert "flooring" not in registry.methods()
    assert "methods/flooring.rst" not in reference.pages()


# ------------------------------------------------------------------------------- what exists is documented


def assert_has_heads(cls, heads):
    """What cites literature is explained in full; a trial of one's own may say no more than its first line."""
    if not cls.references:
        assert cls.summary()
        return
    found = re.findall(r"^ *\*\*([^*]+)\*\*", cls.__doc__, re.MULTILINE)
    assert [head for head in found if head in heads] == list(heads), f"{cls.name} has the heads {found}"


@pytest.mark.parametrize("name", registry.methods())
def test_method_is_documented(name, pages):
    cls = registry.method(name)
    assert_has_heads(cls, METHOD_HEADS)
    assert_is_described(cls, pages[f"methods/{name}.rst"])


@pytest.mark.parametrize("name", registry.measures())
def test_measure_is_documented(name, pages):
    cls = registry.measure(name)
    assert_has_heads(cls, MEASURE_HEADS)
    assert_is_described(cls, pages[f"measures/{name}.rst"])


def assert_is_described(cls, page):
    assert set(cls.references) <= set(references())
    assert cls.title in page
    for declared in cls.parameters():
        assert f"``{declared.name}``" in page
        assert re.sub(r"`([^`]+)`", r"``\1``", declared.help) in page  # single backquotes are literals, too


def test_every_verb_has_help_and_stands_in_the_reference(pages):
    page = pages["command-line.rst"]
    context = click.Context(cli, info_name="sfumato")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command.help, f"`sfumato {name}` must say what it does"
        assert f"\nsfumato {name}\n" in page
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, f"{option.opts} of `sfumato {name}` must say what it does"
                assert all(flag in page for flag in option.opts)


def test_every_front_verb_stands_in_the_reference(pages):
    page = pages["python.rst"]
    for name in sfumato.__all__:
        assert name.startswith("_") or f"sfumato.{name}" in page


def modules_with_examples():
    """The modules outside the registry's rooms whose docstrings have examples; those of the rooms have a check."""
    source = ROOT / "src"
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        if parts[1] not in {"methods", "risk", "utility"} and ">>>" in path.read_text(encoding="utf-8"):
            yield ".".join(parts).removesuffix(".__init__")


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_of_other_rooms_run(name):
    module, runner = importlib.import_module(name), doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder().find(module, name, globs={**example_names(), **vars(module)}):
        assert runner.run(test).failed == 0


def test_plan_reference_has_every_key():
    """Each table of the plan's page lists exactly the keys the code knows."""
    page = (DOCS / "reference" / "plan-file.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    fields = {
        "Parts": {item.name for item in dataclasses.fields(plans.PlanParts)},
        "`[data]` and `[resources.NAME]`": {item.name for item in dataclasses.fields(plan_parts.Source)},
        "`[columns.NAME]`": {item.name for item in dataclasses.fields(Column)} - {"name"},
        "`[[scenarios]]`": {item.name for item in dataclasses.fields(Scenario)} | {"requirements"},
        "`[[steps]]`": {item.name for item in dataclasses.fields(Step)} | {"parameters"},
        "`[output]`": {item.name for item in dataclasses.fields(plan_parts.Output)},
        "`[series]`": {item.name for item in dataclasses.fields(plan_parts.SeriesSpec)},
        "`[release]`": {item.name for item in dataclasses.fields(plan_parts.About)},
        "`[[release.tables]]`": {item.name for item in dataclasses.fields(plan_parts.CountTable)},
    }
    for title, known in fields.items():
        rows = re.findall(r"^\| (`[^|]+`) \|", sections[title], re.MULTILINE)
        assert {key for row in rows for key in re.findall(r"`(\w+)`", row)} == known, title
    for word in (*Kind, *Role):
        assert f"`{word}`" in sections["`[columns.NAME]`"]


def test_plan_reference_example_is_a_plan(tmp_path):
    text = next(text for language, text in blocks(DOCS / "reference" / "plan-file.md") if language == "toml")
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    assert not plans.Plan.read(tmp_path / "plan.toml").blockers()


# ------------------------------------------------------------------------------------------- housekeeping


def texts(folder=ROOT):
    """Every text file of the repository that a person wrote."""
    built = {"demo", "build", "dist", "generated", "_build", "__pycache__"}
    for path in sorted(folder.iterdir()):
        if path.name in built or (path.name.startswith(".") and path.name != ".ci"):
            continue
        if path.is_dir():
            yield from texts(path)
        elif path.suffix in {"", ".py", ".md", ".toml", ".cff", ".bib", ".j2", ".css", ".txt"}:
            yield path


def test_no_machine_is_named():
    """No path of somebody's machine in the repository."""
    absolute = re.compile(r"(?<![\w.~$}])/(work|home|root|Users|mnt)/\w")
    for path in texts():
        assert not absolute.search(path.read_text(encoding="utf-8")), path


#: Words of our own for which the field has a term.
DIALECT = re.compile(
    r"\b(taking apart|take values apart|drawing anew|who is alike|what is learnt|told of|whose is whose|withh(old|eld)\w*)\b"
    r"|\b(protect|draw|publish)\w* anew\b",
    re.IGNORECASE,
)


def guides():
    """The pages that a person wrote, with what is a program or its output taken out."""
    for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        if not {"generated", "_build"} & set(path.parts):
            text = path.read_text(encoding="utf-8")
            yield path, re.sub(r"^```\w+\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def test_pages_use_the_words_of_the_field():
    """Pages use terms of the field; only the glossary has other words, in what people search for."""
    found = {(path.stem, match[0].lower()) for path, text in guides() for match in DIALECT.finditer(text)}
    assert {each for each in found if each[0] != "glossary"} == set()
    rows = [
        text.split("|") for path, text in guides() if path.stem == "glossary" for text in text.splitlines()
    ]
    assert not any(DIALECT.search("|".join([*row[:1], *row[2:]])) for row in rows)


def test_every_word_of_the_code_is_in_the_glossary():
    """What the table for contributors calls by other names, people find by these names."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## One word per idea")[2]
    words = re.findall(
        r"^\| (key|sensitive|identifier|class|intruder|synthetic|series) \|.*\| (.*) \|$", table, re.MULTILINE
    )
    glossary = (DOCS / "concepts" / "glossary.md").read_text(encoding="utf-8").lower()
    assert len(words) == 7
    for word, others in words:
        assert any(other.lower() in glossary for other in others.split(", ")), word


NAMED = re.compile(r"\{(method|measure)\}`([\w-]+)")


@pytest.mark.parametrize(
    ("kind", "name"), sorted({each for _, text in guides() for each in NAMED.findall(text)}), ids="-".join
)
def test_named_component_exists(kind, name):
    """Pages name methods and measures by reference."""
    assert getattr(registry, kind)(name)


def test_pages_refer_to_components():
    """A name with a hyphen can be nothing else: bare code would not be looked up."""
    names = {name for name in (*registry.methods(), *registry.measures()) if "-" in name}
    bare = re.compile(r"(?<!\})`([\w-]+)(?:\([^`]*\))?`(?!\])")
    found = {
        (path.stem, name)
        for path, text in guides()
        if path.name != "README.md"
        for name in bare.findall(text)
        if name in names
    }
    assert not found


SEARCHES = (
    "anonymise", "anonymize", "anonymize excel", "anonymise csv", "anonymize spss", "de-identify", "deidentify", "pseudonymise",
    "pseudonymize", "quasi-identifier", "attacker", "adversary", "withheld", "sanitized", "synthetic data", "gdpr", "hipaa",
)  # fmt: skip


@pytest.mark.parametrize("search", SEARCHES)
def test_what_people_search_for_is_found(search):
    """Some page has all the words that somebody types."""
    pages = [path.read_text(encoding="utf-8").lower() for path in DOCS.rglob("*.md")]
    assert any(all(re.search(rf"\b{word}", page) for word in search.split()) for page in pages)


def test_version_is_told_alike():
    version = sfumato.__version__
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"Version {version}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_between_files_lead_somewhere():
    """Sphinx looks after the pages in docs; these are outside. The changelog may name a page that has moved."""
    moved = {f"docs/{old}.md" for old in extension("moved").MOVED}
    for name, known in ("README.md", set()), ("CONTRIBUTING.md", set()), ("CHANGELOG.md", moved):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"(?<!\!)\[[^\]]+\]\(([^)#]+)\)", text):
            assert "://" in target or target in known or (ROOT / target).exists(), f"{name} links to {target}"


def test_architecture_is_of_this_package():
    """Every room has its line, and every file that the page names exists."""
    page, package = (
        (DOCS / "developing" / "architecture.md").read_text(encoding="utf-8"),
        ROOT / "src" / "sfumato",
    )
    rows = re.findall(r"^\| \d+ \| ([^|]+) \|", page, re.MULTILINE)
    rooms = {path.stem for path in package.iterdir() if not path.name.startswith(("_", "."))} - {"py"}
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == rooms
    for name in re.findall(rf"`((?:{'|'.join(rooms)})/[\w/]+(?:\.py)?)`", page):
        assert (package / name).exists() or (package / f"{name}.py").exists(), name


def test_moved_pages_lead_somewhere():
    """An old address leads to a page that exists, and is none itself."""
    for old, new in extension("moved").MOVED.items():
        assert (DOCS / f"{new}.md").exists()
        assert not (DOCS / f"{old}.md").exists()


def test_licence_is_whole():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_every_resident_cites_its_literature():
    """A toy dropped into the house may cite nothing; what lives here does."""
    residents = {**registry.methods(), **registry.measures()}
    known = {"correlated-noise", "hohne-noise", "mdav", "rank-swapping"}
    known |= {"earth-movers-distance", "permutation-distance", "rank-linkage"}
    assert all(residents[name].references for name in known)
