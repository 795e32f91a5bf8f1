"""Laws of parties: masked sums are sums, a masked vector is noise, and the recoding is that of the pooled records."""

import itertools
from collections import Counter

import numpy as np
import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from effort import examples
from naive_recoding import RESOURCES, TREES, groups_of, naive, people, shown_at, table_of, value_of
from sfumato.core.run import Run
from sfumato.errors import DataError, UnreachableError
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.parties.domain import PublicDomain
from sfumato.parties.masks import Masker, add_up, agreement_of
from sfumato.parties.party_plan import PartiesSpec, PartyPlan
from sfumato.parties.pooling import pool, protected_records
from sfumato.parties.search import losses_by_node, recode_part, search_apart, search_pooled
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

KEYS = ("a", "b", "c")


def maskers_of(n, *, session=b"1", fixed=False):
    """Parties that have met; ``fixed`` keys are the same each time."""
    names = [f"party-{i}" for i in range(n)]
    secrets = [i.to_bytes(32, "little") if fixed else None for i in range(1, 2 * n + 1)]
    identities = {
        name: Ed25519PrivateKey.from_private_bytes(seed) if fixed else Ed25519PrivateKey.generate()
        for name, seed in zip(names, secrets, strict=False)
    }
    roster = {name: key.public_key().public_bytes_raw() for name, key in identities.items()}
    agreement = agreement_of(b"plan", {name: session + name.encode() for name in names})
    made = [Masker(name, identities[name], roster, agreement) for name in names]
    if fixed:
        for masker, seed in zip(made, secrets[n:], strict=True):
            masker._secret = X25519PrivateKey.from_private_bytes(seed)
    hellos = [each.hello() for each in made]
    for each in made:
        each.meet(hellos)
    return {each.name: each for each in made}


@examples(40)
@given(n=st.integers(3, 6), length=st.integers(1, 300), turn=st.integers(0, 5), seed=st.integers(0, 2**32))
def test_masked_sums_are_sums(n, length, turn, seed):
    maskers, rng = maskers_of(n), np.random.default_rng(seed)
    counts = {name: rng.poisson(1.5, length).astype(np.uint64) for name in maskers}
    masked = {name: masker.mask(turn, counts[name]) for name, masker in maskers.items()}
    assert (add_up(masked, maskers) == sum(counts.values())).all()
    for name, vector in masked.items():
        assert not (vector == counts[name]).any()


@pytest.mark.parametrize("n", [3, 4, 6])
def test_a_masked_vector_and_any_sum_of_fewer_look_uniform(n):
    maskers = maskers_of(n, fixed=True)
    masked = {name: each.mask(0, np.zeros(2**14, dtype=np.uint64)) for name, each in maskers.items()}
    for size in range(1, n):
        for chosen in itertools.combinations(masked, size):
            total = np.add.reduce([masked[name] for name in chosen])
            counts = np.bincount(total.view(np.uint8), minlength=256)
            assert stats.chisquare(counts).pvalue > 1e-6, chosen
    assert not np.add.reduce(list(masked.values())).any()


def test_no_two_turns_and_no_two_sessions_share_a_mask():
    zeros = np.zeros(1000, dtype=np.uint64)
    first, second = maskers_of(3, fixed=True), maskers_of(3, fixed=True, session=b"2")
    vectors = [first["party-0"].mask(turn, zeros) for turn in range(6)]
    vectors += [second["party-0"].mask(turn, zeros) for turn in range(6)]
    for one, other in itertools.combinations(vectors, 2):
        assert not (one == other).any()


# The recoding is that of the pooled records ---------------------------------------------------------------


def party_plan_of(k, suppression, records="pooled"):
    schema = table_of([("p", "x", "0", "ill")]).schema
    method = GlobalRecoding(k=k, suppression=suppression)
    plan = Plan(schema=schema, recipe=Recipe((Step(method, KEYS),)))
    domain = PublicDomain.of([schema[name] for name in KEYS], RESOURCES)
    return PartyPlan(plan, PartiesSpec("", {}, records), b"", domain, {})


@st.composite
def parts_of_people(draw):
    """Records that three to five parties have, some perhaps none."""
    n = draw(st.integers(3, 5))
    records = draw(people())
    owners = [draw(st.integers(0, n - 1)) for _ in records]
    return [[rec for rec, own in zip(records, owners, strict=True) if own == i] for i in range(n)]


