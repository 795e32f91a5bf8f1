"""Imports point one way, and the doors open lightly."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import sfumato

ROOT = Path(sfumato.__file__).parent

#: From the ground up: a room may import from rooms on lower floors and from its own.
FLOORS = [
    {"errors", "version"},
    {"kernels"},
    {"data"},
    {"engines"},
    {"core"},
    {"io", "datasets"},
    {"methods", "risk", "utility"},
    {"recipes"},
    {"study"},
    {"tuning", "explain", "releasing"},
    {"report", "parties"},
    {"front", "testing", "arrays"},
    {"web", "functions", "reproduce"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


@cache
def imports_of(path: Path):
    return tuple(_imports_of(path))


def _imports_of(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from (
                [node.module] if node.module != "sfumato" else [f"sfumato.{a.name}" for a in node.names]
            )
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_imports_point_one_way():
    upwards = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in MODULES
        for name in imports_of(path)
        if name.startswith("sfumato.")
        and (other := name.split(".")[1]) != room_of(path)
        and not FLOOR[other] < FLOOR[room_of(path)]
    ]
    assert not upwards


def test_no_file_imports_in_a_circle():
    """Lazy and typing imports count: who reads one file of a circle must read them all."""
    names = {".".join(("sfumato", *path.relative_to(ROOT).with_suffix("").parts)): path for path in MODULES}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    imported = {name: set(_files_imported(path, names)) - {name} for name, path in names.items()}
    ahead: list[str] = []

    def require_no_circle(name, done=set()):  # noqa: B006  — what was gone through once is known
        assert name not in ahead, " → ".join([*ahead[ahead.index(name) :], name])
        if name not in done:
            ahead.append(name)
            for other in sorted(imported[name]):
                require_no_circle(other)
            ahead.pop()
            done.add(name)

    for name in names:
        require_no_circle(name)


def _files_imported(path, names):
    """The files that a file imports from: a module of a package, or the package itself."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield from (each for each in (inside if inside in names else node.module,) if each in names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)


def test_only_kernels_import_numba():
    elsewhere = [path for path in MODULES if room_of(path) != "kernels"]
    assert not [path for path in elsewhere if any(name.split(".")[0] == "numba" for name in imports_of(path))]


def test_no_room_without_a_name():
    assert not {"utils", "helpers", "misc", "common"} & {path.stem for path in MODULES}


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import sfumato", {"numba", "sklearn", "polars", "scipy", "ot", "pandas"}),
        (
            "import sfumato; sfumato.Schema, sfumato.protect",
            {"numba", "sklearn", "ot", "scipy", "pandas", "statsmodels"},
        ),
        (
            "from sfumato.core import registry; registry.methods(); registry.measures()",
            {"numba", "sklearn", "ot"},
        ),
        (
            (
                "import contextlib, io; from sfumato.cli import main\n"
                "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main(['-h'])"
            ),
            {"numba", "sklearn", "polars", "scipy", "ot", "rich"},
        ),
    ],
)
def test_light_imports(code, heavy):
    """What is not needed is not loaded: numba alone costs more than a second."""
    probe = f"{code}\nimport sys\nprint(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_every_public_name_is_there():
    for name in sfumato.__all__:
        assert getattr(sfumato, name) is not None


def test_the_verbs_are_verbs_even_after_a_room_of_the_same_name_was_loaded():
    code = "import sfumato, sfumato.study.level; print(all(callable(getattr(sfumato, v)) for v in %r))"
    verbs = ("read", "protect", "assess", "compare")
    done = subprocess.run([sys.executable, "-c", code % (verbs,)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
