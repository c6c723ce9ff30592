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
from tests.linear_model.data import features, targets

from .data import CHUNK, assert_same_model

X = features()
Y = targets("fitzpatrick_logistic", X)
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
    pytest.importorskip("pyarrow", reason="pyarrow reads parquet")
    words = np.asarray(["oak", "ash", "elm"])[Y.argmax(axis=1) % 3]
    table = pd.DataFrame(X, columns=COLUMNS).assign(tree=words)
    for part, start in enumerate(range(0, len(table), CHUNK)):
        table[start : start + CHUNK].to_parquet(tmp_path / f"trees-{part}.parquet")
    frame = dd.read_parquet(tmp_path)
    model = FitzpatrickClassifier("logistic", 10.0, persist=persist)
    model.fit(frame[COLUMNS], frame["tree"])
    expected = linear_model.FitzpatrickClassifier("logistic", 10.0).fit(X, words)
    assert_same_model(model, expected)
    assert model.classes_.tolist() == ["ash", "elm", "oak"]
    assert model.feature_names_in_.tolist() == COLUMNS
    np.testing.assert_array_equal(model.predict(frame[COLUMNS]).compute(), expected.predict(X))


@both
def test_columns_of_a_parquet_folder_by_values(tmp_path: Path, persist: bool) -> None:
    """Dask reads few columns of several files as one chunk, and does not know the sizes."""
    pytest.importorskip("pyarrow", reason="pyarrow reads parquet")
    labels = Y.argmax(axis=1)
    table = pd.DataFrame(X, columns=COLUMNS).assign(y=labels)
    for part, start in enumerate(range(0, len(table), CHUNK)):
        table[start : start + CHUNK].to_parquet(tmp_path / f"{part}.parquet")
    frame = dd.read_parquet(tmp_path)
    rows, y = frame[COLUMNS].values, frame["y"].values
    assert rows.npartitions != y.npartitions
    expected = linear_model.FitzpatrickClassifier("logistic", 10.0).fit(X, labels)
    model = FitzpatrickClassifier("logistic", 10.0, persist=persist)
    for given in (rows, frame[COLUMNS]):
        assert_same_model(model.fit(given, y), expected)
        assert model.score(given, y) == pytest.approx(expected.score(X, labels), rel=1e-12)
