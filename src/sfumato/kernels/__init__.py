"""Inner loops: arrays in, arrays out. The only room that imports numba.

Its modules are loaded when first touched (``kernels.ranks``), because importing numba costs more than a
second and most commands never reach a loop. They are found by looking in this folder, so there is no list
to keep.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import time
from collections.abc import Callable
from types import ModuleType

_listeners: list[Callable[[], None]] = []


class _CompileWatch:
    """How long numba has compiled so far, by the clock and in processor seconds.

    What a kernel calls is compiled within it.
    """

    def __init__(self) -> None:
        self.depth, self.began, self.seconds, self.worked = 0, (0.0, 0.0), 0.0, 0.0

    def begin(self) -> None:
        self.began = self.began if self.depth else (time.monotonic(), time.process_time())
        self.depth += 1

    def end(self) -> None:
        self.depth -= 1
        if not self.depth:
            self.seconds += time.monotonic() - self.began[0]
            self.worked += time.process_time() - self.began[1]


compile_watch = _CompileWatch()


def on_compile(tell: Callable[[], None]) -> None:
    """Have ``tell`` called when numba begins to compile, so that a door can say why nothing moves yet."""
    _listeners[:] = [tell]


def tell_of_compiling() -> None:
    """Tell whoever asked that numba begins to compile."""
    for tell in _listeners:
        tell()


def __getattr__(name: str) -> ModuleType:
    """Import the kernel module ``name`` on first use."""
    full_name = f"{__name__}.{name}"
    if name.startswith("_") or importlib.util.find_spec(full_name) is None:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`", name=name)
    return importlib.import_module(full_name)


def __dir__() -> list[str]:
    """List what can be had here, without importing any of it."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
