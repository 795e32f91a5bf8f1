"""How explanations are shown: of a record in private, of the riskiest records, of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sfumato.cli._screen import emit_line, emit_table, emit_text
from sfumato.errors import count_noun

if TYPE_CHECKING:
    from sfumato.core.measure import Measure
    from sfumato.explain import Explanation
    from sfumato.explain.attacks import Attack, RiskiestRecords
    from sfumato.explain.keys import KeyExplanation
    from sfumato.explain.steps import Change, StepExplanation
    from sfumato.risk._rank_moves import RankMove

#: Longer lists are cut for people; machines get all of them.
_MAX_ENTRIES = 8


def show_record(explanation: Explanation) -> None:
    """Write everything known of a record."""
    from sfumato.explain import PRIVATE

    click.echo(PRIVATE)
    click.echo(f"\nRecord {explanation.record} of {explanation.records:,} (counted from 0, in file order)\n")
    emit_table(["column", "value"], [[name, _cell(value)] for name, value in explanation.values.items()])
    for note in explanation.notes:
        emit_line(f"note: {note}")
    if explanation.keys is not None:
        _show_keys("What makes it stand out in the original", explanation.keys)
    for number, step in enumerate(explanation.steps, start=1):
        _show_step(number, step)
    if explanation.released_keys is not None:
        _show_keys("What makes it stand out in the release", explanation.released_keys)
    elif explanation.released_as == ():
        click.echo("\nThe record is not in the release.")
    if explanation.moves:
        _show_moves(explanation.moves)
    _show_attacks(explanation)


def _show_keys(title: str, story: KeyExplanation) -> None:
    click.echo(f"\n{title}\n")
    emit_table(
        ["key", "value", "shared by"],
        [
            [each.key, _cell(each.value), f"{each.shared_by:,} of {story.persons:,}"]
            for each in story.rarities
        ],
        right=[2],
    )
    for line in _key_lines(story):
        emit_line(line)


def _key_lines(story: KeyExplanation) -> list[str]:
    alone, size = story.class_size == 1, count_noun(story.class_size, "person")
    shared = "it is unique" if alone else f"its equivalence class has {size}, itself included"
    lines = [f"On the {count_noun(len(story.keys), 'key')} {shared}."]
    if alone:
        lines += _list_entries(
            "These alone make it unique:",
            [" + ".join(keys) for keys in story.unique_in],
            none=f"No {story.looked_up_to} keys or fewer make it unique.",
        )
        if not story.complete:
            lines.append(f"(All sets of up to {story.looked_up_to} keys were checked; larger ones were not.)")
    if story.class_size >= story.k:
        return lines
    return lines + _list_entries(
        f"Any one of these gives a class of at least {story.k}:",
        [f"{' + '.join(each.keys)} {each.how}: class of {each.size:,}" for each in story.remedies],
        none=f"Coarsening one key, or suppressing a few, does not give a class of {story.k}.",
    )


def _list_entries(title: str, entries: Sequence[str], *, none: str) -> list[str]:
    if not entries:
        return [none]
    more = [f"  … and {len(entries) - _MAX_ENTRIES} more"] if len(entries) > _MAX_ENTRIES else []
    return [title, *(f"  {entry}" for entry in entries[:_MAX_ENTRIES]), *more]


def _show_step(number: int, step: StepExplanation) -> None:
    settings = ", ".join(f"{key}={value}" for key, value in step.parameters.items())
    click.echo(f"\nStep {number}: {step.step}" + (f" ({settings})" if settings else "") + "\n")
    if step.changes:
        rows = [
            [each.column, _cell(each.before), _cell(each.after), _change_text(each)] for each in step.changes
        ]
        emit_table(["column", "before", "after", "moved by"], rows)
    if step.note:
        emit_line(step.note)


def _change_text(change: Change) -> str:
    parts = []
    if change.deviations is not None:
        parts.append(f"{change.deviations:+.3g} standard deviations")
    if change.ranks is not None:
        parts.append(f"{change.ranks:+,.6g} of {change.of_ranks:,} ranks")
    return ", ".join(parts)


def _show_moves(moves: Sequence[RankMove]) -> None:
    click.echo("\nHow far its values moved in rank\n")
    rows = [
        [
            move.column,
            f"{move.rank:,.6g}",
            f"{move.released_rank:,.6g}",
            f"{move.rank_distance:+,.6g} of {move.of_ranks:,}",
            "" if move.as_if is None else f"{move.as_if:.6g}",
        ]
        for move in moves
    ]
    emit_table(
        ["column", "rank", "released rank", "moved by", "like original value"], rows, right=[1, 2, 3, 4]
    )


def _show_attacks(explanation: Explanation) -> None:
    click.echo("\nHow attacks see it\n")
    headers = ["measure", "this record", "the file", "guessing", "safer records", "in words"]
    rows = [_attack_row(attack) for attack in explanation.attacks]
    if rows:
        emit_table(headers, rows, right=[1, 2, 3, 4], about=0)
    else:
        click.echo("No measure has a value for this record.")
    for each in explanation.attacks:
        if each.not_seen:
            emit_line(f"{each.measure}: {each.not_seen}")
    if explanation.silent:
        emit_line(f"\nNo value for this record: {', '.join(explanation.silent)} (--json gives the reasons)")


def _attack_row(attack: Attack) -> list[str]:
    about = "≈ " if attack.status == "approximate" else ""
    return [
        attack.measure,
        f"{attack.value:.4g}",
        "—" if attack.whole is None else f"{about}{attack.whole:.4g}",
        "—" if attack.guessing is None else f"{attack.guessing:.2g}",
        f"{attack.safer:.1%}",
        attack.sentence,
    ]


def show_riskiest(found: RiskiestRecords) -> None:
    """Write the positions of the riskiest records."""
    click.echo("private: never share this, it shows who is at risk\n")
    side = "lower" if found.better == "low" else "higher"
    emit_line(f"By {found.title} ({side} is safer); records are counted from 0 in file order\n")
    rows = [
        [str(row), f"{value:.4g}"]
        for row, value in zip(found.rows.tolist(), found.values.tolist(), strict=True)
    ]
    emit_table(["record", found.measure], rows, right=[0, 1])
    if found.as_risky > len(found.rows):
        emit_line(
            f"\n{found.as_risky:,} of {found.records:,} records are at least as risky as the last one here: "
            "which of the equally risky ones are listed is arbitrary."
        )


def show_scores(scores: Sequence[tuple[Measure, Sequence[str]]]) -> None:
    """Write what scores mean, in sentences."""
    for number, (measure, sentences) in enumerate(scores):
        click.echo(f"{'' if not number else chr(10)}{measure}\n")
        emit_text(type(measure).summary())
        for sentence in sentences:
            emit_text(sentence, indent=2)
        emit_line(f"`sfumato explain {measure.name}` explains it and names its sources.")


def _cell(value: object) -> str:
    return "(missing)" if value is None else str(value)
