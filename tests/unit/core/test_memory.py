"""What large work has freed goes back to the system, where it can."""

import ctypes
from types import SimpleNamespace

import pytest

from sfumato.core.memory import LARGE_RECORDS, free_memory


@pytest.mark.parametrize(
    ("platform", "n", "asked"),
    [
        ("linux", LARGE_RECORDS, [0]),
        ("linux", LARGE_RECORDS - 1, []),
        ("win32", LARGE_RECORDS, []),
        ("darwin", LARGE_RECORDS, []),
    ],
)
def test_only_glibc_is_asked_and_only_after_large_work(monkeypatch, platform, n, asked):
    calls = []
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=calls.append))
    free_memory(n)
    assert calls == asked


def test_another_library_has_nothing_to_ask(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    free_memory(LARGE_RECORDS)
