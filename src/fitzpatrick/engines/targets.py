"""Targets in their own form: integer labels, SciPy CSR or dense rows.

None of them is copied into another form as a whole: a kernel asks for the dense rows, or for the
support, of one block.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

FloatArray = np.ndarray[Any, np.dtype[np.floating[Any]]]
IntArray = np.ndarray[Any, np.dtype[np.integer[Any]]]


class Scratch:
    """The buffers of one thread, by name; they grow once and are used for every block."""

    def __init__(self) -> None:
        self._stacks: dict[str, np.ndarray[Any, Any]] = {}
        self._buffers: dict[str, np.ndarray[Any, Any]] = {}

    def array(
        self, name: str, shape: tuple[int, ...], dtype: DTypeLike, order: str = "C"
    ) -> np.ndarray[Any, Any]:
        """An uninitialized array; what an earlier call of this name returned is overwritten."""
        if order == "F":
            return np.asarray(self.stack(name, 1, shape[::-1], dtype)[0].T)
        return np.asarray(self.stack(name, 1, shape, dtype)[0])

    def stack(
        self, name: str, count: int, shape: tuple[int, ...], dtype: DTypeLike
    ) -> np.ndarray[Any, Any]:
        """Several such arrays of one shape, to be unpacked."""
        full = (count, *shape)
        stack = self._stacks.get(name)
        if stack is not None and stack.shape == full and stack.dtype == dtype:
            return stack
        n_bytes = int(np.prod(full)) * np.dtype(dtype).itemsize
        buffer = self._buffers.get(name)
        if buffer is None or buffer.nbytes < n_bytes:
            buffer = self._buffers[name] = np.empty(n_bytes, dtype=np.uint8)
        stack = self._stacks[name] = buffer[:n_bytes].view(dtype).reshape(full)
        return stack


@dataclass(frozen=True)
class Support:
    """The entries y > 0 of a block of rows, each of which has one, row after row."""

    rows: IntArray  # which row of the block an entry belongs to
    columns: IntArray
    y: FloatArray
    starts: IntArray  # where each row begins

    def gather(self, x: FloatArray) -> FloatArray:
        """The entries of x that belong to the support."""
        return x[self.rows, self.columns]

    def scatter(self, x: FloatArray, values: FloatArray | float) -> None:
        """Put values into x at the support."""
        x[self.rows, self.columns] = values

    def spread(self, row_values: FloatArray) -> FloatArray:
        """One number per row → one per entry."""
        return row_values[self.rows]

    def total(self, values: FloatArray) -> FloatArray:
        """Sum of the entries of each row."""
        return np.asarray(np.add.reduceat(values, self.starts))


@dataclass(frozen=True)
class Targets(ABC):
    """Targets of n rows and k classes, to be used in the given dtype."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @abstractmethod
    def dense(self, rows: slice, scratch: Scratch) -> FloatArray:
        """A block of rows in dense form; valid until the next call with the same scratch."""

    def plain(self, rows: slice, scratch: Scratch) -> np.ndarray[Any, Any]:
        """A block of rows as the core takes them: labels (r,), or dense rows in the dtype."""
        return self.dense(rows, scratch)

    def whole(self) -> np.ndarray[Any, Any]:
        """All targets as the core takes them."""
        return self.plain(slice(0, self.shape[0]), Scratch())

    def support(self, rows: slice, scratch: Scratch) -> Support:
        """The entries y > 0 of a block of rows on the simplex."""
        y = self.dense(rows, scratch)
        flat = np.flatnonzero(y)
        of_rows, columns = np.divmod(flat, self.shape[1])
        starts = np.searchsorted(of_rows, np.arange(len(y)))
        return Support(of_rows, columns, y.reshape(-1)[flat], starts)


@dataclass(frozen=True)
class NoTargets(Targets):
    """Scores alone: what a link is computed from."""

    def dense(self, rows: slice, scratch: Scratch) -> FloatArray:
        raise TypeError("a link has no targets")


@dataclass(frozen=True)
class Labels(Targets):
    """One class per row."""

    labels: IntArray

    def plain(self, rows: slice, scratch: Scratch) -> np.ndarray[Any, Any]:
        return self.labels[rows]

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

    def support(self, rows: slice, scratch: Scratch) -> Support:
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
        )

    def dense(self, rows: slice, scratch: Scratch) -> FloatArray:
        support = self.support(rows, scratch)
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


TargetForm = NoTargets | Labels | SparseTargets | DenseTargets


def wrap_targets(y: Any, shape: tuple[int, int], dtype: np.dtype[Any]) -> TargetForm:
    """Targets that have been checked, in the form that they have."""
    if sparse.issparse(y):
        return SparseTargets(shape, dtype, y)
    if y.ndim == 1:
        return Labels(shape, dtype, y.astype(np.intp, copy=False))
    return DenseTargets(shape, dtype, y)
