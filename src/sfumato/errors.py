"""Every exception raised on purpose, on one page.

::

    SfumatoError                 exit code
    ├─ ParameterError            2   a parameter is outside its domain
    ├─ PlanError                 2   a plan, recipe or schema has faults (all of them, together)
    ├─ UnknownNameError          2   no such method, measure, column or data set
    ├─ RefusedError              2   a method or measure cannot apply to these columns, with the reason
    ├─ MissingDependencyError    2   an optional package is not installed
    ├─ DataError                 3   the data are not what they must be
    │  ├─ ReadError              3   a file cannot be read
    │  └─ WriteError             3   a file cannot be written, or would overwrite an original
    ├─ UnreachableError          4   no parameter value reaches the level asked for
    ├─ RequirementError          1   a release does not meet a requirement
    └─ Cancelled               130   the user stopped the run

A message says what is wrong; a hint, after a blank line, what to do. Hints name Python arguments
(``overwrite=True``), which the command line shows as its options (``--overwrite``).
No message ever holds a cell value: parameters, column names, kinds and counts only.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Sequence
from typing import ClassVar, Self


def quoted(names: Iterable[object], between: str = ", ") -> str:
    """Names in a sentence: `a`, `b`, `c`."""
    return between.join(f"`{name}`" for name in names)


def count_noun(count: int, noun: str) -> str:
    """So many of something: 1 record, 2 records, 1,000 classes, no entries counted as 0 entries."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in set("aeiou"):
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


class SfumatoError(Exception):
    """The root: catch this to catch everything sfumato raises on purpose."""

    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n\nhint: {self.hint}" if self.hint else self.message

    @property
    def line(self) -> str:
        """The message and its hint in one line."""
        return f"{self.message} ({self.hint})" if self.hint else self.message

    @property
    def lines(self) -> Sequence[str]:
        """The lines that stand for it in a list of faults."""
        return (self.line,)


class ParameterError(SfumatoError, ValueError):
    """A parameter is outside its domain."""

    exit_code = 2


class PlanError(SfumatoError, ValueError):
    """A plan, recipe or schema has faults; they are gathered, because a user mends a file once."""

    exit_code = 2

    def __init__(self, message: str, *, faults: Sequence[str] = (), hint: str = "") -> None:
        self.faults = tuple(faults)
        items = "".join(f"\n  - {fault}" for fault in self.faults)
        super().__init__(f"{message}{':' if items else ''}{items}", hint=hint)

    @property
    def lines(self) -> Sequence[str]:
        """Its faults, where it has gathered some."""
        return self.faults or super().lines

    @classmethod
    def gather(cls, what: str, faults: Sequence[str], *, hint: str = "") -> Self:
        """Build the error for ``faults`` found in ``what``."""
        return cls(f"{what} has {count_noun(len(faults), 'fault')}", faults=faults, hint=hint)


class UnknownNameError(SfumatoError, LookupError):
    """No such method, measure, column or data set."""

    exit_code = 2

    @classmethod
    def of(cls, what: str, name: str, known: Iterable[str]) -> Self:
        """Build the error for an unknown ``name`` of a ``what``, suggesting near ones."""
        return cls(f"there is no {what} `{name}`", hint=suggest(name, known))


class RefusedError(SfumatoError, ValueError):
    """A method or measure cannot apply to these columns."""

    exit_code = 2


class MissingDependencyError(SfumatoError, ImportError):
    """An optional package is not installed."""

    exit_code = 2

    @classmethod
    def of(cls, package: str, *, extra: str, purpose: str) -> Self:
        """Build the error for a missing ``package`` that comes with ``extra``."""
        return cls(f"{purpose} needs the package `{package}`", hint=f"pip install 'sfumato[{extra}]'")


class DataError(SfumatoError, ValueError):
    """The data are not what they must be."""

    exit_code = 3


class UnjudgedError(RefusedError, DataError):
    """A measure has no number for the release of a method, which says nothing about the method itself."""

    exit_code = 2


class ReadError(DataError):
    """A file cannot be read."""


class WriteError(DataError):
    """A file cannot be written, or writing it would overwrite an original."""


class MemoryLimitError(DataError):
    """The work needs more memory than it may use."""

    @classmethod
    def of(cls, used: int, limit: int) -> Self:
        """Build the error for work that used so many bytes, and may use fewer."""
        return cls(
            f"The work needs more memory than it may use: {used / 1e9:.1f} of {limit / 1e9:.1f} GB.",
            hint="allow more memory, protect fewer columns at a time, or choose another method",
        )


class UnreachableError(SfumatoError, ValueError):
    """No parameter value reaches the level asked for."""

    exit_code = 4


class RequirementError(SfumatoError, ValueError):
    """A release does not meet a requirement."""

    exit_code = 1


class Cancelled(SfumatoError):  # noqa: N818  — it is not an error that the user changed their mind
    """The user stopped the run; nothing was written."""

    exit_code = 130


class IdentifierWarning(UserWarning):
    """A column that identifies people was left out of what a script asked for."""


class NoteWarning(UserWarning):
    """Something was done differently from what was asked; the command line shows it as a note."""


class RenamedWarning(NoteWarning, FutureWarning):
    """A former name was used; it still works."""


def trouble_with(error: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be used, in plain words."""
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8"
    if isinstance(error, FileNotFoundError):  # polars raises it without the words of the system
        return "no such file or directory"
    return error.strerror.lower() if error.strerror else "it is damaged, or has another format"


def note_renamed(what: str, old: str, new: str) -> None:
    """Warn that a name has changed; the command line shows it as a note."""
    warnings.warn(RenamedWarning(f"{what} `{old}` is called `{new}` now"), stacklevel=3)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names, at most three, that are spelt nearly so."""
    return difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)


def suggest(name: str, known: Iterable[str], none: str = "there are none") -> str:
    """The hint beside a name that is not known: near ones, else those there are, else that there is none."""
    names = sorted(known)
    if near := nearest(name, names):
        return f"did you mean {quoted(near, ' or ')}?"
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""  # noqa: PLR2004
    return f"there {'is only' if len(names) == 1 else 'are'} {quoted(names[:20])}{more}" if names else none
