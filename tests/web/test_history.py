"""The tree of plans: what is undone can be done again, and branches stay."""

import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import UnknownNameError
from sfumato.web.history import PlanHistory


@pytest.fixture
def history(tmp_path):
    return PlanHistory(tmp_path / "own" / "sessions.sqlite")


def test_only_the_owner_can_read_it(history, tmp_path):
    assert stat.S_IMODE((tmp_path / "own" / "sessions.sqlite").stat().st_mode) == 0o600


def test_the_same_file_goes_on_where_it_was(history):
    one = history.open_session("a.csv", "a-plan.toml")
    assert history.open_session("a.csv", "a-plan.toml") == one
    assert history.open_session("b.csv", "b-plan.toml") != one


def test_branches_stay(history):
    session = history.open_session("a.csv", "plan.toml")
    first = history.add(session, "a = 1", "one")
    second = history.add(session, "a = 2", "two")
    assert history.undo(session) == first
    third = history.add(session, "a = 3", "three")
    assert third.parent == second.parent == first.id
    assert history.undo(session) == first
    assert history.redo(session) == third
    assert history.go_to(session, second.id) == second
    assert len(history.versions(session)) == 3


def test_the_same_plan_adds_nothing(history):
    session = history.open_session("a.csv", "plan.toml")
    assert history.add(session, "a = 1", "one") == history.add(session, "a = 1", "again")


def test_results_belong_to_a_plan(history):
    session = history.open_session("a.csv", "plan.toml")
    first, second = history.add(session, "a = 1", "one"), history.add(session, "a = 2", "two")
    history.keep_result(first.id, "score", {"k": 3})
    assert history.results(first.id) == {"score": {"k": 3}}
    assert history.results(second.id) == {}


def test_a_session_can_be_forgotten(history):
    session = history.open_session("a.csv", "plan.toml")
    version = history.add(session, "a = 1", "one")
    history.keep_result(version.id, "score", {})
    history.forget(session)
    assert history.sessions() == []
    with pytest.raises(UnknownNameError):
        history.present(session)


@given(moves=st.lists(st.sampled_from(["add", "undo", "redo"]), max_size=25))
def test_undo_and_redo_never_lose_a_plan(tmp_path_factory, moves):
    history = PlanHistory(tmp_path_factory.mktemp("h") / "s.sqlite")
    session, made = history.open_session("a.csv", "p.toml"), 0
    for number, each in enumerate(moves):
        if each == "add":
            history.add(session, f"a = {number}", "more")
            made += 1
        elif each == "undo":
            history.undo(session)
        else:
            history.redo(session)
    versions = history.versions(session)
    assert len(versions) == made
    known = {each.id for each in versions}
    assert all(each.parent is None or each.parent in known for each in versions)
