"""Projections under jaxopt's names: nearest points, batches, and derivatives in all parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close, seeded

# each with its parameter, and what tells points of the set by the largest violation
CASES = {
    "non_negative": (None, lambda p: max(0, -p.min())),
    "box": ((-0.5, 0.5), lambda p: max(0, np.abs(p).max() - 0.5)),
    "simplex": (2.0, lambda p: max(-p.min(), abs(p.sum() - 2))),
    "l1_ball": (1.5, lambda p: max(0, np.abs(p).sum() - 1.5)),
    "l1_sphere": (1.5, lambda p: abs(np.abs(p).sum() - 1.5)),
    "l2_ball": (0.7, lambda p: max(0, np.linalg.norm(p) - 0.7)),
    "l2_sphere": (0.7, lambda p: abs(np.linalg.norm(p) - 0.7)),
}
CONVEX = [name for name in CASES if not name.endswith("sphere")]


@pytest.mark.parametrize("name", CASES)
def test_projections(name: str) -> None:
    """In the set, and nearer than other points of it; rows as each by itself."""
    parameter, violation = CASES[name]
    project = getattr(fj, f"projection_{name}")
    x = jnp.asarray(seeded(1).normal(size=(6, 4)))
    p = np.asarray(project(x, parameter))
    others = np.asarray(project(jnp.asarray(seeded(2).normal(size=(50, 4))), parameter))
    for row, point in zip(np.asarray(x), p, strict=True):
        assert violation(point) < 1e-12
        nearest = np.linalg.norm(row - point)
        assert np.all(np.linalg.norm(row - others, axis=1) >= nearest - 1e-12)
        assert_close(project(jnp.asarray(row), parameter), point, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", CONVEX)
def test_their_derivatives(name: str) -> None:
    parameter, _ = CASES[name]
    project = getattr(fj, f"projection_{name}")
    x, v = jnp.asarray(seeded(3).normal(size=(2, 4)))
    h = 1e-6
    difference = (project(x + h * v, parameter) - project(x - h * v, parameter)) / (2 * h)
    gradient = jax.grad(lambda x: project(x, parameter) @ v)(x)
    assert_close(gradient @ v, difference @ v, rtol=1e-6, atol=1e-8)


def test_parameters_may_be_traced_and_differentiated() -> None:
    x = jnp.asarray(seeded(4).normal(size=4))

    def total(radius):
        return jnp.sum(fj.projection_simplex(x, radius))

    assert_close(jax.jit(jax.grad(total))(2.0), 1.0, rtol=0, atol=1e-12)


def test_transport_and_birkhoff() -> None:
    x = jnp.asarray(seeded(5).normal(size=(3, 4)))
    a, b = jnp.asarray([0.5, 1.0, 1.5]), jnp.asarray([0.75, 0.75, 0.5, 1.0])
    project = jax.jit(fj.projection_transport)
    p = project(x, (a, b))
    core = fp.sets.Transport(tuple(a.tolist()), tuple(b.tolist()))
    assert_close(p, core.project(np.asarray(x)), rtol=0, atol=1e-13)
    weights = jnp.asarray(seeded(6).normal(size=(3, 4)))
    gradients = jax.jit(jax.grad(lambda *args: jnp.sum(project(*args) * weights), argnums=(0, 1)))(
        x, (a, b)
    )
    h, dx = 1e-6, jnp.asarray(seeded(7).normal(size=(3, 4)))
    da, db = jnp.asarray([1.0, -0.5, -0.5]), jnp.asarray([0.5, -0.5, 1.0, -1.0])
    ends = [project(x + t * dx, (a + t * da, b + t * db)) for t in (h, -h)]
    difference = jnp.sum((ends[0] - ends[1]) * weights) / (2 * h)
    slope = jnp.sum(gradients[0] * dx) + gradients[1][0] @ da + gradients[1][1] @ db
    assert_close(slope, difference, rtol=1e-6, atol=1e-8)
    square = x[:, :3]
    expected = fp.sets.Birkhoff().project(np.asarray(square))
    assert_close(fj.projection_birkhoff(square), expected, rtol=0, atol=1e-13)


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"shape \(…, 2, 2\) to go with the marginals"):
        fj.projection_transport(jnp.zeros((3, 2)), (jnp.ones(2), jnp.ones(2)))
    with pytest.raises(ValueError, match="x must be a vector"):
        fj.projection_simplex(1.0)
