"""The script in the folder: it accepts what was released, as sfumato counts it, and nothing that was tampered with."""

import hashlib
import itertools
import json
import random
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import sfumato
from effort import FULL
from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.checksums import CHECK, CHECK_LATTICE, CHECK_ORIGINAL
from sfumato.releasing.claims import claims_of
from sfumato.releasing.decide import decide
from sfumato.releasing.folder import ReleaseFolder
from sfumato.releasing.outcome import tally

STATIC = Path(sfumato.__file__).parent / "releasing" / "static"
SCRIPT, OWNER, LATTICE = (
    runpy.run_path(str(STATIC / name)) for name in (CHECK, CHECK_ORIGINAL, CHECK_LATTICE)
)

COLUMNS = """
[columns]
age = { kind = "continuous", role = "key", integer = true }
sex = { kind = "nominal", role = "key" }
town = { kind = "nominal", role = "key"TOWN }
illness = { kind = "nominal", role = "sensitive" }
income = { kind = "continuous", role = "sensitive" }
MORE
[data]
path = "people.csv"
[output]
path = "out.csv"
"""
DIVERSE = (
    '"k >= 3", "l >= 2", "l(kind=entropy) >= 1.2", "alpha <= 0.9", "t(distance=kind) <= 0.9", "t <= 0.99"'
)


def step(method, **parameters):
    settings = ", ".join(f"{name} = {json.dumps(value)}" for name, value in parameters.items())
    return f'steps = [{{ method = "{method}", columns = ["@key"], parameters = {{ {settings} }} }}]\n'


CASES = {
    "ranges": (
        f'requirements = ["k >= 3"]\n{step("mondrian", k=3, also=["l >= 2"])}',
        f'\n[[scenarios]]\nname = "all"\nrequirements = [{DIVERSE}]\n[[scenarios]]\nname = "town"\ncolumns = ["town"]\nrequirements = ["k >= 4"]',
    ),
    "hierarchy": (
        f'requirements = ["k >= 3"]\n{step("global-recoding", k=3, suppression=0.1)}',
        '\n[resources.towns]\npath = "towns.csv"\nholds = "hierarchy"',
    ),
    **{
        f"holes {missing}": (
            f'requirements = ["k(missing={missing}) >= 3"]\n{step(method, k=3, missing=missing)}',
            "",
        )
        for missing, method in {
            "category": "local-suppression",
            "any": "local-suppression",
            "worst": "mondrian",
        }.items()
    },
}


def people(home, n=90):
    draw = random.Random(5)
    towns = ["Bonn", "Köln", "Kiel", "Ulm"]
    frame = {
        "age": [draw.randint(30, 44) for _ in range(n)],
        "sex": [draw.choice("fm") for _ in range(n)],
        "town": [draw.choice(towns) for _ in range(n)],
        "illness": [draw.choice(["E11", "F32", "I10", None]) for _ in range(n)],
        "income": [draw.choice([1000.5, 2000.0, 3000.25]) for _ in range(n)],
    }
    pl.DataFrame(frame).write_csv(home / "people.csv")
    areas = {"Bonn": "Rhine", "Köln": "Rhine", "Kiel": "Baltic", "Ulm": "Danube"}
    lines = [f"{town};{areas[town]};*" for town in towns]
    (home / "towns.csv").write_text("\n".join(lines) + "\n")


def write(home, head, more="", name="out"):
    """A folder with the evidence that the script reads, and no pages; with what was judged."""
    town = ', hierarchy = "towns"' if "resources.towns" in more else ""
    text = head + COLUMNS.replace("TOWN", town).replace("MORE", "") + more
    (home / "plan.toml").write_text(text)
    plan = Plan.read(home / "plan.toml")
    outcome = carry_out(plan, Run())
    claims = claims_of(outcome, plan)
    evidence = {
        "data": {"tables": list(claims.tables)},
        "identifiability": {
            "claims": list(claims.claims),
            "requirements": tally(each.to_dict() for each in outcome.judgements),
        },
    }
    folder = ReleaseFolder(home / name)
    folder.write(
        decide(outcome, subject="it"), plan, lambda _: {"evidence.json": json.dumps(evidence, indent=1)}
    )
    return home / name, outcome


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    home = tmp_path_factory.mktemp("check")
    people(home)
    return {name: write(home, *case, name=name.replace(" ", "-")) for name, case in CASES.items()}


