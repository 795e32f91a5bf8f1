"""`sfumato reproduce`: what is printed fits a screen, and absent data stop one paper only."""

import json

import pytest

from sfumato.cli import _exit_code
from sfumato.reproduce import papers


def test_quick_look_at_a_paper(reference_data, tmp_path, capsys):
    folder = reference_data("census.csv").parent
    out = tmp_path / "out"
    assert _exit_code(["reproduce", "001", "--quick", "--data", str(folder), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "published      ours difference tolerance verdict" in shown
    content = json.loads((out / "001.json").read_text(encoding="utf-8"))
    assert content["mode"] == "quick"
    verdicts = {
        (cell["row"], cell["column"]): cell["verdict"]
        for table in content["tables"]
        for cell in table["cells"]
    }
    assert verdicts["NA 20", "DBRL"] == verdicts["NA 20", "GDBRL"] == "within"
    assert verdicts["IPSO", "GDBRL"] == "listed"
    assert "outside" not in verdicts.values()
    assert (out / "001.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("paper", ["000", "003", "004", "crc"])
def test_quick_look_at_the_others(paper, reference_data, tmp_path, capsys):
    folder = reference_data("census.csv").parent
    for out in ("one", "two"):
        arguments = ["reproduce", paper, "--quick", "--data", str(folder), "--out", str(tmp_path / out)]
        assert _exit_code(arguments) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
    one, two = (
        json.loads((tmp_path / out / f"{paper}.json").read_text(encoding="utf-8")) for out in ("one", "two")
    )
    for first, second in zip(one["tables"], two["tables"], strict=True):
        for cell, other in zip(first["cells"], second["cells"], strict=True):
            assert cell["varies"] or cell == other
            assert cell["verdict"] != "outside", cell


def test_absent_data_stop_one_paper_only(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(papers, "numbers", lambda: ("000", "004"))
    assert _exit_code(["reproduce", "--quick", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 3
    said = capsys.readouterr().err
    assert "error: paper 000: `census.csv` cannot be read: no such file" in said
    assert "sdcMicro ships as CASCrefmicrodata" in said
    assert "error: paper 004" in said


def test_an_unknown_paper(capsys):
    assert _exit_code(["reproduce", "999"]) == 2
    assert "999" in capsys.readouterr().err


def test_pages_of_what_is_known(tmp_path, capsys):
    """Nothing is computed: of an empty folder nothing is known, and that is said."""
    arguments = ["reproduce", "003", "--known", "--quick", "--out", str(tmp_path / "out"), "-q"]
    assert _exit_code(arguments) == 0
    shown = capsys.readouterr().out
    assert "17 experiments left out" in " ".join(shown.split())
    assert json.loads((tmp_path / "out" / "003.json").read_text(encoding="utf-8"))["left_out"] == 17
