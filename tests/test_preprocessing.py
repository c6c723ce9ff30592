"""Indicator and count matrices become proportions."""

import numpy as np
import pytest
from scipy import sparse

from fitzpatrick.preprocessing import label_proportions
from tests.helpers import seeded

COUNTS = np.asarray([[1, 1, 0], [0, 3, 1], [0, 0, 7]])
EXPECTED = np.asarray([[0.5, 0.5, 0.0], [0.0, 0.75, 0.25], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("dtype", [bool, int, np.uint8, float])
@pytest.mark.parametrize(
    "form", [np.asarray, sparse.csr_array, sparse.csc_array, sparse.coo_matrix]
)
def test_rows_sum_to_one(form, dtype) -> None:
    counts = COUNTS.astype(dtype)
    out = label_proportions(form(counts))
    assert sparse.issparse(out) == (form is not np.asarray)
    assert out.dtype == np.float64
    dense = out.toarray() if sparse.issparse(out) else out
    expected = counts / counts.sum(axis=1, keepdims=True) if dtype is bool else EXPECTED
    np.testing.assert_allclose(dense, expected)


@pytest.mark.parametrize("dtype", [int, np.float32, float])
def test_the_input_is_left_alone_also_when_the_output_changes(dtype) -> None:
    indices, indptr = np.asarray([1, 0, 2, 1, 2]), np.asarray([0, 2, 4, 5])  # not sorted
    data = np.asarray([1, 1, 1, 3, 7], dtype=dtype)
    counts = sparse.csr_array((data, indices, indptr), shape=(3, 3))
    before = counts.toarray()
    proportions = label_proportions(counts)
    proportions.sort_indices()
    proportions.data[:] = 0
    proportions.eliminate_zeros()
    np.testing.assert_array_equal(counts.toarray(), before)


def test_float32_stays() -> None:
    counts = seeded(0).random((50, 300)).astype(np.float32)
    dense, compressed = label_proportions(counts), label_proportions(sparse.csr_array(counts))
    assert dense.dtype == compressed.dtype == np.float32
    expected = counts / counts.sum(axis=1, keepdims=True, dtype=np.float64)
    np.testing.assert_array_equal(dense, expected.astype(np.float32))
    np.testing.assert_array_equal(compressed.toarray(), dense)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_empty_rows_are_reported(form) -> None:
    counts = np.zeros((20, 3))
    counts[0] = 1
    with pytest.raises(
        ValueError, match=r"19 of 20 rows of Y have no label: rows 1, 2, .*, …; drop"
    ):
        label_proportions(form(counts))
    with pytest.warns(UserWarning, match="19 of 20 rows of Y have no label"):
        out = label_proportions(form(counts), empty="zero")
    assert out.sum() == pytest.approx(1.0)


def with_entry(value: float) -> np.ndarray:
    counts = COUNTS.astype(float)
    counts[1, 2] = value
    return counts


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_bad_input(form) -> None:
    for given, options, message in (
        *((form(with_entry(bad)), {}, "in row 1, column 2") for bad in (-1.0, np.nan, np.inf)),
        (form([[1.0, 2.0], [1e308, 1e308]]), {}, "the sum of row 1 of Y overflows"),
        (np.ones(3), {}, r"Y must have shape \(n, k\)"),
        (np.asarray([["a"]]), {}, "Y must hold numbers"),
        (form(COUNTS), {"empty": "drop"}, "empty must be 'raise' or 'zero'"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            label_proportions(given, **options)
