"""Sessions over TLS on this machine: what is refused, by whom and before what; nothing is written then."""

import csv
import io
import itertools
import socket
import ssl
import threading
from collections import Counter
from dataclasses import dataclass, field, replace

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import rosters
from sfumato.core.run import Progress, Run
from sfumato.errors import Cancelled, DataError, PlanError, ReadError, RefusedError, SfumatoError
from sfumato.parties import party_plan as party_plan_module
from sfumato.parties.channel import Channel, tls_context
from sfumato.parties.identity import PartyCertificate, PartyIdentity, make_identity
from sfumato.parties.leader import LeaderSession, open_session
from sfumato.parties.member import join
from sfumato.parties.party_plan import PartyPlan
from sfumato.recipes.parts import Source


@dataclass
class SessionResult:
    """What came of a session: what the leader wrote, what each party has, and what each was told."""

    written: list = field(default_factory=list)
    joined: dict = field(default_factory=dict)
    errors: dict = field(default_factory=dict)


def party_in(home):
    return PartyPlan.read(home / "plan.toml"), PartyIdentity.read(home / f"{home.name}.key")


def hold(places, *, leads=LeaderSession.lead, seconds=60.0, patience=60.0, members=None, first=None):
    """Hold a session with a thread for each party; ``leads`` and ``members`` may be of other minds.

    ``first`` gives a thread of somebody who is there before all others; parties wait for a leader as long as
    their ``patience`` lasts.
    """
    result = SessionResult()
    try:
        with open_session(*party_in(places["leader"]), ("127.0.0.1", 0), Run(1), seconds=seconds) as session:
            host, _, port = session.address.rpartition(":")

            def take_part(name):
                try:
                    act = (members or {}).get(name, join)
                    result.joined[name] = act(
                        *party_in(places[name]),
                        Source("data.csv"),
                        (host, int(port)),
                        Run(),
                        seconds=patience,
                    )
                except SfumatoError as error:
                    result.errors[name] = error

            threads = [threading.Thread(target=take_part, args=[n]) for n in places if n != "leader"]
            early = [first((host, int(port)))] if first else []
            for thread in threads:
                thread.start()
            threads += early
            leads(session, lambda *what: result.written.append(what))
    except SfumatoError as error:
        result.errors["leader"] = error
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    return result


def assert_ended(result, sentence, *, by):
    """Nothing was written, and the one who refused says why, in one sentence without any value."""
    assert result.written == []
    assert sentence in result.errors[by].message
    for error in result.errors.values():
        assert "\n" not in error.message
    assert set(result.errors) >= {"leader", "east", "north", "west"} - set(result.joined)


@pytest.fixture
def places(tmp_path):
    return rosters.set_up(tmp_path, sizes=(40, 30, 50))


def rewrite(places, old, new, names=("east", "north", "west", "leader")):
    for name in names:
        path = places[name] / "plan.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


# What goes well --------------------------------------------------------------------------------------------


def records_in(places, names=rosters.NAMES):
    found = []
    for name in names:
        with (places[name] / "data.csv").open(encoding="utf-8") as file:
            found += list(csv.DictReader(file))
    return found


def test_all_get_the_same_plan_and_the_leader_the_pooled_records(places):
    result = hold(places)
    assert result.errors == {}
    (agreed, outcome), *_ = result.written
    for joined in result.joined.values():
        assert joined.agreed.levels == agreed.levels
        assert {
            name: joined.plan.recipe.steps[0].method.levels[name] for name in agreed.levels
        } == agreed.levels
        assert joined.decision is None
    released = outcome.release.table
    assert outcome.is_met
    assert set(released.names) == {"age", "town", "ill"}  # the identifier stays with its party
    n_dropped = agreed.n_suppressed if agreed.leftover == "dropped" else 0
    assert len(released) == len(records_in(places)) - n_dropped


def test_numbers_that_are_whole_at_one_party_only_are_pooled(places):
    rewrite(
        places,
        "[resources.ages]",
        '[columns.cost]\nkind = "continuous"\nrole = "sensitive"\n[resources.ages]',
    )
    for name, cost in (("east", "1.5"), ("north", "2"), ("west", "")):
        lines = (places[name] / "data.csv").read_text().splitlines()
        (places[name] / "data.csv").write_text(
            "\n".join([f"{lines[0]},cost", *(f"{each},{cost}" for each in lines[1:])])
        )
    result = hold(places)
    assert result.errors == {}
    costs = Counter(result.written[0][1].release.table.frame["cost"].to_list())
    assert set(costs) == {1.5, 2.0, None}


