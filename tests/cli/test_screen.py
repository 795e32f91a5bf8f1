"""What the command line writes for people."""

from __future__ import annotations

import sys

import pytest

from sfumato.cli._screen import _Milestones, emit_table, in_options, say
from sfumato.core.run import ProgressEvent


@pytest.mark.parametrize("width", [0, 40, 100, 150, 185])
def test_no_word_of_a_table_is_lost(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = [f"word{number}" for number in range(40)]
    emit_table(["name", "what it says"], [["x" * width, " ".join(sentence)], ["short", "y"]])
    shown = capsys.readouterr().out
    assert shown.split().count("x" * width or "short") == 1
    assert [word for word in shown.split() if word.startswith("word")] == sentence


def test_what_is_said_ends_where_the_screen_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    path = "a-folder/" + "x" * 70 + ".csv"
    say(f"error: the plan has faults:\n  - {'a word ' * 20}\n\nhint: {'a word ' * 20}{path}")
    lines = capsys.readouterr().err.splitlines()
    assert path in "".join(lines)  # in one piece
    assert all(len(line) <= 60 for line in lines if path not in line)
    assert lines[0] == "error: the plan has faults:"
    assert [line[:6] for line in lines[1:4]] == ["  - a ", "    a ", "    a "]
    assert "" in lines


def test_a_log_gets_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say("a word " * 60)
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(("width", "tables"), [(60, 2), (160, 1)])
def test_sentences_without_room_have_a_table_of_their_own(
    width: int, tables: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [["1", "first", "20" * 9, "a word " * 12], ["2", "second", "3", ""]]
    emit_table(["rank", "method", "number", "remark"], rows, about=1)
    shown = capsys.readouterr().out
    assert shown.count("method") == tables
    assert shown.split().count("word") == 12
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= width


def test_numbers_are_not_broken_where_a_screen_is_narrow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    headers = ["rank", "method", "parameter", "rank-linkage", "earth-movers-distance", "at ± 1%", "remark"]
    numbers = ["ratio = 0.05224", "0.9613 ± 0.0018", "≈ 0.0905 ± 0.0087", "0.0878–0.0922"]
    emit_table(headers, [["1", "correlated-noise", *numbers, "tied with mdav"]], right=[0], about=1)
    shown = capsys.readouterr().out
    assert all(number in shown for number in numbers)
    assert "earth-movers-distance" in shown or "earth-movers-\n" in shown
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= 80


def test_a_log_is_told_of_long_work_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, 2.0, 20.0, 21.0, 40.0, 41.0])
    told = _Milestones(quiet=False, clock=lambda: next(times))
    for done in range(5):
        told(ProgressEvent("Samples", done, 1000, "2 of 7 estimators" if done == 4 else ""))
    told(ProgressEvent("Report", 0, 0))
    assert capsys.readouterr().err.splitlines() == [
        "… Samples",
        "… Samples: 2 of 1,000",
        "… Samples: 4 of 1,000 (2 of 7 estimators)",
        "… Report",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("name it: encoding='cp1252', or save it", "name it: --encoding cp1252, or save it"),
        ("allow it with overwrite=True.", "allow it with --overwrite."),
        ("allow it with --overwrite (in Python overwrite=True)", "allow it with --overwrite"),
        ("hold some out: control=0.2; or", "hold some out: --control 0.2; or"),
        ("say header=False", "say --no-header"),
        ('make it for_="public"', "make it --for public"),
        ("builtin:rand?n=5&seed=1 and runs/seed=1/a.csv", "builtin:rand?n=5&seed=1 and runs/seed=1/a.csv"),
        ("write `control = 0.2` into the plan", "write `control = 0.2` into the plan"),
    ],
)
def test_python_arguments_are_shown_as_options(text, shown):
    assert in_options(text) == shown
