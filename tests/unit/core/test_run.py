"""One run: whose numbers its streams are, whom it tells, and how it stops."""

import pickle
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.randomness import SEED_BITS, ByPlace
from sfumato.core.run import Progress, ProgressEvent, Run
from sfumato.errors import Cancelled, ParameterError, SfumatoError, UnknownNameError

LABELS = st.lists(st.one_of(st.text(max_size=4), st.integers(-3, 3), st.binary(max_size=3)), max_size=4)


def numbers(run, *labels):
    return run.rng(*labels).random(4).tolist()


@given(labels=LABELS, seed=st.integers(0, 2**SEED_BITS - 1))
def test_the_same_names_give_the_same_numbers(labels, seed):
    assert numbers(Run(seed=seed), *labels) == numbers(Run(seed=seed), *labels)


@given(first=LABELS, second=LABELS)
def test_other_names_give_other_numbers(first, second):
    typed = [[(type(label), label) for label in labels] for labels in (first, second)]
    run = Run(seed=1)
    assert (numbers(run, *first) == numbers(run, *second)) == (typed[0] == typed[1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        (("ab",), ("a", "b")),
        (("as:b",), ("a", "b")),
        (("a", "bs:c"), ("a", "b", "c")),
        (("a", ""), ("a",)),
        (("",), ()),
        ((1,), ("1",)),
        ((1,), ("i:1",)),
        ((b"1",), ("1",)),
        ((b"1",), ("b:31",)),
        ((1, 2), (12,)),
        (("a", "b"), ("b", "a")),
        ((-1,), (1,)),
        (("e\u0301",), ("é",)),
    ],
)
def test_names_that_look_alike(one, other):
    run = Run(seed=7)
    assert numbers(run, *one) != numbers(run, *other)


def test_a_number_of_numpy_is_a_number():
    """A block index may come out of an array; it must be neither the text "3" nor another place."""
    run = Run(seed=7)
    assert numbers(run, np.int64(3)) == numbers(run, 3) != numbers(run, "3")


def test_the_order_of_calls_is_irrelevant():
    run = Run(seed=3)
    forth = {name: numbers(run, name) for name in ("a", "b", "c")}
    back = {name: numbers(run, name) for name in ("c", "b", "a")}
    assert forth == back


def test_drawing_from_one_stream_leaves_the_others():
    run = Run(seed=3)
    run.rng("a").random(1000)
    assert numbers(run, "a") == numbers(Run(seed=3), "a")


def test_a_place_is_a_path():
    run = Run(seed=5)
    assert numbers(run.at("step", 1).at("block", 2), "x") == numbers(run, "step", 1, "block", 2, "x")
    assert numbers(run.at("a"), "b") != numbers(run.at("b"), "a")
    assert run.randomness.place == ()  # entering a place leaves the run where it is


def test_streams_are_different_and_not_shifted():
    """Streams of a thousand neighbouring places: no value twice, as 64-bit draws should have it."""
    run = Run(seed=0)
    drawn = np.concatenate([run.rng("block", i).integers(0, 2**63, 50) for i in range(1000)])
    assert len(np.unique(drawn)) == len(drawn)


def test_every_bit_of_the_seed_counts():
    seeds = [0, *(1 << bit for bit in range(SEED_BITS))]
    assert len({tuple(numbers(Run(seed=seed), "a")) for seed in seeds}) == len(seeds)


def test_seeds_come_from_the_system():
    seeds = {Run().randomness.seed for _ in range(20)}
    assert len(seeds) == 20
    assert max(seeds) > 2**100


@pytest.mark.parametrize(
    "seed", [-1, 2**SEED_BITS, 1.5, 1.0, "1", True, float("nan"), b"1", [1], np.float64(3)]
)
def test_what_is_no_seed(seed):
    with pytest.raises(ParameterError) as caught:
        Run(seed=seed)
    assert str(caught.value) == "`seed` must be a whole number from 0 to 2^128 − 1, got another"


@pytest.mark.parametrize("seed", [0, 2**SEED_BITS - 1, np.int64(12), np.uint64(2**64 - 1)])
def test_what_is_a_seed(seed):
    run = Run(seed=seed)
    assert type(run.randomness.seed) is int
    assert numbers(run, "a") == numbers(Run(seed=int(seed)), "a")


def test_the_seed_is_in_no_repr_and_no_message():
    """The seed undoes the noise: it must stand in no log and no traceback, in no base."""
    seed = 0xDEADBEEFCAFEBABE12345678
    run = Run(seed=seed, resources={"population": "SECRET"})
    shown = [repr(run), str(run), repr(run.at("a")), f"{run}"]
    with pytest.raises(UnknownNameError) as caught:
        run.resource("nothing")
    shown.append(str(caught.value))
    with pytest.raises(Cancelled) as stopped:
        replace(run, progress=Progress(stopped=lambda: True)).check()
    shown.append(str(stopped.value))
    with pytest.raises(ParameterError) as refused:
        Run(seed=seed << 64)
    shown.append(str(refused.value))
    for text in shown:
        assert str(seed) not in text
        assert "deadbeef" not in text.lower()
        assert "SECRET" not in text


