"""Bad input: an error while tracing, in terms of the arguments."""

import jax
import jax.numpy as jnp
import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj

SCORES = jnp.zeros((3, 4))
LABELS = jnp.zeros(3, dtype=int)
LOSS, ON_LABELS = fj.fitzpatrick_logistic_loss, fj.fitzpatrick_logistic_loss_with_integer_labels

BAD = {
    "integer scores": (
        lambda: LOSS(jnp.zeros((3, 4), dtype=int), SCORES),
        TypeError,
        r"scores must be floating-point .* got int64; convert them",
    ),
    "complex scores": (
        lambda: LOSS(SCORES + 0j, SCORES),
        TypeError,
        r"scores must be floating-point .* got complex128",
    ),
    "scalar scores": (
        lambda: LOSS(jnp.asarray(1.0), SCORES),
        ValueError,
        r"scores must have at least one axis, the classes, got a scalar",
    ),
    "no classes": (
        lambda: LOSS(SCORES[:, :0], SCORES[:, :0]),
        ValueError,
        r"scores have no classes along axis 1: their shape is \(3, 0\)",
    ),
    "shapes": (
        lambda: LOSS(SCORES, SCORES[:2]),
        ValueError,
        r"targets must have the shape of scores, \(3, 4\), got \(2, 4\)$",
    ),
    "labels for targets": (
        lambda: LOSS(SCORES, LABELS),
        ValueError,
        r"got \(3,\); for class labels use the function that ends in _with_integer_labels",
    ),
    "complex targets": (
        lambda: LOSS(SCORES, SCORES + 0j),
        TypeError,
        r"targets must be numbers in float16 to float64, integers or booleans, got complex128",
    ),
    "a string": (
        lambda: LOSS("scores", SCORES),
        TypeError,
        r"scores must be an array of numbers, got str",
    ),
    "nothing": (
        lambda: LOSS(None, SCORES),
        TypeError,
        r"scores must be an array of numbers, got NoneType",
    ),
    "ragged targets": (
        lambda: LOSS(SCORES, [[1.0], [0.5, 0.5]]),
        TypeError,
        r"targets must be an array of numbers, got list",
    ),
    "a boolean axis": (
        lambda: LOSS(SCORES, SCORES, axis=True),
        TypeError,
        r"axis must be an integer, the axis of the classes, got True",
    ),
    "axis": (
        lambda: LOSS(SCORES, SCORES, axis=2),
        ValueError,
        r"axis=2 is not an axis of scores, which have shape \(3, 4\)",
    ),
    "two axes": (
        lambda: LOSS(SCORES, SCORES, axis=(0, 1)),
        TypeError,
        r"axis must be an integer, the axis of the classes, got \(0, 1\)",
    ),
    "where is not boolean": (
        lambda: LOSS(SCORES, SCORES, where=SCORES),
        TypeError,
        r"where must be boolean, True for the classes to keep, got float64",
    ),
    "where does not broadcast": (
        lambda: LOSS(SCORES, SCORES, where=jnp.ones(3, dtype=bool)),
        ValueError,
        r"where of shape \(3,\) does not broadcast to scores of shape \(3, 4\)",
    ),
    "where on a ball": (
        lambda: fj.make_fitzpatrick_loss(fp.regularizers.SquaredNorm(fp.sets.L2Ball()))(
            SCORES, SCORES, where=SCORES == 0
        ),
        ValueError,
        r"where is not defined for SquaredNorm\(domain=L2Ball\(radius=1.0\)\)",
    ),
    "floating-point labels": (
        lambda: ON_LABELS(SCORES, SCORES[:, 0]),
        TypeError,
        r"labels must be integers, the index of a class, got float64; for proportions use",
    ),
    "one-hot labels": (
        lambda: ON_LABELS(SCORES, jnp.zeros((3, 4), dtype=int)),
        ValueError,
        r"labels must have the shape of scores without .* \(3,\) for scores of shape \(3, 4\) and "
        r"axis 1, got \(3, 4\)",
    ),
    "a name for a regularizer": (
        lambda: fj.make_fitzpatrick_loss("negentropy"),
        TypeError,
        r"regularizer must be an object such as .*Negentropy\(\), got 'negentropy'",
    ),
    "labels off the simplex": (
        lambda: fj.make_fenchel_young_loss(fp.regularizers.Bernoulli(), integer_labels=True),
        ValueError,
        r"integer labels are for losses on the simplex, this one has the domain Box",
    ),
    "a negative tightness": (
        lambda: LOSS(SCORES, SCORES, tightness=-1),
        ValueError,
        r"tightness must be 0 or between 1e-12 and 1e\+06, got -1",
    ),
    "an infinite tightness": (
        lambda: ON_LABELS(SCORES, LABELS, tightness=float("inf")),
        ValueError,
        r"tightness must be 0 or between 1e-12 and 1e\+06, got inf",
    ),
    "no tightness": (
        lambda: LOSS(SCORES, SCORES, tightness=None),
        TypeError,
        r"tightness must be a number, .* got None",
    ),
    "tightnesses in an array": (
        lambda: fj.make_fitzpatrick_loss(fp.regularizers.Negentropy(), jnp.ones(2)),
        TypeError,
        r"tightness must be one number, got an array of shape \(2,\)",
    ),
    "a traced tightness": (
        lambda: jax.jit(LOSS)(SCORES, SCORES, tightness=0.5),
        TypeError,
        r"tightness must be a Python number, but JAX is tracing it: mark it static, .*close over",
    ),
    "a derivative in the tightness": (
        lambda: jax.grad(lambda c: LOSS(SCORES, SCORES, tightness=c).sum())(0.5),
        TypeError,
        r"cannot be learned: the loss decreases in it",
    ),
    "a tightness for a Fenchel-Young loss": (
        lambda: fj.logistic_loss(SCORES, SCORES, tightness=0.5),
        TypeError,
        r"logistic_loss\(\) got an unexpected keyword argument 'tightness'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_message(case):
    call, error, message = BAD[case]
    with pytest.raises(error, match=message):
        call()


def test_errors_come_while_tracing():
    with pytest.raises(ValueError, match="targets must have the shape of scores"):
        jax.eval_shape(LOSS, SCORES, SCORES[:2])
