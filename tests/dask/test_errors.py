"""One clear error, which names the chunk, and an estimator that stays as it was."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from fitzpatrick.dask import (
    ChunkError,
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
    fit_path,
)
from tests.linear_model.data import LABELS, X, Y

from .data import chunked, unreadable


def changed(array, row, column, value):
    array = array.astype(float)
    array[row, column] = value
    return array


def narrower(block, block_info=None):
    """Four columns in the first chunk, and three in the second."""
    return block[:, : 4 - block_info[0]["chunk-location"][0]] if block_info else block


def words_later(block, block_info=None):
    """Numbers in the first chunk, and words in the others."""
    return block.astype(str) if block_info and block_info[0]["chunk-location"][0] else block


GAP, INFINITE = changed(X, 33, 2, np.nan), changed(X, 33, 2, np.inf)
NEGATIVE = np.where(np.arange(60) == 40, -1.0, 1.0)
UNEVEN = chunked(X).map_blocks(narrower, dtype=X.dtype, meta=np.empty((0, 0)))
MIXED = da.concatenate([chunked(X[:25]), chunked(sparse.csr_array(X[25:]))])
FRAME = dd.from_pandas(pd.DataFrame(X), npartitions=3)
ROWS, LABEL_CHUNKS = chunked(X), chunked(LABELS)


CLASSES = [
    ((chunked(GAP), LABEL_CHUNKS), "chunk 1: Input X contains NaN in row 8, column 2; "),
    ((chunked(INFINITE), LABEL_CHUNKS), "chunk 1: Input X contains infinity in row 8"),
    ((chunked(sparse.csr_array(GAP)), LABEL_CHUNKS), "chunk 1: .* NaN in row 8, column 2; "),
    ((MIXED, LABEL_CHUNKS), "chunk 1: is_sparse of X is True, and False in"),
    ((UNEVEN, LABEL_CHUNKS), "chunk 1: n_features of X is 3, and 4 in the chunks"),
    ((ROWS, chunked(LABELS, 20)), "chunk 0 of y is 20 rows and chunk 0 of X 25.*rechunk"),
    ((ROWS, LABEL_CHUNKS, chunked(np.ones(50))), "chunk 2 of sample_weight is not there and"),
    ((FRAME, dd.from_pandas(pd.Series(LABELS), npartitions=2)), "y has 2 chunks and X has 3"),
    (
        (FRAME, dd.from_pandas(pd.Series(LABELS[:-1]), npartitions=3)),
        r"chunk \d: .*inconsistent",
    ),
    ((da.from_array(X, chunks=(25, 3)), LABELS), r"X has 2 chunks of columns, .*\{1: -1\}"),
    ((ROWS, LABEL_CHUNKS, chunked(np.zeros(60))), "sample_weight is zero for all samples"),
    ((ROWS, LABEL_CHUNKS, chunked(NEGATIVE)), "chunk 1: Negative values"),
    ((ROWS, chunked(np.zeros(60))), "needs at least two classes"),
    ((ROWS, chunked(X[:, 0])), r"chunk \d: Unknown label type: continuous"),
    ((ROWS, LABEL_CHUNKS.map_blocks(words_later)), "chunk 1: type of y is text, and numbers in"),
    ((ROWS, None), "y to be passed"),
    ((ROWS, LABELS[:-1]), r"y has shape \(59,\), and X has 60 rows"),
    ((chunked(changed(X, 3, 1, 1e200)), LABELS), r"an entry of size 1e\+200, and sums of sq"),
]
CHUNKS = chunked(Y)
PROPORTIONS = [
    (chunked(changed(Y, 33, 2, np.nan)), "chunk 1: Input y contains NaN in row 8, column 2"),
    (chunked(changed(Y, 33, 2, 5.0)), "chunk 1: y is not in the domain .*: in row 8 it sums"),
    (chunked(changed(Y, slice(33, 34), slice(2), (-1.0, 2.0))), "chunk 1: .*row 8"),
]
NO_WEIGHT = {"class_weight": dict.fromkeys(range(4), 0.0)}
BOTH, SEARCH = (ROWS, LABEL_CHUNKS), FitzpatrickClassifierCV
CASES = [
    *((FitzpatrickClassifier(), data, {}, message) for data, message in CLASSES),
    *((ProportionRegressor("logistic"), (ROWS, y), {}, message) for y, message in PROPORTIONS),
    (ProportionRegressor("squared"), (ROWS, UNEVEN), {}, r"chunk 1: shape of y is \(n, 3\), and"),
    *((FitzpatrickClassifier(persist=persist), (unreadable(ROWS), LABEL_CHUNKS), {},
       "chunk 1 of X cannot be read: OSError: the disk is gone") for persist in (True, False)),
    (FitzpatrickClassifier("squared"), BOTH, {}, "needs a loss on the simplex"),
    (FitzpatrickClassifier(**NO_WEIGHT), BOTH, {}, "class_weight is zero for the classes of all"),
    (SEARCH(), BOTH, {}, r"chooses on a dev set: give fit\(\) dev="),
    (SEARCH(cv=3), BOTH, {"dev": BOTH}, "cv is not used on Dask"),
    (ProportionRegressorCV(scoring="r2"), (ROWS, CHUNKS), {"dev": (ROWS, CHUNKS)},
     "scoring='r2' is no mean over samples"),
    (SEARCH(alphas=[100.0]), BOTH, {"dev": (ROWS, chunked(LABELS + 9))},
     r"dev: chunk \d: y holds classes that are not in"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "data", "options", "message"), CASES)
def test_fits(model, data, options, message) -> None:
    is_of_chunk = message.startswith(("chunk", "dev: chunk"))
    with pytest.raises(ChunkError if is_of_chunk else ValueError, match=message):
        model.fit(*data, **options)
    assert not hasattr(model, "coef_")


def test_inputs_of_the_wrong_kind() -> None:
    with pytest.raises(TypeError, match=r"X is a numpy.ndarray, .*use da.from_array"):
        FitzpatrickClassifier().fit(X, LABELS)
    model = FitzpatrickClassifier("logistic", 100.0).fit(ROWS, LABELS)
    with pytest.raises(ValueError, match="X has 4 features, but FitzpatrickClassifier is expect"):
        model.predict(chunked(X[:, :4]))
    with pytest.raises(ValueError, match="alphas"):
        fit_path(ROWS, LABELS, "logistic", [-1.0])
    with pytest.raises(ChunkError, match=r"chunk \d: y of shape \(\d+,\) must hold classes"):
        fit_path(ROWS, chunked(LABELS / 2), "logistic", [1.0])
    with pytest.raises(ChunkError, match=r"chunk \d: label -\d in row 0 is out of range"):
        fit_path(ROWS, chunked(-1 - LABELS), "logistic", [1.0], persist=False)
    with pytest.raises(TypeError, match=r"fit_path\(\) got an unexpected keyword argument 'dtype'"):
        fit_path(ROWS, LABELS, "logistic", [1.0], dtype="float32")


def test_what_is_warned_about_is_said_once() -> None:
    with pytest.warns(ConvergenceWarning, match="at tightness 40 the loss of a class label"):
        FitzpatrickClassifier(tightness=40).fit(ROWS, LABEL_CHUNKS)
    y = np.repeat([[0.5, 0.25, 0.25], [0.333, 0.333, 0.333]], [50, 10], axis=0)
    with pytest.warns(UserWarning, match=r"differ from a sum of one by up to 0\.001") as caught:
        ProportionRegressor(alpha=100.0).fit(chunked(X), chunked(y))
    assert len(caught) == 1
    assert caught[0].filename == __file__
