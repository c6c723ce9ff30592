"""Fits whose chunks are read from files: memory-mapped arrays, zarr, parquet."""

from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from fitzpatrick import linear_model
from fitzpatrick.dask import FitzpatrickClassifier, ProportionRegressor
from tests.linear_model.data import LABELS, X, Y

from .data import CHUNK, assert_same_model

COLUMNS = [f"x{j}" for j in range(X.shape[1])]
both = pytest.mark.parametrize("persist", [True, False])


def mapped(folder: Path, name: str, array: np.ndarray) -> da.Array:
    np.save(folder / f"{name}.npy", array)
    file = np.load(folder / f"{name}.npy", mmap_mode="r")
    return da.from_array(file, chunks=(CHUNK, array.shape[1]))


def zarred(folder: Path, name: str, array: np.ndarray) -> da.Array:
    pytest.importorskip("zarr", reason="zarr is not installed")
    path = str(folder / f"{name}.zarr")
    da.from_array(array, chunks=(CHUNK, array.shape[1])).to_zarr(path)
    return da.from_zarr(path)


@both
@pytest.mark.parametrize("read", [mapped, zarred])
def test_arrays(tmp_path: Path, read: Any, persist: bool) -> None:
    rows, proportions = read(tmp_path, "X", X), read(tmp_path, "Y", Y)
    options: dict[str, Any] = {"alpha": 10.0, "standardize": True}
    model = ProportionRegressor("fitzpatrick_logistic", persist=persist, **options)
    model.fit(rows, proportions)
    expected = linear_model.ProportionRegressor("fitzpatrick_logistic", **options).fit(X, Y)
    assert_same_model(model, expected)
    np.testing.assert_allclose(model.predict(rows).compute(), expected.predict(X), atol=1e-10)


@both
def test_a_parquet_folder(tmp_path: Path, persist: bool) -> None:
    """Dask reads few columns of several files as one chunk, and does not know the sizes."""
    pytest.importorskip("pyarrow", reason="pyarrow reads parquet")
    table = pd.DataFrame(X, columns=COLUMNS).assign(y=LABELS)
    for part, start in enumerate(range(0, len(table), CHUNK)):
        table[start : start + CHUNK].to_parquet(tmp_path / f"{part}.parquet")
    frame = dd.read_parquet(tmp_path)
    rows, y = frame[COLUMNS].values, frame["y"].values
    assert rows.npartitions != y.npartitions
    expected = linear_model.FitzpatrickClassifier("logistic", 10.0).fit(X, LABELS)
    for X_given, y_given in ((frame[COLUMNS], frame["y"]), (frame[COLUMNS], y), (rows, y)):
        model = FitzpatrickClassifier("logistic", 10.0, persist=persist).fit(X_given, y_given)
        assert_same_model(model, expected)
        assert model.score(X_given, y_given) == pytest.approx(expected.score(X, LABELS))
        np.testing.assert_array_equal(model.predict(X_given).compute(), expected.predict(X))
        assert list(getattr(model, "feature_names_in_", COLUMNS)) == COLUMNS
