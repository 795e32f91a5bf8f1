"""Draws of persons: numbers that are each one record's own, whatever other records are drawn for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from sfumato import kernels
from sfumato.errors import RefusedError
from sfumato.kernels.arrays import Floats, Words

#: Bits of a number from 0 to 1 that a float can hold.
_BITS = 53


@dataclass(frozen=True)
class Changing:
    """What draws depend on beside the person: a number of each record's values.

    ``own_share`` is the share of the variance of a normal draw that stays whatever the values are.
    """

    values: Words
    own_share: float


class PersonGenerator:
    """A stream of chance in which every record has numbers of its own, by a counter of the draws.

    Draw ``j`` for a record is a keyed hash (SipHash) of whose it is under a key of the place and ``j``: it
    depends neither on the other records nor on their order. So who is in the next release has the same
    draws there. It has the calls of a numpy generator that give one number to each record, and a single one
    for all; what draws for all records at once, such as a permutation, cannot be keyed and is refused.

    With ``changing``, draws are partly those of the person and partly those of the person with these values:
    who has the same values has the same draws, and who has others has draws that go with the former ones.
    """

    def __init__(self, key: bytes, people: Words, changing: Changing | None = None) -> None:
        self._key, self._people, self._changing, self._n_drawn = key, people, changing, 0

    def random(self, size: int | None = None) -> Any:
        """Numbers from 0 to less than 1."""
        if size is None or self._changing is None:
            return _shares(self._words(size))
        from scipy.special import ndtr

        return np.minimum(ndtr(self.standard_normal(size)), 1 - 2.0**-_BITS)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: int | None = None) -> Any:
        """Numbers from low to high."""
        return low + (high - low) * self.random(size)

    def standard_normal(self, size: int | None = None) -> Any:
        """Standard normal numbers."""
        own = _normals(self._words(size))
        if size is None or self._changing is None:
            return own
        share = self._changing.own_share
        return np.sqrt(share) * own + np.sqrt(1 - share) * _normals(self._words(size, self._changing.values))

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: int | None = None) -> Any:
        """Normal numbers."""
        return loc + scale * self.standard_normal(size)

    def lognormal(self, mean: float = 0.0, sigma: float = 1.0, size: int | None = None) -> Any:
        """Numbers whose logarithms are normal."""
        return np.exp(self.normal(mean, sigma, size))

    def standard_exponential(self, size: int | None = None) -> Any:
        """Exponential numbers of mean 1."""
        return -np.log1p(-self.random(size))

    def integers(
        self, low: int, high: int | None = None, size: int | None = None, dtype: Any = np.int64
    ) -> Any:
        """Whole numbers from low to less than high; without high, from 0 to less than low."""
        low, high = (0, low) if high is None else (low, high)
        drawn: Floats = np.floor(self.random(size) * (high - low))
        return (low + drawn.astype(np.int64)).astype(dtype)

    def _words(self, size: int | None, values: Words | None = None) -> Words:
        """64 random bits for each record, or once for all of them; with values, those of both."""
        if size is not None and size != len(self._people):
            raise _refusal(f"{size} numbers for {len(self._people)} records")
        named = hashlib.blake2b(str(self._n_drawn).encode(), key=self._key, digest_size=16, person=b"draw")
        first, second = np.frombuffer(named.digest(), dtype=np.uint64)
        self._n_drawn += 1
        whose = np.zeros(1, dtype=np.uint64) if size is None else self._people
        found: Words = kernels.siphash.keyed_words(whose, first, second)
        if values is not None:
            found = kernels.siphash.keyed_words(found ^ values, first, second)
        return found if size is not None else found[0]

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _refusal(f"`{name}`, for all records at once")


def _shares(words: Words) -> Any:
    """Numbers from 0 to less than 1, by the upper bits of words."""
    return (words >> np.uint64(64 - _BITS)) * 2.0**-_BITS


def _normals(words: Words) -> Any:
    """Standard normal numbers, by the inverse of their distribution."""
    from scipy.special import ndtri

    # Half a step above 0, so that no number is infinite.
    return ndtri(_shares(words) + 2.0 ** -(_BITS + 1))


def _refusal(got: str) -> RefusedError:
    return RefusedError(
        f"in a series each person needs random numbers of their own, and this method draws {got}",
        hint="choose a method that draws for each record, such as noise or pram",
    )
