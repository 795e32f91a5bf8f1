"""The mutants of a source file: one small change at a time, of the kind that a hand makes and an eye misses.

Docstrings, annotations, texts, asserts and what only reports progress stay as they are. So do declarations in the body
of a class: bounds and defaults of parameters are checked by the contract of every method and measure.
"""

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import sfumato

SOURCE = Path(sfumato.__file__).parent

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

#: A comparison becomes what differs at the border, and its opposite.
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip

ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip

#: Functions and methods that have an opposite.
OPPOSITES = {
    "any": "all", "all": "any", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
    "ceil": "floor", "floor": "ceil", "argmin": "argmax", "argmax": "argmin", "is_null": "is_not_null",
    "issubset": "issuperset", "issuperset": "issubset", "union": "intersection", "intersection": "union",
}  # fmt: skip

#: Arguments that are texts for people or their looks, or tell Python to check what is always so.
UNTOUCHED_ARGUMENTS = {"hint", "help", "message", "strict", "indent"}
#: Calls that only report.
REPORTS = {"tell", "track", "cast"}


@dataclass(frozen=True, eq=False)
class Mutant:
    """One change to one function, or to the value of one name of a module (``owner``)."""

    file: str
    owner: str
    digest: str
    first_line: int
    lines: range
    change: str
    _tree: ast.Module
    _place: tuple[ast.AST, str, int | None]
    _new: ast.AST

    @property
    def function(self) -> str:
        """The function or name of a module as it is written in lists."""
        return f"{self.file}::{self.owner}"

    def module(self) -> ast.Module:
        """The changed module; call ``restore`` when it is compiled."""
        return self._put(self._new)

    @cached_property
    def _old(self) -> ast.AST:
        parent, field, index = self._place
        return getattr(parent, field) if index is None else getattr(parent, field)[index]

    def _put(self, node: ast.AST) -> ast.Module:
        _ = self._old  # remembered before it is replaced
        parent, field, index = self._place
        if index is None:
            setattr(parent, field, node)
        else:
            getattr(parent, field)[index] = node
        return self._tree

    def restore(self) -> None:
        """Put back what was there."""
        self._put(self._old)


