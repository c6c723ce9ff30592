"""The code of the guides runs, and its classes work in the whole package."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick.linear_model import ProportionRegressor
from tests.helpers import seeded

from .markdown import DOCS, blocks

TIGHTNESSES = (0.0, 0.5, 1.0, 2.0, 10.0)


def run_guide(name: str) -> dict[str, Any]:
    """The names that the code blocks of a guide define."""
    code = [block.text for block in blocks(DOCS / name) if block.language == "python"]
    assert code, name
    names: dict[str, Any] = {"__name__": name}
    exec(compile("\n".join(code), name, "exec"), names)
    return names


@pytest.fixture(scope="module")
def elastic() -> fp.regularizers.SeparableRegularizer:
    return run_guide("add_a_regularizer.md")["ElasticEntropy"]()


def rows(n: int = 40, k: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = seeded(3)
    y = rng.dirichlet(np.ones(k), size=n)
    y[::2, : k // 2] = 0
    y /= y.sum(axis=1, keepdims=True)
    theta = rng.normal(size=(n, k)) * rng.choice([0.1, 3.0, 100.0], size=(n, 1))
    return y, theta, rng.integers(k, size=n)


def test_the_guide_to_a_set_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_guide("add_a_set.md")
    assert "[[6.5 3.5 0.  0. ]]" in capsys.readouterr().out
    plain, better = (names[name](10.0) for name in ("ScaledSimplex", "BetterScaledSimplex"))
    rng = seeded(0)
    y, theta = plain.project(3 * rng.normal(size=(30, 5))), 5 * rng.normal(size=(30, 5))
    v = rng.normal(size=(30, 5))
    for tightness in TIGHTNESSES:
        losses = [
            fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(domain), tightness=tightness)
            for domain in (plain, better)
        ]
        values = [loss.value(y, theta) for loss in losses]
        # values of the size of ⟨y, θ⟩ = 10 · 5, in float64
        np.testing.assert_allclose(values[0], values[1], rtol=1e-12, atol=1e-11)
        products = [loss.hessian_product(y, theta, v) for loss in losses]
        # a central difference is exact to eps^(2/3) of the scale of x, except at the few kinks
        off = np.abs(products[0] - products[1]).max(axis=1) > 1e-6
        assert off.mean() < 0.2


@pytest.mark.parametrize("tightness", TIGHTNESSES)
def test_labels_and_sparse_targets_of_a_new_regularizer(elastic: Any, tightness: float) -> None:
    loss = fp.FitzpatrickLoss(elastic, tightness=tightness)
    y, theta, labels = rows()
    one_hot = np.eye(theta.shape[1])[labels]
    for other, target in ((labels, one_hot), (sparse.csr_array(y), y)):
        value, gradient = loss.value_and_gradient(target, theta)
        same_value, same_gradient = loss.value_and_gradient(other, theta)
        # two ways to compute sums of six terms
        np.testing.assert_allclose(same_value, value, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(same_gradient, gradient, rtol=0, atol=1e-14)
        assert np.all(value >= 0)
        np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-14)
    assert loss.value(loss.link(theta), theta).max() < 1e-12


def test_estimators_take_a_new_regularizer(elastic: Any) -> None:
    y, theta, _ = rows()
    model = ProportionRegressor(loss=fp.FitzpatrickLoss(elastic), alpha=0.1).fit(theta, y)
    np.testing.assert_allclose(model.predict(theta).sum(axis=1), 1, atol=1e-12)
    assert model.n_iter_ > 0
