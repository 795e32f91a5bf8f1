"""Where compiled kernels are kept: found again by their sources alone, and never by others."""

import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import config

from sfumato import kernels
from sfumato.kernels import code_library, compiling, numba_cache, ranks
from sfumato.kernels.numba_cache import KernelCacheLocator
from sfumato.kernels.trees import linking


@pytest.fixture
def sources(monkeypatch):
    """Other sources than those on disk, and a place chosen anew; both forgotten afterwards."""
    known = dict(numba_cache._sources())
    monkeypatch.setattr(numba_cache, "_sources", lambda: known)
    for remembered in (numba_cache._digest, numba_cache._folder):
        monkeypatch.setattr(numba_cache, remembered.__name__, remembered.__wrapped__)
    return known


def keeper(function):
    return KernelCacheLocator.from_function(function.py_func, function.py_func.__code__.co_filename)


def test_files_of_two_packages_are_kept_apart():
    """So that two of one name are, too."""
    here, there = keeper(ranks._swap_partners), keeper(linking.count)
    assert Path(there.get_cache_path()).parent == Path(here.get_cache_path())
    assert ranks._swap_partners.compiled._cache.cache_path == here.get_cache_path(), "numba asks the keeper"


def test_of_other_functions_it_knows_nothing():
    assert KernelCacheLocator.from_function(test_of_other_functions_it_knows_nothing, __file__) is None
    assert KernelCacheLocator.from_function(test_of_other_functions_it_knows_nothing, "<stdin>") is None


def test_a_kernel_edited_since_the_process_began_is_not_kept(sources):
    sources[Path(ranks.__file__)] += b" "
    assert keeper(linking.count) is not None
    assert keeper(ranks._swap_partners) is None


@pytest.mark.parametrize("change", ["a byte", "a file more", "a file less", "a text that moves"])
def test_any_change_of_any_kernel_is_another_place(sources, change):
    before, first, second = numba_cache._digest(), *list(sources)[:2]
    if change == "a byte":
        sources[first] += b"\n"
    elif change == "a file more":
        sources[first.with_name("new.py")] = b""
    elif change == "a file less":
        del sources[first]
    else:
        sources[first], sources[second] = sources[first] + sources[second], b""
    assert numba_cache._digest() != before


def test_where_nothing_can_be_written_another_place_is_taken(sources, monkeypatch, tmp_path):
    """First what the user chose, then beside the sources, then a place that this process forgets."""
    monkeypatch.setattr(numba_cache, "_KERNELS", tmp_path / "kernels")
    sources.clear()
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "mine"))
    assert numba_cache._folder().parent == tmp_path / "mine"
    (tmp_path / "file").touch()
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "file"))
    assert numba_cache._folder().parent == tmp_path / "kernels" / "__pycache__"
    monkeypatch.setattr(numba_cache, "_KERNELS", tmp_path / "file")
    first, second = numba_cache._folder(), numba_cache._folder()
    assert first.is_dir()
    assert first != second, "no other process finds it, and none can have put anything there"


def test_old_versions_are_cleared_away(sources, monkeypatch, tmp_path):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    for number in range(12):
        sources[Path(ranks.__file__)] = str(number).encode()
        newest = numba_cache._folder()
    assert len(list(tmp_path.iterdir())) == numba_cache._VERSIONS_KEPT
    assert newest.exists()


def test_a_compilation_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(kernels, "_listeners", [])
    kernels.on_compile(lambda: told.append(1))

    @compiling.njit()
    def double(number):
        return 2 * number

    assert double(3) == 6
    assert told


def test_a_kernel_is_not_compiled_again_for_a_constant():
    @compiling.njit()
    def grown(number, factor):
        return number * factor + 1

    @compiling.njit()
    def steps(limit):
        number, count = 0, 0
        while number < limit:  # at first sight the number is 0 for ever
            number = grown(number, factor=2)
            count += 1
        return count

    assert steps(100) == 7
    assert len(grown.called.signatures) == 1


def test_a_kernel_that_kernels_call_can_be_called_by_python_too():
    @compiling.njit()
    def half(number):
        return number // 2

    @compiling.njit()
    def quarter(number):
        return half(half(number))

    assert (quarter(9), half(9)) == (2, 4)


COUNT = """
import numpy as np
from sfumato import kernels
compiled = []
kernels.on_compile(lambda: compiled.append(1))
kernels.ranks._swap_partners(4, 2, np.random.default_rng(1))
print(len(compiled))
"""


@pytest.mark.slow
def test_a_fresh_copy_of_the_same_sources_is_warm_and_an_edited_one_is_not(tmp_path):
    def n_compiled(copy):
        done = subprocess.run(
            [sys.executable, "-c", COUNT],
            check=True, capture_output=True, text=True,
            env={"PYTHONPATH": str(tmp_path / copy), "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "HOME": str(tmp_path)},
        )  # fmt: skip
        return int(done.stdout)

    for copy in ("one", "two"):
        shutil.copytree(
            Path(kernels.__file__).parents[1],
            tmp_path / copy / "sfumato",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    assert n_compiled("one") > 0
    assert n_compiled("two") == 0
    with (tmp_path / "two" / "sfumato" / "kernels" / "pace.py").open("a") as file:
        file.write("# another kernel\n")
    assert n_compiled("two") > 0
    assert n_compiled("one") == 0


def test_what_kernels_call_is_machine_code_only_within_them():
    """The name of the inner one is known to nobody but the kernel; what both make is what Python makes."""

    @compiling.njit(nogil=True)
    def inner(values, place):
        if place >= len(values):
            raise IndexError("no such place")
        return values[place] * 2.0

    @compiling.njit(nogil=True)
    def outer(values, place):
        return inner(values, place) + np.empty(3).size

    values = np.arange(4.0)
    assert [outer(values, place) for place in range(4)] == [3.0, 5.0, 7.0, 9.0]
    with pytest.raises(IndexError, match="no such place"):
        outer(values, 4)
    (found,) = inner.called.overloads.values()
    assert isinstance(found.library, code_library.InnerLibrary)
    engine, symbol = found.target_context.codegen()._engine, found.fndesc.llvm_func_name
    (whole,) = outer.compiled.overloads.values()
    assert engine.is_symbol_defined(whole.fndesc.llvm_cpython_wrapper_name)
    assert found.library.get_pointer_to_function(symbol) == 0
    assert isinstance(whole.library, code_library.OuterLibrary)
    assert numba.njit(lambda n: np.empty(n).size)(5) == 5, "functions of others are compiled as ever"
