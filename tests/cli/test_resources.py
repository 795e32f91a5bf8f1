"""Hierarchies and other files that a verb is given by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.cli import _exit_code
from sfumato.cli.protect import command
from sfumato.core import registry

SOURCE = "builtin:patients?n=120&seed=1"

Verb = Callable[..., tuple[int, str]]


@pytest.fixture
def sfumato(capfd: pytest.CaptureFixture[str]) -> Verb:
    """Run the command line; give its exit code and all it says."""

    def go(*words: str) -> tuple[int, str]:
        code = _exit_code(list(words))
        return code, "".join(capfd.readouterr())

    return go


@pytest.fixture(scope="module")
def zips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("zips") / "zip.csv"
    assert _exit_code(["hierarchy", SOURCE, "patzip", "--out", str(place)]) == 0
    return place


def test_a_column_climbs_the_hierarchy_that_it_is_given(tmp_path: Path, zips: Path, sfumato: Verb) -> None:
    out = tmp_path / "out.csv"
    words = [
        "protect",
        "recoding",
        SOURCE,
        "--levels",
        "2",
        "-c",
        "patzip",
        "--drop",
        "oshpd_id",
        "-o",
        str(out),
    ]
    code, said = sfumato(*words, "--unjudged", "--hierarchy", f"patzip={zips}")
    assert code == 0, said
    assert "was grown" not in said
    assert "**" in out.read_text()


def test_a_file_that_is_named_is_never_overwritten(zips: Path, sfumato: Verb) -> None:
    before = zips.read_text()
    words = ["protect", "recoding", SOURCE, "-c", "patzip", "-o", str(zips), "--overwrite"]
    code, said = sfumato(*words, "--hierarchy", f"patzip={zips}")
    assert code == 3
    assert "is the same file as the original" in said
    assert zips.read_text() == before


@pytest.mark.parametrize("given", ["patzip", "=zip.csv", "patzip=", "nobody=zip.csv"])
def test_what_is_no_pair_of_a_column_and_a_file_is_an_error(
    tmp_path: Path, zips: Path, sfumato: Verb, given: str
) -> None:
    words = ["protect", "recoding", SOURCE, "-c", "patzip", "-o", str(tmp_path / "o.csv")]
    code, _ = sfumato(*words, "--hierarchy", given.replace("zip.csv", str(zips)))
    assert code == 2
    assert not (tmp_path / "o.csv").exists()


def test_a_measure_finds_its_population(tmp_path: Path, sfumato: Verb) -> None:
    people = tmp_path / "people.csv"
    assert sfumato("convert", "builtin:patients?n=200&seed=1", str(people))[0] == 0
    words = ["risk", SOURCE, "-c", "sex,race", "-m", "k-map(population=people)"]
    code, said = sfumato(*words, "--resource", f"people={people}", "--json", "-q")
    assert code == 0, said
    assert json.loads(said)["k-map(population=people)"]["status"] == "ok"


@pytest.mark.parametrize("name", sorted(registry.methods()))
def test_no_parameter_of_a_method_meets_an_option_that_all_have(name: str) -> None:
    made = command.get_command(None, name)
    named = [each.name for each in made.params]
    flags = [flag for each in made.params for flag in (*each.opts, *each.secondary_opts)]
    assert len(set(named)) == len(named)
    assert len(set(flags)) == len(flags)
