"""Trees of bounding boxes: one planter, and what is asked of them.

Numba's cache of a kernel does not see changes in another file: after a change in one, delete the cached code
of those that import it.
"""

from __future__ import annotations

from sfumato.kernels.trees import covering, fitting, inside

__all__ = ["covering", "fitting", "inside"]
