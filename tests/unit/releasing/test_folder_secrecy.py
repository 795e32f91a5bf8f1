"""Nothing private leaves: cells, the seed, keys, paths and settings are searched for in all that is public."""

import json
import re

import numpy as np
import polars as pl
import pytest

import sfumato
from seeds import LARGE
from sfumato.releasing.checksums import contents

NAME, NUMBER, CODE, REASON = "Zanzibarquux", 918273645.25, "Xylophonequux", "Quagmirequux"
HOME = "Originalquux"
RARE = ("Whiskerquux", "Bramblequux")

COLUMNS = """
columns.name = { kind = "nominal", role = "identifier" }
columns.pid = { kind = "nominal", role = "person", pseudonym = "person" }
columns.wage = { kind = "continuous", role = "key" }
columns.town = { kind = "nominal", role = "key" }
columns.ill = { kind = "nominal", role = "sensitive" }
"""

STEPS = {
    "noise": '[{ method = "correlated-noise", columns = ["wage"], parameters = { ratio = 0.7531 } }]',
    "pram": '[{ method = "pram", columns = ["town", "ill"] }, { method = "rank-swapping", columns = ["wage"] }]',
    "ranges": '[{ method = "mondrian", columns = ["wage", "town"] }]',
    "synthetic": '[{ method = "synthesis", columns = ["wage", "town", "ill"] }]',
    "apart": '[{ method = "rank-swapping", columns = ["wage"] }, { method = "anatomy", columns = ["town"], '
    "parameters = { l = 2 } }]",
    "coded": '[{ method = "top-bottom-coding", columns = ["wage"] }, '
    '{ method = "naive-coarsening", columns = ["wage"] }]',
    "sampled": '[{ method = "sampling", parameters = { share = 40 } }, '
    '{ method = "correlated-noise", columns = ["wage"] }]',
}


@pytest.fixture
def home(tmp_path):
    """A file of 200 people, one with sentinels in what must not leave as it is."""
    rng, n = np.random.default_rng(3), 200
    wage = rng.lognormal(8, 1, n).round(2)
    wage[7] = NUMBER
    town, ill = (
        rng.choice(["Ulm", "Bonn", "Kiel"], n).astype(object),
        rng.choice(["E11", "I10", "J45"], n).astype(object),
    )
    town[[3, 7]], ill[[7, 9]] = RARE  # of two people each: what many share may stand in a picture
    (tmp_path / HOME).mkdir()
    pl.DataFrame(
        {
            "name": [f"{NAME}{i}" for i in range(n)],
            "pid": [f"{CODE}{i}" for i in range(n)],
            "wage": wage,
            "town": list(town),
            "ill": list(ill),
        }
    ).write_csv(tmp_path / HOME / "people.csv")
    return tmp_path


def plan_of(home, steps, output=""):
    text = f"""
requirements = ["dbrl(metric=euclidean) <= 0.4242"]
data.path = "{HOME}/people.csv"
{COLUMNS}
steps = {steps}
output.path = "out.csv"
output.pseudonym_key = "people.key"
{output}
[release]
title = "A title"
threats = "{REASON}"
expert = "{REASON}"
"""
    (home / "plan.toml").write_text(text)
    return home / "plan.toml"


def release_of(plan, override=REASON):
    """With a seed: among the many numbers of a report some could be one of those that are searched for."""
    return sfumato.release(plan, override=override, seed=LARGE + 1)


def public_bytes(folder):
    return {
        name: (folder / name).read_bytes() for name in contents(folder) if not name.startswith("private/")
    }


def search(home, folder, *, cells):
    """Look for what is secret in every file that leaves; for ``cells`` only in those that are no tables.

    Some methods keep the values of a column, or of some records.
    """
    cells = (*cells, "918273645", "918,273,645", "9.18273645")
    trail = json.loads((folder / "private" / "trail.private.json").read_text())
    seed = int(trail["seed"], 16)
    secrets = [
        NAME, CODE, REASON, HOME, str(home), "people.csv", "people.key",
        trail["seed"], str(seed), (home / "people.key").read_text().strip(),
    ]  # fmt: skip
    parts = trail.get("tables", {"": trail}).values()
    digests = [sha for part in parts for sha in (part["contents"], *part["inputs"].values())]
    found = []
    for name, text in public_bytes(folder).items():
        is_table = name.startswith(("out", "persons", "stays"))
        told = [*secrets, *digests, *(() if is_table else cells)]
        found += [(name, secret) for secret in told if secret.encode() in text]
        # limits and settings as numbers: in a noisy 7310.4242 those digits stand by chance
        found += [(name, said) for said in re.findall(rb"(?<!\d)0\.(?:4242|7531)\d*", text)]
    assert not found
    assert seed.to_bytes(16, "big") not in b"".join(public_bytes(folder).values())


@pytest.mark.parametrize("steps", STEPS)
def test_nothing_private_stands_in_what_leaves(home, steps):
    made = release_of(plan_of(home, STEPS[steps]), f"{REASON}, as it is a test")
    made.write(home / "out")
    search(home, home / "out", cells=RARE)
    assert (home / "out" / "private" / "mapping.wage.csv").exists() is (steps == "coded")
    if steps in {"noise", "ranges", "synthetic"}:
        assert b"918273645" not in (home / "out" / "out.csv").read_bytes()


def test_nor_in_copies_and_linked_tables(home):
    made = release_of(plan_of(home, STEPS["noise"], "output.copies = 2"))
    made.write(home / "copies")
    search(home, home / "copies", cells=RARE)
    rng = np.random.default_rng(1)
    stays = {"pid": [f"{CODE}{i % 200}" for i in range(300)], "days": rng.integers(1, 20, 300)}
    pl.DataFrame(stays).write_csv(home / HOME / "stays.csv")
    text = plan_of(home, STEPS["noise"]).read_text()
    first, release = text.split("[release]")
    (home / "tables.toml").write_text(
        f"""
[release]{release}
[tables.persons]{first.replace("out.csv", "persons.csv")}
[tables.stays]
requirements = ["exact-match <= 0.9"]
data.path = "{HOME}/stays.csv"
columns.pid = {{ kind = "nominal", role = "person", pseudonym = "person" }}
columns.days = {{ kind = "continuous", role = "key" }}
output.path = "stays.csv"
output.pseudonym_key = "people.key"
"""
    )
    release_of(home / "tables.toml").write(home / "tables")
    search(home, home / "tables", cells=RARE)
