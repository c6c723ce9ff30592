r"""Isotonic regression: the non-increasing sequence that is nearest to a row.

It is constant on blocks of neighbors, at the mean of each. Neighboring blocks whose means increase
are pooled, all of them at once, until there are none left; the order of pooling does not matter.
The same holds for the entropy, where the level of a block is a difference of log-sum-exps instead
of a mean.
"""

import math
from typing import Any

import numpy as np

from .._array import (
    Array,
    NumpyArray,
    as_library,
    class_indices,
    is_jax,
    is_numpy,
    is_torch,
    namespace,
    to_numpy,
    without_derivatives,
)
from .._root import State, iterate

# The modules with kernels for PyTorch tensors on devices of a kind; the engines enter theirs.
KERNELS: dict[str, str] = {}


def decreasing_blocks(x: Array, log_weights: Array | None = None) -> Array:
    """Where a block of the non-increasing regression of each row begins, booleans of x's shape.

    Args:
        x: rows, non-increasing themselves if there are weights.
        log_weights: w, non-increasing along rows of the shape of x; blocks then have the level
            log Σ eˣ − log Σ eʷ instead of the mean of x.
    """
    if is_numpy(x):
        return _pool(x, log_weights)
    if is_torch(x):
        from . import _isotonic_torch as operators

        return operators.decreasing_blocks(x, log_weights)
    if not is_jax(x):
        on_host = _pool(to_numpy(x), None if log_weights is None else to_numpy(log_weights))
        return as_library(on_host, x)
    xp, x = namespace(x), without_derivatives(x)  # blocks are locally constant
    w = None if log_weights is None else without_derivatives(log_weights)
    first = class_indices(x) == 0

    def levels(starts: Array) -> Array:
        if w is None:
            return block_means(x, starts)
        return x - w - block_log_shares(x, starts) + block_log_shares(w, starts)

    def step(state: State) -> State:
        level = levels(state[0])
        before = xp.concat([level[..., :1], level[..., :-1]], axis=-1)
        starts = first | (state[0] & (before >= level))
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
    if is_torch(u):
        from . import _isotonic_torch as operators

        return operators.block_means(u, starts)
    if not is_jax(u):
        return as_library(block_means(to_numpy(u), to_numpy(starts)), u)
    from jax.ops import segment_sum

    xp, size = namespace(u), math.prod(u.shape)
    block = xp.cumulative_sum(xp.astype(xp.reshape(starts, -1), xp.int32)) - 1

    def average(x: Array) -> Array:
        sums, counts = (segment_sum(part, block, size) for part in (x, xp.ones_like(x)))
        return (sums / xp.clip(counts, 1))[block]

    # twice, for the digits that long sums cost
    x = xp.reshape(u, -1)
    first = average(x)
    return xp.reshape(first + average(x - first), u.shape)


def block_log_shares(x: Array, starts: Array) -> Array:
    """log(eˣ / mean of eˣ over the block) of each entry, for rows that do not increase."""
    xp = namespace(x)
    highest = xp.take_along_axis(without_derivatives(x), _block_begin(starts), axis=-1)
    x = x - highest
    return x - xp.log(block_means(xp.exp(x), starts))


def _block_begin(starts: Array) -> Array:
    """The index at which the block of each entry begins."""
    xp = namespace(starts)
    indices = class_indices(starts)
    places = xp.where(starts, indices, 0)
    if is_jax(starts):
        from jax import lax

        return lax.cummax(places, axis=places.ndim - 1)
    if is_torch(starts):
        return places.cummax(-1)[0]
    return xp.asarray(np.maximum.accumulate(to_numpy(places), axis=-1), device=starts.device)


def _pool(x: NumpyArray, log_weights: NumpyArray | None) -> NumpyArray:
    """The blocks of NumPy rows, in passes over the blocks that are left."""
    k = x.shape[-1]
    flags = np.zeros(x.size, dtype=bool)
    if x.size == 0:
        return flags.reshape(x.shape)
    begin, parts = np.arange(x.size), [np.reshape(x, -1).astype(np.float64)]
    if log_weights is None:
        parts.append(np.ones(x.size))
    else:
        parts.append(np.reshape(log_weights, -1).astype(np.float64))
    add: Any = np.add if log_weights is None else np.logaddexp
    level: Any = np.divide if log_weights is None else np.subtract
    while True:
        levels = level(*parts)
        is_start = begin % k == 0
        is_start[1:] |= levels[:-1] >= levels[1:]
        if is_start.all():
            break
        heads = np.flatnonzero(is_start)
        begin, parts = begin[heads], [add.reduceat(part, heads) for part in parts]
    flags[begin] = True
    return flags.reshape(x.shape)


def decreasing(x: Array) -> Array:
    """The nearest non-increasing sequence of each row.

    Example:
        >>> decreasing(np.asarray([3.0, 1.0, 2.0, 2.0, 0.0]))
        array([3.        , 1.66666667, 1.66666667, 1.66666667, 0.        ])
    """
    return block_means(x, decreasing_blocks(x))


def nearest_in_order(x: Array, weights: Array) -> Array:
    """The point of the permutahedron of the weights next to x; both do not increase."""
    starts = decreasing_blocks(x - weights)
    # within a block the mean of x is replaced by the mean of w, which is near the result
    return x - block_means(x, starts) + block_means(weights, starts)
