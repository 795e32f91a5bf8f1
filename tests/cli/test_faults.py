"""What the machine may do to a command: little memory, a full disk, odd names, several at once, no home.

Whatever it is, a user sees one sentence and an exit code of the table in the README; nothing is half-written,
nothing is overwritten, and no cell is shown. Every verb that writes or reads is tried by `make prove`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.io import Staging

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")

CELL = "Zsofia-Qvist"
PLAN = """requirements = ["dbrl <= 0.99"]
data.path = "people.csv"
[columns]
name = { kind = "nominal", role = "identifier", pseudonym = "p" }
age = { kind = "continuous", role = "key" }
ill = { kind = "nominal", role = "sensitive" }
[[steps]]
method = "rank-swapping"
columns = ["age"]
[output]
path = "out.csv"
"""
LIMITED = """import os, resource, sys
name, limit = sys.argv[1], int(sys.argv[2])
resource.setrlimit(getattr(resource, name), (limit, limit))
os.execv(sys.executable, [sys.executable, "-m", "sfumato", *sys.argv[3:]])
"""
PROTOCOL = ("protocol", "people.csv", "-m", "uncorrelated-noise", "--columns", "age", "--drop", "name")
#: The verbs that write, each with what it writes.
WRITERS = {
    "convert": ("convert", "people.csv", "o.parquet"),
    "run": ("run", "plan.toml"),
    "stata": ("convert", "people.csv", "o.dta"),
    "spss": ("convert", "people.csv", "o.sav"),
    "arrow": ("convert", "people.csv", "o.arrow"),
    "csv": ("convert", "people.csv", "o.csv"),
    "inspect": ("inspect", "people.csv", "--write-plan", "n.toml"),
    "hierarchy": ("hierarchy", "people.csv", "age", "--out", "h.csv"),
    "profiles": ("profiles", "public", "--write", "p.toml"),
    "party": ("party", "key", "ann"),
    "tune": ("tune", "plan.toml", "--minutes", "0.02", "--ledger", "l.db"),
    "protect": ("protect", "mdav", "people.csv", "--columns", "age", "--unjudged", "--out", "o.csv"),
    "release": ("release", "plan.toml", "--out", "rel"),
    "gate": ("gate", "plan.toml", "--out", "g.json"),
    "risk": ("risk", "people.csv", "-m", "k", "--report", "r.html"),
    "report": ("run", "plan.toml", "--report", "r.html"),
    "compare": (
        "compare",
        "people.csv",
        "--columns",
        "age",
        "-m",
        "mdav",
        "--repeats",
        "1",
        "--report",
        "c.html",
    ),
    "simulate": ("simulate", "people.csv", "--report", "s.html"),
    "protocol": (*PROTOCOL, "--local", "0.9", "--everywhere", "0.9", "--out", "o.csv"),
}
READERS = {
    "inspect": ("inspect", "people.csv"),
    "risk": ("risk", "people.csv", "-m", "k"),
    "utility": ("utility", "people.csv", "people.csv", "-m", "il1s"),
    "check": ("check", "plan.toml"),
    "gate": ("gate", "plan.toml"),
    "explain": ("explain", "plan.toml", "--riskiest", "2"),
    "simulate": ("simulate", "people.csv"),
    "compare": ("compare", "people.csv", "--columns", "age", "-m", "mdav", "--repeats", "1"),
    "protocol": (*PROTOCOL, "--attempts", "1", "--out", "o.csv"),
    "doctor": ("doctor",),
}


def some(verbs, quick):
    """A few verbs in `make test`, all of them in `make prove`."""
    return [
        pytest.param(words, id=name, marks=() if name in quick else pytest.mark.slow)
        for name, words in verbs.items()
    ]


@pytest.fixture
def folder(tmp_path):
    rows = "\n".join(f"{CELL}{i},{20 + i % 9},{CELL}{i % 3}" for i in range(60))
    (tmp_path / "people.csv").write_text(f"name,age,ill\n{rows}\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


@pytest.mark.slow
def test_every_command_here_does_its_work_where_nothing_is_wrong(run, folder):
    """Else a fault would be looked for in a usage error."""
    for name, words in {**READERS, **WRITERS}.items():
        assert run(*words)[0] in {0, 1, 3, 4}, name
        for path in folder.iterdir():
            if path.is_file() and path.name not in {"people.csv", "plan.toml"}:
                path.unlink()


def seen(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def start(folder, words, *, limit=("RLIMIT_CORE", 0), **environment):
    """A command in a process of its own, under a limit of the system."""
    own = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    given = [sys.executable, "-c", LIMITED, limit[0], str(limit[1]), *words]
    return subprocess.Popen(given, cwd=folder, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process):
    out, err = process.communicate(timeout=500)
    text = err.decode(errors="backslashreplace")
    assert "Traceback" not in text
    assert CELL not in text
    assert process.returncode in {0, 1, 2, 3, 4}, text
    return process.returncode, out, text


# Memory ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", some(READERS | WRITERS, {"inspect"}))
@pytest.mark.parametrize("megabytes", [1040, pytest.param(1300, marks=pytest.mark.slow)])
def test_a_limit_of_memory_is_a_sentence(folder, words, megabytes):
    """Libraries abort where memory is lacking; whether it suffices depends on the machine."""
    before = seen(folder)
    code, _, err = ended(start(folder, words, limit=("RLIMIT_AS", megabytes * 2**20)))
    if code == 3:
        assert "memory" in err
        assert seen(folder) == before


def test_too_little_memory_for_the_libraries_is_said_at_once(folder):
    code, _, err = ended(start(folder, READERS["inspect"], limit=("RLIMIT_AS", 300 * 2**20)))
    assert (code, "0.3 GB of memory" in err) == (3, True)


@pytest.mark.parametrize(
    "error", [MemoryError(CELL), RuntimeError("can't start new thread"), OSError(12, "x")]
)
def test_memory_that_ends_within_is_told_from_a_fault_of_ours(run, folder, monkeypatch, error):
    def fail(*_given, **_more):
        raise error

    monkeypatch.setattr("sfumato.io.read_contents", fail)
    code, _, err = run("convert", "people.csv", "o.csv")
    assert (code, "not enough memory" in err, CELL in err) == (3, True, False)


def test_a_file_larger_than_all_memory_is_refused_and_read_by_an_engine(run, folder, monkeypatch):
    monkeypatch.setattr("sfumato.io.available_memory", lambda: 100)
    code, _, err = run("risk", "people.csv", "-m", "k")
    assert (code, "--engine stream" in err) == (3, True)
    assert run("risk", "people.csv", "-m", "k", "--engine", "stream", "--scratch", folder)[0] == 0


@pytest.mark.parametrize("verb", ["inspect", "risk", "check", "convert", "protect"])
def test_a_file_of_a_terabyte_is_refused_before_it_is_read(run, folder, verb):
    """It has no blocks on the disk behind its first records: only its size is that of a terabyte."""
    with (folder / "people.csv").open("r+b") as stream:
        stream.truncate(2**40)
    code, _, err = run(*{**READERS, **WRITERS}[verb], *(("--overwrite",) if verb == "protect" else ()))
    assert (code, "memory" in err) == (3, True), err
    assert CELL not in err


def test_a_panic_of_a_library_is_no_requirement_that_is_missed(run, folder, monkeypatch):
    class PanicException(BaseException):
        """As polars has it: no Exception."""

    def fail(*_given, **_more):
        raise PanicException(CELL)

    monkeypatch.setattr("sfumato.io.read_contents", fail)
    code, _, err = run("convert", "people.csv", "o.csv")
    assert (code, CELL in err) == (70, False)


# Disks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", some(WRITERS, {"convert", "run"}))
def test_a_full_disk_is_said_to_be_full(folder, words):
    """A file may not grow here: what the system then says is the same as of a disk without room."""
    before = seen(folder)
    code, _, err = ended(start(folder, words, limit=("RLIMIT_FSIZE", 60), NUMBA_DISABLE_JIT="1"))
    assert (code, "file too large" in err) == (3, True), err
    assert ".sfumato-" not in err
    assert seen(folder) == before


def test_without_a_home_and_a_scratch_folder_all_is_done(folder):
    """Compiled kernels are kept with the sources, or not at all."""
    nowhere = {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none", "NUMBA_CACHE_DIR": "/proc/none"}
    assert ended(start(folder, WRITERS["run"], **nowhere))[0] == 0
    assert (folder / "out.csv").is_file()


def test_dates_of_files_say_nothing(run, folder):
    """The clock was set back between release and verify, or forward."""
    assert run("run", "plan.toml")[0] == 0
    for years in (-30, 30):
        for path in folder.iterdir():
            os.utime(path, (1_700_000_000 + years * 31_557_600,) * 2)
        assert run("verify", "out.csv")[0] == 0


# Names and values -----------------------------------------------------------------------------------------


def test_a_name_that_is_no_text_is_said(run, folder):
    odd = os.fsdecode(b"pe\xffple.csv")
    (folder / "people.csv").rename(folder / odd)
    code, _, err = run("inspect", odd)
    assert (code, "not text in UTF-8" in err) == (2, True)


def test_a_folder_whose_name_is_no_text_is_said_before_the_work(run, folder, monkeypatch):
    odd = folder / os.fsdecode(b"f\xffx")
    odd.mkdir()
    for name in ("people.csv", "plan.toml"):
        (folder / name).rename(odd / name)
    monkeypatch.chdir(odd)
    before = seen(odd)
    code, _, err = run("run", "plan.toml")
    assert (code, "not text in UTF-8" in err) == (3, True)
    assert seen(odd) == before


LETTERS = {"😀 age": "20 30 40 50", "اسم": "علي فاطمة علي فاطمة", "ש\u202eם": "😀 👩‍👩‍👧 😀 👩‍👩‍👧"}


@pytest.mark.parametrize("shown", ["table", "json"])
def test_a_locale_without_letters_shows_names_nevertheless(folder, shown):
    rows = zip(*(cells.split() * 5 for cells in LETTERS.values()), strict=True)
    (folder / "odd.csv").write_text("\n".join(map(",".join, [tuple(LETTERS), *rows])), encoding="utf-8")
    bare = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, out, _ = ended(start(folder, ("inspect", "odd.csv", *(["--json"] * (shown == "json"))), **bare))
    assert (code, out.isascii()) == (0, True)
    if shown == "json":
        assert [each["name"] for each in json.loads(out)["columns"]] == list(LETTERS)


def test_letters_of_the_world_pass_through_a_release(run, folder):
    rows = zip(*(cells.split() * 5 for cells in LETTERS.values()), strict=True)
    (folder / "odd.csv").write_text("\n".join(map(",".join, [tuple(LETTERS), *rows])), encoding="utf-8")
    roles = [word for name in LETTERS for word in ("--role", f"{name}={'key' if 'age' in name else 'other'}")]
    words = ("protect", "mondrian", "odd.csv", "--columns", "😀 age", "--k", "3", *roles, "--out", "عام.csv")
    assert run(*words)[0] == 0
    assert (folder / "عام.csv").read_text(encoding="utf-8").splitlines()[0].split(",") == list(LETTERS)
    assert run("verify", "عام.csv")[0] == 0


def test_the_first_and_the_last_year_stay_what_they_are(run, folder):
    dates = ["0001-01-01", "9999-12-30", "1980-05-05", "0001-12-31"]
    (folder / "old.csv").write_text("\n".join(["born", *dates * 8]) + "\n")
    for name in ("o.xlsx", "o.dta", "o.parquet"):
        assert run("convert", "old.csv", name)[0] == 0
        assert run("convert", name, f"{name}.csv")[0] == 0
        assert (folder / f"{name}.csv").read_text() == (folder / "old.csv").read_text()
    words = ("protect", "mondrian", "old.csv", "--role", "born=key", "--k", "9", "--out", "out.csv")
    assert run(*words)[0] == 0
    code, out, _ = run("risk", "old.csv", "out.csv", "-m", "k", "--json")
    assert (code, json.loads(out)["k-anonymity"]["value"] >= 9) == (0, True)


def test_two_thousand_columns(run, folder):
    names, n = [f"c{i}" for i in range(2_000)], 12
    rows = [[str(i * j % 7) for i in range(2_000)] for j in range(n)]
    (folder / "wide.csv").write_text("\n".join(map(",".join, [names, *rows])) + "\n")
    for name in ("o.parquet", "o.csv"):
        assert run("convert", "wide.csv", name)[0] == 0
    assert (folder / "o.csv").read_text() == (folder / "wide.csv").read_text()


# Several at once ------------------------------------------------------------------------------------------


def test_two_runs_into_one_folder_and_ledger_are_both_there(folder):
    (folder / "other.toml").write_text(PLAN.replace("out.csv", "more.csv"))
    both = [start(folder, ("run", name)) for name in ("plan.toml", "other.toml")]
    assert [ended(each)[0] for each in both] == [0, 0]
    assert {"out.csv", "out.private.json", "more.csv", "more.private.json"} <= set(seen(folder))
    assert len((folder / "releases.private.jsonl").read_text().splitlines()) == 2
    assert not [name for name in seen(folder) if name.startswith(".sfumato-")]


def test_two_runs_make_one_key(folder):
    """The second has other pseudonyms in its hands, so it ends; the key of the first is what stays."""
    keyed = PLAN + 'pseudonym_key = "people.key"\n'
    for name in ("out", "more"):
        (folder / f"{name}.toml").write_text(keyed.replace("out.csv", f"{name}.csv"))
    both = {name: start(folder, ("run", f"{name}.toml", "--overwrite")) for name in ("out", "more")}
    made = [name for name, each in both.items() if ended(each)[0] == 0]
    assert made
    for name in made:
        code, out, err = ended(start(folder, ("verify", f"{name}.csv")))
        assert code == 0, (made, out, err)
    assert {"out.csv", "more.csv"} & set(seen(folder)) == {f"{name}.csv" for name in made}


GROWING = """
import sys
from pathlib import Path
from sfumato.io import Staging
ledger = Path("ledger")
for number in range(40):
    with Staging() as staging:
        staging.grow(ledger, lambda: (ledger.read_text() if ledger.exists() else "") + f"{sys.argv[1]} {number}\\n")
"""


def test_no_line_of_a_ledger_is_lost(tmp_path):
    given = [sys.executable, "-c", GROWING]
    both = [subprocess.Popen([*given, name], cwd=tmp_path) for name in "ab"]
    assert [each.wait(timeout=300) for each in both] == [0, 0]
    lines = (tmp_path / "ledger").read_text().splitlines()
    assert sorted(lines) == sorted(f"{name} {number}" for name in "ab" for number in range(40))


def test_a_ledger_that_grew_meanwhile_has_both(tmp_path):
    ledger = tmp_path / "ledger"
    ledger.write_text("first\n")
    one, other = Staging(), Staging()
    with one:
        one.grow(ledger, lambda: ledger.read_text() + "one\n")
        with other:
            other.grow(ledger, lambda: ledger.read_text() + "other\n")
    assert ledger.read_text() == "first\nother\none\n"
    assert Path(ledger).stat().st_mode & 0o777 == 0o600