def is_faulty(folder):
    return any(word == "FAULT" for word, _ in SCRIPT["check"](folder))


@pytest.mark.parametrize("case", CASES)
def test_a_release_is_accepted_with_the_numbers_that_sfumato_counts(folders, case):
    folder, outcome = folders[case]
    (part,) = outcome.parts.values()
    found = list(SCRIPT["check"](folder))
    assert not [each for each in found if each[0] == "FAULT"], found
    numbers = [
        float(sentence.rpartition(": it is ")[2]) for word, sentence in found if ": it is " in sentence
    ]
    plain = [
        demand.measure.measure(Evidence(part.original, part.release, demand.scenario), Run()).value
        for demand in part.plan.demands
    ]
    assert numbers == pytest.approx(plain, rel=1e-5)
    assert len(numbers) == len(outcome.judgements)


def test_it_runs_alone_in_the_folder(folders, tmp_path):
    folder = tmp_path / "given"
    shutil.copytree(folders["ranges"][0], folder)
    shutil.rmtree(folder / "private")
    command = [sys.executable, "-I", CHECK]
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.endswith("All that can be checked here holds.\n")
    assert "k-anonymity(missing=category) >= 4 against town, who knows town: it is " in told.stdout
    (folder / "out.csv").write_text((folder / "out.csv").read_text()[:-2])
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "FAULT:       out.csv is not what was released" in told.stdout
    assert sorted(path.name for path in folder.iterdir()) == [SUMS, CHECK, "evidence.json", "out.csv"]


@pytest.mark.parametrize("name", [CHECK, CHECK_ORIGINAL, CHECK_LATTICE])
def test_it_is_small_and_needs_the_standard_library_alone(name):
    text = (STATIC / name).read_text()
    assert text.count("\n") <= 300
    assert set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)) <= sys.stdlib_module_names


# Tampering -----------------------------------------------------------------------------------------------

SUMS = "SHA256SUMS"


def sum_again(folder):
    """Make the list of checksums fit whatever is there, as somebody would who changes a file on purpose."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    lines = "".join(f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in names)
    last = f"# sha256 of the lines above: {hashlib.sha256(lines.encode()).hexdigest()}\n"
    (folder / SUMS).write_text(lines + last)


def change_a_byte(draw, folder):
    """Any byte of any file that leaves."""
    place = draw.choice(sorted(path for path in folder.iterdir() if path.is_file()))
    raw = bytearray(place.read_bytes())
    raw[draw.randrange(len(raw))] ^= draw.randrange(1, 256)
    place.write_bytes(raw)


def change_a_record(draw, folder):
    """A record that nobody is like any more; the list fits."""
    lines = (folder / "out.csv").read_text().splitlines(keepends=True)
    at = draw.randrange(1, len(lines))
    fields = lines[at].rstrip("\n").split(",")
    key = draw.choice([1, 2])
    fields[key] = f"x{draw.randrange(10**6)}"
    (folder / "out.csv").write_text("".join([*lines[:at], ",".join(fields) + "\n", *lines[at + 1 :]]))
    sum_again(folder)


def lose_or_repeat_a_record(draw, folder):
    """One record more or fewer than is said; the list fits."""
    lines = (folder / "out.csv").read_text().splitlines(keepends=True)
    at = draw.randrange(1, len(lines))
    (folder / "out.csv").write_text(
        "".join([*lines[:at], *([lines[at]] * draw.choice([0, 2])), *lines[at + 1 :]])
    )
    sum_again(folder)


def raise_a_claim(draw, folder):
    """More is claimed than is true; the list fits."""
    evidence = json.loads((folder / "evidence.json").read_text())
    claim = draw.choice(evidence["identifiability"]["claims"])
    spec = evidence["data"]["tables"][0]
    value = float(SCRIPT["check_claim"](claim, spec, SCRIPT["read_table"](folder, spec))[1][6:])
    more = draw.choice([0.001, 0.1, 1.0, 50.0]) * max(value, 0.001)
    claim["level"] = value + more if claim["sign"] == ">=" else value - min(more, value / 2)
    (folder / "evidence.json").write_text(json.dumps(evidence))
    sum_again(folder)


def claim_more_often(draw, folder):
    """A claim stands twice, so that there seem to be more; the list fits."""
    evidence = json.loads((folder / "evidence.json").read_text())
    claims = evidence["identifiability"]["claims"]
    claims.append(dict(draw.choice(claims)))
    (folder / "evidence.json").write_text(json.dumps(evidence))
    sum_again(folder)


def move_a_checksum(draw, folder):
    """Two files have each other's checksum, or one has another."""
    lines = (folder / SUMS).read_text().splitlines(keepends=True)[:-1]
    first, second = draw.sample(range(len(lines)), 2)
    swapped = {first: lines[second][:64] + lines[first][64:], second: lines[first][:64] + lines[second][64:]}
    lines = [swapped.get(at, line) for at, line in enumerate(lines)]
    if draw.random() < 0.5:
        lines.pop(first)
    text = "".join(lines)
    (folder / SUMS).write_text(
        f"{text}# sha256 of the lines above: {hashlib.sha256(text.encode()).hexdigest()}\n"
    )


