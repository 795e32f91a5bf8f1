"""Files that are broken in any way: an answer or a sentence, no crash, no cell of the original, no half file.

``make fuzz MINUTES=30`` goes on for so long with other cases each time. What makes a reader say something that it
has not said before is kept in ``tests/fuzz/corpus``, and every run begins with what is there.
"""

import hashlib
import os
import random
import re
import shutil
import tarfile
import time
from pathlib import Path

import pytest

import sfumato
from mutations import mutate
from sfumato.cli import INTERNAL_ERROR, _exit_code

HOME = Path(__file__).parent
CORPUS = HOME / "corpus"
PROFILE = Path(sfumato.__file__).parent / "recipes" / "profiles" / "small-cells.toml"
MINUTES = float(os.environ.get("SFUMATO_FUZZ_MINUTES", "0"))
#: In the place of a word of a command: the text of the case.
CASE = "the case"
#: Cases of each kind in `make test`.
CASES = 12
#: Seconds of work after which nobody waits any longer, whatever else the machine does.
SILENCE = 60
#: A cell that is in the original alone, and must never be seen.
SECRET = "Quillfeather"

PLAN = b"""requirements = ["k >= 2", "dbrl <= 0.99 in every sex", "dbrl(scale=rank) <= 0.9"]
data.path = "people.csv"
output.path = "out.csv"
[columns]
age = { kind = "ordinal", role = "key" }
sex = { kind = "nominal", role = "key", labels = [["1", "woman"], ["2", "man"]] }
town = { kind = "nominal", role = "key", hierarchy = "towns" }
ill = { kind = "nominal", role = "sensitive" }
[resources.towns]
path = "towns.csv"
holds = "hierarchy"
[[scenarios]]
name = "neighbour"
columns = ["age", "sex"]
requirements = ["k >= 2"]
[[steps]]
method = "mondrian"
parameters = { k = 2, also = "l >= 2" }
"""
PEOPLE = b"age,sex,town,ill\n" + b"".join(
    b"%d,%d,%s,%s\n" % (20 + i % 9, 1 + i % 2, b"Bonn Ulm Kiel".split()[i % 3], b"flu gout cold".split()[i % 3]) for i in range(29)
) + b"30,1,Kiel," + SECRET.encode() + b"\n"  # fmt: skip
TOWNS = b"Bonn;west;*\nUlm;south;*\nKiel;north;*\n"
REQUIREMENT = b"l-diversity(kind=entropy, missing=any) >= 2 at 95% in every town+sex of 5"
#: What `run` notes of each release, one line each.
LEDGER = b"".join(
    b'{"date": "2026-0%d-01", "contents": "%s", "methods": ["mondrian"], "columns": ["age", "sex"], "chance": "%s"}\n'
    % (month, b"7f" * 32, b"c5" * 32) for month in (1, 2)
)  # fmt: skip
RELEASED = b"age,sex,town,ill\n[20;24],1,group 1,flu\n*,{1|2},{Bonn|...},gout\n25,2,B*,\\*\n"
LABELS = b"column,label,value\ntown,group 1,Bonn\ntown,group 1,Ulm\ntown,group 1,...\n"


class Target:
    """A kind of file, the seeds to begin with, and the command that reads it."""

    def __init__(self, name, *words, beside=None, kept=""):
        self.name, self.words, self.beside, self.kept = name, words, beside or {}, kept


TARGETS = {
    "text": (PEOPLE, Target("people.csv", "risk", "people.csv", "-m", "k")),
    "look": (PEOPLE, Target("people.csv", "inspect", "people.csv")),
    "plan": (PLAN, Target("plan.toml", "gate", "plan.toml", beside={"people.csv": PEOPLE, "towns.csv": TOWNS})),
    "hierarchy": (TOWNS, Target("towns.csv", "hierarchy", "people.csv", "town", "--check", "towns.csv", beside={"people.csv": PEOPLE})),
    "profile": (PROFILE.read_bytes(), Target("own.toml", "profiles", "own.toml")),
    "release": (RELEASED, Target("out.csv", "risk", "people.csv", "out.csv", "-m", "uniqueness", beside={"people.csv": PEOPLE, "out.labels.csv": LABELS})),
    "codebook": (LABELS, Target("out.labels.csv", "risk", "people.csv", "out.csv", "-m", "uniqueness", beside={"people.csv": PEOPLE, "out.csv": RELEASED})),
    "requirement": (REQUIREMENT, Target("requirement", "gate", "people.csv", "--require", CASE, beside={"people.csv": PEOPLE})),
    "ledger": (LEDGER, Target("releases.private.jsonl", "run", "plan.toml", "--overwrite", beside={"plan.toml": PLAN, "people.csv": PEOPLE, "towns.csv": TOWNS})),
    "study": (None, Target("study/l.db", "tune", "study/plan.toml", "--ledger", "study/l.db", "--trials", "1", "--repeats", "1", "--confirmations", "1", "-m", "mondrian", kept="study")),
    "trail": (None, Target("0.2.0/release.private.json", "verify", "0.2.0/release.private.json", kept="0.2.0")),
    "sums": (None, Target("0.2.0/folder/SHA256SUMS", "verify", "0.2.0/folder", kept="0.2.0")),
    "evidence": (None, Target("0.2.0/folder/evidence.json", "verify", "0.2.0/folder", kept="0.2.0")),
}  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """What the last version wrote, without the reports: verifying hashes them each time."""
    folder = tmp_path_factory.mktemp("kept")
    with tarfile.open(HOME.parent / "kept" / "0.2.0.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    study = folder / "study"
    study.mkdir()
    for name, content in {"plan.toml": PLAN, "people.csv": PEOPLE, "towns.csv": TOWNS}.items():
        (study / name).write_bytes(content)
    words = [each.replace("study/", f"{study}/") for each in TARGETS["study"][1].words]
    _exit_code(words)  # the search whose ledger is broken after
    return folder


@pytest.mark.parametrize("kind", TARGETS)
def test_no_file_breaks_a_command(kind, tmp_path, monkeypatch, capfd, kept):
    monkeypatch.chdir(tmp_path)
    seed, target = TARGETS[kind]
    seed = (kept / target.name).read_bytes() if seed is None else seed
    pool = [seed, *(path.read_bytes() for path in sorted((CORPUS / kind).glob("*")))]
    rng = random.Random(f"{kind} {time.time_ns() if MINUTES else ''}")
    over, said, number = time.monotonic() + 60 * MINUTES / len(TARGETS), set(), 0
    while number < len(pool) + CASES or time.monotonic() < over:
        case = pool[number] if number < len(pool) else mutate(rng.choice(pool), rng, pool)
        number += 1
        lay_out(target, case, tmp_path, kept)
        started = time.process_time()
        code = _exit_code([case.decode(errors="replace") if word is CASE else word for word in target.words])
        heard = "".join(capfd.readouterr())
        fault = fault_of(code, heard, tmp_path, target)
        if time.process_time() - started > SILENCE:
            fault = "it works for a minute"
        form = (code, *re.findall(r"error: (\D{0,40})", re.sub(r"[\d.,]+|`[^`]*`", "#", heard))[:1])
        if MINUTES and (fault or (form not in said and number > len(pool))):
            place = CORPUS / kind / f"{hashlib.sha256(case).hexdigest()[:16]}.case"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(case)
            pool.append(case)
        said.add(form)
        assert not fault, f"{fault} (case {number} of {kind}, {len(case)} bytes): {heard[-600:]}"


def lay_out(target, case, folder, kept):
    """Have a case in the folder, and what it needs beside it."""
    for each in folder.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    if target.kept:
        shutil.copytree(kept / target.kept, folder / target.kept)
    for name, content in {**target.beside, target.name: case}.items():
        (folder / name).write_bytes(content)


def fault_of(code, heard, folder, target):
    """What must not be: a crash, the cell that is secret, a file that nobody asked for."""
    if code == INTERNAL_ERROR or "Traceback" in heard:
        return "it ends in an internal error"
    if SECRET in heard:
        return "it shows a cell"
    known = {target.name, *target.beside}
    new = [
        each.name for each in folder.rglob("*") if each.is_file() and each.name.endswith((".part", ".tmp"))
    ]
    return f"it leaves half a file: {sorted(set(new) - known)}" if set(new) - known else ""
