"""What the source says of names is what importing finds, and one can be had without the others."""

import importlib
import inspect
import subprocess
import sys

import pytest

import sfumato
import sfumato.methods
from sfumato.core import registry
from sfumato.errors import RenamedWarning, UnknownNameError

ROOMS = {"methods": registry.methods, "risk": registry.measures, "utility": registry.measures}


@pytest.mark.parametrize("room", ROOMS)
def test_the_index_read_from_source_is_what_importing_finds(room):
    imported = {
        cls.__name__: registry.Entry(
            cls.__module__,
            cls.__name__,
            name,
            vars(cls).get("aliases", ()),
            vars(cls).get("former", ()),
            room,
            vars(cls)["family"],
            cls.summary(),
            cls.places() if room != "methods" else {},
        )
        for name, cls in ROOMS[room]().items()
        if cls.__module__.startswith(f"sfumato.{room}.")
    }
    assert dict(registry.index(room)) == imported
    assert imported


@pytest.mark.parametrize("room", ROOMS)
def test_every_class_can_be_had_from_its_room(room):
    module = importlib.import_module(f"sfumato.{room}")
    functions = {entry.name.replace("-", "_") for entry in registry.index(room).values()}
    assert set(module.__all__) == set(registry.index(room))
    assert set(dir(module)) == set(module.__all__) | functions
    for name, entry in registry.index(room).items():
        assert getattr(module, name) is entry.load()
    with pytest.raises(AttributeError, match="Nobody"):
        module.Nobody  # noqa: B018


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_is_a_function_of_its_room(room):
    """Also where a module has that name: ``sfumato.risk.singling_out`` is a module that can be called."""
    module = getattr(sfumato, room)
    for entry in registry.index(room).values():
        function, cls = getattr(module, entry.name.replace("-", "_")), entry.load()
        parameters = inspect.signature(function).parameters
        assert next(iter(parameters)) in {"data", "original"}
        assert {each.name: each.default for each in cls.parameters()}.items() <= {
            name: each.default for name, each in parameters.items()
        }.items()


def test_a_module_with_the_name_of_its_measure_is_still_a_module():
    from sfumato.risk import singling_out

    assert importlib.import_module("sfumato.risk.singling_out") is singling_out is sfumato.risk.singling_out
    assert inspect.ismodule(singling_out)
    assert singling_out.SinglingOut is registry.measure("singling-out")
    with pytest.raises(TypeError, match="not callable"):
        importlib.import_module("sfumato.risk.anonymity")()


@pytest.mark.parametrize(
    "code", ["from sfumato.core import registry; registry.method('mdav')", "from sfumato.methods import Mdav"]
)
def test_one_method_is_imported_without_the_others(code):
    probe = (
        f"{code}\nimport sys\n"
        "print(sorted(m for m in sys.modules if m.startswith(('sfumato.methods.', 'sfumato.risk.'))"
        " and not m.rpartition('.')[2].startswith('_')))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['sfumato.methods.microaggregation']"


FAMILY = '''
"""A family."""

from sfumato.methods.rounding import Rounding


class Base(Rounding):
    """Has no name of its own."""


class Coarse(Base):
    """It has."""

    name = "coarse"
    aliases = (
        "rough",
        "crude",
    )

    def protect_column(self, column, rng):
        name = "not a name"
        return name


def after():
    name = "nor is this"
    return name


class Fine(Base):
    """As has this."""

    former = ("exact",)
    name = "fine"
    family = "grains"
'''


@pytest.fixture
def family(tmp_path, monkeypatch):
    """A family that is a package with a helper, put into the methods' room."""
    folder = tmp_path / "family"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""A family."""\n', encoding="utf-8")
    (folder / "grain.py").write_text(FAMILY, encoding="utf-8")
    (folder / "_helper.py").write_text('"""Registers nothing."""\n', encoding="utf-8")
    monkeypatch.setattr(sfumato.methods, "__path__", [*sfumato.methods.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    registry.methods.cache_clear()
    yield "sfumato.methods.family.grain"
    for name in [name for name in sys.modules if name.startswith("sfumato.methods.family")]:
        del sys.modules[name]
    vars(sfumato.methods).pop("family", None)
    registry.methods.cache_clear()


def test_a_family_may_be_a_package(family):
    found = [entry for entry in registry.index("methods").values() if entry.module == family]
    assert found == [
        registry.Entry(family, "Coarse", "coarse", ("rough", "crude"), room="methods", summary="It has."),
        registry.Entry(family, "Fine", "fine", (), ("exact",), "methods", "grains", "As has this."),
    ]
    assert registry.method("crude") is registry.methods()["coarse"] is sfumato.methods.Coarse
    with pytest.warns(RenamedWarning, match="`exact` is called `fine` now"):
        assert registry.method("exact") is sfumato.methods.Fine


def test_unknown_names_are_told_with_near_ones():
    with pytest.raises(UnknownNameError, match="mdav"):
        registry.method("mdaw")


def test_one_measure_is_asked_without_the_libraries_of_others(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("age,sex\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(40)), encoding="utf-8")
    probe = (
        "import sys\nfrom sfumato.cli import _exit_code\n"
        f"code = _exit_code(['risk', {str(file)!r}, '-m', 'k', '-q'])\n"
        "assert code == 0, code\n"
        "print([name for name in ('scipy', 'numba', 'sklearn', 'duckdb', 'optuna') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_measures_of_a_place_come_by_their_rank_there():
    assert [each.name for each in registry.measures_for("comparison")] == [
        "uniqueness", "k-anonymity", "dbrl", "gdbrl",
    ]  # fmt: skip
    assert [each.name for each in registry.measures_for("records", "gauges")] == [
        "individual-risk", "journalist-risk", "prosecutor-risk", "marketer-risk",
    ]  # fmt: skip


def test_asking_for_the_measures_of_a_place_imports_no_other():
    code = (
        "import sys; from sfumato.core import registry; registry.measures_for('epsilon');"
        "print(*(name for name in sys.modules if name.startswith('sfumato.utility.')))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []
