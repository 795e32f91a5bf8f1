"""Masks are given once, to parties whose keys the roster has signed for this session."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.errors import RefusedError
from sfumato.parties.masks import Hello, Masker, add_up, agreement_of

NAMES = ("east", "north", "west")
IDENTITIES = {name: Ed25519PrivateKey.generate() for name in NAMES}
ROSTER = {name: key.public_key().public_bytes_raw() for name, key in IDENTITIES.items()}


def maskers(session=b"1", names=NAMES, plan=b"plan"):
    agreement = agreement_of(plan, dict.fromkeys(names, session))
    roster = {name: ROSTER[name] for name in names}
    return {name: Masker(name, IDENTITIES[name], roster, agreement) for name in names}


def meet(parties):
    hellos = [each.hello() for each in parties.values()]
    for each in parties.values():
        each.meet(hellos)
    return parties


def test_a_turn_is_masked_once():
    party = meet(maskers())["east"]
    party.mask(0, np.zeros(3, dtype=np.uint64))
    with pytest.raises(RefusedError, match="same turn twice"):
        party.mask(0, np.ones(3, dtype=np.uint64))
    party.mask(1, np.zeros(3, dtype=np.uint64))


def test_nothing_is_masked_before_all_keys_are_checked():
    with pytest.raises(RefusedError, match="before the keys of all parties are checked"):
        maskers()["east"].mask(0, np.zeros(3, dtype=np.uint64))


def test_two_parties_cannot_hide_from_each_other():
    with pytest.raises(RefusedError, match="three parties"):
        meet(maskers(names=("east", "west")))


def test_all_of_the_roster_must_be_there_and_no_other():
    parties = maskers()
    hellos = [each.hello() for each in parties.values()]
    for others in (hellos[:2], [*hellos, hellos[0]], [*hellos[:2], Hello("south", b"", b"")]):
        with pytest.raises(RefusedError, match="not all parties of the roster"):
            parties["east"].meet(others)


@pytest.mark.parametrize("other", [{"session": b"2"}, {"plan": b"another plan"}])
def test_a_key_of_another_session_or_plan_is_forged(other):
    """A leader who has heard a party before cannot use what it said then."""
    parties, before = maskers(), maskers(**other)
    hellos = [parties["east"].hello(), parties["north"].hello(), before["west"].hello()]
    with pytest.raises(RefusedError, match="key of `west` is forged"):
        parties["east"].meet(hellos)
    with pytest.raises(RefusedError, match="before the keys"):  # not even those of the others are used
        parties["east"].mask(0, np.zeros(3, dtype=np.uint64))


def test_a_key_that_makes_every_secret_the_same_is_refused():
    """A point of low order, though rightly signed, would make masks that everybody knows."""
    parties = maskers()
    signature = IDENTITIES["west"].sign(parties["west"]._bytes_to_sign("west", bytes(32)))
    with pytest.raises(RefusedError, match="forged"):
        parties["east"].meet(
            [parties["east"].hello(), parties["north"].hello(), Hello("west", bytes(32), signature)]
        )


def test_a_sum_needs_every_party():
    with pytest.raises(RefusedError, match="every party"):
        add_up({"east": np.zeros(2, dtype=np.uint64)}, NAMES)


def test_no_secret_is_shown():
    party = meet(maskers())["east"]
    assert "_secret" not in repr(party)
    assert "_shared" not in repr(party)
    assert "identity" not in repr(party)
