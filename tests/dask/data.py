"""Data of the tests in chunks: the same rows as NumPy arrays, and as Dask collections."""

from typing import Any

import dask.array as da
import numpy as np
from scipy import sparse

import fitzpatrick as fp

CHUNK = 25  # rows, of 60: the last chunk is shorter


def chunked(array: Any, rows: int | tuple[int, ...] = CHUNK) -> da.Array:
    """An array, or a sparse one, in chunks of rows."""
    if array is None:
        return None
    if not sparse.issparse(array):
        return da.from_array(array, chunks=(rows, *array.shape[1:]))
    dense = da.from_array(array.toarray(), chunks=(rows, *array.shape[1:]))
    return dense.map_blocks(sparse.csr_array, meta=sparse.csr_array((0, 0)))


def unreadable(rows: da.Array) -> da.Array:
    """The rows, of which the second chunk cannot be read."""

    def read(block: Any, block_info: Any = None) -> Any:
        if block_info and block_info[0]["chunk-location"][0] == 1:
            raise OSError("the disk is gone")
        return block

    return rows.map_blocks(read, dtype=rows.dtype, meta=np.empty((0, 0)))


def assert_same_model(found: Any, expected: Any, rel: float = 1e-10) -> None:
    """Dask's model is that of one machine, to ``rel`` of the largest coefficient.

    Both take the same steps, from sums in another order: they differ by rounding errors, which the
    condition of the problem, at most 1e4 here, makes larger. Where the Hessian jumps, rounding
    decides on which side of a kink a point is, and so about the steps: the order of the rows has
    as much to say on one machine. There the coefficients are those of the same minimum, at
    gradients of 1e-10 of that at zero, below 100, where the curvature is at least alpha = 3.
    """
    regularizer = fp.get_loss(found.loss_).regularizer
    if regularizer.has_kinks:
        rel = max(rel, 1e-8)
    else:
        assert found.n_iter_ == expected.n_iter_
        assert found.status_ is expected.status_
    scale = max(1.0, float(np.abs(expected.coef_).max()))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=rel * scale)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=0, atol=rel * scale)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=rel, atol=rel)
