"""A loss bound to targets for scores of any array library: by a GPU kernel, or by the core."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .._array import Array, as_library, dtype_name, is_numpy, is_torch, namespace
from ._bind import bind
from ._bound import BoundLoss, CoreLoss
from ._targets import Labels, as_targets
from .table import find_kernel

if TYPE_CHECKING:
    from ..losses import Loss


def bind_like(
    loss: "Loss", y: Any, n_classes: int, like: Array, n_threads: int | None = None
) -> BoundLoss:
    """The loss bound to targets of the host, for scores where ``like`` is.

    Args:
        loss: any loss.
        y: targets as :func:`bind` takes them; on a device sparse ones become dense.
        n_classes: k.
        like: an array of the library, device and dtype of the scores.
        n_threads: as in :func:`bind`, for NumPy.
    """
    if is_numpy(like):
        return bind(loss, y, n_classes, like.dtype, n_threads)
    if not sparse.issparse(y):
        y = np.asarray(y)
    shape = (y.shape[0], n_classes)
    targets = as_targets(y, shape, loss.regularizer.domain, np.dtype(dtype_name(like)))
    kernel = find_kernel("triton", loss.regularizer) if _has_triton(like) else None
    if isinstance(targets, Labels) and kernel is None:
        return CoreLoss(loss, as_library(targets.labels, like))
    if isinstance(targets, Labels):
        y = targets.labels[:, None] == np.arange(n_classes)
    dense = as_library(y.toarray() if sparse.issparse(y) else y, like)
    dense = namespace(like).astype(dense, like.dtype)
    if kernel is None:
        return CoreLoss(loss, dense)
    from .triton.bound import KernelLoss  # which loads triton

    return KernelLoss(loss, dense, kernel)


def _has_triton(like: Array) -> bool:
    return is_torch(like) and like.device.type == "cuda" and find_spec("triton") is not None
