"""`verify`: a release is what was written, and its plan makes it again; one byte changed is noticed."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

from seeds import LARGE

PLAN = """
requirements = ["exact-match <= 0.9"]

[data]
path = "people.csv"

[columns]
wage = { kind = "continuous", role = "key" }
town = { kind = "nominal", role = "key" }

[[steps]]
method = "correlated-noise"
columns = ["wage"]

[output]
path = "OUT"
"""


@pytest.fixture
def made(run, tmp_path):
    """A release with noise in it, as the format its suffix says."""

    def go(out="out.csv"):
        rng = np.random.default_rng(1)
        frame = pl.DataFrame({"wage": rng.lognormal(8, 1, 40), "town": rng.choice(["a", "b"], 40)})
        frame.write_csv(tmp_path / "people.csv")
        (tmp_path / "plan.toml").write_text(PLAN.replace("OUT", out))
        assert run("run", "plan.toml", "-q")[0] == 0
        return tmp_path / out

    return go


def states(run, *arguments):
    code, out, err = run("verify", *arguments, "--json")
    files = {name: state for each in json.loads(out).values() for name, state in each["files"].items()}
    return code, files, err


@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_what_was_released_is_made_again_byte_for_byte(run, made, out):
    assert states(run, made(out))[:2] == (0, {out: "identical"})


def test_a_workbook_is_made_again_to_equal_numbers(run, made):
    code, files, _ = states(run, made("out.xlsx"))
    assert code == 0
    assert files["out.xlsx"] in {"identical", "equal"}


def test_one_byte_changed_and_a_file_gone_are_named(run, made, tmp_path):
    place = made()
    whole = place.read_bytes()
    for position in (0, len(whole) // 2, len(whole) - 2):
        place.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert states(run, ".")[:2] == (1, {"out.csv": "different"})
    place.unlink()
    assert states(run, tmp_path)[:2] == (1, {"out.csv": "missing"})


def test_without_the_original_the_hashes_are_compared_and_that_is_said(run, made, tmp_path):
    made()
    shutil.move(tmp_path / "people.csv", tmp_path / "away.csv")
    code, files, err = states(run, ".")
    assert (code, files) == (0, {"out.csv": "unchanged"})
    assert "--original" in err
    assert states(run, ".", "--original", "away.csv")[:2] == (0, {"out.csv": "identical"})


def test_another_original_a_place_without_a_trail_and_an_old_trail(run, made, tmp_path):
    place = made()
    pl.read_csv(tmp_path / "people.csv").with_columns(pl.col("wage") + 1).write_csv(tmp_path / "other.csv")
    code, _, err = run("verify", ".", "--original", "other.csv")
    assert code == 3
    assert "this is not the original that was released: its records differ" in err
    assert run("verify", "people.csv")[0] == 3
    trail = place.with_suffix(".private.json")
    said = json.loads(trail.read_text())
    trail.write_text(json.dumps({key: value for key, value in said.items() if key != "written"}))
    assert run("verify", place)[0] == 3


def test_a_folder_that_release_wrote_is_verified_and_may_move(run, tmp_path):
    assert run("release", "builtin:rand?per=person", "--for", "secure", "--minutes", "0.02", "-q",
               "-m", "rank-swapping", "--seed", LARGE)[0] == 0  # fmt: skip
    folder = tmp_path / "rand-release"
    code, files, _ = states(run, folder)
    assert code == 0
    assert files["release.csv"] == "identical"
    assert files["private/plan.toml"] == files["report.html"] == "unchanged"
    moved = tmp_path / "elsewhere"
    shutil.move(folder, moved)
    assert states(run, moved)[1]["release.csv"] == "identical"
