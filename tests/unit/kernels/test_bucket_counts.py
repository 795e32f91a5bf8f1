"""In which groups a value is too frequent: against plain counting."""

from collections import Counter

import numpy as np
import pytest

from sfumato import kernels


@pytest.mark.parametrize("seed", range(5))
def test_too_frequent_as_counted_one_by_one(seed):
    rng = np.random.default_rng(seed)
    n, most = 200, int(rng.integers(1, 5))
    order, alike, learnt = rng.permutation(n), rng.integers(0, 3, n), rng.integers(0, 4, n)
    cuts = np.unique(np.append(rng.integers(0, n, 20), [0, n]))
    parts = np.column_stack((cuts[:-1], cuts[1:]))[
        rng.random(len(cuts) - 1) < 0.7
    ]  # not all need be asked of
    cells = kernels.buckets.ClassValueCodes(alike, alike * 4 + learnt)
    found = kernels.buckets.too_frequent(order, parts, cells, most)
    for (first, end), fails in zip(parts, found, strict=True):
        rows = order[first:end]
        people, counts = Counter(alike[rows]), Counter(zip(alike[rows], learnt[rows], strict=True))
        assert fails == any(count * most > people[who] for (who, _), count in counts.items())
