"""f-divergences: their losses from the definition in mpmath."""

import numpy as np
import pytest
from mpmath import mp, mpf

import fitzpatrick as fp
from fitzpatrick.linear_model import FitzpatrickClassifier
from fitzpatrick.regularizers import FDivergence
from tests.helpers import eps, seeded

CASES = [
    ("kl", None, (0.0, 0.5, 1.0, 3.0)),
    ("chi2", None, (0.0, 1.0, 3.0)),
    ("hellinger", None, (0.0, 0.5, 1.0, 1.9)),
    ("jensen_shannon", None, (0.0, 0.5, 1.0)),
    ("reverse_kl", None, (0.0, 0.5, 0.9)),
    ("alpha", 1.5, (0.0, 1.0, 2.0)),
    ("alpha", 0.25, (0.0, 1.0)),
]


def generator(kind, alpha):
    """f, f' and f'' as they are defined."""
    if kind == "jensen_shannon":
        return (
            lambda u: (u * mp.log(u) if u else 0) - (u + 1) * mp.log((u + 1) / 2),
            lambda u: mp.log(2 * u / (1 + u)),
            lambda u: 1 / (u * (1 + u)),
        )
    if kind == "kl":
        return lambda u: (u * mp.log(u) if u else 0) - u + 1, mp.log, lambda u: 1 / u
    if kind == "reverse_kl":
        return lambda u: u - 1 - mp.log(u), lambda u: 1 - 1 / u, lambda u: 1 / u**2
    if kind == "hellinger":
        root = mp.sqrt
        return lambda u: (root(u) - 1) ** 2, lambda u: 1 - 1 / root(u), lambda u: u**-1.5 / 2
    a = mpf(2 if kind == "chi2" else alpha)
    return (
        lambda u: (u**a - 1 - a * (u - 1)) / (a * (a - 1)),
        lambda u: (u ** (a - 1) - 1) / (a - 1),
        lambda u: u ** (a - 2),
    )


def batch(kind, k, rng):
    """Targets with zeros, unless they are infinitely far from everything, and a reference."""
    y = rng.dirichlet(np.ones(k), 12)
    if kind != "reverse_kl":
        y[:4] = np.eye(k)[rng.integers(0, k, 4)]
        y[4:6, 0] = 0
        y[4:6] /= y[4:6].sum(axis=1, keepdims=True)
    theta = rng.normal(size=(12, k)) * rng.choice([0.1, 3.0, 30.0], (12, 1))
    return y, theta, rng.uniform(0.05, 3, k)


@pytest.mark.parametrize(("kind", "alpha", "tightnesses"), CASES)
def test_losses_and_maximizers_against_the_definition(kind, alpha, tightnesses):
    """y* satisfies the conditions of the supremum, whose value there is the loss.

    The objective is flat at its maximum: rounding errors of y* count squared in the value, but for
    those of the sum of a row, which τ multiplies.
    """
    f, slope, bend = generator(kind, alpha)
    rng = seeded(7)
    for k in (2, 5):
        y, theta, q = batch(kind, k, rng)
        omega = FDivergence(kind, reference=q, alpha=alpha)
        for c in tightnesses:
            loss = fp.FitzpatrickLoss(omega, tightness=c)
            values, points = loss.value(y, theta), loss.y_star(y, theta)
            for row in range(len(y)):
                with mp.workdps(40):
                    p, target, score, weight = (
                        [mpf(float(x)) for x in part]
                        for part in (points[row], y[row], theta[row], q)
                    )
                    entries = list(zip(p, target, score, weight, strict=True))
                    levels = [
                        s - slope(x / w) - c * bend(x / w) * (x - t) / w
                        for x, t, s, w in entries
                        if x > 0
                    ]
                    objective = sum(
                        (1 - c) * w * (f(t / w) - f(x / w))
                        + c * slope(x / w) * (t - x)
                        + (x - t) * s
                        for x, t, s, w in entries
                        if x or t
                    )
                size = 1 + float(np.abs(theta[row]).max())
                # the level of an entry moves with its relative error, times its curvature
                room = 1e3 * eps("float64") * size
                assert float(max(levels) - min(levels)) <= room * (1 + float(max(map(abs, levels))))
                assert abs(float(sum(p)) - 1) <= 8 * k * eps("float64")
                assert abs(values[row] - float(objective)) <= 64 * k * eps("float64") * size


@pytest.mark.parametrize("kind", ["kl", "chi2", "hellinger", "jensen_shannon", "reverse_kl"])
def test_equal_scores_predict_the_reference(kind):
    q = np.array([0.5, 1e-4, 0.2999, 0.2])
    omega = FDivergence(kind, reference=q / q.sum())
    np.testing.assert_allclose(omega.link(np.full(4, 3.0)), q / q.sum(), rtol=1e-12)
    assert omega.value(q / q.sum()) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("size", [1e-29, 1.0, 1e28])