def break_the_evidence(draw, folder):
    """Something that the script relies on is gone; the list fits."""
    evidence = json.loads((folder / "evidence.json").read_text())
    spec, claim = evidence["data"]["tables"][0], draw.choice(evidence["identifiability"]["claims"])
    where = draw.choice([spec, spec["columns"][0], claim, evidence["identifiability"], evidence["data"]])
    where.pop(draw.choice([key for key in sorted(where) if key not in UNUSED]))
    (folder / "evidence.json").write_text(json.dumps(evidence))
    sum_again(folder)


#: What is used of some columns or for some claims only, or is shown to people.
UNUSED = {"order", "form", "role", "kind", "missing", "missing_range", "encoding", "sensitive", "counted"}
WAYS = (
    change_a_byte, change_a_record, lose_or_repeat_a_record, raise_a_claim, claim_more_often, move_a_checksum,
    break_the_evidence,
)  # fmt: skip


@pytest.mark.prove
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_folder_that_was_tampered_with_is_accepted(folders, tmp_path, way):
    """Ten thousand of them in full."""
    draw = random.Random(way.__name__)
    there = {path.name: path.read_bytes() for path in folders["ranges"][0].iterdir() if path.is_file()}
    for trial in range(1_500 if FULL else 45):
        for name, raw in there.items():
            if not trial or (tmp_path / name).read_bytes() != raw:
                (tmp_path / name).write_bytes(raw)
        way(draw, tmp_path)
        assert is_faulty(tmp_path), trial


# What only the owner can check ------------------------------------------------------------------------------

NUMBERS = """
requirements = ["gdbrl <= 0.99", "exact-match <= 0.1"]
data.path = "wages.csv"
columns.wage = { kind = "continuous", role = "key" }
columns.rent = { kind = "continuous", role = "key" }
columns.sex = { kind = "nominal", role = "sensitive" }
steps = [{ method = "uncorrelated-noise", columns = ["wage", "rent"] }]
output.path = "out.csv"
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A whole folder, as `release` writes it, of numbers that can be linked."""
    home = tmp_path_factory.mktemp("owner")
    draw = random.Random(3)
    frame = {
        "wage": [round(draw.lognormvariate(8, 1), 2) for _ in range(60)],
        "rent": [round(draw.gauss(800, 90), 1) for _ in range(60)],
        "sex": [draw.choice("fm") for _ in range(60)],
    }
    pl.DataFrame(frame).write_csv(home / "wages.csv")
    (home / "plan.toml").write_text(NUMBERS)
    sfumato.release(home / "plan.toml").write(home / "out")
    return home / "out"


