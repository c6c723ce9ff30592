"""The special functions against mpmath: within a few units in the last place, everywhere."""

import functools

import mpmath
import numpy as np
import pytest
from scipy.special import wrightomega

from fitzpatrick.engines.negentropy import wright_omega as rows_omega
from fitzpatrick.special import expm1_minus_x, logsumexp, sigmoid, softplus, wright_omega
from tests.helpers import Library, assert_same_kind, seeded, to_numpy

mpmath.mp.dps = 50
OMEGA_ULP = 4


def ulps(actual: np.ndarray, exact: list, dtype: str) -> np.ndarray:
    """Distance of each entry from the exact number, in units of the last place of that number."""
    spacing = np.spacing(np.asarray([abs(float(x)) for x in exact]).astype(dtype))
    return np.asarray(
        [
            float(abs(mpmath.mpf(float(a)) - x) / mpmath.mpf(float(s)))
            for a, x, s in zip(actual, exact, spacing, strict=True)
        ]
    )


@functools.cache
def exact_omegas(dtype: str) -> tuple[np.ndarray, list]:
    """Random points of all sizes, and both sides of every switch between formulas."""
    rng = seeded(0)
    huge = 300 if dtype == "float64" else 38
    tail = -745 if dtype == "float64" else -103
    sizes = 10.0 ** rng.uniform(-3, huge, 120)
    points = [rng.uniform(-45, 45, 250), rng.uniform(tail, 0, 150), rng.uniform(-1, 3, 150), sizes]
    points = np.concatenate(points).astype(dtype)
    is_exp = np.log(np.finfo(dtype).eps) - 2
    switches = np.asarray([is_exp, -4.0, 0.0, 1.0], dtype=dtype)
    beside = [np.nextafter(switches, np.asarray(side, dtype)) for side in (-np.inf, np.inf)]
    near = [switches + np.asarray(step, dtype) for step in (-1e-3, -1e-6, 1e-6, 1e-3)]
    window = np.linspace(5.536, 5.539, 40, dtype=dtype)  # where SciPy loses digits
    points = np.concatenate([points, switches, *beside, *near, window])
    return points, [mpmath.lambertw(mpmath.exp(mpmath.mpf(float(z)))).real for z in points]


def test_wright_omega_within_four_ulp(xp: Library, dtype: str) -> None:
    points, exact = exact_omegas(dtype)
    out = xp.compiled(wright_omega)(xp.asarray(points))
    assert_same_kind(out, xp.asarray(points))
    error = ulps(to_numpy(out), exact, dtype)
    if xp.flushes_subnormals:
        # XLA rounds subnormal results to zero on the CPU, whatever the formula
        error = error[np.asarray([x > np.finfo(dtype).tiny for x in exact])]
    assert np.max(error) <= OMEGA_ULP


@np.errstate(all="ignore")  # as in the rows that call it
def test_the_rows_have_the_same_wright_omega(dtype: str) -> None:
    points, exact = exact_omegas(dtype)
    assert np.max(ulps(rows_omega(points), exact, dtype)) <= OMEGA_ULP
    limits = np.asarray([-np.inf, np.inf, np.nan, 1.0], dtype)
    np.testing.assert_array_equal(rows_omega(limits), [0, np.inf, np.nan, 1])


def test_wright_omega_underflows_gradually(xp: Library, dtype: str) -> None:
    """Subnormal results and the step to zero, as in SciPy."""
    if xp.flushes_subnormals:
        pytest.skip("XLA rounds subnormal numbers to zero on the CPU")
    edges = {"float64": (-746.0, -708.0), "float32": (-104.0, -87.0)}[dtype]
    z = np.linspace(*edges, 500).astype(dtype)
    out = np.asarray(wright_omega(xp.asarray(z)))
    expected = np.asarray(wrightomega(z))
    assert np.any((expected > 0) & (expected < np.finfo(dtype).tiny))
    assert np.any(expected == 0)
    np.testing.assert_allclose(out, expected, rtol=0, atol=2 * np.finfo(dtype).smallest_subnormal)


def test_wright_omega_has_derivatives_in_jax(dtype: str) -> None:
    """ω' = ω/(1 + ω), and ω'' = ω/(1 + ω)³; also where ω is an exponential, and at −∞."""
    jax = pytest.importorskip("jax")
    z = np.linspace(-60, 60, 241).astype(dtype)
    omega = np.asarray(wrightomega(z.astype("float64")))
    first = jax.grad(wright_omega)
    # the steps of fourth order have the third power of their start's error in the derivative, and
    # its square in the second: 1e-5 and 1e-3, times constants below 1/10, where one step is all
    rtol = (1e-12, 1e-12) if dtype == "float64" else (2e-6, 1e-4)
    both = jax.jit(jax.vmap(lambda z: jax.value_and_grad(first)(z)))
    slope, second = (np.asarray(x) for x in both(np.append(z, np.asarray(-np.inf, dtype))))
    np.testing.assert_allclose(slope[:-1], omega / (1 + omega), rtol=rtol[0], atol=0)
    np.testing.assert_allclose(second[:-1], omega / (1 + omega) ** 3, rtol=rtol[1], atol=0)
    assert slope[-1] == second[-1] == 0


