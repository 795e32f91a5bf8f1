"""Numba itself, and where compiled kernels are kept from one process to the next.

Numba asks only the file of a kernel whether it is still the same, but a kernel holds the code of those it
calls. Here what is kept is found by the bytes of all kernels: nothing stale is ever loaded, and a fresh copy
of the same sources finds everything compiled. Numba itself looks after its own version and the processor's.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import numba
from numba.core import caching, config, event, types
from numba.misc.appdirs import user_cache_dir

from sfumato import kernels
from sfumato.kernels.code_library import InnerCompiler, OuterCompiler

_KERNELS = Path(__file__).resolve().parent
_VERSIONS_KEPT = 8  # of the kernels, in one place


def compile_on_call(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Numba's own kernel, to be called by Python, and by nothing else."""
    whole = {**options, "no_cfunc_wrapper": True, "pipeline_class": OuterCompiler}
    return numba.njit(**whole)(function)


def compile_into_callers(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """What kernels call: without the door for Python, and kept with who calls it; less is compiled so.

    One that is called with a constant is not compiled for it. To numba the 0 of ``count = 0`` has a type of
    its own until the loop below is looked at, and what is called with it would be compiled a second time.
    """
    inner = {**options, "cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    inner["pipeline_class"] = InnerCompiler
    kernel: Any = numba.njit(**inner)(function)
    of_types, unliteral = kernel.get_call_template, cast("Any", types.unliteral)

    def get_call_template(args: Any, kws: Any) -> Any:
        plain = {name: unliteral(each) for name, each in dict(kws).items()}
        return of_types(tuple(map(unliteral, args)), plain)

    kernel.get_call_template = get_call_template
    return kernel


@cache
def _sources() -> dict[Path, bytes]:
    """All kernels, as they were when the first was asked for."""
    return {path: path.read_bytes() for path in sorted(_KERNELS.rglob("*.py"))}


@cache
def _digest() -> str:
    """What all kernels are made of."""
    made = hashlib.sha256()
    for path, text in _sources().items():
        made.update(f"{path.relative_to(_KERNELS).as_posix()} {len(text)} ".encode() + text)
    return made.hexdigest()[:32]


@cache
def _folder() -> Path:
    """Where these kernels are kept: with what the user keeps, with the sources, or for this process only."""
    chosen = getattr(config, "CACHE_DIR", "") or user_cache_dir("sfumato")  # type: ignore[no-untyped-call]
    for parent in (Path(chosen), _KERNELS / "__pycache__"):
        folder = parent / f"kernels-{_digest()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _forget(parent)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    folder = Path(tempfile.mkdtemp(prefix="sfumato-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _forget(parent: Path) -> None:
    """Clear away the oldest version if there are many."""
    versions = list(parent.glob("kernels-*"))
    if len(versions) > _VERSIONS_KEPT:
        shutil.rmtree(min(versions, key=lambda path: path.stat().st_mtime), ignore_errors=True)


class KernelCacheLocator(caching._CacheLocator):  # noqa: SLF001  — numba has no other door
    """Tells numba where a kernel is kept; of functions that are not ours it knows nothing."""

    def __init__(self, function: Callable[..., Any], file: Path) -> None:
        self._py_file = os.fspath(file)  # numba's own warnings look for it, as text
        self._folder = file.parent
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> KernelCacheLocator | None:
        """The keeper of a kernel; none of one that has been edited since this process read the kernels."""
        path = Path(py_file).resolve()
        ours = path in _sources() and path.read_bytes() == _sources()[path]
        return cls(py_func, path) if ours else None

    def get_cache_path(self) -> str:
        """A folder per package: two kernels in files of one name stay apart."""
        folder = _folder() / self._folder.relative_to(_KERNELS)
        folder.mkdir(exist_ok=True)
        return os.fspath(folder)

    def get_source_stamp(self) -> str:
        """What the sources were."""
        return _digest()

    def get_disambiguator(self) -> str:
        """Tells apart what has one name in one file."""
        return str(self._line)


class _Listener(event.Listener):
    """Passes on that a compilation begins, and ends."""

    def on_start(self, _event: Any) -> None:
        kernels.compile_watch.begin()
        kernels.tell_of_compiling()

    def on_end(self, _event: Any) -> None:
        kernels.compile_watch.end()


caching.CompileResultCacheImpl._locator_classes.insert(0, KernelCacheLocator)  # noqa: SLF001  — as above
event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]