def test_the_owner_checks_matches_and_the_linkage_by_its_prices(own, tmp_path):
    command = [sys.executable, "-I", str(own / "private" / CHECK_ORIGINAL)]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, ""), told.stdout
    report = json.loads((own / "private" / "report.json").read_text())
    share = next(each["value"] for each in report["risks"] if each["measure"] == "gdbrl")
    right, n = re.search(r"gdbrl against default: .* finds (\d+) of (\d+)", told.stdout).groups()
    assert int(right) / int(n) == pytest.approx(share)
    assert "exact-match <= 0.1 against default: it is 0" in told.stdout
    (tmp_path / "other.csv").write_bytes((own.parent / "wages.csv").read_bytes().replace(b",f", b",m", 1))
    told = subprocess.run(
        [*command, str(tmp_path / "other.csv")], capture_output=True, text=True, check=False
    )
    assert told.returncode == 1
    assert "FAULT:       the original is the file that was released" in told.stdout


def test_what_is_private_is_not_in_what_leaves(own):
    public = json.loads((own / "evidence.json").read_text())
    assert "certificates" not in public["identifiability"]
    assert json.loads((own / "private" / "evidence.json").read_text())["identifiability"]["certificates"]


@pytest.mark.prove
def test_no_price_can_be_moved(own):
    evidence, trail = (
        json.loads((own / "private" / n).read_text()) for n in ("evidence.json", "trail.private.json")
    )
    (proof,), (spec,) = evidence["identifiability"]["certificates"], evidence["data"]["tables"]
    tables = (
        SCRIPT["read_table"](own, spec),
        OWNER["read_original"](SCRIPT, own.parent / "wages.csv", trail["plan"]),
    )
    rows, draw = [int(row) for row in trail["rows"].split()], random.Random(7)
    assert OWNER["check_linkage"](SCRIPT, proof, *tables, rows)[0]
    for _ in range(1_000 if FULL else 60):
        moved = {**proof, "row_prices": [*proof["row_prices"]], "column_prices": [*proof["column_prices"]]}
        side, at = draw.choice(["row_prices", "column_prices"]), draw.randrange(60)
        moved[side][at] += draw.choice([-1, 1]) * 10 ** draw.randrange(2, 12)
        assert not OWNER["check_linkage"](SCRIPT, moved, *tables, rows)[0]
    for _ in range(100):
        partners = [*proof["partners"]]
        one, other = draw.sample(range(60), 2)
        partners[one], partners[other] = partners[other], partners[one]
        holds, why = OWNER["check_linkage"](SCRIPT, {**proof, "partners": partners}, *tables, rows)
        same = [
            tables[0][name][proof["released"][at]]
            for name in proof["columns"]
            for at in (partners[one], partners[other])
        ]
        assert not holds or same[0] == same[1], why


# The best of all levels -------------------------------------------------------------------------------------

RECODED = """
requirements = ["k >= 2"]
data.path = "people.csv"
columns.who = { kind = "nominal", role = "person" }
columns.age = { kind = "continuous", role = "key", missing = [-9] }
columns.town = { kind = "nominal", role = "key" }
columns.zip = { kind = "nominal", role = "key" }
columns.weight = { kind = "continuous", role = "weight" }
output.path = "out.csv"
output.drop = ["who", "weight"]
"""
SETTINGS = {
    "weighed": {"k": 2, "suppression": 20, "importance": {"default": 1.0, "age": 5.0}, "balance": 0.3},
    "local": {"k": 3, "suppression": 30, "local": True},
    "stopped": {"k": 3, "suppression": 5, "budget": 2, "aggregate": "arithmetic"},
    "diverse": {"k": 2, "also": ["l >= 2"]},
}


