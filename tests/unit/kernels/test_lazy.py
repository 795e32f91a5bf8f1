"""`sfumato.kernels` loads its modules, and numba, only when they are touched."""

import subprocess
import sys

import pytest

from sfumato import kernels


def test_importing_the_room_does_not_import_numba():
    program = (
        "import sys, sfumato.kernels as kernels; dir(kernels); assert 'numba' not in sys.modules; "
        "kernels.ranks.midranks; assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_moments_need_no_numba():
    program = "import sys, sfumato.kernels as k; k.moments.Moments; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", ["assignment", "groups", "ranks"])
def test_the_room_listens_to_numba_once_a_module_or_a_package_has_loaded_it(name):
    program = (
        "import sys, sfumato.kernels.arrays, sfumato.kernels as k; k.moments; assert not k._watching; "
        f"assert 'numba' not in sys.modules; k.{name}; assert k._watching"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_modules_are_found_by_looking():
    assert {"ranks", "groups", "neighbours", "moments"} <= set(dir(kernels))


@pytest.mark.parametrize("name", ["nothing", "_hidden", "__wrapped__"])
def test_unknown_name(name):
    with pytest.raises(AttributeError, match=name):
        getattr(kernels, name)
