"""How rows are computed fast on a CPU: cache-sized blocks, sparse targets, threads.

The formulas are those of the core; an engine changes the order of the work and what it need not
do at all. Large problems run in rows compiled by Numba, where that is installed: ``_bind`` says
which. Targets are bound once, in their own form, and evaluated at many scores:

Example:
    >>> import numpy as np
    >>> import fitzpatrick as fp
    >>> bound = bind(fp.get_loss("fitzpatrick_logistic"), np.asarray([2, 0]), n_classes=3)
    >>> value, gradient = bound.value_and_gradient(np.zeros((2, 3)))
    >>> value.round(4), gradient.shape
    (array([0.4631, 0.4631]), (2, 3))
"""

from ._bind import bind, bind_trusted
from ._bind_like import bind_like
from ._bound import BoundLoss, CoreLoss, HessianOperator
from ._edge import bind_pair, hessian_product, value_and_gradient
from ._link import link, link_rows
from ._row_blocks import RowBlocks
from ._targets import DenseTargets, Labels
from .table import find_kernel

__all__ = [
    "BoundLoss",
    "CoreLoss",
    "DenseTargets",
    "HessianOperator",
    "Labels",
    "RowBlocks",
    "bind",
    "bind_like",
    "bind_pair",
    "bind_trusted",
    "find_kernel",
    "hessian_product",
    "link",
    "link_rows",
    "value_and_gradient",
]