def owners(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Every function that is not within another, by its qualified name, and every name that a module gives a value."""
    yield from _functions(tree, "")
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name) and node.value:
            yield target.id, node


def _functions(parent: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, FUNCTIONS):
            yield f"{prefix}{node.name}", node


def digest(node: ast.AST) -> str:
    """What a function does, in twelve letters: neither its place in the file nor its docstring changes them."""
    text = ast.dump(node)
    if isinstance(node, FUNCTIONS) and ast.get_docstring(node) is not None:
        text = text.replace(ast.dump(node.body[0]), "", 1)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def first_line(node: ast.AST) -> int:
    """Where Python says that a function begins: at its first decorator."""
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])


def mutants_of(file: str) -> list[Mutant]:
    """All mutants of a file, named by its path within the package, in the order of its lines."""
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    found = []
    for owner, node in owners(tree):
        if not _is_left_alone(node):
            counts: dict[str, int] = {}
            for place, lines, new, words in _changes(node):
                counts[words] = number = counts.get(words, 0) + 1
                change = words if number == 1 else f"{words} ({number})"
                found.append(
                    Mutant(file, owner, digest(node), first_line(node), lines, change, tree, place, new)
                )
    return found


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(getattr(node, "value", None), ast.Subscript):  # of a module's names, these are of types
        return True
    marks = {ast.unparse(each).split(".")[-1] for each in getattr(node, "decorator_list", [])}
    return getattr(node, "name", "") == "__repr__" or bool(marks & {"overload", "abstractmethod"})


def _changes(owner: ast.AST) -> Iterator[tuple[tuple[ast.AST, str, int | None], range, ast.AST, str]]:
    """Each change within a function: the place, its lines, what would stand there, and the change in words."""
    fields = ("body",) if isinstance(owner, FUNCTIONS) else ("value",)
    for place, node, statement in _places(owner, fields, owner):
        for new in _alternatives(node, owner):
            words = f"`{_brief(node)}` becomes `{_brief(new)}`"
            ast.fix_missing_locations(ast.copy_location(new, node))
            yield place, range(statement.lineno, _end(node) + 1), new, words


def _end(node: ast.AST) -> int:
    """The last line of what is changed: of a statement with a body, that of its condition."""
    return getattr(getattr(node, "test", node), "end_lineno", 0) or getattr(node, "iter", node).end_lineno


def _places(
    parent: ast.AST, fields: tuple[str, ...], statement: ast.AST
) -> Iterator[tuple[tuple[ast.AST, str, int | None], ast.AST, ast.AST]]:
    """Every node within a function, with its place and the statement that it belongs to."""
    for field in fields:
        value = getattr(parent, field)
        numbered = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, node in numbered:
            if isinstance(node, ast.AST):
                within = node if isinstance(node, ast.stmt) else statement
                yield (parent, field, index), node, within
                if not _is_text(node):
                    yield from _places(node, _fields_of(node), within)


def _fields_of(node: ast.AST) -> tuple[str, ...]:
    left_out = (
        {"annotation", "returns", "decorator_list", "args"} if isinstance(node, FUNCTIONS) else {"annotation"}
    )
    if isinstance(node, ast.Lambda):
        left_out = {"args"}
    return tuple(each for each in node._fields if each not in left_out)


def _is_text(node: ast.AST) -> bool:
    """Whether it says something to people, or nothing that is carried out: nothing within is changed."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.arguments):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in UNTOUCHED_ARGUMENTS
    return isinstance(node, ast.Call) and _called(node) in REPORTS


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _alternatives(node: ast.AST, owner: ast.AST) -> Iterator[ast.AST]:
    yield from _other_operators(node)
    yield from _other_values(node)
    yield from _other_conditions(node)
    yield from _other_statements(node, owner)


def _other_operators(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Compare():
            for i, sign in enumerate(node.ops):
                for other in COMPARISONS[type(sign)]:
                    yield ast.Compare(
                        node.left, [*node.ops[:i], other(), *node.ops[i + 1 :]], node.comparators
                    )
        case ast.BinOp() if type(node.op) in ARITHMETIC and not (
            _is_string(node.left) or _is_string(node.right)
        ):
            yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp():
            yield node.operand


def _other_values(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
            if isinstance(node.value, int) and node.value > 1:
                yield ast.Constant(node.value - 1)
        case ast.Call() if _called(node) in OPPOSITES:
            yield _opposite(node)


def _other_conditions(node: ast.AST) -> Iterator[ast.AST]:
    """Conditions that have no operator of their own are negated."""
    match node:
        case ast.comprehension():
            for i, test in enumerate(node.ifs):
                if _is_plain(test):
                    tests = [*node.ifs[:i], _negated(test), *node.ifs[i + 1 :]]
                    yield ast.comprehension(node.target, node.iter, tests, node.is_async)
        case ast.IfExp() if _is_plain(node.test):
            yield ast.IfExp(_negated(node.test), node.body, node.orelse)
        case ast.If() | ast.While() if _is_plain(node.test):
            yield type(node)(_negated(node.test), node.body, node.orelse)


def _other_statements(node: ast.AST, owner: ast.AST) -> Iterator[ast.stmt]:
    match node:
        case ast.Return(value=ast.expr()) if not _is_none(node.value):
            if _returns(owner) != "bool":
                yield ast.Return(ast.Constant(None))
            elif not isinstance(node.value, ast.Compare | ast.UnaryOp | ast.Constant):
                yield ast.Return(_negated(node.value))
        case ast.Expr(
            value=ast.Yield() | ast.YieldFrom()
        ):  # a function without any would be none that yields
            yield ast.If(ast.Constant(False), [node], [])
        case ast.Expr(value=ast.Call()) if _called(node.value) not in REPORTS:
            yield ast.Pass()
        case ast.Raise() | ast.AugAssign() | ast.Continue() | ast.Break():
            yield ast.Pass()


def _opposite(node: ast.Call) -> ast.Call:
    name = OPPOSITES[_called(node)]
    plain = isinstance(node.func, ast.Name)
    func = ast.Name(name, ast.Load()) if plain else ast.Attribute(node.func.value, name, ast.Load())
    return ast.Call(ast.copy_location(func, node.func), node.args, node.keywords)


def _returns(owner: ast.AST) -> str:
    kind = getattr(owner, "returns", None)
    return "" if kind is None else ast.unparse(kind)


def _is_plain(test: ast.expr) -> bool:
    """Whether a condition has no operator that would be changed by itself."""
    return not isinstance(test, ast.Compare | ast.BoolOp | ast.Constant) and not (
        isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    )


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _brief(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return f"if {_brief(node.test)}"
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 70 else f"{text[:45]} … {text[-20:]}"
