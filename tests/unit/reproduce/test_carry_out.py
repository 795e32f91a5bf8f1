"""Experiments are carried out once, alike for one seed, and say what is wrong with their data."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.errors import ReadError
from sfumato.reproduce.bench import Bench, Experiment, Paper, data_folder
from sfumato.reproduce.carry_out import carry_out, open_ledger
from sfumato.reproduce.cells import DataFile, Published, PublishedTable, published
from sfumato.reproduce.pages import markdown_of, write_pages


class _Tiny(Paper):
    @property
    def published(self):
        table = PublishedTable("one", "Table 1", "page 1", ("a",), {"x": (1.0,)}, tolerance=2, why="so")
        return Published("tiny", "us", {"one": table}, {"x.csv": DataFile(2, ("a",), "ask us for it")})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    return tmp_path


def paper(done):
    def work(run):
        done.append("work")
        return {"one/x/a": float(run.rng("number").random()), "figure/z/2": 3.0, "figure/b/1": 4.0}

    return _Tiny("tiny", lambda bench: [Experiment("work", work, seconds=7)])


def rerun(folder, out, done, seed=1):
    own, told = paper(done), []
    with open_ledger(out) as ledger:
        content = carry_out(
            own, Bench(own.published, folder), Run(seed=seed), ledger=ledger, seed=seed,
            before=lambda *cost: told.append(cost),
        )  # fmt: skip
    return content, told


def test_what_is_known_is_not_computed_again(folder):
    done = []
    first, told = rerun(folder, folder / "out", done)
    again, told_again = rerun(folder, folder / "out", done)
    assert done == ["work"]
    assert json.dumps(first) == json.dumps(again)
    assert list(first["values"]) == ["one/x/a", "figure/z/2", "figure/b/1"]  # in the order of the work
    assert told == [(7, 1, 0)]
    assert told_again == [(0, 0, 1)]


def test_other_data_and_other_seeds_are_other_work(folder):
    done = []
    first, _ = rerun(folder, folder / "out", done)
    other, _ = rerun(folder, folder / "out", done, seed=2)
    (folder / "x.csv").write_text("a,b\n1,2\n3,5\n", encoding="utf-8")
    third, _ = rerun(folder, folder / "out", done)
    assert len(done) == 3
    assert first["values"]["one/x/a"] != other["values"]["one/x/a"]
    assert first["values"] == third["values"]
    assert first["data"] != third["data"]


def test_other_code_is_other_work(folder, monkeypatch):
    done = []
    rerun(folder, folder / "out", done)
    monkeypatch.setattr("sfumato.reproduce.carry_out.code_digest", lambda: "0" * 64)
    assert rerun(folder, folder / "out", done)[0]["code"] == "0" * 16
    assert len(done) == 2


def test_two_runs_of_one_seed_write_the_same_bytes(folder):
    for out in ("one", "two"):
        content, _ = rerun(folder, folder / out, [])
        write_pages(content, {}, folder / out)
    for name in ("tiny.html", "tiny.json", "tiny.md"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()
    said = json.loads((folder / "one" / "tiny.json").read_text(encoding="utf-8"))
    assert said["data"]["x.csv"]
    assert (said["mode"], said["seed"], said["version"]) == ("full", 1, said["sfumato"])
    assert markdown_of(said) == (folder / "one" / "tiny.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("b,c\n1,2\n3,4\n", "has no column `a`"),
        ("a,b\n1,2\n", "truncated"),
        ("a,b\n1,2\n3,4,5\n", "not a table"),
        ("", "not a table"),
    ],
)
def test_wrong_data(folder, text, message):
    path = folder / "x.csv"
    path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    with pytest.raises(ReadError, match=message) as raised:
        rerun(folder, folder / "out", [])
    assert "ask us for it" in raised.value.hint


def test_where_data_are(monkeypatch, tmp_path):
    monkeypatch.delenv("SFUMATO_REFERENCE_DATA", raising=False)
    assert str(data_folder(None)) == "reference-data"
    monkeypatch.setenv("SFUMATO_REFERENCE_DATA", str(tmp_path))
    assert data_folder(None) == tmp_path
    assert data_folder(tmp_path / "given") == tmp_path / "given"


def test_somebody_elses_release_of_the_cycle():
    """The scores by hand: half of the pairs differ, one unique is intact, one record breaks a rule."""
    from sfumato.reproduce.research_cycle import k_marginal, rules_broken, uniques_intact

    original = pl.DataFrame({"SEX": [1, 1, 2, 2], "HOUSING_TYPE": [1, 1, 1, 2], "OWN_RENT": [1, 1, 2, 0]})
    made = pl.DataFrame({"SEX": [1, 1, 2, 1], "HOUSING_TYPE": [1, 1, 1, 1], "OWN_RENT": [1, 1, 2, 0]})
    assert uniques_intact(original, made) == 1
    assert rules_broken(original) == 0
    assert rules_broken(made) == 1
    assert k_marginal(original, original) == 1000
    assert k_marginal(original, made) == pytest.approx((2 - 0.5) * 500)


DOCS = Path(__file__).resolve().parents[3] / "docs" / "reproduce"


@pytest.mark.parametrize("source", sorted(DOCS.glob("*.json")), ids=lambda path: path.stem)
def test_a_page_of_the_documentation_says_what_its_json_says(source):
    """By the same code; and every verdict there follows from what is printed now."""
    content, page = (
        json.loads(source.read_text(encoding="utf-8")),
        source.with_suffix(".md").read_text("utf-8"),
    )
    assert page == markdown_of(content, dict(re.findall(r"^!\[(.+)\]\((.+)\)$", page, re.MULTILINE)))
    printed = published(source.stem).cells
    for table in content["tables"]:
        for cell in table["cells"]:
            known = printed.get(f"{table['name']}/{cell['row']}/{cell['column']}")
            if known is not None and isinstance(cell["ours"], int | float):
                assert cell["published"] == known.published
                assert cell["verdict"] == known.verdict(cell["ours"], one_run=content["mode"] == "quick")
