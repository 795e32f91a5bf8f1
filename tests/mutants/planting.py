"""Puts a mutant into the code that is loaded, in the place of the function that it changes."""

import ast
import contextlib
import gc
import importlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType

from mutants.changes import SOURCE, Mutant


def load(files: list[str]) -> dict[tuple[str, str, int], list[FunctionType]]:
    """Import files of the package; their functions by file, qualified name and first line."""
    for file in files:
        importlib.import_module(_module_of(file))
    paths = {str(SOURCE / file): file for file in files}
    functions: dict[tuple[str, str, int], list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename in paths:
            code = each.__code__
            key = (paths[code.co_filename], code.co_qualname, code.co_firstlineno)
            functions.setdefault(key, []).append(each)
    return functions


def _module_of(file: str) -> str:
    return ".".join(["sfumato", *file.removesuffix(".py").removesuffix("/__init__").split("/")])


@contextlib.contextmanager
def planted(mutant: Mutant, functions: dict[tuple[str, str, int], list[FunctionType]]) -> Iterator[None]:
    """Have the changed function run wherever the right one would."""
    path = str(SOURCE / mutant.file)
    try:
        changed, value = compile(mutant.module(), path, "exec"), _assigned(mutant)
        value_code = value and compile(value, path, "eval")
    finally:
        mutant.restore()
    if value_code:
        with _assign(mutant, value_code):
            yield
        return
    owners = functions[mutant.file, mutant.owner, mutant.first_line]
    code = next(
        each
        for each in _codes_in(changed)
        if (each.co_qualname, each.co_firstlineno) == (mutant.owner, mutant.first_line)
    )
    right = [each.__code__ for each in owners]
    if not code.co_freevars:  # the change took away its `super()`
        code = code.replace(co_freevars=right[0].co_freevars)
    for each in owners:
        each.__code__ = code
    try:
        yield
    finally:
        for each, before in zip(owners, right, strict=True):
            each.__code__ = before


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes_in(each)


def _assigned(mutant: Mutant) -> ast.Expression | None:
    """The changed value of a name of the module, where that is what is changed."""
    for node in mutant.module().body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.lineno == mutant.first_line:
            return ast.Expression(node.value)
    return None


@contextlib.contextmanager
def _assign(mutant: Mutant, value: CodeType) -> Iterator[None]:
    """Give a name its changed value in its module, and wherever it was imported."""
    home = vars(sys.modules[_module_of(mutant.file)])
    right, wrong = home[mutant.owner], eval(value, home)
    ours = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("sfumato")]
    holders = [each for each in ours if each.get(mutant.owner, ours) is right]
    for each in holders:
        each[mutant.owner] = wrong
    try:
        yield
    finally:
        for each in holders:
            each[mutant.owner] = right
