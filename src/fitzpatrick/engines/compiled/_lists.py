"""Targets of any form as lists of their entries y > 0, which is all that the kernels know."""

import functools
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..targets import Labels, NoTargets, Scratch, SparseTargets, TargetForm
from ._jit import loop, part

# Where the entries of each row begin, their columns, and y. An index that is known not to be
# negative lets LLVM vectorise: hence unsigned numbers.
Lists = tuple[Any, Any, Any]


def usable(x: Any, dtype: DTypeLike | None = None) -> Any:
    """x, or a copy, as the kernels are compiled for: contiguous, and not read-only."""
    if type(x) is np.ndarray and x.flags.carray and (dtype is None or x.dtype == dtype):
        return x
    return np.require(x, dtype, ["C_CONTIGUOUS", "ALIGNED", "WRITEABLE"])


@functools.lru_cache(maxsize=8)
def _one_per_row(n: int) -> tuple[Any, Any]:
    """Where the entries of n rows begin that have y = 1 in one place, and y; only to be read."""
    return np.arange(n + 1, dtype=np.uintp), np.ones(n)


def support_lists(targets: TargetForm, rows: slice, scratch: Scratch) -> Lists:
    """The support of a block of rows, in the types that the kernels are compiled for."""
    if isinstance(targets, NoTargets):
        return np.zeros(rows.stop - rows.start + 1, np.uintp), np.empty(0, np.intp), np.empty(0)
    if isinstance(targets, Labels):
        labels = usable(targets.labels[rows], np.intp)
        starts, ones = _one_per_row(len(labels))
        return starts, labels, ones
    if isinstance(targets, SparseTargets):
        edges = targets.matrix.indptr[rows.start : rows.stop + 1]
        stored = slice(edges[0], edges[-1])
        return (
            (edges - edges[0]).astype(np.uintp),
            usable(targets.matrix.indices[stored], np.intp),
            usable(targets.matrix.data[stored], np.float64),
        )
    y = usable(targets.y[rows], np.float64)
    starts = np.empty(len(y) + 1, np.uintp)
    columns = scratch.array("columns", (y.size,), np.intp)
    values = scratch.array("values", (y.size,), np.float64)
    size = gather(y, starts, columns, values)
    return starts, columns[:size], values[:size]


@loop
def gather(y: Any, starts: Any, columns: Any, values: Any) -> int:
    """Write the lists of dense rows, and return how long they are."""
    k = y.shape[1]
    size = 0
    for i in range(len(y)):
        starts[i] = size
        count = 0
        for j in range(k):
            count += y[i, j] > 0
        if count == k:
            all_columns, all_values = columns[size : size + k], values[size : size + k]
            for j in range(k):
                all_columns[j] = j
                all_values[j] = y[i, j]
            size += k
            continue
        for j in range(k):
            columns[size] = j
            values[size] = y[i, j]
            size += y[i, j] > 0
    starts[len(y)] = size
    return size


@part
def are_classes(labels: Any, k: int) -> bool:
    """True if all labels are among k classes."""
    lowest, highest = 0, 0
    for label in labels:
        lowest = min(lowest, label)
        highest = max(highest, label)
    return lowest >= 0 and highest < k


# A slice costs as much as a short row: the functions below get an array and where to look in it.


@part
def take(x: Any, columns: Any, begin: int, end: int, own: Any) -> None:
    """Write the entries of a row at its support; all of them are in order."""
    if end - begin == len(x):
        for m in range(len(x)):
            own[m] = x[m]
        return
    for m in range(begin, end):
        own[m - begin] = x[columns[m]]


@part
def give(own: Any, columns: Any, begin: int, end: int, x: Any) -> None:
    """Write them back."""
    if end - begin == len(x):
        for m in range(len(x)):
            x[m] = own[m]
        return
    for m in range(begin, end):
        x[columns[m]] = own[m - begin]


@part
def drop(x: Any, columns: Any, begin: int, end: int) -> int:
    """Put −∞ at the support of a row, and return how many of its entries count: all, or none."""
    if end - begin == len(x):
        return 0
    for m in range(begin, end):
        x[columns[m]] = -np.inf
    return len(x)


@part
def put(own: Any, columns: Any, begin: int, end: int, i: int, out: Any) -> None:
    """Write the entries of row i at its support."""
    k = out.shape[1]
    if end - begin == k:
        for m in range(k):
            out[i, m] = own[m]
        return
    for m in range(begin, end):
        out[i, columns[m]] = own[m - begin]
