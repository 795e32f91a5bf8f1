"""Noise of differential privacy, always drawn by OpenDP: no seed repeats it, and its privacy map is proved.

OpenDP draws whole numbers exactly and in half the time of floats, so all noise here is of whole numbers on a
grid. What is asked for is checked by the privacy map of the measurement that is used.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from sfumato.errors import MissingDependencyError, RefusedError
from sfumato.kernels.arrays import Flags, Floats, Ints

#: Draws made in one call, between which progress is told.
BLOCK = 1 << 14

#: How much of ε or ρ may be lost to the rounding of floats.
_FLOAT_TOLERANCE = 1e-9

#: Most steps of the grid that noise may have to hide: beyond, whole numbers end.
_MAX_GRID_STEPS = 1 << 60

Tick = Callable[[int, int], None]


def opendp() -> Any:
    """The library, with the parts of it that are used here allowed."""
    try:
        import opendp.prelude as library
    except ImportError:
        raise MissingDependencyError.of("opendp", extra="dp", purpose="differential privacy") from None
    library.enable_features("contrib")
    return library


def laplace(counts: Ints, *, sensitivity: int, epsilon: float, tick: Tick | None = None) -> Ints:
    """Whole numbers with discrete Laplace noise; it spends ε where all change by ``sensitivity`` in sum."""
    dp = opendp()
    _require_fitting(sensitivity)
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement = dp.m.make_laplace(*space, scale=sensitivity / epsilon)
    assert measurement.map(sensitivity) <= epsilon * (1 + _FLOAT_TOLERANCE)
    return _in_blocks(measurement, counts, tick)


def gaussian(counts: Ints, *, sensitivity: float, rho: float, tick: Tick | None = None) -> Ints:
    """Whole numbers with discrete Gaussian noise; it spends ρ where they change by ``sensitivity`` (L2)."""
    dp = opendp()
    _require_fitting(sensitivity)
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    measurement = dp.m.make_gaussian(*space, scale=sensitivity / math.sqrt(2 * rho))
    assert measurement.map(float(sensitivity)) <= rho * (1 + _FLOAT_TOLERANCE)
    return _in_blocks(measurement, counts, tick)


def _require_fitting(sensitivity: float) -> None:
    if sensitivity > _MAX_GRID_STEPS:
        raise RefusedError(
            "the range is too wide for differentially private noise on whole numbers",
            hint="declare narrower bounds, or fewer records per person",
        )


def highest(scores: Floats, *, sensitivity: float, rho: float) -> int:
    """The place of the highest score but for noise, which spends ρ where each changes by ``sensitivity``."""
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.linf_distance(T="f64")
    scale = sensitivity / math.sqrt(2 * rho)
    measurement = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
    assert measurement.map(float(sensitivity)) <= rho * (1 + _FLOAT_TOLERANCE)
    return int(measurement(scores.tolist()))


def randomised_response(codes: Ints, n_categories: int, *, epsilon: float, tick: Tick | None = None) -> Ints:
    r"""Codes by randomised response: kept, or with the chance :math:`K/(e^\varepsilon + K - 1)` any of K."""
    if n_categories < 2:  # noqa: PLR2004  — of one category there is nothing to hide
        return codes
    replaced = n_categories / (math.expm1(epsilon) + n_categories) if epsilon < 700 else 0.0  # noqa: PLR2004
    chance = math.nextafter(replaced, 1.0)  # a hair more noise than asked, never less
    drawn = codes.copy()
    for start, stop in _blocks(len(codes), tick):
        places = start + np.flatnonzero(_coins(stop - start, chance))
        drawn[places] = _uniform(len(places), n_categories)
    return drawn


def draw_each(count: int, chance: float) -> Flags:
    """Which of so many are drawn, each with a chance, independently."""
    drawn = [_coins(stop - start, chance) for start, stop in _blocks(count, None)]
    return np.concatenate(drawn) if drawn else np.zeros(0, dtype=np.bool_)


def _in_blocks(measurement: Any, counts: Ints, tick: Tick | None) -> Ints:
    drawn = np.empty(len(counts), dtype=np.int64)
    for start, stop in _blocks(len(counts), tick):
        drawn[start:stop] = measurement(counts[start:stop].tolist())
    return drawn


def _blocks(count: int, tick: Tick | None) -> Iterator[tuple[int, int]]:
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        yield start, stop
        if tick is not None:
            tick(stop, count)


def _coins(count: int, chance: float) -> Flags:
    """Independent coins that fall on heads with a chance: bits of zero after randomised response of each."""
    if chance > 0.5:  # noqa: PLR2004  — OpenDP turns a bit with at most this chance
        return ~_coins(count, 1.0 - chance)
    dp = opendp()
    space = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    measurement = dp.m.make_randomized_response_bitvec(*space, f=2 * chance)
    drawn = np.frombuffer(measurement(bytes(-(-count // 8))), dtype=np.uint8)
    return np.unpackbits(drawn)[:count].astype(np.bool_)


def _uniform(count: int, below: int) -> Ints:
    """Whole numbers from 0, each as likely: fair bits, drawn again where they make too large a number."""
    n_bits = (below - 1).bit_length()
    drawn, left = np.zeros(count, dtype=np.int64), np.arange(count)
    while len(left):
        bits = _coins(len(left) * n_bits, 0.5).reshape(len(left), n_bits)
        drawn[left] = bits @ (1 << np.arange(n_bits))
        left = left[drawn[left] >= below]
    return drawn


def generator() -> np.random.Generator:
    """A generator for what is drawn from noisy answers, which no seed of ours repeats either."""
    return np.random.default_rng(secrets.randbits(128))


def shares(total: float, weights: Iterable[float]) -> list[float]:
    """A budget parted by weight."""
    listed = list(weights)
    return [total * weight / math.fsum(listed) for weight in listed]
