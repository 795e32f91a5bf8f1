"""What papers printed is data: every file can be read, and every verdict follows from the numbers."""

from importlib.resources import files

import pytest

from sfumato.errors import PlanError
from sfumato.reproduce.bench import Experiment, Paper
from sfumato.reproduce.carry_out import content_of
from sfumato.reproduce.cells import LISTED, NO_NUMBER, NOT_PRINTED, OUTSIDE, WITHIN, published, read_published

FOLDER = files("sfumato.reproduce").joinpath("published")
PAPERS = sorted(path.name.removesuffix(".toml") for path in FOLDER.iterdir() if path.name != "002.toml")

TEXT = """
title = "a paper"
source = "somebody"
[tables.one]
title = "Table 1"
place = "page 3"
columns = ["a", "b"]
tolerance = "10 %"
runs = 4
rows = { "x" = [100, nan], "y" = [3, 4] }
[[tables.one.rules]]
cells = "y/*"
tolerance = 0.5
unreachable = "of other data"
post_hoc = true
"""


@pytest.mark.parametrize("paper", PAPERS)
def test_every_printed_number_has_a_tolerance_and_a_reason_for_it(paper):
    said = published(paper)
    assert said.title
    assert said.source
    for cell in said.cells.values():
        if cell.published is not None:
            assert cell.margin() is not None, cell.key
            assert cell.why or cell.unreachable, cell.key
    for name, file in said.data.items():
        assert file.records
        assert file.origin, name


def test_verdicts():
    cells = read_published(TEXT, "test").cells
    assert cells["one/x/a"].margin() == pytest.approx(10)
    assert cells["one/x/a"].margin(one_run=True) == pytest.approx(20)
    assert [cells["one/x/a"].verdict(ours) for ours in (110, 111, None)] == [WITHIN, OUTSIDE, NO_NUMBER]
    assert cells["one/x/a"].verdict(111, one_run=True) == WITHIN
    assert cells["one/x/b"].verdict(1) == NOT_PRINTED
    assert cells["one/y/a"].verdict(4) == LISTED
    assert cells["one/y/a"].post_hoc
    assert not cells["one/x/a"].post_hoc


def content(text):
    paper = _Read("test", lambda bench: (), text=text)
    experiment = Experiment("work", lambda run: {})
    return content_of(
        paper, [experiment], {"work": {"one/x/a": 100.0, "one/y/b": [5.0, 4.0, 6.0], "one/z/a": 1}}
    )


class _Read(Paper):
    """A paper whose printed numbers come from a text."""

    def __init__(self, number, experiments, *, text):
        super().__init__(number, experiments)
        object.__setattr__(self, "text", text)

    @property
    def published(self):
        return read_published(self.text, self.number)


def test_a_verdict_follows_from_the_printed_number():
    """Nothing computed is typed in: another printed number gives another difference and another verdict."""
    before, after = content(TEXT), content(TEXT.replace("[100, nan]", "[150, nan]"))
    cells = [said["tables"][0]["cells"] for said in (before, after)]
    assert [each[0]["verdict"] for each in cells] == [WITHIN, OUTSIDE]
    assert [each[0]["difference"] for each in cells] == [0, -50]
    assert cells[0][1:] == cells[1][1:]


def test_what_was_not_printed_and_what_was_not_run():
    (table,) = content(TEXT)["tables"]
    rows = {(cell["row"], cell["column"]): cell for cell in table["cells"]}
    assert rows["z", "a"]["verdict"] == NOT_PRINTED
    assert rows["y", "b"]["band"] == [4.0, 6.0]
    assert rows["y", "b"]["verdict"] == LISTED
    assert table["not_run"] == 1  # y/a; x/b was not printed


def test_a_row_has_a_number_for_each_column():
    with pytest.raises(PlanError, match="x: not a number each"):
        read_published(TEXT.replace("[100, nan]", "[100]"), "test")
