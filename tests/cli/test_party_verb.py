"""Parties as processes of their own, over TLS on this machine."""

import csv
import importlib
import re
import socket
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import rosters
import sfumato.parties
from sfumato.cli import _exit_code
from sfumato.errors import MissingDependencyError
from sfumato.parties.channel import Channel

SIZES = (137, 91, 163)

#: A party that exchanges keys and is killed before it sends its counts.
DIES = """
import os, signal
from pathlib import Path
from sfumato.core.run import Run
from sfumato.parties import member
from sfumato.parties.identity import PartyIdentity
from sfumato.parties.masks import Masker
from sfumato.parties.party_plan import PartyPlan
from sfumato.recipes.parts import Source
Masker.mask = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
plan, identity = PartyPlan.read(Path("plan.toml")), PartyIdentity.read(Path("west.key"))
member.join(plan, identity, Source("data.csv"), ("127.0.0.1", {port}), Run(), seconds=240)
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def keys_in(places):
    """The keys of all records of all parties, read by the csv module alone."""
    found = []
    for name in rosters.NAMES:
        with (places[name] / "data.csv").open(newline="", encoding="utf-8") as file:
            found += [(row["age"], row["town"]) for row in csv.DictReader(file)]
    return found


@pytest.fixture
def places(tmp_path):
    return rosters.set_up(tmp_path, sizes=SIZES)


@pytest.fixture
def received(monkeypatch):
    """All that the leader receives, in the order in which it comes: kind, who sent it, values and bytes."""
    messages, real = [], Channel.receive

    def receive(channel, kind, **limits):
        message = real(channel, kind, **limits)
        messages.append((kind, channel.peer, *message))
        return message

    monkeypatch.setattr(Channel, "receive", receive)
    return messages


def test_three_processes_make_one_pooled_file_and_the_leader_sees_no_counts(
    places, received, monkeypatch, capfd
):
    port = free_port()
    joining = {
        name: rosters.join(places[name], f"127.0.0.1:{port}", "--minutes", "4") for name in rosters.NAMES
    }
    monkeypatch.chdir(places["leader"])
    code = _exit_code(["party", "serve", "plan.toml", "--key", "leader.key", "--at", f"127.0.0.1:{port}"])
    log = "".join(capfd.readouterr())
    assert code == 0, log
    for process in joining.values():
        ended, said = rosters.end(process)
        assert ended == 0, said
        assert "levels: `age`" in said
    _assert_no_counts(received, log, places)
    with (places["leader"] / "released.csv").open(
        newline="", encoding="utf-8"
    ) as file:  # k, read by the csv module alone
        classes = Counter((row["age"], row["town"]) for row in csv.DictReader(file))
    assert min(classes.values()) >= 5
    assert sum(classes.values()) >= 0.9 * sum(SIZES)
    plans = {(places[name] / "plan.agreed.toml").read_text() for name in rosters.NAMES}
    assert len(plans) == 1
    assert sorted(path.name for path in places["east"].glob("released*")) == []


def _assert_no_counts(received, log, places):
    """Before protected records, the leader has words that no count is among, and their sum alone is counts."""
    masked = {peer: np.frombuffer(body, "<u8") for kind, peer, _, body in received if kind == "masked"}
    assert len(masked) == 3
    for words in masked.values():
        assert len(words) == 41 * 5
        assert (words > 2**40).all()
    total = np.add.reduce(list(masked.values()))
    assert Counter(total[total > 0].tolist()) == Counter(Counter(keys_in(places)).values())
    for kind, _, values, body in received:  # besides keys, nonces and signatures, which are random
        assert values == {}
        assert kind in {"masked", "records"} or len(body) in {0, 64, 96}
    for size in SIZES:
        assert not re.search(rf"\b{size}\b", log), log


def test_a_party_that_is_killed_ends_the_session_for_all_and_nothing_is_written(places):
    before = {name: {path.name for path in home.iterdir()} for name, home in places.items()}
    leader, address = rosters.serve(places["leader"], "--minutes", "4")
    others = [rosters.join(places[name], address, "--minutes", "4") for name in ("east", "north")]
    code = DIES.format(port=address.rpartition(":")[2])
    dying = subprocess.Popen([sys.executable, "-c", code], cwd=places["west"])
    assert dying.wait(240) == -9
    for process in (leader, *others):
        ended, said = rosters.end(process)
        assert ended == 2
        (line,) = [line for line in said.splitlines() if line.startswith("error:")]
        assert "party `west` left the session" in line
    for name, home in places.items():
        assert {path.name for path in home.iterdir()} - before[name] <= {f"{name}.joined"}


def test_a_key_has_a_fingerprint_and_is_never_overwritten(run, tmp_path):
    code, out, err = run("party", "key", "east")
    assert code == 0
    assert re.fullmatch(r"[0-9a-f]{64}\n", out)
    assert "do not share" in err
    assert (tmp_path / "east.key").stat().st_mode & 0o777 == 0o600
    assert "PRIVATE KEY" not in (tmp_path / "east.pem").read_text()
    code, _, err = run("party", "key", "east")
    assert code == 3
    assert "exists already" in err
    code, _, err = run("party", "key", "../east")
    assert code == 2
    assert "small letters" in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["join", "plan.toml", "data.csv", "--key", "leader.key"], "none of the parties"),
        (["serve", "plan.toml", "--key", "east.key"], "not the leader's"),
        (["serve", "plan.toml", "--key", "no.key"], "cannot read the key"),
        (["serve", "plan.toml", "--key", "leader.key", "--at", "here"], "HOST:PORT"),
        (["serve", "data.csv", "--key", "leader.key"], "a data file, not a plan"),
        (["join", "plan.toml", "none.csv", "--key", "east.key"], "File not found"),
    ],
)
def test_bad_input_is_one_sentence(run, places, monkeypatch, arguments, told):
    monkeypatch.chdir(places["east"])
    (places["east"] / "leader.key").write_bytes((places["leader"] / "leader.key").read_bytes())
    (places["east"] / "leader.key").chmod(0o600)
    code, out, err = run(*["party", *arguments])
    assert code in {2, 3}
    assert out == ""
    assert told in err
    assert not list(places["east"].glob("*.agreed.toml"))


def test_without_its_extra_the_room_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="cryptography"):
        importlib.reload(sfumato.parties)
