r"""Isotonic regression: the non-increasing sequence that is nearest to a row.

It is constant on blocks of neighbors, at the mean of each. Neighboring blocks whose means increase
are pooled, all of them at once, until there are none: in whatever order blocks are pooled, the
result is the same.
"""

from typing import Any

import numpy as np

from .._array import Array, class_indices, is_jax, is_numpy, is_torch, namespace, to_numpy
from .._root import State, iterate


def decreasing_blocks(x: Array) -> Array:
    """Where a block of the non-increasing regression of each row begins, booleans of x's shape."""
    if is_numpy(x):
        return _pool(x)
    xp = namespace(x)
    if is_jax(x):
        import jax

        x = jax.lax.stop_gradient(x)  # blocks are locally constant
    elif not is_torch(x) or x.device.type == "cpu":
        return xp.asarray(_pool(to_numpy(x)), device=x.device)
    first = class_indices(x) == 0

    def step(state: State) -> State:
        means = block_means(x, state[0])
        before = xp.concat([means[..., :1], means[..., :-1]], axis=-1)
        starts = first | (state[0] & (before >= means))
        return starts, xp.any(starts != state[0], axis=-1)

    everywhere = x == x
    return iterate(step, (everywhere | first, everywhere[..., 0] | True), x.shape[-1])[0]


def block_means(u: Array, starts: Array) -> Array:
    """The mean of u over the block of each entry, for blocks that begin where ``starts`` says."""
    if is_numpy(u):
        heads = np.flatnonzero(starts)
        if heads.size == 0:
            return u
        counts = np.diff(heads, append=u.size)
        means = np.add.reduceat(np.reshape(u, -1), heads, dtype=np.float64) / counts
        return np.repeat(means.astype(u.dtype), counts).reshape(u.shape)
    xp, places = namespace(u), class_indices(u) + _integer_zeros(starts)
    last = u.shape[-1] - 1
    begin = _running_max(xp.where(starts, places, 0))
    is_end = xp.concat([starts[..., 1:], starts[..., :1]], axis=-1)
    end = last - xp.flip(
        _running_max(xp.flip(xp.where(is_end, last - places, 0), axis=-1)), axis=-1
    )
    count = xp.astype(end - begin + 1, u.dtype)

    def sums(x: Array) -> Array:
        total = xp.cumulative_sum(x, axis=-1)
        own = xp.take_along_axis(x, begin, axis=-1)
        return (
            xp.take_along_axis(total, end, axis=-1) - xp.take_along_axis(total, begin, axis=-1)
        ) + own

    # The second sum is about the first means, and returns to zero at the end of every block, so
    # that the digits which the first one lost in the entries of other blocks are found again.
    means = sums(u) / count
    return means + sums(u - means) / count


def _integer_zeros(starts: Array) -> Array:
    """Integer zeros of the shape of ``starts``."""
    xp = namespace(starts)
    return xp.astype(xp.zeros_like(starts), xp.int32 if is_jax(starts) else xp.int64)


def _running_max(x: Array) -> Array:
    if is_jax(x):
        from jax import lax

        return lax.cummax(x, axis=x.ndim - 1)
    if is_torch(x):
        import torch

        return torch.cummax(x, dim=-1)[0]
    return namespace(x).asarray(np.maximum.accumulate(to_numpy(x), axis=-1), device=x.device)


def _pool(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The blocks of NumPy rows, in passes over the blocks that are left."""
    k = x.shape[-1]
    flags = np.zeros(x.size, dtype=bool)
    if x.size == 0:
        return flags.reshape(x.shape)
    begin, counts = np.arange(x.size), np.ones(x.size, int)
    sums = np.reshape(x, -1).astype(np.float64)
    while True:
        means = sums / counts
        is_start = begin % k == 0
        is_start[1:] |= means[:-1] >= means[1:]
        if is_start.all():
            break
        heads = np.flatnonzero(is_start)
        begin = begin[heads]
        sums, counts = np.add.reduceat(sums, heads), np.add.reduceat(counts, heads)
    flags[begin] = True
    return flags.reshape(x.shape)


def decreasing(x: Array) -> Array:
    """The nearest non-increasing sequence of each row.

    Example:
        >>> decreasing(np.asarray([3.0, 1.0, 2.0, 2.0, 0.0]))
        array([3.        , 1.66666667, 1.66666667, 1.66666667, 0.        ])
    """
    return block_means(x, decreasing_blocks(x))
