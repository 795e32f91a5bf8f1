"""What a party does: check everything, send its counts under masks, and protect its records as agreed."""

from __future__ import annotations

import secrets
import ssl
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.parties.channel import MAX_BYTES, Channel, connect, tls_context
from sfumato.parties.identity import PartyIdentity
from sfumato.parties.masks import KEY_BYTES, Hello, Masker, Words, agreement_of
from sfumato.parties.party_plan import LEADER, PartyPlan
from sfumato.parties.pooling import protected_records
from sfumato.parties.roster_history import RosterHistory, digests_of
from sfumato.parties.search import AgreedRecoding, losses_by_node, recode_part
from sfumato.recipes.parts import Source, locate
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import Decision, decide
from sfumato.releasing.load import load


@dataclass(frozen=True)
class JoinOutcome:
    """What a party has in the end: the plan that came back, and where parts leave apart that its own may."""

    plan: Plan
    agreed: AgreedRecoding
    decision: Decision | None


def join(
    party_plan: PartyPlan,
    identity: PartyIdentity,
    source: Source,
    address: tuple[str, int],
    run: Run,
    *,
    seconds: float,
    another_roster: bool = False,
) -> JoinOutcome:
    """Take part in a session to its end; whatever is wrong is found before any count is masked.

    Parameters
    ----------
    party_plan
        What all agree on.
    identity
        The key of this party.
    source
        The records of this party, as seen from the plan's folder.
    address
        Where the leader is.
    run
        Where chance comes from, and whom progress is told to.
    seconds
        How long silence of the leader is borne.
    another_roster
        Whether data that were counted with another roster may be counted with this one.
    """
    name, history = party_plan.name_of(identity), RosterHistory.beside(identity.path)
    table, vector = _own_part(party_plan, source, run)
    data = digests_of(table, party_plan.domain.names, str(locate(source.path, party_plan.plan.folder)))
    if not another_roster:
        history.require_same_roster(data, party_plan.roster_digest)
    certificate, leader = party_plan.plan.folder / f"{name}.pem", party_plan.certificates[LEADER]
    context = tls_context(ssl.PROTOCOL_TLS_CLIENT, certificate, identity.path, [leader])
    with closing(connect(address, context, run, seconds)) as channel:
        masker = _meet(channel, party_plan, name, identity)
        channel.receive("sum")
        history.add(data, party_plan.roster_digest, another_roster=another_roster)
        channel.send("masked", masker.mask(0, vector).tobytes())
        run.tell("waiting for the other parties", 0, 0)
        agreed = AgreedRecoding.read(party_plan, *channel.receive("agreed", max_bytes=MAX_BYTES))
        plan = replace(party_plan.with_levels(agreed.levels), data=source)
        decision, release = _decide_on_part(party_plan, agreed, plan, table, run)
        channel.send(
            "records", protected_records(party_plan, agreed, table, release) if party_plan.pools else b""
        )
        channel.receive("close")
        channel.send("bye")
        channel.receive("end")
    return JoinOutcome(plan, agreed, None if party_plan.pools else decision)


def _own_part(party_plan: PartyPlan, source: Source, run: Run) -> tuple[Table, Words]:
    """The records of this party, checked, and the numbers that it would send."""
    table = load(replace(party_plan.plan, data=source))
    codes = party_plan.domain.codes(table)
    if party_plan.pools:
        return table, party_plan.domain.count(codes)
    if len(table) < party_plan.method.k:
        raise DataError("this part has fewer records than k, so that it cannot leave apart from the others")
    return table, losses_by_node(party_plan, table, run)


def _decide_on_part(
    party_plan: PartyPlan, agreed: AgreedRecoding, plan: Plan, table: Table, run: Run
) -> tuple[Decision, Release]:
    """Decide on the protected part before any of it leaves; what is pooled is judged by the pool's risk."""
    if party_plan.pools:
        plan = replace(plan, requirements=(), required_in={})
    outcome = carry_out(plan, run, protect=partial(recode_part, party_plan, agreed), table=table)
    decision = decide(outcome, subject=plan.data.path if plan.data else "", unjudged=party_plan.pools)
    decision.require_leave()
    return decision, outcome.release


def _meet(channel: Channel, party_plan: PartyPlan, name: str, identity: PartyIdentity) -> Masker:
    """Agree with all others on plan and session, and exchange keys that the roster's keys have signed."""
    roster, nonce = party_plan.keys, secrets.token_bytes(32)
    channel.send("begin", party_plan.digest + nonce)
    nonces = channel.by_party(roster, channel.receive("session", max_bytes=32 * len(roster))[1])
    if nonces[name] != nonce:
        raise channel.misbehaved("it mixes sessions")
    masker = Masker(name, identity.key, roster, agreement_of(party_plan.digest, nonces))
    own = masker.hello()
    channel.send("hello", own.key + own.signature)
    hellos = channel.by_party(roster, channel.receive("hellos", max_bytes=1024 * len(roster))[1])
    masker.meet([Hello(each, body[:KEY_BYTES], body[KEY_BYTES:]) for each, body in hellos.items()])
    return masker
