"""What the user sees: data on stdout; words, tables for people and progress bars on stderr."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import click

from sfumato.core.run import Progress, ProgressEvent, Run

if TYPE_CHECKING:
    from sfumato.data.table import Table
    from sfumato.study.cost import PlannedWork

#: A line of text is never longer than this, however wide the screen.
_READABLE = 100
#: Paths and names are not broken.
_WHOLE_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
COMPILING = "compiling once, kept for later runs"
#: Arguments of the Python verbs that are options here, as hints name them: ``encoding='cp1252'``.
_ARGUMENT = re.compile(
    r"(?<![\w?&/.-])(aligned|control|decimal|delimiter|encoding|for_|header|minutes|original|overwrite|override"
    r"|seed|sheet)=('[^']*'|\"[^\"]*\"|[\w.-]*\w)"
)
_FLAGS = {"header=False": "--no-header"}


def in_options(text: str) -> str:
    """A sentence that names Python arguments, with the options of the command line in their place."""

    def option(match: re.Match[str]) -> str:
        name, value = match[1].rstrip("_"), match[2].strip("'\"")
        return _FLAGS.get(match[0], f"--{name}" if value == "True" else f"--{name} {value}")

    return _ARGUMENT.sub(option, re.sub(r" \(in Python [^)]*\)", "", text))


def say(text: str, *, quiet: bool = False) -> None:
    """Say something to the person, not to the pipe; on a screen its lines end where that does.

    Errors and notes of the library name Python arguments: here they are the options of the command line.
    """
    if not quiet:
        click.echo(_wrap_text(in_options(text), sys.stderr), err=True)


def _wrap_text(text: str, stream: TextIO) -> str:
    """The lines of a text broken where a screen ends, and what follows set in; a log gets them whole."""
    if not stream.isatty():
        return text
    margins = {line: " " * (len(line) - len(line.lstrip(" -")) or 2) for line in text.split("\n")}
    return "\n".join(
        textwrap.fill(line, _width(), subsequent_indent=margins[line], **_WHOLE_WORDS)
        for line in text.split("\n")
    )


def announce(
    works: PlannedWork | Sequence[PlannedWork],
    table: Table,
    run: Run,
    *,
    quiet: bool = False,
    what: str = "this",
    at_most: float | None = None,
) -> None:
    """Say what work on a table will cost, where that is worth knowing; small tables are not even tried.

    ``what`` the work is called; ``at_most`` are the seconds after which it is ended.
    """
    from sfumato.study.cost import FREE_UP_TO_RECORDS, duration, estimate

    cost = None if quiet or len(table) < FREE_UP_TO_RECORDS else estimate(works, table, run)
    large = not quiet and len(table) >= FREE_UP_TO_RECORDS
    if at_most is not None and large and (cost is None or cost.seconds >= at_most):
        say(f"this takes about {duration(at_most)}, the limit of --minutes; Ctrl-C stops it cleanly")
    elif cost is not None and cost.worth_telling:
        say(f"{what} takes {cost.sentence()} ({cost.basis}); Ctrl-C stops it cleanly")


def emit_json(value: Any) -> None:
    """Write a value for a machine to stdout."""
    click.echo(json_text(value))


def json_text(value: Any) -> str:
    """A value as JSON, in letters that stdout has."""
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    return json.dumps(value, indent=2, ensure_ascii=plain, allow_nan=False)


#: The last column of a table is never made narrower than this.
_NARROWEST = 12
#: A table that goes elsewhere than to a screen is as wide as this, unless COLUMNS says otherwise.
_FILE_WIDTH = 200
#: A task that goes on is told of again after so long, where there is no screen for a bar.
_SECONDS_BETWEEN_LINES = 15.0
#: Sentences that have less room than this beside other columns are hard to read.
_ROOM_FOR_SENTENCES = 44


def emit_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    about: int | None = None,
) -> None:
    """Write a table to stdout; in plain text when stdout is not a screen.

    The sentences of the last column are ``about`` another: on a screen too narrow for them the two have a
    table of their own, with the columns before them that do not fit either.
    """
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    width = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS") or _FILE_WIDTH)
    console = Console(file=sys.stdout, width=width, highlight=False)
    table = RichTable(box=None, pad_edge=False, header_style="bold")
    filled = [i for i in range(len(headers)) if any(row[i] for row in rows) or not rows]
    rooms = [max((len(row[i]) for row in rows), default=0) for i in filled[:-1]]
    wide = [max(len(headers[i]), room) + 2 for i, room in zip(filled, rooms, strict=False)]
    is_narrow = sum(wide) + len(headers[filled[-1]]) > console.width
    # On a narrow screen headers and the last column, which holds sentences, break; values do not.
    left = max(_NARROWEST, console.width - sum(rooms) - 2 * len(rooms))
    if about is not None and filled[-1] == len(headers) - 1 and _is_too_narrow(console.width, headers, rows):
        kept = _count_fitting(console.width, rows, least=about + 2)
        emit_table(headers[:kept], [row[:kept] for row in rows], right=right)
        click.echo()
        rest = [[row[about], *row[kept:]] for row in rows if any(row[kept:])]
        emit_table([headers[about], *headers[kept:]], rest)
        return
    for i, room in zip(filled, [*rooms, None], strict=True):
        table.add_column(
            _break_header(headers[i], room) if room and is_narrow else headers[i],
            justify="right" if i in right else "left",
            min_width=room,
            max_width=left if room is None else None,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(row[i]) for i in filled))
    console.print(table)


def _count_fitting(width: int, rows: Sequence[Sequence[str]], *, least: int) -> int:
    """How many of the first columns fit beside each other: all but the last, or fewer."""
    rooms = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)][:-1]
    return max(least, sum(total <= width + 2 for total in itertools.accumulate(rooms)))


def _break_header(header: str, room: int) -> str:
    """A header in lines as long as the values below it, broken between words only."""
    return "\n".join(textwrap.wrap(header, max(room, _NARROWEST), break_long_words=False))


def _is_too_narrow(width: int, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the sentences of the last column have too little room beside the others."""
    *others, longest = (max(map(len, column)) for column in zip(headers, *rows, strict=True))
    return width - sum(others) - 2 * len(others) < min(_ROOM_FOR_SENTENCES, longest)


