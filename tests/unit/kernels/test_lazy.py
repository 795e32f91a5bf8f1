"""`sfumato.kernels` loads its modules, and numba, only when they are touched."""

import subprocess
import sys

import pytest

from sfumato import kernels


def test_importing_the_room_does_not_import_numba():
    program = (
        "import sys, sfumato.kernels as kernels; dir(kernels); assert 'numba' not in sys.modules; "
        "import numpy as np; kernels.ranks.swap_partners(9, 2, np.random.default_rng(1)); "
        "assert 'numba' not in sys.modules; kernels.ranks._swap_partners.compiled; "
        "assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_moments_need_no_numba():
    program = "import sys, sfumato.kernels as k; k.moments.PairwiseMoments; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_modules_are_found_by_looking():
    assert {"ranks", "groups", "neighbours", "moments"} <= set(dir(kernels))


@pytest.mark.parametrize("name", ["nothing", "_hidden", "__wrapped__"])
def test_unknown_name(name):
    with pytest.raises(AttributeError, match=name):
        getattr(kernels, name)
