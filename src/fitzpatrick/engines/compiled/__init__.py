"""The same rows compiled by Numba, where that is installed: one call without the GIL per block."""

from ._entmax15 import Entmax15Rows
from ._logistic import LogisticRows
from ._logistic_labels import LogisticLabelRows
from ._sparsemax import SparsemaxRows

__all__ = ["Entmax15Rows", "LogisticLabelRows", "LogisticRows", "SparsemaxRows"]
