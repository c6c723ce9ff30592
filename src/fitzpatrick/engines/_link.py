"""Links row by row: the maximizer at tightness 0, in which no target has a say."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._array import Array
from .._validation import as_scores
from ._bind import bind_trusted, kernel_name
from ._blocks import FloatArray, Scratch, for_each_block
from ._row_kernel import PIECE_BYTES
from ._targets import Labels

if TYPE_CHECKING:
    from ..losses import Loss


def link(loss: "Loss", theta: Any, n_threads: int | None = None) -> Array:
    """ŷ(θ) for scores of a user, by rows where they are a NumPy array of rows.

    Args:
        loss: of tightness 0.
        theta: scores, checked here.
        n_threads: how many threads to use, by default one per core.
    """
    theta, restore = as_scores(theta)
    if type(theta) is np.ndarray and theta.ndim == 2 and loss.regularizer.is_row_wise:
        return restore(link_rows(loss, theta, n_threads))
    return restore(loss.regularizer.solve_link(theta))


def link_rows(loss: "Loss", theta: FloatArray, n_threads: int | None = None) -> FloatArray:
    """ŷ(θ) for float32 or float64 scores of shape (n, k), unchecked, of a row-wise Ω."""
    omega = loss.regularizer
    if omega.domain.has_labels and kernel_name(omega, theta.shape) is not None:
        any_label = Labels(theta.shape, theta.dtype, np.zeros(len(theta), np.intp))
        bound = bind_trusted(loss, any_label, n_threads)
        assert bound is not None
        y_hat: FloatArray = bound.y_star(theta)
        return y_hat
    out = np.empty_like(theta)

    def work(rows: slice, _: Scratch) -> None:
        out[rows] = omega.solve_link(theta[rows])

    for_each_block(theta.shape, theta.itemsize, 1, work, PIECE_BYTES)
    return out
