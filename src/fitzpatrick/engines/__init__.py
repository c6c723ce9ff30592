"""How rows are computed fast on a CPU: cache-sized blocks, sparse targets, threads.

The formulas are those of the core; an engine changes the order of the work and what it need not
do at all. Large problems run in rows compiled by Numba; ``bind`` says
which. Targets are bound once, in their own form, and evaluated at many scores:

Example:
    >>> import numpy as np
    >>> import fitzpatrick as fp
    >>> bound = bind(fp.regularizers.Negentropy(), 1.0, np.asarray([2, 0]), n_classes=3)
    >>> value, gradient = bound.value_and_gradient(np.zeros((2, 3)))
    >>> value.round(4), gradient.shape
    (array([0.4631, 0.4631]), (2, 3))
"""

from .bind import (
    bind,
    bind_like,
    bind_pair,
    bind_trusted,
    check_buffer,
    link,
    link_rows,
    probabilities,
)
from .bound import BoundLoss, CoreLoss, HessianOperator
from .rows import RowBlocks
from .table import find_kernel
from .targets import DenseTargets, Labels, NoTargets

__all__ = [
    "BoundLoss",
    "CoreLoss",
    "DenseTargets",
    "HessianOperator",
    "Labels",
    "NoTargets",
    "RowBlocks",
    "bind",
    "bind_like",
    "bind_pair",
    "bind_trusted",
    "check_buffer",
    "find_kernel",
    "link",
    "link_rows",
    "probabilities",
]
