"""Gradients and Hessians for boosting: differences, bounds, and the libraries' own objectives."""

import numpy as np
import pytest
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick.boosting import (
    catboost_objective,
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)
from tests.helpers import seeded, targets

LOSSES = ("logistic", "sparsemax", "entmax15", "sigmoid", "poisson", "squared", "sparse_sigmoid")
N, K = 20, 4
TINY = 1e-300  # a floor that no Hessian here reaches
ROUNDED = 2 * np.finfo(np.float32).eps  # objectives return float32, as the libraries store it


def batch(name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = seeded(seed)
    domain = fp.get_loss(name).regularizer.domain
    return targets(domain, rng, N, K, "float64"), rng.normal(size=(N, K)) * 1.5


def full_hessians(loss, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    columns = [loss.hessian_product(y, theta, np.tile(e, (N, 1))) for e in np.eye(K)]
    return np.stack(columns, axis=2)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tightness", [0.0, 1.0, 3.0])
def test_derivatives_and_bounds(name: str, tightness: float) -> None:
    fitzpatrick = f"fitzpatrick_{name}"
    y, theta = batch(name)
    loss = fp.get_loss(fitzpatrick, tightness=tightness)
    hessians = full_hessians(loss, y, theta)
    found = {}
    for kind in ("diagonal", "majorizer", "double", 1.25):
        objective = lightgbm_objective(
            fitzpatrick, y, tightness=tightness, hessian=kind, floor=TINY
        )
        gradient, found[kind] = objective(theta, None)
        np.testing.assert_allclose(gradient, loss.gradient(y, theta), rtol=ROUNDED, atol=1e-14)
    diagonal = np.diagonal(hessians, axis1=1, axis2=2)
    np.testing.assert_allclose(found["diagonal"], diagonal, rtol=ROUNDED, atol=1e-14)
    np.testing.assert_allclose(found[1.25], 1.25 * diagonal, rtol=ROUNDED, atol=1e-14)
    for kind in ("majorizer", "double"):
        excess = np.linalg.eigvalsh(np.eye(K) * found[kind][:, None, :] - hessians)
        # rounding of a matrix of the size of its Hessian
        assert (excess >= -ROUNDED * np.abs(hessians).max()).all()


def test_the_floor_keeps_steps_finite() -> None:
    """Sparse links have slope zero where a class is alone, or outside of the support."""
    y, theta = np.asarray([[0.0, 1.0, 0.0]]), np.asarray([[9.0, 0.0, 0.0]])
    for tightness in (0.0, 3.0):
        objective = lightgbm_objective("fitzpatrick_sparsemax", y, tightness=tightness, floor=0.1)
        _, hessian = objective(theta, None)
        np.testing.assert_allclose(hessian, 0.1 / (1 + tightness), rtol=ROUNDED)


def test_forms_of_targets_agree() -> None:
    labels, theta = np.asarray([2, 0, 1]), seeded(3).normal(size=(3, 3))
    forms = labels, np.eye(3)[labels], sparse.csr_array(np.eye(3)[labels])
    for make in (lightgbm_objective, xgboost_objective):
        expected = make("fitzpatrick_logistic", forms[1])(theta, None)
        for y in forms:
            for ours, theirs in zip(
                make("fitzpatrick_logistic", y)(theta, None), expected, strict=True
            ):
                np.testing.assert_allclose(ours, theirs, rtol=ROUNDED)
    flat = theta.ravel(order="F")  # as older versions of LightGBM hand them over
    np.testing.assert_array_equal(
        lightgbm_objective("logistic", labels)(flat, None)[0],
        lightgbm_objective("logistic", labels)(theta, None)[0],
    )


def test_bad_arguments() -> None:
    y = np.asarray([[0.5, 0.5]])
    with pytest.raises(ValueError, match="hessian must be one of"):
        lightgbm_objective("logistic", y, hessian="full")
    with pytest.raises(ValueError, match="floor must be positive"):
        lightgbm_objective("logistic", y, floor=0)
    with pytest.raises(ValueError, match="sum"):
        lightgbm_objective("logistic", y * 3)
    with pytest.raises(ValueError, match="num_class"):
        lightgbm_objective("logistic", y)(np.zeros((1, 3)), None)


def noisy(n: int = 400, k: int = 4):
    rng = seeded(4)
    X = rng.normal(size=(n, 5))
    P = fp.get_loss("logistic").link(
        np.stack([X[:, 0] * 2, np.sin(3 * X[:, 1]), X[:, 2], -X[:, 3]], 1)
    )
    y = (rng.random((n, 1)) > np.cumsum(P, axis=1)).sum(axis=1).clip(max=k - 1)
    return X, P, y


PARAMS = {"num_class": 4, "num_leaves": 7, "verbosity": -1, "num_threads": 1}


def softmax(scores: np.ndarray) -> np.ndarray:
    return np.asarray(fp.get_loss("logistic").link(np.asarray(scores, dtype=np.float64)))


def test_as_the_objective_of_lightgbm() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    X, _, y = noisy()
    start = np.tile(np.log(np.bincount(y) / len(y)), (len(y), 1))
    theirs = lightgbm.train({**PARAMS, "objective": "multiclass"}, lightgbm.Dataset(X, y), 20)
    objective = lightgbm_objective("logistic", y, hessian=4 / 3, floor=TINY)
    data = lightgbm.Dataset(X, y, init_score=start)
    ours = lightgbm.train({**PARAMS, "objective": objective}, data, 20)
    np.testing.assert_allclose(
        softmax(ours.predict(X, raw_score=True) + start), theirs.predict(X), atol=1e-6
    )


def test_as_the_objective_of_xgboost() -> None:
    xgboost = pytest.importorskip("xgboost")
    X, _, y = noisy()
    params = {"num_class": 4, "max_depth": 3, "base_score": 0.5, "nthread": 1}
    data = xgboost.DMatrix(X, y)
    theirs = xgboost.train({**params, "objective": "multi:softprob"}, data, 20).predict(data)
    objective = xgboost_objective("logistic", y, hessian="double", floor=1e-16)
    ours = xgboost.train(
        {**params, "disable_default_eval_metric": True}, data, 20, obj=objective,
        evals=[(data, "train")], custom_metric=xgboost_metric("logistic", y), verbose_eval=False,
    )  # fmt: skip
    np.testing.assert_allclose(softmax(ours.predict(data, output_margin=True)), theirs, atol=1e-6)


def test_catboost_takes_full_hessians() -> None:
    pytest.importorskip("catboost")
    y, theta = batch("logistic", 5)
    loss = fp.get_loss("fitzpatrick_logistic", tightness=0.5)
    objective = catboost_objective("fitzpatrick_logistic", 0.5)
    hessians = full_hessians(loss, y, theta)
    for i in range(3):
        first, second = objective.calc_ders_multi(theta[i], y[i], 2.0)
        np.testing.assert_allclose(first, -2 * loss.gradient(y, theta)[i], rtol=1e-12)
        np.testing.assert_allclose(second, -2 * hessians[i], rtol=1e-9, atol=1e-14)


def test_metrics_know_the_weights_of_the_data_set() -> None:
    class Data:
        def get_weight(self):
            return np.asarray([1.0, 0.0])

    metric = lightgbm_metric("logistic", np.asarray([0, 1]))
    scores = np.asarray([[5.0, 0.0], [5.0, 0.0]])
    assert metric(scores, Data())[1] == fp.get_loss("logistic").value(0, scores[0])
