"""Losses as values: their tightness, equality and names."""

import pickle

import mpmath
import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick.losses import ends, name_of, regularizers_by_name
from fitzpatrick.regularizers import Negentropy, Tsallis

OMEGA = Negentropy()


@pytest.mark.parametrize("tightness", [-1e-9, 1e-300, 1e100, 10**400, np.nan, np.inf])
def test_a_tightness_out_of_range(tightness: float) -> None:
    for enter in (
        lambda: fp.FitzpatrickLoss(OMEGA, tightness=tightness),
        lambda: fp.get_loss("fitzpatrick_logistic", tightness),
        lambda: fp.engines.bind(OMEGA, tightness, [0, 1], 3),
        lambda: fp.engines.bind_like(OMEGA, tightness, [0, 1], 3, np.zeros((2, 3))),
    ):
        with pytest.raises(ValueError, match=r"tightness must be 0 or between 1e-12 and 1e\+06"):
            enter()


@pytest.mark.parametrize("tightness", [1e-12, 0.5, 1.0, 1.01, 1.5, 2.0, 3.9, 4.0, 50.0, 1e3, 1e6])
def test_labels_keep_their_digits_at_every_tightness(tightness: float, dtype: str) -> None:
    """Two classes against (1 − c) log(1 + r) + c r in 60 digits, with c r = W(c e^(d − c))."""
    near = min(tightness, 20) + np.asarray([-5.0, -1.0, -0.25, 0.0, 0.5, 3.0])
    d = np.concatenate([np.linspace(-60, 40, 51), [-1e-3, 1e-3, 100.0], near]).astype(dtype)
    theta, labels = np.stack([np.zeros_like(d), d], axis=1), np.zeros(len(d), int)
    with mpmath.workdps(60):
        c, exact = mpmath.mpf(tightness), []
        for difference in d:
            z = mpmath.mpf(float(difference)) - c + mpmath.log(c)
            w = mpmath.lambertw(mpmath.exp(z)).real
            exact.append(float((1 - c) * mpmath.log1p(w / c) + w))
    with np.errstate(all="ignore"):
        values = [OMEGA.solve_labels(labels, theta, tightness).value()]
    for engine in ("numpy", "numba"):
        bound = fp.engines.bind(OMEGA, tightness, labels, 2, dtype, engine=engine)
        values.append(bound.value(theta))
    # A rounding error of d, or of c beside it, moves the loss by at most itself, relative to the
    # loss, and each of a few operations has one of its own; below the normal numbers there are
    # fewer digits.
    size = float(np.finfo(dtype).eps) * (tightness + np.abs(d.astype(float)))
    for value, few in zip(values, (8, 32, 32), strict=True):
        error = few * np.maximum(size, np.finfo(dtype).eps) * np.abs(exact) + np.finfo(dtype).tiny
        assert (np.abs(value - exact) <= error).all()


@pytest.mark.parametrize("tightness", [True, "0.5", None, [0.5], np.ones(1), np.asarray(True), 1j])
def test_a_tightness_that_is_no_number(tightness: object) -> None:
    with pytest.raises(TypeError, match="tightness must be a number"):
        fp.FitzpatrickLoss(OMEGA, tightness=tightness)


@pytest.mark.parametrize("tightness", [2, np.float32(2), np.int64(2), np.asarray(2.0)])
def test_a_tightness_of_any_kind_of_number_is_a_float(tightness: float) -> None:
    loss = fp.FitzpatrickLoss(OMEGA, tightness=tightness)
    assert type(loss.tightness) is float
    assert loss == fp.FitzpatrickLoss(OMEGA, tightness=2.0)


def test_losses_are_equal_where_regularizer_and_tightness_are() -> None:
    loss = fp.FitzpatrickLoss(OMEGA, tightness=0.5)
    assert loss != fp.FitzpatrickLoss(OMEGA)
    assert loss != fp.FitzpatrickLoss(Tsallis(1.5), tightness=0.5)
    assert loss != "fitzpatrick_logistic"
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert len({loss, fp.Loss(OMEGA, 0.5), fp.FenchelYoungLoss(OMEGA)}) == 2


def test_get_loss_at_a_tightness() -> None:
    assert fp.get_loss("fitzpatrick_logistic", tightness=0.5) == fp.FitzpatrickLoss(OMEGA, 0.5)
    assert fp.get_loss(fp.FitzpatrickLoss(OMEGA), 2) == fp.FitzpatrickLoss(OMEGA, 2)
    assert fp.get_loss("logistic", tightness=0) == fp.FenchelYoungLoss(OMEGA)
    assert fp.get_loss("perceptron", tightness=3) == fp.get_loss("perceptron")
    with pytest.raises(ValueError, match=r"of tightness 0; for .*=0.5 use 'fitzpatrick_logistic'"):
        fp.get_loss("logistic", tightness=0.5)
    with pytest.raises(ValueError, match="is a Fenchel-Young loss"):
        fp.get_loss(fp.FenchelYoungLoss(OMEGA), tightness=1)


def test_a_loss_needs_a_regularizer() -> None:
    with pytest.raises(TypeError, match=r"got 'logistic'; for the name of a loss use .*get_loss"):
        fp.FitzpatrickLoss("logistic")


def test_every_name_belongs_to_one_regularizer() -> None:
    for short, omega in regularizers_by_name().items():
        for name in ends(short):
            assert fp.get_loss(name).regularizer == omega
            assert name_of(fp.get_loss(name)) == name
            assert ends(name) == ends(short)
    assert name_of(fp.FitzpatrickLoss(OMEGA, 0.5)) is None
