"""Two folders exchange their names in one step, where the system can."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_HERE = -100  # AT_FDCWD: paths are seen from the present folder


_EXCHANGE = 2  # RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS


#: What is said where the system or the drive does not know how to exchange two names.
_UNSUPPORTED_ERRNOS = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY})


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one instant; False where that cannot be done, and was not."""
    code = _exchange(os.fsencode(one), os.fsencode(other))
    if code is None or code in _UNSUPPORTED_ERRNOS:
        return False
    if code:
        raise OSError(code, os.strerror(code))
    return True


def _exchange(one: bytes, other: bytes) -> int | None:
    """The error of the system's call, 0 if it did it; None where there is no such call."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = library.renamex_np(one, other, ctypes.c_uint(_EXCHANGE))
        else:
            failed = library.renameat2(_HERE, one, _HERE, other, ctypes.c_uint(_EXCHANGE))
    except (OSError, TypeError, AttributeError):  # Windows, or an older library
        return None
    return ctypes.get_errno() if failed else 0
