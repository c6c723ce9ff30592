"""Projections under jaxopt's names: nearest points, batches, and derivatives in all parameters."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy.optimize import lsq_linear

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close, seeded

NORMAL = np.asarray([1.0, -2.0, 0.5, 0.0])
EQUATIONS = np.stack([NORMAL, np.ones(4)]), np.asarray([0.5, -1.0])
INEQUALITIES = seeded(2).normal(size=(7, 4)), seeded(3).uniform(size=7) + 1
POLYHEDRON = EQUATIONS[0][:1], EQUATIONS[1][:1], *INEQUALITIES
SECTION = -np.ones(4), np.asarray([0.5, 1.0, np.inf, 0.3]), NORMAL, 0.4


def beyond(excess):
    """The largest of the numbers that should not be positive."""
    return max(0, np.max(excess))


# each with its parameter, and the largest violation of a point
CASES = {
    "hypercube": (0.5, lambda p: beyond([-p, p - 0.5])),
    "linf_ball": (0.5, lambda p: beyond(np.abs(p) - 0.5)),
    "hyperplane": ((NORMAL, 0.5), lambda p: abs(NORMAL @ p - 0.5)),
    "halfspace": ((NORMAL, 0.5), lambda p: beyond(NORMAL @ p - 0.5)),
    "affine_set": (EQUATIONS, lambda p: np.abs(EQUATIONS[0] @ p - EQUATIONS[1]).max()),
    "polyhedron": (
        POLYHEDRON,
        lambda p: max(
            beyond(INEQUALITIES[0] @ p - INEQUALITIES[1]), abs(NORMAL @ p - EQUATIONS[1][0])
        ),
    ),
    "box_section": (
        SECTION,
        lambda p: max(beyond([SECTION[0] - p, p - SECTION[1]]), abs(NORMAL @ p - 0.4)),
    ),
    "non_negative": (None, lambda p: max(0, -p.min())),
    "box": ((-0.5, 0.5), lambda p: max(0, np.abs(p).max() - 0.5)),
    "simplex": (2.0, lambda p: max(-p.min(), abs(p.sum() - 2))),
    "l1_ball": (1.5, lambda p: max(0, np.abs(p).sum() - 1.5)),
    "l1_sphere": (1.5, lambda p: abs(np.abs(p).sum() - 1.5)),
    "l2_ball": (0.7, lambda p: max(0, np.linalg.norm(p) - 0.7)),
    "l2_sphere": (0.7, lambda p: abs(np.linalg.norm(p) - 0.7)),
}
# those that the sets of the others have no default for
KEYWORDS = dict.fromkeys(("l1_ball", "l2_ball", "linf_ball"), "max_value")
KEYWORDS |= {"hypercube": "unit", "simplex": "value", "l1_sphere": "value", "l2_sphere": "value"}
DIFFERENCES = {"rtol": 1e-6, "atol": 1e-8}  # central ones, of smooth functions of size one


def at_no_kink(parameter):
    """The parameter with other numbers for infinite bounds and for weights of zero."""
    return np.where(np.isinf(parameter), 9.0, np.where(parameter == 0, 0.3, parameter))


@pytest.mark.parametrize("name", CASES)
def test_projections(name):
    """In the set, and nearest of all points of it; rows as each by itself; derivatives; dtypes."""
    parameter, violation = CASES[name]
    project = jax.jit(getattr(fj, f"projection_{name}"))
    x = seeded(1).normal(size=(56, 4))
    x[-1] *= name == "l2_sphere"  # which zero has no nearest point of
    p = np.asarray(project(x, parameter))
    alone = jax.jit(jax.vmap(project, in_axes=(0, None)))(x, parameter)
    assert max(map(violation, p)) < 1e-12
    assert_close(alone, p, rtol=0, atol=1e-14)
    is_inside = [violation(point) == 0 for point in x]
    np.testing.assert_array_equal(p[is_inside], x[is_inside])
    if name.endswith("sphere"):
        distances = np.linalg.norm(x[:, None] - p, axis=-1)
        assert np.all(distances >= np.diag(distances)[:, None] - 1e-12)
    else:  # the set is on the other side of the plane through p that x − p is orthogonal to
        assert np.einsum("ik,ijk->ij", x - p, p - p[:, None]).max() < 1e-11
        smooth = jax.tree.map(at_no_kink, parameter)
        check_grads(project, (x[:2], smooth), order=1, modes=["rev"], eps=1e-6, **DIFFERENCES)
        slopes = jax.grad(lambda *given: project(*given).sum(), (0, 1))(x[:2], parameter)
        assert all(np.isfinite(slope).all() for slope in jax.tree.leaves(slopes))
    low = jax.eval_shape(project, x.astype(jnp.bfloat16), parameter)
    assert (low.dtype, low.shape) == (jnp.bfloat16, x.shape)


@pytest.mark.parametrize("name", KEYWORDS)
def test_parameters_are_keywords(name):
    """With jaxopt's names and defaults."""
    project, x = getattr(fj, f"projection_{name}"), seeded(1).normal(size=4)
    assert_close(project(x), project(x, **{KEYWORDS[name]: 1.0}), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sizes_that_are_zero_or_whose_squares_overflow_or_vanish(dtype):
    slope = jax.grad(lambda x: fj.projection_l2_ball(x, 0.5).sum())(np.zeros(3, dtype))
    np.testing.assert_array_equal(slope, np.ones(3))
    for bad in (np.inf, np.nan):
        assert np.isnan(fj.projection_l2_ball(np.asarray([bad, 1, 0], dtype), 0.5)[0])
    info = np.finfo(dtype)
    for size in (info.max / 8, info.tiny * 8):
        x = np.asarray([3, 4, 0]) * size
        planes = np.asarray([1, 1, 0]) * size, size
        for project in (fj.projection_l2_ball, fj.projection_l2_sphere):
            radius = 0.5 * size if project is fj.projection_l2_ball else 1.0
            p = project(x.astype(dtype), radius)
            assert_close(p, np.asarray([0.6, 0.8, 0]) * radius, rtol=8 * info.eps, atol=0)
        for project in (fj.projection_hyperplane, fj.projection_halfspace):
            p = project(np.asarray([1, 1, 2], dtype), planes)
            assert_close(p, [0.5, 0.5, 2], rtol=8 * info.eps, atol=0)


@pytest.mark.parametrize("scale", [0.1, 10.0, 1e4])
def test_polyhedron_is_left_along_its_normals(scale):
    """x − p is a mixture of the normals of active rows, which may be equal, dependent or touch."""
    rng = seeded(4)
    for trial in range(12):
        a, g, center = rng.normal(size=(2, 5)), rng.normal(size=(11, 5)), rng.normal(size=5)
        a[1] = 2 * a[0]
        g[3] = g[7]
        if trial % 2:
            g = np.round(g)
        b, h = a @ center, g @ center + rng.uniform(size=11) * (rng.uniform(size=11) < 0.5)
        x = scale * rng.normal(size=(6, 5))
        p = np.asarray(fj.projection_polyhedron(x, (a, b, g, h)))
        rounding = 1e-12 * (1 + scale)
        assert np.abs(p @ a.T - b).max() <= rounding
        assert (p @ g.T - h).max() <= rounding
        for row, point in zip(x, p, strict=True):
            normals = np.concatenate([g[np.abs(g @ point - h) <= rounding], a, -a])
            mixture = lsq_linear(normals.T, row - point, (0, np.inf), "bvls", tol=1e-15)
            assert np.linalg.norm(mixture.fun) <= rounding


CHECKED_SECTION = functools.partial(fj.projection_box_section, check_feasible=True)


def test_empty_sets():
    """An error, or NaN where JAX traces or was told not to check."""
    x = np.ones((2, 3))
    x[0, 0] = np.nan  # stays in its row, and is no error
    between = np.asarray([[1.0, 0, 0], [-1.0, 0, 0]])
    nothing = np.zeros((0, 3)), np.zeros(0)
    polyhedron = *nothing, between, np.asarray([1.0, -2.0])
    equations = np.ones((2, 3)), np.asarray([1.0, 2.0])
    section = np.zeros(3), np.ones(3), np.ones(3), 4.0
    for project, hyperparams, message in (
        (fj.projection_polyhedron, polyhedron, "the polyhedron is empty"),
        (fj.projection_affine_set, equations, "the polyhedron is empty"),
        (CHECKED_SECTION, section, "the box section is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            project(x, hyperparams)
        assert np.isnan(jax.jit(project)(x, hyperparams)).all()
    assert np.isnan(fj.projection_box_section(x, section)).all()
    assert np.isnan(fj.projection_polyhedron(x, polyhedron, check_feasible=False)).all()
    feasible = (*nothing, between, np.asarray([1.0, 0.5]))
    p = fj.projection_polyhedron(2 * x, feasible)
    assert_close(p[1], [1, 2, 2], rtol=0, atol=1e-14)
    assert_close(fj.projection_polyhedron(x[1], (*nothing, *nothing)), x[1], rtol=0, atol=0)


def test_sparse_simplex():
    x = seeded(6).normal(size=(5, 7))
    p = np.asarray(fj.projection_sparse_simplex(x, 3, value=2.0))
    assert_close(p.sum(axis=-1), 2.0, rtol=1e-14, atol=0)
    keeps = np.argsort(-x, axis=-1)[:, :3]
    top = np.take_along_axis(x, keeps, axis=-1)
    expected = 2 * np.asarray(fp.sets.Simplex().project(top / 2))
    assert_close(np.take_along_axis(p, keeps, axis=-1), expected, rtol=0, atol=1e-14)
    assert np.all((p > 0).sum(axis=-1) <= 3)
    approximate = fj.projection_sparse_simplex(x, 3, True, 2.0)
    assert_close(approximate, p, rtol=0, atol=1e-14)  # exact on a CPU


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("projection", lambda plans, x: plans.project(x)),
        ("kl_projection", lambda plans, x: fp.regularizers.Negentropy(plans).link(x)),
    ],
)
def test_plans(name, points):
    """Derivatives in the matrix and in marginals, whose directions keep their totals equal."""
    project = getattr(fj, f"{name}_transport")
    x, dx, weights = seeded(5).normal(size=(3, 3, 4))
    a, b = np.asarray([0.5, 1.0, 1.5]), np.asarray([0.75, 0.75, 0.5, 1.0])
    da, db = np.asarray([1.0, -0.5, -0.5]), np.asarray([0.5, -0.5, 1.0, -1.0])

    @functools.partial(jax.value_and_grad, has_aux=True)
    def total(t):
        p = project(x + t * dx, (a + t * da, b + t * db))
        return jnp.sum(p * weights), p

    total, h = jax.jit(total), 1e-6
    (_, p), slope = total(0.0)
    assert_close(p, points(fp.sets.Transport(tuple(a), tuple(b)), x), rtol=0, atol=1e-13)
    assert_close(slope, (total(h)[0][0] - total(-h)[0][0]) / (2 * h), **DIFFERENCES)
    square, onto_birkhoff = x[:, :3], getattr(fj, f"{name}_birkhoff")
    found = jax.jit(onto_birkhoff)(square)
    assert_close(found, points(fp.sets.Birkhoff(), square), rtol=0, atol=1e-13)
    half = onto_birkhoff(square.astype(jnp.bfloat16))
    assert half.dtype == jnp.bfloat16
    assert_close(half, found, rtol=0, atol=2**-5)


def test_parameters_may_be_traced_and_differentiated():
    slope = jax.jit(jax.grad(lambda radius: jnp.sum(fj.projection_simplex(jnp.ones(4), radius))))
    assert_close(slope(2.0), 1.0, rtol=0, atol=1e-12)
    assert_close(fj.projection_simplex(jnp.zeros(2), None), 0.5, rtol=0, atol=0)


@pytest.mark.parametrize(
    "name", ["simplex", "l1_sphere", "l1_ball", "l2_sphere", "l2_ball", "linf_ball"]
)
def test_sizes_of_zero_and_below(name):
    """A ball or simplex of size 0 is the point 0; a negative size makes an empty set."""
    project = getattr(fj, f"projection_{name}")
    x = np.asarray([2.0, 0.5, -0.1])
    assert_close(project(x, 0.0), np.zeros(3), rtol=0, atol=0)
    with pytest.raises(ValueError, match="value must not be negative"):
        project(x, -1.0)
    assert np.isnan(jax.jit(project)(x, -1.0)).all()


def test_answers_at_zero_and_without_bounds():
    """What cancels is as large as x, and the answer may be zero; infinite bounds are none."""
    rng, polyhedron = seeded(8), jax.jit(fj.projection_polyhedron)
    box_section, nothing = jax.jit(CHECKED_SECTION), (np.zeros((0, 3)), np.zeros(0))
    # the first inequality follows from the equation
    rows = np.ones((1, 3)), np.ones(1), np.concatenate([np.ones((1, 3)), -np.eye(3)])
    for _ in range(20):
        a, x = rng.normal(size=(3, 3)), 100 * rng.normal(size=3)
        cone = np.concatenate([a, -np.ones((1, 3)) @ a])
        for hyperparams in ((a, np.zeros(3), *nothing), (*nothing, cone, np.zeros(4))):
            p = polyhedron(x, hyperparams)
            assert_close(p, np.zeros(3), rtol=0, atol=1e-9 * np.linalg.cond(a))
        p = polyhedron(10 * x, (*rows, np.asarray([1.0, 0, 0, 0])))
        assert_close(p, fj.projection_simplex(10 * x), rtol=0, atol=1e-11)
        p = box_section(np.abs(x), (0.0, 1.0, rng.uniform(0.1, 1, size=3), 0.0))
        assert_close(p, np.zeros(3), rtol=0, atol=1e-10)
    half = *nothing, np.eye(3), np.asarray([1.0, np.inf, np.inf])
    p = polyhedron(np.asarray([2.0, 0.5, 3.0]), half)
    assert_close(p, [1, 0.5, 3], rtol=0, atol=1e-15)
    p = box_section(np.asarray([1.0, 2.0]), (0.0, np.inf, np.asarray([1.0, 0.0]), 1.0))
    assert_close(p, [1, 2], rtol=0, atol=1e-15)
