"""One clear error, which names the chunk, and an estimator that stays as it was."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from fitzpatrick.dask import (
    ChunkError,
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
    fit_path,
)
from tests.linear_model.data import features, targets

from .data import chunked

X = features()
Y = targets("fitzpatrick_logistic", X)
LABELS = Y.argmax(axis=1)


def changed(array, row, column, value):
    array = array.astype(float)
    array[row, column] = value
    return array


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_features_that_are_not_finite(value, word, form) -> None:
    model = FitzpatrickClassifier()
    with pytest.raises(ChunkError, match=f"chunk 1: Input X contains {word} in row 8, column 2; "):
        model.fit(chunked(form(changed(X, 33, 2, value))), chunked(LABELS))
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (changed(Y, 33, 2, np.nan), "chunk 1: Input y contains NaN in row 8, column 2"),
        (changed(Y, 33, 2, 5.0), "chunk 1: y is not in the domain .*: in row 8 it sums to"),
        (changed(Y, slice(33, 34), slice(2), (-1.0, 2.0)), "chunk 1: .*row 8"),
    ],
)
def test_targets_off_their_domain(y, message) -> None:
    with pytest.raises(ChunkError, match=message):
        ProportionRegressor().fit(chunked(X), chunked(y))


def test_shares_that_were_rounded_are_said_once() -> None:
    y = np.array([[0.333, 0.333, 0.333]] * len(X))
    with pytest.warns(UserWarning, match=r"differ from a sum of one by up to 0\.001") as caught:
        ProportionRegressor(alpha=100.0).fit(chunked(X), chunked(y))
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("persist", [True, False])
def test_chunks_that_cannot_be_read(persist) -> None:
    def read(block, block_info=None):
        if block_info and block_info[0]["chunk-location"][0] == 1:
            raise OSError("the disk is gone")
        return block

    rows = chunked(X).map_blocks(read, dtype=X.dtype, meta=np.empty((0, 0)))
    expected = "chunk 1 of X cannot be read: OSError: the disk is gone"
    with pytest.raises(ChunkError, match=expected):
        FitzpatrickClassifier(persist=persist).fit(rows, chunked(LABELS))


def test_chunks_that_do_not_go_together() -> None:
    model = FitzpatrickClassifier()
    with pytest.raises(
        ChunkError, match=r"chunk 0 of y is 20 rows and chunk 0 of X 25 rows, .*rechunk"
    ):
        model.fit(chunked(X), chunked(LABELS, 20))
    with pytest.raises(ChunkError, match="chunk 2 of sample_weight is not there and chunk 2 of X"):
        model.fit(chunked(X), chunked(LABELS), chunked(np.ones(50)))
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    with pytest.raises(ChunkError, match="y has 2 chunks and X has 3"):
        model.fit(frame, dd.from_pandas(pd.Series(LABELS), npartitions=2))
    uneven = dd.from_pandas(pd.Series(LABELS).iloc[:-1], npartitions=3)
    with pytest.raises(ChunkError, match=r"chunk \d: .*inconsistent numbers of samples"):
        model.fit(frame, uneven)
    with pytest.raises(ValueError, match=r"X has 2 chunks of columns, .*rechunk\(\{1: -1\}\)"):
        model.fit(da.from_array(X, chunks=(25, 3)), chunked(LABELS))


def narrower(block, block_info=None):
    """Four columns in the first chunk, and three in the second."""
    return block[:, : 4 - block_info[0]["chunk-location"][0]] if block_info else block


def test_chunks_of_other_types_and_shapes() -> None:
    mixed = da.concatenate([chunked(X[:25]), chunked(sparse.csr_array(X[25:]))])
    with pytest.raises(ChunkError, match="chunk 1: is_sparse of X is True, and False in"):
        FitzpatrickClassifier().fit(mixed, chunked(LABELS))
    uneven = chunked(X).map_blocks(narrower, dtype=X.dtype, meta=np.empty((0, 0)))
    with pytest.raises(ChunkError, match="chunk 1: n_features of X is 3, and 4 in the chunks"):
        FitzpatrickClassifier().fit(uneven, chunked(LABELS))
    with pytest.raises(ChunkError, match="chunk 1: y has 3 columns, and 4 in the chunks before"):
        ProportionRegressor("squared").fit(chunked(X), uneven)


def test_weights() -> None:
    model = FitzpatrickClassifier()
    with pytest.raises(ValueError, match="sample_weight is zero for all samples"):
        model.fit(chunked(X), chunked(LABELS), chunked(np.zeros(len(X))))
    weights = np.ones(len(X))
    weights[40] = -1
    with pytest.raises(ChunkError, match="chunk 1: Negative values"):
        model.fit(chunked(X), chunked(LABELS), chunked(weights))
    with pytest.raises(ValueError, match="class_weight is zero for the classes of all samples"):
        FitzpatrickClassifier(class_weight=dict.fromkeys(range(4), 0.0)).fit(
            chunked(X), chunked(LABELS)
        )


def test_inputs_of_the_wrong_kind() -> None:
    with pytest.raises(TypeError, match=r"X is a numpy.ndarray, .*use da.from_array"):
        FitzpatrickClassifier().fit(X, LABELS)
    with pytest.raises(ValueError, match="needs at least two classes"):
        FitzpatrickClassifier().fit(chunked(X), chunked(np.zeros(len(X))))
    with pytest.raises(ChunkError, match=r"chunk \d: Unknown label type: continuous"):
        FitzpatrickClassifier().fit(chunked(X), chunked(X[:, 0]))
    with pytest.raises(ValueError, match="needs a loss on the simplex"):
        FitzpatrickClassifier("squared").fit(chunked(X), chunked(LABELS))
    with pytest.raises(ValueError, match="y to be passed"):
        FitzpatrickClassifier().fit(chunked(X), None)
    with pytest.raises(ValueError, match=r"y has shape \(59,\), and X has 60 rows"):
        FitzpatrickClassifier().fit(chunked(X), LABELS[:-1])
    with pytest.raises(ValueError, match="an entry of size 1e\\+200, and sums of squares overflow"):
        FitzpatrickClassifier().fit(chunked(changed(X, 3, 1, 1e200)), chunked(LABELS))
    model = FitzpatrickClassifier("logistic", 100.0).fit(chunked(X), LABELS)
    with pytest.raises(
        ValueError, match="X has 4 features, but FitzpatrickClassifier is expecting"
    ):
        model.predict(chunked(X[:, :4]))
    with pytest.raises(ValueError, match="alphas"):
        fit_path(chunked(X), LABELS, "logistic", [-1.0])


def test_searches() -> None:
    data = chunked(X), chunked(LABELS)
    with pytest.raises(ValueError, match=r"chooses on a dev set: give fit\(\) dev="):
        FitzpatrickClassifierCV().fit(*data)
    with pytest.raises(ValueError, match="cv is not used on Dask"):
        FitzpatrickClassifierCV(cv=3).fit(*data, dev=data)
    shares = chunked(X), chunked(Y)
    for scoring in ("r2", "calibration_error"):
        with pytest.raises(ValueError, match=f"scoring='{scoring}' is no mean over samples"):
            ProportionRegressorCV(scoring=scoring).fit(*shares, dev=shares)
    with pytest.raises(ChunkError, match=r"dev: chunk \d: y holds classes that are not in"):
        FitzpatrickClassifierCV(alphas=[100.0]).fit(*data, dev=(chunked(X), chunked(LABELS + 9)))