@pytest.fixture(scope="module", params=SETTINGS)
def lattice(request, tmp_path_factory):
    """What `check_lattice` is given of a release by the best levels, with missing values and weights."""
    home, draw, settings = tmp_path_factory.mktemp("lattice"), random.Random(5), SETTINGS[request.param]
    frame = {
        "who": [at // 2 if at < 20 else at for at in range(60)],
        "age": [-9 if draw.random() < 0.1 else draw.randrange(20, 60) for _ in range(60)],
        "town": [None if draw.random() < 0.1 else draw.choice(["Ely", "Bath", "Rye"]) for _ in range(60)],
        "zip": [f"9{draw.randrange(30):02d}{draw.randrange(2)}" for _ in range(60)],
        "ill": [draw.choice("abc") for _ in range(60)],
        "weight": [draw.choice([1.5, 2.0]) for _ in range(60)],
    }
    pl.DataFrame(frame).write_csv(home / "people.csv")
    more = 'columns.ill = { kind = "nominal", role = "sensitive" }\n'
    (home / "plan.toml").write_text(
        step("global-recoding", **settings).replace(
            '{"default": 1.0, "age": 5.0}', "{ default = 1.0, age = 5.0 }"
        )
        + RECODED
        + more
    )
    sfumato.release(home / "plan.toml").write(home / "out")
    evidence, trail = (
        json.loads((home / "out" / "private" / n).read_text())
        for n in ("evidence.json", "trail.private.json")
    )
    (proof,) = [each for each in evidence["identifiability"]["certificates"] if "levels" in each]
    released = SCRIPT["read_table"](home / "out", evidence["data"]["tables"][0])
    original = OWNER["read_original"](SCRIPT, home / "people.csv", trail["plan"])
    told = subprocess.run(
        [sys.executable, "-I", str(home / "out" / "private" / CHECK_ORIGINAL)], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (told.returncode, told.stderr) == (0, ""), told.stdout
    rows = [int(row) for row in trail["rows"].split()]
    return {"trail": trail, "proof": proof, "released": released, "original": original, "rows": rows}


def judged(lattice, figures=None, **changed):
    """The words that the script has for a lattice in which something was changed."""
    given = json.loads(json.dumps({**lattice, **changed}))
    given["trail"]["steps"][0]["figures"] |= figures or {}
    try:
        return [word for word, _ in LATTICE["check_lattice"](SCRIPT, **given)]
    except SCRIPT["FAULTS"]:
        return ["FAULT"]


def test_the_levels_are_those_of_the_release_and_no_others_lose_less(lattice):
    if has_only_k(lattice):
        assert judged(lattice) == ["holds", "holds"]
    else:
        assert judged(lattice) in (["holds"], ["not checked"])  # l of nodes is not computed there


def has_only_k(lattice):
    return not lattice["trail"]["steps"][0]["parameters"]["also"]


def test_no_other_node_passes_for_the_best(lattice):
    """Whatever levels are said, with the loss that they have, there is something that does not hold."""
    step = lattice["trail"]["steps"][0]
    if not has_only_k(lattice):
        return
    trees, levels = lattice["proof"]["hierarchies"], lattice["proof"]["levels"]
    for others in itertools.product(*(range(len(trees[name]["sizes"])) for name in levels)):
        said = dict(zip(levels, others, strict=True))
        if said != levels:
            proof = {**lattice["proof"], "levels": said}
            assert "FAULT" in judged(lattice, proof=proof)
            forged = next(LATTICE["check_lattice"](SCRIPT, **{**lattice, "proof": proof}))[1]
            loss = float(forged.rpartition(" ")[2])
            if loss > step["figures"]["loss"] + 1e-4:
                assert "FAULT" in judged(lattice, {"loss": loss, "loss_at_least": loss}, proof=proof)


@pytest.mark.parametrize("moved", [-0.05, 0.01])
def test_no_loss_and_no_bound_can_be_moved(lattice, moved):
    step = lattice["trail"]["steps"][0]
    if not has_only_k(lattice):
        return
    loss = step["figures"]["loss"] + moved
    assert "FAULT" in judged(lattice, {"loss": loss, "loss_at_least": loss})
    assert "FAULT" in judged(lattice, {"loss": loss})
    assert ("FAULT" in judged(lattice, {"loss_at_least": loss})) is (moved > 0)  # a lower bound is one, too
    trees = json.loads(json.dumps(lattice["proof"]["hierarchies"]))
    trees["zip"]["sizes"][1] = {label: size + 1 for label, size in trees["zip"]["sizes"][1].items()}
    at = lattice["proof"]["levels"]["zip"]
    assert at != 1 or "FAULT" in judged(lattice, proof={**lattice["proof"], "hierarchies": trees})
    trees["zip"]["sizes"][-1] = {"*": 1}
    assert judged(lattice, proof={**lattice["proof"], "hierarchies": trees}) == ["FAULT"]


def test_no_record_of_the_release_shows_more_than_its_node(lattice):
    step = lattice["trail"]["steps"][0]
    if not has_only_k(lattice) or step["parameters"]["local"]:
        return
    for name, level in lattice["proof"]["levels"].items():
        cells = [*lattice["released"][name]]
        row = next(at for at, cell in enumerate(cells) if cell is not None and cells.count(cell) > 1)
        cells[row] = "shown"
        if level:
            assert "FAULT" in judged(lattice, released={**lattice["released"], name: cells})


def test_a_lattice_that_is_too_large_is_said_to_be(lattice, monkeypatch):
    for limit in ("MOST_NODES", "MOST_LOOKS"):
        with monkeypatch.context() as patch:
            patch.setitem(LATTICE["check_lattice"].__globals__, limit, 3)
            assert judged(lattice)[-1] == "not checked"
    lattice = json.loads(json.dumps(lattice))
    lattice["trail"]["steps"][0]["parameters"]["objective"] = "discernibility"
    assert judged(lattice) == ["not checked"]


def test_persons_are_counted_by_the_original_where_the_release_does_not_tell(tmp_path):
    """Four records of each town are of two persons: k is 2, whatever the file seems to say."""
    frame = {"who": [at // 2 for at in range(8)], "town": ["a"] * 4 + ["b"] * 4, "pay": range(8)}
    pl.DataFrame(frame).write_csv(tmp_path / "people.csv")
    text = """
    requirements = ["k >= 2"]
    data.path = "people.csv"
    columns.who = { kind = "nominal", role = "person" }
    columns.town = { kind = "nominal", role = "key" }
    columns.pay = { kind = "continuous", role = "sensitive" }
    output.path = "out.csv"
    output.drop = ["who"]
    """
    (tmp_path / "plan.toml").write_text("\n".join(map(str.strip, text.splitlines())))
    sfumato.release(tmp_path / "plan.toml").write(tmp_path / "out")
    found = dict.fromkeys(SCRIPT["check"](tmp_path / "out"))
    assert [word for word, sentence in found if "k-anonymity" in sentence] == ["not checked"]
    assert ("holds", "k-anonymity >= 2 in persons, against default: it is 2") in OWNER["check"](
        tmp_path / "out" / "private"
    )
    evidence = json.loads((tmp_path / "out" / "evidence.json").read_text())
    (claim,), (spec,) = evidence["identifiability"]["claims"], evidence["data"]["tables"]
    cells = SCRIPT["read_table"](tmp_path / "out", spec)
    assert not SCRIPT["check_claim"]({**claim, "level": 5}, spec, cells)[0]  # by records it is 4 at most


@pytest.mark.parametrize(("path", "word"), [("out.parquet", ".parquet"), ("out.csv", "requirements more")])
def test_what_cannot_be_read_or_is_of_several_files_is_listed(tmp_path, path, word):
    people(tmp_path)
    more = "" if path.endswith("parquet") else "\n[output]\npath = 'out.csv'\ncopies = 2\n"
    head, _ = CASES["holes category"]
    text = head + COLUMNS.replace("TOWN", "").replace("MORE", "").replace("out.csv", path)
    text = text.replace(f'[output]\npath = "{path}"\n', "") + more if more else text
    (tmp_path / "plan.toml").write_text(text)
    sfumato.release(tmp_path / "plan.toml").write(tmp_path / "out")
    found = list(SCRIPT["check"](tmp_path / "out"))
    assert not [each for each in found if each[0] == "FAULT"], found
    assert [sentence for kind, sentence in found if kind == "not checked" and word in sentence]
