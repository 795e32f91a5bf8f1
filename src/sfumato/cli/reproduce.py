"""Rerun the experiments of the papers, and compare every number with what was printed."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli import _options
from sfumato.cli._screen import emit_line, running, say
from sfumato.errors import DataError, MissingDependencyError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sfumato.core.run import Run

#: A table of results is as wide as this, whatever the screen: it is also pasted into mails and issues.
_WIDTH, _LABEL = 80, 28
_PAPERS = ("000", "001", "002", "003", "004", "crc")


@click.command(
    "reproduce",
    help=__doc__,
    epilog="Papers: 000 comparison at equal risk, 001 global record linkage, 002 survey of methods, 003 "
    "hospital discharges, 004 permutation model, crc NIST's Collaborative Research Cycle. Without one, all.",
)
@click.argument("paper", type=click.Choice(_PAPERS), required=False)
@click.option(
    "--data", type=click.Path(path_type=Path),
    help="Folder of the reference data (default: SFUMATO_REFERENCE_DATA, else ./reference-data).",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Fewer runs and smaller data: a look, in two minutes.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("reproduced"), show_default=True,
    help="Folder for pages, JSON and the ledger; cells that are known there are not computed again.",
)  # fmt: skip
@click.option("--known", is_flag=True, help="Compute nothing: write the pages of what is known in OUT.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the methods.")
@_options.quiet_option
def command(paper: str | None, **options: Any) -> int:
    """Rerun one paper or all; what cannot be rerun for want of data does not stop the others."""
    from sfumato.reproduce.carry_out import open_ledger
    from sfumato.reproduce.papers import CATALOGUE, numbers

    code, quiet = 0, options["quiet"]
    with open_ledger(options["out"]) as ledger, running(quiet=quiet, seed=options["seed"]) as run:
        for number in [paper] if paper else numbers():
            if number not in numbers():
                raise UnknownNameError.of("paper", number, numbers())
            if number == CATALOGUE:
                _show_catalogue(options["out"], run, quiet=quiet)
                continue
            try:
                _show(_reproduce(number, options, run, ledger), quiet=quiet)
            except (DataError, MissingDependencyError) as error:
                say(f"error: paper {number}: {error.line}")
                code = error.exit_code
    return code


def _reproduce(number: str, options: dict[str, Any], run: Run, ledger: Any) -> tuple[Any, Sequence[Path]]:
    from sfumato.reproduce.bench import Bench, data_folder
    from sfumato.reproduce.carry_out import carry_out
    from sfumato.reproduce.pages import write_pages
    from sfumato.reproduce.papers import paper_of
    from sfumato.study.cost import duration

    def announce(seconds: float, left: int, known: int) -> None:
        if left:
            kept = f"; {known} are known from before" if known else ""
            say(f"paper {number}: {left} pieces of work, {duration(seconds)}{kept}; Ctrl-C stops it cleanly",
                quiet=options["quiet"])  # fmt: skip

    paper = paper_of(number)
    bench = Bench(paper.published, data_folder(options["data"]), quick=options["quick"])
    content = carry_out(
        paper, bench, run, ledger=ledger, seed=options["seed"], before=announce, known_only=options["known"]
    )
    return content, write_pages(content, paper.figures(content["values"]), options["out"])


def _show(found: tuple[Any, Sequence[Path]], *, quiet: bool) -> None:
    """Print every cell that was printed, by table, then the reasons, then what it comes to."""
    from sfumato.reproduce.pages import (
        heading,
        is_printed,
        marks_of,
        matrix_of,
        reasons_of,
        text_of,
        texts_of,
        verdict,
    )

    content, places = found
    emit_line("\n" + textwrap.fill(heading(content), _WIDTH))
    for table in content["tables"]:
        if not table["cells"]:
            continue
        click.echo("\n" + textwrap.fill(table["title"], _WIDTH))
        if is_printed(table):
            _emit_row(["", "published", "ours", "difference", "tolerance", "verdict"])
            for cell in table["cells"]:
                _emit_row(texts_of(cell))
        else:
            headers, rows = matrix_of(table)
            for row in [headers, *rows]:
                _emit_numbers([text_of(value) for value in row])
        for reason in reasons_of(table):
            click.echo(textwrap.fill(f"  listed: {reason}", _WIDTH, subsequent_indent="  "))
    for line in [*marks_of(content["tables"]), *verdict(content)]:
        click.echo(textwrap.fill(line, _WIDTH))
    say("written: " + ", ".join(str(place) for place in places), quiet=quiet)


def _show_catalogue(folder: Path, run: Run, *, quiet: bool) -> None:
    """Print what each term of the survey is here, or why it is left out; and Table 3 as measured."""
    from collections import Counter

    from sfumato.reproduce.pages import text_of, write_catalogue
    from sfumato.reproduce.papers import catalogue, measured_claims

    rows, place = catalogue(), ""
    for row in rows:
        if row.place != place:
            place = row.place
            click.echo(f"\n{place}")
        here = ", ".join(row.ours) or row.reason
        text = f"{row.term[:_LABEL]:{_LABEL}} {row.verdict:10} {here}"
        click.echo(textwrap.fill(text, _WIDTH, subsequent_indent=" " * (_LABEL + 12)))
    counts = Counter(row.verdict for row in rows)
    click.echo("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    measured = measured_claims(run.silent())
    click.echo("\nTable 3, measured")
    for each in measured:
        numbers = (
            f"{text_of(each.first)} → {text_of(each.second)}: {'holds' if each.holds else 'does not hold'}"
        )
        text = f"{each.family}, {each.side}: {each.text}; {each.measured}: {numbers}"
        click.echo(textwrap.fill(text.replace("`", ""), _WIDTH, subsequent_indent="  "))
    say("written: " + ", ".join(map(str, write_catalogue(rows, measured, folder))), quiet=quiet)


def _emit_numbers(texts: Sequence[str]) -> None:
    """A row of numbers alone: a label, and as much as a line has room for."""
    label, *numbers = texts
    room = max((_WIDTH - _LABEL) // max(len(numbers), 1) - 1, 6)
    cells = "".join(f" {text[:room]:>{room}}" for text in numbers)
    click.echo(f"{label[:_LABEL]:{_LABEL}}{cells}"[:_WIDTH].rstrip())


def _emit_row(texts: Sequence[str]) -> None:
    label, *numbers, verdict = texts
    label = label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}…"
    widths = (9, 9, 10, 9)
    cells = "".join(f" {text:>{width}}" for text, width in zip(numbers, widths, strict=True))
    click.echo(f"{label:{_LABEL}}{cells} {verdict}".rstrip())