def test_a_party_without_records_takes_part(tmp_path):
    places = rosters.set_up(tmp_path, sizes=(0, 60, 50))
    result = hold(places)
    assert result.errors == {}
    assert result.written[0][0].n_records == 110


def test_what_may_not_leave_does_not_reach_the_leader(places, monkeypatch):
    """A phone number in a column is found by its owner, before the records are sent."""
    received, real = [], Channel.receive

    def receive(channel, kind, **limits):
        message = real(channel, kind, **limits)
        received.append((kind, channel.peer))
        return message

    monkeypatch.setattr(Channel, "receive", receive)
    path = places["west"] / "data.csv"
    path.write_text(path.read_text().replace(",flu", ",call +49 30 901820"))
    result = hold(places)
    assert_ended(result, "its text contains phone numbers", by="west")
    assert ("records", "party `west`") not in received


def test_strangers_are_turned_away_and_the_session_goes_on(places, tmp_path):
    leader = PartyCertificate.read(places["leader"] / "leader.pem")
    make_identity("stranger", tmp_path)
    refusals = []

    def come_first(address):
        """One without a certificate of the roster, and one without any TLS, before all others."""
        plain, silent = (socket.create_connection(address) for _ in range(2))
        context = tls_context(
            ssl.PROTOCOL_TLS_CLIENT, tmp_path / "stranger.pem", tmp_path / "stranger.key", [leader]
        )

        def ask():
            silent.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with context.wrap_socket(plain) as connection, pytest.raises(RefusedError) as refused:
                Channel(connection, "the leader", Run(1), 30).receive("session")
            refusals.append(refused.value.message)
            silent.close()

        asking = threading.Thread(target=ask)
        asking.start()
        return asking

    result = hold(places, first=come_first)
    assert result.errors == {}
    assert len(result.written) == 1
    assert refusals == ["the leader left the session, so nothing was written"]


# What is refused before anything is sent -------------------------------------------------------------------


def test_two_parties_are_too_few(tmp_path):
    places = rosters.set_up(tmp_path, names=("east", "north"), sizes=(40, 30))
    with pytest.raises(PlanError, match="at least 3 parties, got: 2"):
        PartyPlan.read(places["east"] / "plan.toml")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[output]", '[data]\npath = "data.csv"\n[output]', "neither \\[data\\]"),
        ('role = "sensitive"', 'role = "person"', "may link records of a person: `ill`"),
        ("suppression = 10.0", "suppression = 10.0\nlocal = true", "alone"),
        ("k = 5", "k = 4", "requires k >= 5, but its step enforces 4"),
        ('path = "released.csv"', 'path = "released.csv"\nshuffle = false', "one shuffled copy"),
        ('role = "key"\nhierarchy = "towns"', 'role = "key"', "need a public hierarchy: `town`"),
        ('method = "global-recoding"', 'method = "global-recoding"\ncolumns = ["age"]', "or in `drop`, got: `town`"),
        ('path = "released.csv"', 'path = "released.csv"\ndrop = ["town"]', "or in `drop`, got: `town`"),
        ('method = "global-recoding"', 'method = "mondrian"', "fault"),
        ('records = "pooled"', 'records = "both"', "records"),
        ("[parties.roster]", "[parties.roster]\nleader = 'x'", "none is `leader`"),
        ("[parties]\nleader", "[parties]\nfollower", "`leader` is missing"),
    ],
)  # fmt: skip
def test_a_plan_that_would_not_be_sound_is_refused(places, old, new, told):
    rewrite(places, old, new, ["east"])
    with pytest.raises(PlanError, match=told):
        PartyPlan.read(places["east"] / "plan.toml")


def test_keys_whose_combinations_are_too_many_are_refused(places, monkeypatch):
    monkeypatch.setattr(party_plan_module, "MAX_CELLS", 41 * 5 - 1)  # 40 ages and 4 towns, or missing ones
    with pytest.raises(PlanError, match="more than 204 numbers"):
        PartyPlan.read(places["east"] / "plan.toml")


def test_a_certificate_of_another_key_is_refused(places, tmp_path):
    make_identity("west", tmp_path)
    (places["east"] / "west.pem").write_bytes((tmp_path / "west.pem").read_bytes())
    with pytest.raises(ReadError, match="fingerprint differs"):
        PartyPlan.read(places["east"] / "plan.toml")


def test_one_key_for_two_parties_is_refused(places):
    text = (places["east"] / "plan.toml").read_text()
    prints = [line for line in text.splitlines() if line.startswith(("east", "north"))]
    rewrite(places, prints[1], prints[0].replace("east", "north"), ["east"])
    with pytest.raises(PlanError, match="the same key"):
        PartyPlan.read(places["east"] / "plan.toml")


