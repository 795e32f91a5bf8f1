"""Kernels: functions that numba compiles when they are first called, and that small work does without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

_by_python: ContextVar[bool] = ContextVar("by_python", default=False)


class Kernel:
    """A function that numba compiles. Numba is loaded by who first calls one: that alone takes a second."""

    def __init__(
        self, function: Callable[..., Any], small: Callable[..., Any] | None, options: dict[str, Any]
    ) -> None:
        update_wrapper(self, function)
        self.py_func, self._small, self._options = function, small or function, options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call what numba made of it, or the function itself, or what does the same of small work."""
        return (self._small if _by_python.get() else self.compiled)(*args, **kwargs)

    @cached_property
    def compiled(self) -> Any:
        """What numba makes of it."""
        from sfumato.kernels.numba_cache import compile_on_call

        return compile_on_call(self.py_func, self._options)

    @cached_property
    def called(self) -> Any:
        """What numba makes of it for kernels that call it."""
        from sfumato.kernels.numba_cache import compile_into_callers

        return compile_into_callers(self.py_func, self._options)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes it for in a kernel that calls it."""
        return self.called._numba_type_


def njit(small: Callable[..., Any] | None = None, **options: Any) -> Callable[[Function], Function]:
    """Numba's decorator, but that nothing of numba is loaded yet.

    ``small`` is what `by_python` calls in its place, numpy where Python's own loops are slow: the same bits.
    """

    def decorated(function: Function) -> Function:
        return cast("Function", Kernel(function, small, options))

    return decorated


@contextmanager
def by_python(small: bool) -> Iterator[None]:  # noqa: FBT001  — the one thing it asks
    """Have Python itself follow the kernels that are called here, if the work is small: numba loads longer.

    Only for kernels of which both make the same bits: whole numbers that do not overflow, draws, + − × ÷, √.
    """
    token = _by_python.set(small or _by_python.get())  # what is done within small work is
    try:
        yield
    finally:
        _by_python.reset(token)