def emit_list(groups: Iterable[tuple[str, Sequence[tuple[str, str]]]]) -> None:
    """Write words with what they mean under headings; a line each, broken only where a screen is narrow."""
    listed = list(groups)
    room = min(30, max((len(word) for _, rows in listed for word, _ in rows), default=0))
    for position, (heading, rows) in enumerate(listed):
        click.echo("\n" * bool(position) + click.style(sentence_case(heading), bold=True))
        for word, meaning in rows:
            line, rest = f"  {word:{room}}  {meaning}", " " * (room + 4)
            click.echo(
                textwrap.fill(line, _width(), subsequent_indent=rest, **_WHOLE_WORDS)
                if sys.stdout.isatty()
                else line
            )


def emit_line(text: str) -> None:
    """Write a sentence to stdout: a line, broken only where a screen is narrow."""
    click.echo(_wrap_text(text, sys.stdout))


def emit_text(text: str, *, indent: int = 0) -> None:
    """Write paragraphs to stdout, broken where the screen ends; lines that are set in, as formulas, stay."""
    margin = " " * indent
    for number, paragraph in enumerate(text.split("\n\n")):
        click.echo("\n" * bool(number), nl=False)
        if paragraph.startswith(" "):
            click.echo(textwrap.indent(paragraph, margin))
        else:
            indents: dict[str, Any] = {"initial_indent": margin, "subsequent_indent": margin}
            lines = textwrap.wrap(paragraph, _width(), **indents, **_WHOLE_WORDS)
            click.echo("\n".join(lines))


def _width() -> int:
    """How many characters a line of text has: those of the screen, and never more than are easy to read."""
    return min(_READABLE, shutil.get_terminal_size((_READABLE, 0)).columns)


def sentence_case(text: str) -> str:
    """With a capital at its beginning, and nothing else changed."""
    return text[:1].upper() + text[1:]


@contextmanager
def running(*, quiet: bool, seed: int | None = None, **more: Any) -> Iterator[Run]:
    """Give a run that draws its progress and stops on Ctrl-C at the next safe place."""
    stop = _Stopper()
    if quiet or not sys.stderr.isatty():
        with stop:
            yield _run(_Milestones(quiet=quiet), stop, seed, more)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with stop, Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        yield _run(_ProgressBars(bars), stop, seed, more)


def _run(
    report: _ProgressBars | _Milestones, stop: _Stopper, seed: int | None, more: Mapping[str, Any]
) -> Run:
    from sfumato import kernels

    kernels.on_compile(lambda: report(ProgressEvent(COMPILING, 0, 0)))
    return Run(seed, progress=Progress(report, stopped=stop), **more)


class _ProgressBars:
    """Draws a bar for each task."""

    def __init__(self, bars: Any) -> None:
        self.bars = bars
        self.tasks: dict[str, Any] = {}

    def __call__(self, event: ProgressEvent) -> None:
        total = event.total or None
        if event.task != COMPILING and COMPILING in self.tasks:  # whatever comes next, compiling is over
            self.bars.remove_task(self.tasks.pop(COMPILING))
        if event.task not in self.tasks:
            self.tasks[event.task] = self.bars.add_task(event.task, total=total, note=event.note)
        self.bars.update(self.tasks[event.task], completed=event.done, total=total, note=event.note)


class _Milestones:
    """Tells a log file what a bar would show: a line when a task begins, and now and then how far it is."""

    def __init__(self, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.quiet = quiet
        self.seen: set[str] = set()
        self.clock = clock
        self.last = clock()

    def __call__(self, event: ProgressEvent) -> None:
        begins, now = event.task not in self.seen, self.clock()
        if not begins and (now - self.last < _SECONDS_BETWEEN_LINES or not event.total):
            return
        self.seen.add(event.task)
        self.last = now
        far = "" if begins else f": {event.done:,} of {event.total:,}" + f" ({event.note})" * bool(event.note)
        say(f"… {event.task}{far}", quiet=self.quiet)


class _Stopper:
    """Turns Ctrl-C into a question the run asks: the first is polite, the second is at once."""

    def __init__(self) -> None:
        self.asked = False
        self.before: Any = None

    def __call__(self) -> bool:
        return self.asked

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        say("\nstopping at the next safe place; press Ctrl-C again to stop at once")

    def __enter__(self) -> None:
        try:
            self.before = signal.signal(signal.SIGINT, self._ask)
        except ValueError:  # not in the main thread, as in tests: nobody can press Ctrl-C there
            self.before = None

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)
