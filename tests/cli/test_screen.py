"""What the command line writes for people."""

from __future__ import annotations

import pytest

from sfumato.cli._screen import emit_table


@pytest.mark.parametrize("width", [0, 40, 100, 150, 185])
def test_no_word_of_a_table_is_lost(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = [f"word{number}" for number in range(40)]
    emit_table(["name", "what it says"], [["x" * width, " ".join(sentence)], ["short", "y"]])
    shown = capsys.readouterr().out
    assert shown.split().count("x" * width or "short") == 1
    assert [word for word in shown.split() if word.startswith("word")] == sentence
