"""Trees of bounding boxes: one planter, and what is asked of them."""

from __future__ import annotations

from sfumato.kernels.trees import covering, fitting

__all__ = ["covering", "fitting"]