def real_line(dtype: str) -> np.ndarray:
    rng = seeded(1)
    sizes = 10.0 ** rng.uniform(-12, 1.9, 300)
    beside = [np.nextafter(np.asarray(0.5, dtype), np.asarray(x, dtype)) for x in (0, 1)]
    points = np.concatenate([sizes, -sizes, [0.0, 0.5, -0.5], beside, -np.asarray(beside)])
    return points.astype(dtype)


@pytest.mark.parametrize(
    ("function", "exact", "limit"),
    [
        # x² underflows nowhere on these points
        (expm1_minus_x, lambda x: mpmath.expm1(x) - x, 8),
        (softplus, lambda x: mpmath.log1p(mpmath.exp(x)), 3),
        (sigmoid, lambda x: 1 / (1 + mpmath.exp(-x)), 3),
    ],
    ids=["expm1_minus_x", "softplus", "sigmoid"],
)
def test_elementary_functions(function, exact, limit: int, xp: Library, dtype: str) -> None:
    points = real_line(dtype)
    out = xp.compiled(function)(xp.asarray(points))
    assert_same_kind(out, xp.asarray(points))
    error = ulps(to_numpy(out), [exact(mpmath.mpf(float(x))) for x in points], dtype)
    assert np.max(error) <= limit


def test_logsumexp(xp: Library, dtype: str) -> None:
    rng = seeded(2)
    rows = (rng.normal(size=(60, 7)) * 10.0 ** rng.uniform(-2, 3, (60, 1))).astype(dtype)
    rows[::3, 2] = -np.inf
    out = xp.compiled(logsumexp)(xp.asarray(rows))
    assert out.shape == (60, 1)
    assert_same_kind(out, xp.asarray(rows))
    exact = [mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(float(x))) for x in r)) for r in rows]
    spacing = np.finfo(dtype).eps * np.maximum(
        1, np.max(np.abs(rows), axis=-1, where=rows > -np.inf, initial=0)
    )
    error = np.abs(to_numpy(out)[:, 0] - np.asarray([float(x) for x in exact]))
    assert np.all(error <= 2 * spacing)


def test_limits(xp: Library, dtype: str) -> None:
    """±∞, NaN, nothing, and numbers whose exponentials overflow."""
    inf, nan, huge = np.inf, np.nan, float(np.finfo(dtype).max)
    ends = [-inf, inf, nan]
    cases = [
        (
            wright_omega,
            [*ends, 1.0, -huge, huge / 2, 0.75 * huge],
            [0, inf, nan, 1, 0, huge / 2, 0.75 * huge],
        ),
        (expm1_minus_x, [-inf, nan, 0.0], [inf, nan, 0]),
        (softplus, [*ends, 1e3, 1e30, -1e3, -1e30], [0, inf, nan, 1e3, 1e30, 0, 0]),
        (sigmoid, [*ends, 0.0, -1e3, -1e30], [0, 1, nan, 0.5, 0, 0]),
    ]
    for function, x, expected in cases:
        out = to_numpy(xp.compiled(function)(xp.asarray(x, dtype)))
        np.testing.assert_allclose(out, np.asarray(expected, dtype), rtol=np.finfo(dtype).eps)
        if xp.name != "jax":  # which compiles each shape anew
            assert function(xp.asarray([], dtype)).shape == (0,)
    rows = [[-inf, -inf], [1e4, 1e4], [-1e4, -inf], [nan, 0.0]]
    out = to_numpy(xp.compiled(logsumexp)(xp.asarray(rows, dtype)))
    expected = [[-inf], [1e4 + np.log(2)], [-1e4], [nan]]
    np.testing.assert_allclose(out, expected, rtol=np.finfo(dtype).eps)


def test_wright_omega_takes_numbers_and_names_what_it_cannot_take() -> None:
    assert float(wright_omega(1.0)) == 1.0
    with pytest.raises(TypeError, match=r"z must be real numbers .* got dtype complex128"):
        wright_omega(np.asarray([1j]))


def test_derivatives_at_zero() -> None:
    """|x| has none there, and what is made of it must not take one of its own."""
    torch = pytest.importorskip("torch")
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    for function, slope in ((sigmoid, 0.25), (softplus, 0.5)):
        assert torch.autograd.grad(function(x).sum(), x)[0].item() == slope
