"""Which tests reach which lines: found once by running each with a trace, and kept until the test's file changes."""

import ast
import hashlib
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Self

from mutants.changes import SOURCE, Mutant, first_line, owners


class Trace:
    """Notes which lines of some files are carried out, by function; lines are counted from its first."""

    def __init__(self, files: list[str]) -> None:
        self._files = {str(SOURCE / file): file for file in files}
        self._owners: dict[CodeType, tuple[str, int] | None] = {}
        self._tables = {file: list(_spans(file)) for file in files}
        self.lines: dict[str, set[int]] = defaultdict(set)

    def __enter__(self) -> Self:
        self.lines = defaultdict(set)
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _enter(self, frame: FrameType, _event: str, _value: object) -> object:
        code = frame.f_code
        try:
            owner = self._owners[code]
        except KeyError:
            owner = self._owners[code] = self._owner_of(code)
        if owner is None:
            return None
        function, start = owner
        seen = self.lines[function]

        def note(frame: FrameType, event: str, _value: object) -> object:
            if event == "line":
                seen.add(frame.f_lineno - start)
            return note

        return note

    def _owner_of(self, code: CodeType) -> tuple[str, int] | None:
        file = self._files.get(code.co_filename)
        if file is not None:
            for owner, start, end in self._tables[file]:
                if start <= code.co_firstlineno <= end:
                    return f"{file}::{owner}", start
        return None


def _spans(file: str) -> Iterator[tuple[str, int, int]]:
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    for owner, node in owners(tree):
        if isinstance(node, ast.FunctionDef):
            yield owner, first_line(node), node.end_lineno or node.lineno


def texts_of(files: list[str]) -> dict[str, str]:
    """A hash of the text of each function: while it is the same, the lines that were noted are."""
    hashes = {}
    for file in files:
        text = (SOURCE / file).read_text(encoding="utf-8").splitlines()
        for owner, start, end in _spans(file):
            body = "\n".join(text[start - 1 : end])
            hashes[f"{file}::{owner}"] = hashlib.sha256(body.encode()).hexdigest()[:12]
    return hashes


@cache
def users_of(file: str, name: str) -> set[str]:
    """The functions of a file that mention a name of its module."""
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    return {
        f"{file}::{owner}"
        for owner, node in owners(tree)
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))
    }


class Reach:
    """Which tests reach a mutant: those that carried out its line, fastest first.

    ``tests`` has of each test its seconds and what it reached: of each function the hash of its text then, and lines.
    Of a function whose text is another now, all tests that reached it count.
    """

    def __init__(self, tests: dict[str, dict], files: list[str]) -> None:
        self._tests, self._texts = tests, texts_of(files)

    def tests_of(self, mutant: Mutant) -> list[tuple[str, float]]:
        """The tests that reach a mutant, with their seconds."""
        found = [
            (test, kept["seconds"])
            for test, kept in self._tests.items()
            if self._reaches(kept["reached"], mutant)
        ]
        return sorted(found, key=lambda each: each[1])

    def _reaches(self, reached: dict[str, list], mutant: Mutant) -> bool:
        if mutant.function not in self._texts:  # a name of the module
            users = users_of(mutant.file, mutant.owner)
            return any(each in reached for each in users) or (
                not users and any(each.startswith(f"{mutant.file}::") for each in reached)
            )
        if mutant.function not in reached:
            return False
        text, noted = reached[mutant.function]
        changed = text != self._texts[mutant.function]
        return changed or any(each - mutant.first_line in noted for each in mutant.lines)


def file_hash(path: Path) -> str:
    """What a file holds, in twelve letters."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
