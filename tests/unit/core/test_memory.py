"""What large work has freed goes back to the system, where it can."""

import ctypes
from types import SimpleNamespace

import pytest

from sfumato.core.memory import LARGE, give_back


@pytest.mark.parametrize(
    ("platform", "n", "asked"),
    [("linux", LARGE, [0]), ("linux", LARGE - 1, []), ("win32", LARGE, []), ("darwin", LARGE, [])],
)
def test_only_glibc_is_asked_and_only_after_large_work(monkeypatch, platform, n, asked):
    calls = []
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=calls.append))
    give_back(n)
    assert calls == asked


def test_another_library_has_nothing_to_ask(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    give_back(LARGE)