def test_a_key_that_others_can_read_or_that_is_of_nobody_is_refused(places, tmp_path):
    make_identity("nobody", tmp_path)
    party_plan, _ = party_in(places["east"])
    with pytest.raises(RefusedError, match="none of the parties"):
        party_plan.name_of(PartyIdentity.read(tmp_path / "nobody.key"))
    (tmp_path / "nobody.key").chmod(0o644)
    with pytest.raises(ReadError, match="other users can read"):
        PartyIdentity.read(tmp_path / "nobody.key")
    (tmp_path / "nobody.key").write_text("no key")
    (tmp_path / "nobody.key").chmod(0o600)
    with pytest.raises(ReadError, match="not a key"):
        PartyIdentity.read(tmp_path / "nobody.key")


def test_a_value_that_the_public_hierarchy_lacks_is_refused_unnamed(places):
    with (places["east"] / "data.csv").open("a", encoding="utf-8") as file:
        file.write("someone,35,secretville,flu\n")
    with pytest.raises(
        DataError, match="column `town` has values that its public hierarchy lacks"
    ) as refused:
        join(*party_in(places["east"]), Source("data.csv"), ("127.0.0.1", 9), Run(1), seconds=1)
    assert "secretville" not in str(refused.value)
    assert not (places["east"] / "east.joined").exists()


def test_a_part_of_fewer_than_k_records_cannot_leave_apart(tmp_path):
    places = rosters.set_up(tmp_path, sizes=(4, 30, 50), records="apart")
    with pytest.raises(DataError, match="fewer records than k"):
        join(*party_in(places["east"]), Source("data.csv"), ("127.0.0.1", 9), Run(1), seconds=1)


def test_the_same_data_never_meet_another_roster_unasked(places, tmp_path):
    assert hold(places).errors == {}
    history = places["east"] / "east.joined"
    assert history.stat().st_mode & 0o777 == 0o600
    assert hold(places).errors == {}  # the same roster once more
    others = rosters.set_up(tmp_path / "others", names=("east", "north", "south"))
    home = others["east"]
    (home / "data.csv").write_bytes((places["east"] / "data.csv").read_bytes())
    (home / "east.joined").write_bytes(history.read_bytes())
    with pytest.raises(RefusedError, match="another roster before"):
        join(*party_in(home), Source("data.csv"), ("127.0.0.1", 9), Run(1), seconds=1)
    with pytest.raises(RefusedError, match="no leader answers"):  # told so, it goes on
        join(*party_in(home), Source("data.csv"), ("127.0.0.1", 9), Run(1), seconds=1, another_roster=True)
    (home / "east.joined").write_text("{")
    with pytest.raises(ReadError, match="damaged"):
        join(*party_in(home), Source("data.csv"), ("127.0.0.1", 9), Run(1), seconds=1)


def test_a_changed_file_at_the_same_place_is_the_same_data(places):
    assert hold(places).errors == {}
    with (places["east"] / "data.csv").open("a", encoding="utf-8") as file:
        file.write("someone,35,ash,flu\n")
    line = next(each for each in (places["east"] / "plan.toml").read_text().splitlines() if "west" in each)
    fingerprint = make_identity("south", places["east"]).fingerprint
    rewrite(places, line, f'south = "{fingerprint}"', ["east"])
    with pytest.raises(RefusedError, match="another roster before"):
        join(*party_in(places["east"]), Source("data.csv"), ("127.0.0.1", 9), Run(1), seconds=1)


# What ends a session ---------------------------------------------------------------------------------------


def test_a_key_that_the_leader_forged_is_refused(places):
    class Forger(LeaderSession):
        def _send_all(self, kind, body=b"", **values):
            if kind == "hellos":
                strange = X25519PrivateKey.generate().public_key().public_bytes_raw()
                body = body[: 2 * 96] + strange + body[2 * 96 + 32 :]  # west is the last of three
            super()._send_all(kind, body, **values)

    result = hold(places, leads=lambda session, write: Forger(**vars(session)).lead(write))
    assert_ended(result, "key of `west` is forged", by="east")
    assert not (places["east"] / "east.joined").exists()


def test_a_turn_that_is_asked_for_twice_is_refused(places):
    class Repeater(LeaderSession):
        def _add_up(self):
            super()._add_up()
            self._send_all("sum")
            return super()._add_up()

    result = hold(places, leads=lambda session, write: Repeater(**vars(session)).lead(write))
    assert_ended(result, "`agreed` was due, each message once", by="north")


