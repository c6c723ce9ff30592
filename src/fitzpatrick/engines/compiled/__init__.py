"""The same rows compiled by Numba, where that is installed: one call without the GIL per block."""

from typing import Any

from .._targets import Labels
from ._entmax15 import Entmax15Rows
from ._logistic import LogisticRows
from ._logistic_labels import LogisticLabelRows
from ._sparsemax import SparsemaxRows


def bind_logistic(loss: Any, targets: Any) -> LogisticRows | LogisticLabelRows:
    """Rows of any form."""
    return (LogisticLabelRows if isinstance(targets, Labels) else LogisticRows)(loss, targets)


__all__ = ["Entmax15Rows", "LogisticLabelRows", "LogisticRows", "SparsemaxRows", "bind_logistic"]