@pytest.mark.parametrize("kind", ["kl", "chi2", "hellinger", "jensen_shannon", "reverse_kl"])
def test_single_precision_at_references_of_any_size(kind, size):
    """Where squares of ratios to the reference overflow; at scores without near ties."""
    loss = fp.FitzpatrickLoss(FDivergence(kind, reference=size * np.array([0.5, 1, 2])), 0.5)
    theta = np.float32([[0.0, 0.0, 0.0], [0.0, 0.3, -0.2], [4.0, 1.0, -7.0]])
    y = np.float32([[0.25, 0.5, 0.25], [0.5, 0.125, 0.375], [0.125, 0.125, 0.75]])
    found, exact = (
        loss.y_star(*pair) for pair in ((y, theta), (y.astype(float), theta.astype(float)))
    )
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1e12, 1e29])
def test_jensen_shannon_from_afar_is_kullback_leibler(size, dtype):
    """f' is log 2u less log(1 + u), which is u where u is small."""
    rng, q = seeded(5), np.array([0.5, 1.0, 2.0, 0.1])
    y, theta = rng.dirichlet(np.ones(4), 60).astype(dtype), rng.normal(size=(60, 4)).astype(dtype)
    for c in (0.0, 0.1, 0.5, 1.0):
        far, near = (
            fp.FitzpatrickLoss(FDivergence(*given), c).y_star(y, theta)
            for given in (("jensen_shannon", size * q), ("kl", q))
        )
        # ratios are found by their logarithms
        rounding = 16 * eps(dtype) * np.log(size) + 16 / size
        np.testing.assert_allclose(far, near, rtol=0, atol=rounding)


@pytest.mark.parametrize("reference", [[1e-6, 1.0, 1e6], [1e-9, 1e-3, 1e-3]])
@pytest.mark.parametrize("kind", ["hellinger", "jensen_shannon", "alpha"])
def test_maximizers_sum_to_one_at_references_far_apart(kind, reference, dtype):
    """Newton's method for τ bends sharply beside the end of f'."""
    omega = FDivergence(kind, reference, alpha=0.05 if kind == "alpha" else None)
    rng = seeded(4)
    y = rng.dirichlet(np.ones(3), 40).astype(dtype)
    theta = (rng.normal(size=(40, 3)) * np.geomspace(1e-2, 1e3, 40)[:, None]).astype(dtype)
    for c in (0.0, 0.5, 1.0):
        p = fp.FitzpatrickLoss(omega, c).y_star(y, theta).astype(float)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=64 * eps(dtype))


def test_reference_by_row():
    rng = seeded(3)
    y, theta, q = rng.dirichlet(np.ones(3), 5), rng.normal(size=(5, 3)), rng.uniform(0.1, 1, (5, 3))
    labels = np.arange(5) % 3
    whole = fp.FitzpatrickLoss(FDivergence("hellinger", reference=q))
    for row in range(5):
        alone = fp.FitzpatrickLoss(FDivergence("hellinger", reference=q[row]))
        assert whole.value(y, theta)[row] == pytest.approx(
            alone.value(y[row], theta[row]), rel=1e-13
        )
        by_label = alone.value(labels[row : row + 1], theta[row : row + 1])
        assert whole.value(labels, theta)[row] == pytest.approx(by_label[0], rel=1e-13)


def test_masked_classes_and_labels():
    theta = np.array([[0.5, -np.inf, 1.0]])
    for kind in ("hellinger", "jensen_shannon", "reverse_kl", "kl", "chi2"):
        loss = fp.FitzpatrickLoss(FDivergence(kind, reference=[0.3, 0.3, 0.4]), tightness=0.5)
        p = loss.y_star(np.array([[0.0, 0.0, 1.0]]), theta)
        assert p[0, 1] == 0
        assert p.sum() == pytest.approx(1, abs=1e-14)
        assert loss.value(np.array([[0.0, 1.0, 0.0]]), theta) == np.inf
    assert FDivergence("reverse_kl").value(np.array([1.0, 0.0])) == np.inf


ROWS = FDivergence("kl", reference=np.ones((2, 3)) / 3)
ERRORS = [
    (lambda: FDivergence("helinger"), "did you mean 'hellinger'"),
    (lambda: FDivergence("alpha"), "which needs it"),
    (lambda: FDivergence("kl", alpha=1.5), "no other takes it"),
    (lambda: FDivergence("alpha", alpha=2.5), "0 < alpha <= 2"),
    (lambda: FDivergence("kl", [0.5, 0.0]), "positive and finite"),
    (lambda: FDivergence("kl", [1e-20, 1.0]), "differ by 1e12 at most"),
    (lambda: FDivergence("kl", np.ones((2, 2, 2))), r"shape \(k,\) or \(n, k\)"),
    *(
        (lambda kind=kind, c=c: fp.FitzpatrickLoss(FDivergence(kind), c), "defined up to")
        for kind, c in (("hellinger", 2.1), ("jensen_shannon", 1.1), ("reverse_kl", 1.0))
    ),
    (lambda: fp.Loss(FDivergence("reverse_kl"), 0).value([0], np.zeros((1, 2))), "at class labels"),
    (lambda: ROWS.link(np.zeros((2, 2, 3))), "reference has shape"),
    (lambda: ROWS.link(np.zeros((3, 3))), r"reference has shape \(2, 3\)"),
]


def test_classes_are_predicted_by_the_link_where_the_reference_differs():
    rng = seeded(8)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 3, 120)
    loss = fp.FitzpatrickLoss(FDivergence("kl", reference=[0.05, 0.15, 0.8]))
    model = FitzpatrickClassifier(loss, alpha=1.0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.predict_link(X).argmax(axis=1))
    assert (model.predict(X) != model.decision_function(X).argmax(axis=1)).any()


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_equal_references_are_equal():
    one, other = (FDivergence("kl", reference=np.array([0.25, 0.75])) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != FDivergence("kl", reference=[0.75, 0.25])
    assert FDivergence("alpha", alpha=1.5) != FDivergence("alpha", alpha=1.7)
