"""What holds at the edges of every implementation: bad scores, masks, layouts, no rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tests.helpers import RELATIVE, assert_close, eps

from .batches import REGULARIZERS, batches
from .implementations import IMPLEMENTATIONS, Implementation, Result, TorchLists
from .test_parity import installed_only

EDGES = [
    installed_only(implementation, name)
    for implementation in IMPLEMENTATIONS
    for name in implementation.edges
    if name in implementation.names
]
every_edge = pytest.mark.parametrize(("implementation", "name"), EDGES)
every_label_edge = pytest.mark.parametrize(
    ("implementation", "name"),
    [edge for edge in EDGES if REGULARIZERS[edge.values[1]].domain.has_labels],
)


def draw(name: str, form: str, n: int = 5) -> tuple[Any, np.ndarray, np.ndarray]:
    """Targets in a form, scores and rows for the Hessian: the first rows of the stored points."""
    batch = batches(name, 0.5, "float64", form, rows=48)[0]
    moderate = np.where(np.isfinite(batch.theta), np.abs(batch.theta), 0).max(axis=1) < 50
    batch = batch.with_rows(np.flatnonzero(moderate & (batch.points.y[:, :2].min(1) >= 0))[:n])
    return batch.y, np.where(np.isfinite(batch.theta), batch.theta, -1.0), batch.v


def evaluate(implementation: Implementation, name: str, *arrays: Any) -> Result:
    return implementation.evaluate(REGULARIZERS[name], 0.5, *arrays)


def assert_same(found: Result, expected: Result, rows: Any = slice(None)) -> None:
    """Two answers of one implementation, each within the promise."""
    for one, other in zip(found, expected, strict=True):
        if one is not None:
            size = np.max(np.abs(other[rows]), initial=1)
            floor = 16 * eps("float64") * size
            assert_close(one[rows], other[rows], rtol=4 * RELATIVE["float64"], atol=floor)


# of which compiled code must not take the bits for those of a number
NAN_BITS = (0x7FF00000000007A2, 0x7FF8000000000801, 0xFFF8000000000FFF)


@every_edge
def test_bad_scores_spoil_their_row_alone(implementation: Implementation, name: str) -> None:
    """NaN of any bits, anywhere; on the simplex also +∞, and −∞ throughout."""
    is_simplex = REGULARIZERS[name].domain.has_labels
    for form, bits in zip(implementation.forms_of(name), NAN_BITS, strict=False):
        y, theta, v = draw(name, form)
        expected = evaluate(implementation, name, y, theta, v)
        spoilt = theta.copy()
        spoilt.view(np.uint64)[1, 2] = bits
        if is_simplex:
            spoilt[2, 3], spoilt[4] = np.inf, -np.inf
        bad = np.isin(np.arange(len(theta)), [1, 2, 4] if is_simplex else [1])
        found = evaluate(implementation, name, y, spoilt, v)
        np.testing.assert_array_equal(np.isnan(found.value), bad)
        is_nan = np.isnan(found.gradient)
        if is_simplex:
            np.testing.assert_array_equal(is_nan, np.tile(bad[:, None], theta.shape[1]))
        else:
            np.testing.assert_array_equal(is_nan, np.isnan(spoilt))
        assert_same(found, expected, ~bad)


@pytest.mark.parametrize(
    ("implementation", "name"),
    [
        edge
        for edge in EDGES
        if REGULARIZERS[edge.values[1]].domain.is_product and "csr" in edge.values[0].forms
    ],
)
@np.errstate(all="ignore")
def test_infinite_scores_of_single_entries(implementation: Implementation, name: str) -> None:
    """What the core has there: a maximizer at the end of its interval, or no finite loss."""
    for form in implementation.forms_of(name):
        y, theta, v = draw(name, form)
        theta[0, 1], theta[1, 1], theta[3, 2] = np.nan, np.inf, -np.inf
        found = evaluate(implementation, name, y, theta, v)
        expected = evaluate(IMPLEMENTATIONS[0], name, _dense(y), theta, v)
        for one, other in zip(found[:2], expected[:2], strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-13, atol=16 * eps("float64"))


@pytest.mark.parametrize(
    ("implementation", "name"),
    [edge for edge in EDGES if edge.values[0].package in ("numpy", "numba")],
)
def test_memory_may_lie_anyhow(implementation: Implementation, name: str) -> None:
    """Strided, in columns, read-only; inputs stay as they are. Other libraries get copies."""
    for form in implementation.forms_of(name):
        y, theta, v = draw(name, form)
        expected = evaluate(implementation, name, y, theta, v)
        wide = np.repeat(theta, 2, axis=1)[:, ::2]
        kept = np.asfortranarray(theta)
        kept.flags.writeable = False
        target = y if sparse.issparse(y) else np.repeat(y, 2, axis=0)[::2]
        if not sparse.issparse(y):
            target.flags.writeable = False
        assert_same(evaluate(implementation, name, target, wide, v), expected)
        assert_same(evaluate(implementation, name, y, kept, np.asfortranarray(v)), expected)
        np.testing.assert_array_equal(kept, theta)
        np.testing.assert_array_equal(wide, theta)


@every_edge
def test_no_rows_at_all(implementation: Implementation, name: str) -> None:
    for form in implementation.forms_of(name):
        y, theta, v = draw(name, form)
        found = evaluate(implementation, name, y[:0], theta[:0], v[:0])
        assert found.value.shape == (0,)
        assert found.gradient.shape == (0, theta.shape[1])


@every_label_edge
def test_a_masked_target_costs_everything(implementation: Implementation, name: str) -> None:
    """The loss is +∞ where a class with a target is masked; 0 where all others are."""
    for form in implementation.forms_of(name):
        y, theta, v = draw(name, form)
        dense = np.eye(theta.shape[1])[y] if form == "labels" else _dense(y)
        masked = np.where(
            np.arange(len(theta))[:, None] < 2, theta, np.where(dense > 0, theta, -np.inf)
        )
        masked[0, dense[0].argmax()] = -np.inf
        found = evaluate(implementation, name, y, masked, v)
        assert found.value[0] == np.inf
        assert np.all(np.isfinite(found.value[1:]))
        alone = np.sum(dense > 0, axis=1) == 1
        assert_close(found.value[2:][alone[2:]], 0.0, rtol=0, atol=4 * eps("float64"))
        assert_close(found.gradient[2:][alone[2:]], 0.0, rtol=0, atol=4 * eps("float64"))


def _dense(y: Any) -> np.ndarray:
    return y.toarray() if sparse.issparse(y) else y


@every_label_edge
def test_labels_out_of_range(implementation: Implementation, name: str) -> None:
    """An error, or NaN in their rows."""
    if implementation.bad_labels is None:
        pytest.skip("behind the edge, labels are trusted")
    labels, theta, v = draw(name, "labels")
    expected = evaluate(implementation, name, labels, theta, v)
    k = theta.shape[1]
    for bad in (-1, k, k + 7):
        wrong = labels.copy()
        wrong[1] = bad
        if isinstance(implementation.bad_labels, type):
            with pytest.raises(implementation.bad_labels, match="label"):
                evaluate(implementation, name, wrong, theta, v)
        else:
            found = evaluate(implementation, name, wrong, theta, v)
            np.testing.assert_array_equal(np.isnan(found.value), np.arange(len(labels)) == 1)
            assert_same(found, expected, np.arange(len(labels)) != 1)


LISTS = [
    installed_only(implementation, name)
    for implementation in IMPLEMENTATIONS
    if isinstance(implementation, TorchLists)
    for name in ("logistic", "sparsemax")
]


@pytest.mark.parametrize(("implementation", "name"), LISTS)
def test_classes_out_of_range_in_lists(implementation: Implementation, name: str) -> None:
    """NaN in their rows, at the first class that there is not, too."""
    y, theta, v = draw(name, "csr")
    expected, k = evaluate(implementation, name, y, theta, v), theta.shape[1]
    for bad in (k, k + 7):
        columns = y.indices.copy()
        columns[y.indptr[1]] = bad
        wrong = sparse.csr_array((y.data, columns, y.indptr), shape=(len(theta), k + 8))
        found = evaluate(implementation, name, wrong, theta, v)
        is_bad = np.arange(len(theta)) == 1
        np.testing.assert_array_equal(np.isnan(found.value), is_bad)
        np.testing.assert_array_equal(np.isnan(found.gradient).all(axis=1), is_bad)
        assert_same(found, expected, ~is_bad)