def test_a_party_that_leaves_ends_the_session(places, monkeypatch):
    def leave(party_plan, identity, source, address, run, *, seconds):
        real = Channel.send

        def send(channel, kind, *body, **values):
            if kind == "masked" and threading.current_thread() is own:
                raise RefusedError("this party leaves")
            real(channel, kind, *body, **values)

        own = threading.current_thread()
        monkeypatch.setattr(Channel, "send", send)
        return join(party_plan, identity, source, address, run, seconds=seconds)

    result = hold(places, members={"west": leave})
    assert_ended(result, "party `west` left the session", by="leader")
    assert "party `west` left the session" in result.errors["east"].message


def test_a_party_that_falls_silent_is_not_awaited_for_ever(places, monkeypatch):
    class Impatient(LeaderSession):
        def _add_up(self):
            for channel in self.channels.values():
                channel.seconds = 1.0
            try:
                return super()._add_up()
            finally:
                over.set()

    def fall_silent(*party, seconds):
        own, real = threading.current_thread(), Channel.send

        def send(channel, kind, *body, **values):
            if kind == "masked" and threading.current_thread() is own:
                over.wait(60)
            real(channel, kind, *body, **values)

        monkeypatch.setattr(Channel, "send", send)
        return join(*party, seconds=seconds)

    over = threading.Event()
    result = hold(
        places,
        leads=lambda session, write: Impatient(**vars(session)).lead(write),
        members={"west": fall_silent},
    )
    assert_ended(result, "party `west` left the session", by="leader")


def test_who_stops_a_session_ends_it_for_all(places):
    def stop(session, write):
        session.run = replace(session.run, progress=Progress(stopped=lambda: bool(session.channels)))
        session.lead(write)

    result = hold(places, leads=stop, patience=5)
    assert isinstance(result.errors["leader"], Cancelled)
    assert result.written == []
    assert set(result.errors) == {"leader", *rosters.NAMES}


def test_another_plan_ends_the_session(places):
    rewrite(places, "suppression = 10.0", "suppression = 20.0", ["west"])
    result = hold(places, patience=5)
    assert_ended(result, "party `west` has another plan", by="leader")


def test_another_hierarchy_under_the_same_name_is_another_plan(places):
    rosters.write_rows(places["west"] / "towns.csv", [*rosters.TOWNS, ["elm", "hill", "*"]])
    result = hold(places, patience=5)
    assert_ended(result, "party `west` has another plan", by="leader")


def test_a_party_that_does_not_come_ends_the_session_in_time(places):
    del places["west"]
    result = hold(places, seconds=5)
    assert "not all parties came in time, so nothing was written" in result.errors["leader"].message
    assert "`west`" in result.errors["leader"].message


def test_a_key_that_is_not_the_leaders_cannot_lead(places, tmp_path):
    party_plan, _ = party_in(places["leader"])
    identity = PartyIdentity.read(places["east"] / "east.key")
    with (
        pytest.raises(RefusedError, match="not the leader's"),
        open_session(party_plan, identity, ("127.0.0.1", 0), Run(1), seconds=1),
    ):
        pass


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda frame: frame.with_columns(frame.to_series(0) * 0), "not those that were counted"),
        (lambda frame: frame.head(3), "not those that were counted"),
        (lambda frame: frame.drop("ill"), "do not fit each other"),
        (lambda frame: frame.with_columns(pl.lit([1]).alias("ill")), "do not fit each other"),
    ],
    ids=["suppressed class", "fewer records", "no column", "another type"],
)
def test_other_records_than_were_counted_are_refused(places, monkeypatch, change, told):
    """One of the parties, whichever is first, sends something else."""
    real, turn = Channel.send, itertools.count()

    def send(channel, kind, body=b"", **values):
        if kind == "records" and next(turn) == 0:
            changed = io.BytesIO()
            change(pl.read_ipc(io.BytesIO(body))).write_ipc(changed)
            body = changed.getvalue()
        real(channel, kind, body, **values)

    monkeypatch.setattr(Channel, "send", send)
    assert_ended(hold(places), told, by="leader")


def test_a_requirement_that_cannot_be_met_ends_it_for_all(tmp_path):
    places = rosters.set_up(tmp_path, sizes=(3, 3, 3), k=50, suppression=0.0, required="")
    result = hold(places)
    assert_ended(result, "no combination of levels", by="leader")


def test_parts_that_leave_apart_are_each_judged_alone(tmp_path):
    places = rosters.set_up(tmp_path, sizes=(60, 40, 50), records="apart")
    result = hold(places)
    assert result.errors == {}
    assert result.written[0][1] is None  # the leader gets no records
    for joined in result.joined.values():
        table = joined.decision.outcome.release.table
        classes = Counter(map(str, table.frame.select("age", "town").rows()))
        assert min(classes.values()) >= 5
        assert joined.decision.may_leave
