"""How rows are computed fast: cache-sized blocks, sparse targets, threads, compiled kernels.

The formulas are the core's; an engine changes the order of the work, and leaves out what a form of
targets does not need. The table in ``table.py`` says which engine computes a loss. Targets are
bound once, in their own form, and evaluated at many scores:

Example:
    >>> import numpy as np
    >>> import fitzpatrick as fp
    >>> bound = bind(fp.regularizers.Negentropy(), 1.0, np.asarray([2, 0]), n_classes=3)
    >>> value, gradient = bound.value_and_gradient(np.zeros((2, 3)))
    >>> value.round(4), gradient.shape
    (array([0.4631, 0.4631]), (2, 3))
"""

from .bind import bind, bind_like, bind_pair, bind_trusted, check_buffer, link, probabilities
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
    "probabilities",
]
