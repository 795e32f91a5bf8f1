"""Code libraries: what a kernel calls becomes machine code within it, and nowhere else.

Numba makes machine code of every function on the way from a kernel to the loops it calls, with all that each
of them calls; what Python calls contains it all again. Here only that becomes machine code, from the same
optimised code as before: kernels are as fast, and make the same bits.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from numba.core import codegen, compiler
from numba.core.environment import lookup_environment

_ENVIRONMENT = "_ZN08NumbaEnv"  # how numba's name of an environment begins


class InnerLibrary(codegen.JITCodeLibrary):
    """The code of a function that kernels call: linked into theirs, and never called by itself."""

    @property
    def codegen(self) -> Any:
        """Takes no environment: there is none before the code lies in a kernel's."""
        return SimpleNamespace(set_env=lambda *_: None)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
        """Link what it calls; nothing is there to point to."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0


class OuterLibrary(codegen.JITCodeLibrary):
    """The code of a kernel that Python calls, with that of all it calls."""

    def _finalize_specific(self) -> None:
        super()._finalize_specific()  # type: ignore[no-untyped-call]
        code_generator: Any = self._codegen
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT):
                environment = lookup_environment(variable.name)  # type: ignore[no-untyped-call]
                if environment is not None:
                    code_generator.set_env(variable.name, environment)


class InnerCompiler(compiler.Compiler):
    """Compiles what kernels call."""

    _library: type[codegen.JITCodeLibrary] = InnerLibrary

    def define_pipelines(self) -> Any:
        """Have the code put into a library of ours."""
        state = self.state
        state.library = self._library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()  # type: ignore[no-untyped-call]


class OuterCompiler(InnerCompiler):
    """Compiles what Python calls. Numba's own functions in it stay as they are: others may call them, too."""

    _library = OuterLibrary