def counts_of(party_plan, part):
    return party_plan.domain.count(party_plan.domain.codes(table_of(part)))


@examples(120)
@given(parts=parts_of_people(), k=st.integers(1, 4), suppression=st.sampled_from([0, 10, 30, 60, 100]))
def test_the_levels_are_those_of_a_naive_scan_of_the_pooled_records(parts, k, suppression):
    records, party_plan = list(itertools.chain(*parts)), party_plan_of(k, suppression)
    totals = np.add.reduce([counts_of(party_plan, part) for part in parts])
    wanted = naive(
        records, KEYS, k=k, model="", objective="loss", aggregate="geometric", suppression=suppression
    )
    if wanted is None:
        with pytest.raises(UnreachableError):
            search_pooled(party_plan, totals, Run(1))
        return
    agreed = search_pooled(party_plan, totals, Run(1))
    assert tuple(agreed.levels.values()) == wanted.levels
    assert agreed.loss == pytest.approx(wanted.value, abs=1e-9)
    assert (agreed.n_records, agreed.n_suppressed) == (len(records), len(wanted.failing))
    assert agreed.leftover == wanted.fate
    _assert_pooled_as_wanted(party_plan, agreed, parts, records, wanted)


def _assert_pooled_as_wanted(party_plan, agreed, parts, records, wanted):
    """The pooled table has the very records of the naive recoding, suppressed or left out as there."""
    sent = {}
    for number, part in enumerate(parts):
        table = table_of(part)
        release = recode_part(party_plan, agreed, table, Run(number))
        sent[f"party-{number}"] = protected_records(party_plan, agreed, table, release)
    pooled = pool(party_plan, agreed, sent, Run(1))
    shown = shown_at(records, KEYS, wanted.levels)
    stars = ("*",) * len(KEYS)
    rows = [
        (*(stars if i in wanted.failing else shown[i]), record[3])
        for i, record in enumerate(records)
        if not (i in wanted.failing and wanted.fate == "dropped")
    ]
    released = pooled.frame.select(as_texts(*KEYS, "s")).rows()
    assert Counter(released) == Counter(rows)


def as_texts(*names):
    return [pl.col(name).cast(pl.String) for name in names]


@examples(80)
@given(parts=parts_of_people(), k=st.integers(1, 4), suppression=st.sampled_from([0, 10, 30, 60, 100]))
def test_parts_that_leave_apart_meet_k_each_with_the_least_loss_of_all(parts, k, suppression):
    party_plan, records = party_plan_of(k, suppression, "apart"), list(itertools.chain(*parts))
    totals = np.add.reduce([losses_by_node(party_plan, table_of(part), Run(1)) for part in parts])
    wanted = _naive_apart(parts, records, k, int(suppression / 100 * len(records) + 1e-9))
    if wanted is None:
        with pytest.raises(UnreachableError):
            search_apart(party_plan, totals, Run(1))
        return
    agreed = search_apart(party_plan, totals, Run(1))
    assert (tuple(agreed.levels.values()), agreed.n_suppressed) == (wanted[3], wanted[1])
    assert agreed.loss == pytest.approx(wanted[0], abs=1e-9)
    for part in parts:
        _assert_part_meets_k(party_plan, agreed, part, k)


def _naive_apart(parts, records, k, limit):
    found = []
    for levels in itertools.product(*(range(len(TREES[key][0])) for key in KEYS)):
        failing, begin = set(), 0
        for part in parts:
            for members in groups_of(shown_at(part, KEYS, levels)).values():
                failing |= {begin + i for i in members} if len(members) < k else set()
            begin += len(part)
        if len(failing) <= limit:
            value = value_of("loss", "geometric", records, KEYS, levels, failing=failing)
            found.append((round(value, 10), len(failing), sum(levels), levels))
    return min(found, default=None)


def _assert_part_meets_k(party_plan, agreed, part, k):
    try:
        release = recode_part(party_plan, agreed, table_of(part), Run(1))
    except DataError:
        assert len(part) < k
        return
    released = release.table.frame.select(as_texts(*KEYS)).rows()
    shown = Counter(shown_at(part, KEYS, tuple(agreed.levels.values())))
    wanted = Counter({row: n for row, n in shown.items() if n >= k})
    n_gone = len(part) - wanted.total()
    if n_gone >= k:  # else they are left out
        wanted[("*",) * len(KEYS)] += n_gone
    assert Counter(released) == wanted
