"""How explanations are shown: of a record in private, of the riskiest records, of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sfumato.cli._screen import emit_line, emit_table, emit_text

if TYPE_CHECKING:
    from sfumato.core.measure import Measure
    from sfumato.explain import Explanation
    from sfumato.explain.attacks import Attack, RiskiestRecords
    from sfumato.explain.keys import KeyExplanation
    from sfumato.explain.steps import Change, StepExplanation
    from sfumato.risk.permutation import RankMove

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
        _show_keys("The original: what makes it stand out", explanation.keys)
    for number, step in enumerate(explanation.steps, start=1):
        _show_step(number, step)
    if explanation.released_keys is not None:
        _show_keys("The release: what makes it stand out", explanation.released_keys)
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
    alike = "it is alone" if story.class_size == 1 else f"{story.class_size:,} are alike, itself among them"
    lines = [f"In all {len(story.keys)} keys {alike}."]
    if story.class_size == 1:
        lines += _list_entries(
            "Keys that point it out already:",
            [" + ".join(keys) for keys in story.unique_in],
            none=f"No {story.looked_up_to} keys or fewer point it out.",
        )
        if not story.complete:
            lines.append(f"(Looked at all sets of up to {story.looked_up_to} keys, not at larger ones.)")
    if story.class_size >= story.k:
        return lines
    return lines + _list_entries(
        f"To be alike to at least {story.k}, any one of these is enough:",
        [f"{' + '.join(each.keys)} {each.how}: {each.size:,} alike" for each in story.remedies],
        none=f"No single key coarsened, and no few keys suppressed, bring it to {story.k}.",
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
    emit_table(["column", "rank", "released rank", "moved by", "as if it were"], rows, right=[1, 2, 3, 4])


def _show_attacks(explanation: Explanation) -> None:
    click.echo("\nWhich attack reaches it\n")
    headers = ["measure", "this record", "the file", "guessing", "others safer", "in words"]
    rows = [_attack_row(attack) for attack in explanation.attacks]
    if rows:
        emit_table(headers, rows, right=[1, 2, 3, 4], about=0)
    else:
        click.echo("No measure has anything to say of it.")
    for each in explanation.attacks:
        if each.not_seen:
            emit_line(f"{each.measure}: {each.not_seen}")
    if explanation.silent:
        emit_line(
            f"\nNothing to say of this record: {', '.join(explanation.silent)} (--json gives the reasons)"
        )


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
    click.echo("private: never share this, it says who is at risk\n")
    side = "lower" if found.better == "low" else "higher"
    emit_line(f"By {found.title} ({side} is safer), counted from 0 in the order of the file\n")
    rows = [
        [str(row), f"{value:.6g}"]
        for row, value in zip(found.rows.tolist(), found.values.tolist(), strict=True)
    ]
    emit_table(["record", found.measure], rows, right=[0, 1])
    if found.as_risky > len(found.rows):
        emit_line(
            f"\n{found.as_risky:,} of {found.records:,} records are at least as risky as the last one here: "
            "which of the equals stand here means nothing."
        )


def show_scores(scores: Sequence[tuple[Measure, Sequence[str]]]) -> None:
    """Write what scores mean, in sentences."""
    for number, (measure, sentences) in enumerate(scores):
        click.echo(f"{'' if not number else chr(10)}{measure}\n")
        emit_text(type(measure).summary())
        for sentence in sentences:
            emit_text(sentence, indent=2)
        emit_line(f"`sfumato explain {measure.name}` says what it means and where it comes from.")


def _cell(value: object) -> str:
    return "(missing)" if value is None else str(value)