def test_resources_are_found_by_name():
    run = Run(seed=1, resources={"population": 5})
    assert run.resource("population") == 5
    with pytest.raises(UnknownNameError) as caught:
        run.resource("populaton")
    assert caught.value.message == "there is no resource `populaton`"
    assert "`population`" in caught.value.hint


def test_a_run_has_four_parts():
    parts = [part.name for part in fields(Run)]
    assert parts == ["randomness", "engine", "progress", "resources"]


def test_a_seed_or_randomness_but_not_both():
    assert numbers(Run(randomness=ByPlace(3)), "a") == numbers(Run(seed=3), "a")
    with pytest.raises(ParameterError, match="not both"):
        replace(Run(seed=3), seed=4)


def test_a_deadline_is_that_of_its_own_clock():
    """The time of a search and of a trial in it go by different clocks; the earlier end counts."""
    wall, cpu = iter(range(100)), iter(range(100))
    search = Run(seed=1).with_deadline(3, wall.__next__)  # over after 3
    trial = search.with_deadline(50, cpu.__next__)
    for run in (search, trial, trial):
        run.check()
    with pytest.raises(Cancelled):
        trial.check()
    with pytest.raises(Cancelled):
        Run(seed=1).with_deadline(5, lambda: 0.0).with_deadline(-1, lambda: 0.0).check()


def test_a_silent_run_tells_nothing_and_can_be_stopped():
    heard, over = [], []
    run = Run(seed=1, progress=Progress(heard.append, heard.append, lambda: bool(over)))
    run.progress.found({"method": "mdav"})
    run.silent().tell("x", 0, 1)
    run.silent().progress.found({"method": "mdav"})
    assert heard == [{"method": "mdav"}]
    over.append(1)
    with pytest.raises(Cancelled):
        run.silent().check()


def test_telling():
    heard = []
    run = Run(seed=1, progress=Progress(report=heard.append))
    run.tell("sorting", 1, 3, "half")
    assert heard == [ProgressEvent("sorting", 1, 3, "half")]
    run.ticker("counting")(2, 5)
    assert heard[-1] == ProgressEvent("counting", 2, 5)


def test_tracking_tells_of_every_item():
    heard = []
    run = Run(seed=1, progress=Progress(report=heard.append))
    assert list(run.track("work", "abc", 3)) == ["a", "b", "c"]
    assert [(event.done, event.total) for event in heard] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert list(run.track("work", [], 0)) == []


def test_tracking_is_lazy_and_stops_between_items():
    """An item after the one at which the user stopped is never started."""
    started, asked = [], []

    def work():
        for item in range(10):
            started.append(item)
            yield item

    run = Run(seed=1, progress=Progress(stopped=lambda: len(asked) >= 2))
    with pytest.raises(Cancelled):
        asked.extend(run.track("work", work(), 10))
    assert started == [0, 1]


def test_cancelling():
    run = Run(seed=1, progress=Progress(stopped=lambda: True))
    heard = []
    for stop in (
        run.check,
        lambda: run.tell("x", 0, 1),
        lambda: run.ticker("x")(0, 1),
        lambda: next(run.track("x", "a", 1)),
    ):
        with pytest.raises(Cancelled) as caught:
            stop()
        assert caught.value.exit_code == 130
        assert isinstance(caught.value, SfumatoError)
    with pytest.raises(Cancelled):
        replace(run, progress=replace(run.progress, report=heard.append)).tell("x", 0, 1)
    assert heard == []  # what was stopped reports nothing more
    Run(seed=1).check()


# ------------------------------------------------------------------------------------------ what travels


SEED = 0xDEADBEEFCAFEBABE1234567887654321


def test_chance_goes_to_another_process_and_draws_the_same_there():
    run = Run(seed=SEED).at("step", 1)
    there = pickle.loads(pickle.dumps(run.random_key("block", 2)))
    assert there == run.random_key("block", 2)
    assert numbers(there, "a") == numbers(run, "block", 2, "a")
    assert numbers(there.at("a")) == numbers(run.at("block"), 2, "a")


def test_a_run_stays_in_its_process():
    """It knows the seed, so neither it nor work that was bound to it can be sent away."""
    run = Run(seed=SEED)
    for work in (run, run.at("a"), partial(max, run)):
        with pytest.raises(TypeError, match="a run must stay in its process"):
            pickle.dumps(work)


@given(labels=LABELS)
def test_chance_knows_neither_the_seed_nor_where_it_is(labels):
    chance = Run(seed=SEED).random_key(*labels)
    told = pickle.dumps(chance) + repr(chance).encode()
    for form in (SEED.to_bytes(16, "little"), SEED.to_bytes(16, "big"), b"deadbeef", str(SEED).encode()):
        assert form not in told
    assert repr(chance) == "RandomKey()"


def test_the_key_of_a_place_is_not_what_it_draws_nor_the_key_of_another():
    """Who sees the draws of a place, or its key, has nothing of the places above and beside it."""
    run = Run(seed=SEED)
    keys = {
        run.random_key(*labels).key for labels in ((), ("a",), ("b",), ("a", "a"), ("a", 1), (1,), (b"a",))
    }
    assert len(keys) == 7
    assert all(len(key) == 32 for key in keys)
    assert numbers(run.random_key("a")) not in (numbers(run.random_key()), numbers(run.random_key("a", "")))
