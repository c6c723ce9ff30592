"""Fits whose chunks are read from parquet files."""

from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from fitzpatrick import linear_model
from fitzpatrick.dask import FitzpatrickClassifier
from tests.linear_model.data import LABELS, X

from .data import CHUNK, assert_same_model

COLUMNS = [f"x{j}" for j in range(X.shape[1])]


@pytest.mark.parametrize("persist", [True, False])
def test_a_parquet_folder(tmp_path: Path, persist: bool) -> None:
    """Dask reads few columns of several files as one chunk, and does not know the sizes."""
    pytest.importorskip("pyarrow", reason="pyarrow reads parquet")
    table = pd.DataFrame(X, columns=COLUMNS).assign(y=LABELS)
    for part, start in enumerate(range(0, len(table), CHUNK)):
        table[start : start + CHUNK].to_parquet(tmp_path / f"{part}.parquet")
    frame = dd.read_parquet(tmp_path)
    rows, y = frame[COLUMNS].values, frame["y"].values
    assert rows.npartitions != y.npartitions
    expected = linear_model.FitzpatrickClassifier("logistic", 100.0).fit(X, LABELS)
    for X_given, y_given in ((frame[COLUMNS], frame["y"]), (frame[COLUMNS], y), (rows, y)):
        model = FitzpatrickClassifier("logistic", 100.0, persist=persist).fit(X_given, y_given)
        assert_same_model(model, expected)
        assert model.score(X_given, y_given) == pytest.approx(expected.score(X, LABELS))
        np.testing.assert_array_equal(model.predict(X_given).compute(), expected.predict(X))
        assert list(getattr(model, "feature_names_in_", COLUMNS)) == COLUMNS
