"""Dask collections as tasks that read their chunks of rows."""

import math
from itertools import zip_longest
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed
from scipy import sparse

from .._validation import check_sparse
from ._rounds import ChunkError


def is_array(collection: Any) -> bool:
    """True if a collection is a Dask array; a data frame or a series has a meta of pandas."""
    return isinstance(collection, da.Array)


def read_inputs(X: Any, y: Any, sample_weight: Any = None) -> dict[str, list[Delayed]]:
    """What reads the chunks of X, y, and the weights if there are any, by these names."""
    _check_kind(X)
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    given = {"X": X, "y": y, "sample_weight": sample_weight}
    inputs = {
        name: _read(name, _like_rows(collection, X, name), X)
        for name, collection in given.items()
        if collection is not None
    }
    if not inputs["X"]:
        raise ValueError("X has no chunks; there is nothing to learn from")
    return inputs


def meta(X: Any) -> Any:
    """Something in memory with the names and the number of the features of X."""
    return np.empty((1, X.shape[1])) if is_array(X) else X._meta


def _check_kind(X: Any) -> None:
    if not (is_dask_collection(X) and hasattr(X, "npartitions")):
        raise TypeError(
            f"X is a {type(X).__module__}.{type(X).__name__}, and fitzpatrick.dask takes a "
            "dask.array or a dask.dataframe; use da.from_array(X, chunks=...), or "
            "fitzpatrick.linear_model for data in memory"
        )
    if not is_array(X):
        return
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n, d), got an array with {X.ndim} axes")
    if math.isnan(X.shape[1]):
        raise ValueError(
            "the number of columns of X is unknown; compute it with X.compute_chunk_sizes()"
        )


def _like_rows(collection: Any, X: Any, name: str) -> Any:
    """An array in memory in the chunks of X; collections as they are."""
    if is_dask_collection(collection):
        return collection
    sizes = row_chunks(X)
    check_sparse(collection, name)
    array = (sparse.csr_array if sparse.issparse(collection) else np.asarray)(collection)
    if sizes is None:
        raise TypeError(
            f"{name} is a {type(collection).__module__}.{type(collection).__name__}, and the rows "
            f"of X's chunks are not known; give {name} as a Dask collection with the chunks of X"
        )
    if array.ndim == 0 or array.shape[0] != sum(sizes):
        raise ValueError(
            f"{name} has shape {array.shape}, and X has {sum(sizes)} rows; give one entry per row"
        )
    return da.from_array(array, chunks=(sizes, *array.shape[1:]))


def row_chunks(X: Any) -> tuple[int, ...] | None:
    """The number of rows of each chunk, where it is known."""
    if not is_array(X) or any(math.isnan(size) for size in X.chunks[0]):
        return None
    return tuple(map(int, X.chunks[0]))


def check_whole_rows(name: str, collection: Any) -> None:
    if is_array(collection) and collection.ndim == 2 and len(collection.chunks[1]) > 1:
        raise ValueError(
            f"{name} has {len(collection.chunks[1])} chunks of columns, and a chunk must hold "
            f"whole rows; use {name}.rechunk({{1: -1}})"
        )


def _read(name: str, collection: Any, X: Any) -> list[Delayed]:
    check_whole_rows(name, collection)
    if is_array(collection) and collection.npartitions != X.npartitions:
        collection = _in_chunks_of(X, collection)
    _check_same_chunks(name, collection, X)
    return _delayed_chunks(collection)


def _delayed_chunks(collection: Any) -> list[Delayed]:
    if is_array(collection):
        return list(collection.to_delayed().ravel())
    # Only the columns that are asked for are read. Dask's further steps would read several files of
    # few columns as one, so that y and X would have different chunks.
    return list(collection.simplify().to_delayed(optimize_graph=False))


def _in_chunks_of(X: Any, array: da.Array) -> da.Array:
    """An array whose chunks have unknown sizes, as ``.values`` of a data frame makes it.

    Dask reads several files of few columns as one chunk, so that the columns of one data frame have
    different chunks. Counting their rows takes one pass over the data.
    """
    if None not in (row_chunks(X), row_chunks(array)):
        return array
    counts = [[delayed(len)(chunk) for chunk in _delayed_chunks(part)] for part in (X, array)]
    of_X, of_array = dask.compute(*counts)
    if sum(of_X) != sum(of_array):
        return array
    known = (tuple(of_array), *array.chunks[1:])
    array = da.Array(array.dask, array.name, known, dtype=array.dtype, meta=array._meta)
    return array.rechunk({0: tuple(of_X)})


def _check_same_chunks(name: str, collection: Any, X: Any) -> None:
    """Raise unless the chunks hold the same rows as the chunks of X, as far as that is known."""
    sizes, expected = row_chunks(collection), row_chunks(X)
    if sizes is not None and expected is not None and sizes != expected:
        pairs = enumerate(zip_longest(sizes, expected))
        at, differ = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        found, wanted = ("not there" if n is None else f"{n} rows" for n in differ)
        raise ChunkError(
            f"chunk {at} of {name} is {found} and chunk {at} of X {wanted}, and both must hold the "
            f"same rows; use {name}.rechunk({{0: X.chunks[0]}})"
        )
    if collection.npartitions != X.npartitions:
        raise ChunkError(
            f"{name} has {collection.npartitions} chunks and X has {X.npartitions}, and both must "
            "hold the same rows; make them from one collection, or repartition them alike"
        )
