"""What leaves names no value that few have, and is read back beside the original as what it stood for."""

import re
import tomllib
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seeds import LARGE
from sfumato import io
from sfumato.core.run import Run
from sfumato.data.generalised.cover import cover_of
from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.io.codebook import codebook_path
from sfumato.methods.recoding import Recoding
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.postprocess import postprocess
from sfumato.releasing.read_release import read_release

K = 5
COUNTRIES = ["Qland", "Qatan", "Quria", "Qenia", "Qisia", "Qosta"]  # each in one to four records
LETTERS = "ABCDEFGHIJ"


@pytest.fixture(scope="module")
def people():
    """300 people: two countries that many have and six that few have; diagnoses of two to six signs."""
    rng = np.random.default_rng(7)
    rare = [name for times, name in enumerate(COUNTRIES) for _ in range(times % 4 + 1)]
    nation = [*rare, *rng.choice(["Rome", "Oslo"], 300 - len(rare)).tolist()]
    icd = [f"{rng.choice(list(LETTERS[:4]))}{rng.integers(10, 13)}.{rng.integers(0, 40)}" for _ in range(300)]
    return pl.DataFrame({"nation": nation, "icd": icd, "n": rng.integers(0, 9, 300)})


def plan_of(step, folder, ending="csv"):
    return Plan.from_dict(
        tomllib.loads(f"""
            requirements = ["k >= {K}"]
            data = {{path = "in.csv"}}
            columns.nation = {{kind = "nominal", role = "key"}}
            columns.icd = {{kind = "nominal", role = "key"}}
            columns.n = {{kind = "continuous", role = "other"}}
            output = {{path = "out.{ending}"}}
            [[steps]]
            method = "{step}"
            columns = ["nation", "icd"]
            parameters = {{k = {K}}}
        """),
        folder=folder,
    )


def texts_of(path):
    """All that a file of text, or its table, shows."""
    return path.read_text() if path.suffix in {".csv", ".toml"} else str(io.read(path).rows())


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx", "sav"])
@pytest.mark.parametrize("step", ["global-recoding", "mondrian"])
def test_no_file_names_a_value_that_few_have(people, tmp_path, step, ending):
    people.write_csv(tmp_path / "in.csv")
    plan = plan_of(step, tmp_path, ending)
    outcome = carry_out(plan, Run(seed=LARGE + 1))
    write_release(decide(outcome, subject="it"), Destination(plan))
    out = tmp_path / f"out.{ending}"
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    files = [path for path in (out, codebook_path(out), tmp_path / "plan.toml") if path.exists()]
    counts = Counter(people["nation"]) + Counter(people["icd"])
    rare = [value for value, count in counts.items() if count < K]
    assert len(rare) > 50
    shown = "\n".join(map(texts_of, files))
    # B11.2* is not B11.2, but all that begins so.
    named = [value for value in rare if re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.*])", shown)]
    assert named == []
    part = outcome.parts[""]
    again = read_release(part.original, out, aligned=False)
    assert again.source_rows is not None  # the private trail tells
    for name in ("nation", "icd"):
        numbers, mine = cover_of(part.original, part.release.table, name)
        _, theirs = cover_of(part.original, again.table, name)
        assert theirs.holds(numbers[again.source_rows]).all()
        np.testing.assert_allclose(theirs.share_of_domain(), mine.share_of_domain())


VALUES = st.one_of(
    st.sampled_from(["DE", "TR", "...", "4*", "a|b", "{c}", "\\", "93***"]),
    st.text(alphabet="AB12.*|", min_size=1, max_size=5),
)


@given(data=st.data(), values=st.lists(VALUES, min_size=2, max_size=12, unique=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_back_beside_the_original(tmp_path_factory, data, values):
    """A column of any texts at any level of what grows from it; those of ten records or more may be named."""
    times = data.draw(st.lists(st.sampled_from([1, 3, 12]), min_size=len(values), max_size=len(values)))
    column = [value for value, count in zip(values, times, strict=True) for _ in range(count) if value != "*"]
    if not column:
        return
    schema = Schema((Column("x", Kind.NOMINAL, Role.KEY), Column("n", Kind.CONTINUOUS, Role.OTHER)))
    frame = pl.DataFrame({"x": column, "n": range(len(column))})
    original, run = Table(frame, schema, targets=("x",)), Run(seed=LARGE + 1)
    made = Recoding(levels=data.draw(st.integers(0, 3))).apply(original, run)
    release, _ = postprocess(made, original, Output("out.csv"), run)
    path = tmp_path_factory.mktemp("files") / f"out.{data.draw(st.sampled_from(['csv', 'parquet']))}"
    io.write(release.table, path)
    again = read_release(original, path, aligned=True).table
    if not release.table.is_generalised("x"):
        return
    numbers, mine = cover_of(original, release.table, "x")
    if not again.is_generalised("x"):  # nothing in the file looks like a form: groups of one value each
        assert canonical_text(again.frame["x"]).to_list() == column
        return
    _, theirs = cover_of(original, again, "x")
    assert mine.holds(numbers).all()
    assert theirs.holds(numbers).all()
    before, after = release.table.nodes["x"], again.nodes["x"]
    shown = before.codes(release.table.frame["x"]).tolist()
    for old, new in zip(shown, after.codes(again.frame["x"]).tolist(), strict=True):
        if before.labels[old] != "*":  # which is anything, be it listed or not
            assert set(after.members_of(new)) == set(before.members_of(old))
