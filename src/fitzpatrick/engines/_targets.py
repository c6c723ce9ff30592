"""Targets in their own form: integer labels, SciPy CSR or dense rows, checked once.

None of them is copied into another form as a whole. Whoever needs dense rows or the support of y
asks for one block of it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._array import as_array, as_float, is_integer
from .._validation import check_labels, check_membership, check_shape
from ..sets import ConvexSet
from ._blocks import FloatArray, IntArray, Scratch, block_rows


@dataclass(frozen=True)
class Support:
    """The entries y > 0 of a block of rows, row after row."""

    rows: IntArray  # which row of the block an entry belongs to
    columns: IntArray
    y: FloatArray
    starts: IntArray  # where each row begins
    n_columns: int

    @cached_property
    def flat(self) -> IntArray:
        return np.asarray(self.rows * self.n_columns + self.columns)

    def part(self, rows: slice) -> "Support":
        """The entries of some of the rows."""
        starts = self.starts[rows]
        begin = int(starts[0])
        end = len(self.y) if rows.stop == len(self.starts) else int(self.starts[rows.stop])
        own = slice(begin, end)
        of_rows = self.rows[own] - rows.start
        return Support(of_rows, self.columns[own], self.y[own], starts - begin, self.n_columns)

    def gather(self, x: FloatArray) -> FloatArray:
        """The entries of x that belong to the support."""
        if x.flags.c_contiguous:
            return x.reshape(-1)[self.flat]
        return x[self.rows, self.columns]

    def scatter(self, x: FloatArray, values: FloatArray | float) -> None:
        """Put values into x at the support."""
        if x.flags.c_contiguous:
            x.reshape(-1)[self.flat] = values
        else:
            x[self.rows, self.columns] = values

    def spread(self, row_values: FloatArray) -> FloatArray:
        """One number per row → one per entry."""
        return row_values[self.rows]

    def total(self, values: FloatArray) -> FloatArray:
        """Sum of the entries of each row; every row has one."""
        return np.asarray(np.add.reduceat(values, self.starts))

    def dot(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Sum of x y over the entries of each row."""
        return self.total(x * y)

    def highest(self, values: FloatArray) -> FloatArray:
        """Maximum of the entries of each row."""
        return np.asarray(np.maximum.reduceat(values, self.starts))


def support_of(y: FloatArray) -> Support:
    """The support of a block of dense rows, each of which has a positive entry."""
    k = y.shape[1]
    flat = np.flatnonzero(y)
    rows, columns = np.divmod(flat, k)
    starts = np.searchsorted(rows, np.arange(len(y)))
    return Support(rows, columns, y.reshape(-1)[flat], starts, k)


@dataclass(frozen=True)
class Targets(ABC):
    """Targets of n rows and k classes, to be used in the given dtype."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @abstractmethod
    def dense(self, rows: slice, scratch: Scratch) -> FloatArray:
        """A block of rows in dense form; valid until the next call with the same scratch."""


@dataclass(frozen=True)
class Labels(Targets):
    """One class per row."""

    labels: IntArray

    def support(self, rows: slice) -> Support:
        """The labels of a block as entries y = 1."""
        labels = self.labels[rows]
        first = np.arange(len(labels))
        return Support(first, labels, np.ones(len(labels), self.dtype), first, self.shape[1])

    def dense(self, rows: slice, scratch: Scratch) -> FloatArray:
        labels = self.labels[rows]
        y = scratch.array("y", (len(labels), self.shape[1]), self.dtype)
        y.fill(0)
        y[np.arange(len(labels)), labels] = 1
        return y


@dataclass(frozen=True)
class SparseTargets(Targets):
    """CSR rows without duplicates or stored zeros."""

    matrix: Any

    def support(self, rows: slice) -> Support:
        """The stored entries of a block."""
        edges = self.matrix.indptr[rows.start : rows.stop + 1]
        stored = slice(edges[0], edges[-1])
        y = self.matrix.data[stored]
        if y.dtype != self.dtype:
            y = y.astype(self.dtype)
            y[y == 0] = np.finfo(self.dtype).tiny  # what is stored is not zero
        return Support(
            rows=np.repeat(np.arange(len(edges) - 1), np.diff(edges)),
            columns=self.matrix.indices[stored],
            y=y,
            starts=edges[:-1] - edges[0],
            n_columns=self.shape[1],
        )

    def dense(self, rows: slice, scratch: Scratch) -> FloatArray:
        support = self.support(rows)
        y = scratch.array("y", (rows.stop - rows.start, self.shape[1]), self.dtype)
        y.fill(0)
        support.scatter(y, support.y)
        return y


@dataclass(frozen=True)
class DenseTargets(Targets):
    """Rows as they are, in whatever dtype and order."""

    y: np.ndarray[Any, Any]

    def dense(self, rows: slice, scratch: Scratch) -> FloatArray:
        y = self.y[rows]
        if y.dtype == self.dtype:
            return y
        cast = scratch.array("y", y.shape, self.dtype)
        np.copyto(cast, y, casting="unsafe")
        return cast


TargetForm = Labels | SparseTargets | DenseTargets


def as_targets(
    y: Any, shape: tuple[int, int], domain: ConvexSet, dtype: np.dtype[Any]
) -> TargetForm:
    """Check targets for scores of that shape and dtype; the errors are those of the core."""
    if sparse.issparse(y):
        return _as_sparse(y, shape, domain, dtype)
    y = as_array(y, "y")
    if y.ndim == 1 and is_integer(y):
        check_labels(y, shape, domain)
        return Labels(shape, dtype, y.astype(np.intp, copy=False))
    check_shape(y, shape)
    as_float(y[:0], "y")
    step = block_rows(shape[1], dtype.itemsize)
    for start in range(0, shape[0], step):
        # in the precision that y was rounded to, not in that of the scores
        block = as_float(y[start : start + step], "y")
        check_membership(block, domain, "y", first_row=start)
    return DenseTargets(shape, dtype, y)


def _as_sparse(
    y: Any, shape: tuple[int, int], domain: ConvexSet, dtype: np.dtype[Any]
) -> SparseTargets:
    check_shape(y, shape)
    matrix = y.tocsr()
    if matrix.dtype == np.bool_:
        matrix = matrix.astype(dtype)
    own_dtype = as_float(matrix.data[:0], "y").dtype
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = matrix.copy() if matrix is y else matrix
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    n, k = shape
    # Stored entries side by side, and one zero for those that are not stored: what a simplex or a
    # product set asks of a row it asks of these.
    width = min(int(np.diff(matrix.indptr).max(initial=0)) + 1, k)
    step = block_rows(width, dtype.itemsize)
    for start in range(0, n, step):
        edges = matrix.indptr[start : start + step + 1]
        counts = np.diff(edges)
        packed = np.zeros((len(counts), width), dtype=own_dtype)
        packed[np.arange(width) < counts[:, None]] = matrix.data[edges[0] : edges[-1]]
        for row in start + np.flatnonzero(~domain.contains(packed)):
            y_row = matrix[[row]].toarray().astype(own_dtype)
            check_membership(y_row, domain, "y", first_row=int(row))
    return SparseTargets(shape, dtype, matrix)
