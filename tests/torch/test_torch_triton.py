"""The Triton kernels against the core, where their own limits and options matter.

Without a GPU they run in Triton's interpreter, on sizes that cross the borders of blocks; limits
are lowered so that narrow rows reach the kernels for wide ones.
"""

import itertools
import math
from dataclasses import fields

import numpy as np
import pytest
import torch
from tests.interpreter import WIDE

pytest.importorskip("triton", reason="the kernels need the package triton")

from fitzpatrick.engines.triton import launch as engine
from fitzpatrick.engines.triton import link_launch
from fitzpatrick.engines.triton import plan as planning
from fitzpatrick.engines.triton.plan import Options, Problem
from fitzpatrick.engines.triton.specs import SPECS
from fitzpatrick.losses import FitzpatrickLoss, regularizers_by_name
from fitzpatrick.torch._targets import Smoothed, smooth, working_dtype

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
OMEGAS = [name for name, spec in SPECS.items() if spec.takes_rows]
# one of each mode
MODES = [0.0, 0.5, 1.0, 2.0]
DOUBLE, SINGLE, BFLOAT, HALF = torch.float64, torch.float32, torch.bfloat16, torch.float16
TOLERANCE = {DOUBLE: 1e-12, SINGLE: 1e-5, BFLOAT: 1e-2, HALF: 2e-3}


@pytest.fixture(params=["registers", "wide"])
def path(request, limit):
    limit(**(WIDE if request.param == "wide" else {}))
    return request.param


def modes(wide=(0.5,)):
    """Every mode in registers, and some in wide rows, which take the interpreter long."""
    cases = [("registers", c) for c in MODES] + [("wide", c) for c in wide]
    return pytest.mark.parametrize(("path", "tightness"), cases, indirect=["path"])


def draw(k, dtype, generator):
    """Rows that are plain, masked, tied, peaked, switched off and nearly solved."""
    x = torch.randn(6, k, dtype=DOUBLE, generator=generator) * 2
    x[1, 1::2] = -math.inf
    x[2] = 0.5
    x[3] *= 50
    x = x.to(dtype)
    y = torch.softmax(2 * torch.randn(6, k, dtype=DOUBLE, generator=generator), -1)
    # a hard row; with scores in the hundreds it would overflow float16
    y[0] = y[2] if dtype == HALF else torch.nn.functional.one_hot(torch.tensor(k - 1), k)
    y[1, 1::2] = 0
    y[2, ::3] = 0
    y /= y.sum(-1, keepdim=True)
    y[5] = torch.softmax(x[5].double(), -1)
    labels = torch.randint(0, k, (6,), generator=generator)
    labels[1] = 0
    scale = torch.rand(6, dtype=DOUBLE, generator=generator)
    scale[4] = 0
    return x.to(DEVICE), y.to(DEVICE), labels.to(DEVICE), scale.to(DEVICE)


def solve(omega, tightness, y, x):
    """Losses and gradients of the core, in float64."""
    loss = FitzpatrickLoss(regularizers_by_name()[omega], tightness)
    solution = loss.solve(y.double().cpu(), x.double().cpu())
    return solution.value().to(x.device), solution.gradient().to(x.device)


def expected_of(omega, tightness, x, target, scale):
    """Loss and gradient of the reference; rows off or with a label out of range as documented."""
    k = x.shape[1]
    if isinstance(target, Smoothed):
        target = target.rows(k)
    y = target.double()
    if target.ndim == 1:
        y = torch.nn.functional.one_hot(target.clamp(0, k - 1), k)
    values, rows = solve(omega, tightness, y, x)
    off = scale == 0
    if target.ndim == 1:
        off = off | (target == -100)
        values[(target < 0) | (target >= k)] = math.nan
        rows[(target < 0) | (target >= k)] = math.nan
    values, rows = values * scale, rows * scale[:, None]
    values[off], rows[off] = 0, 0
    return values, rows


def assert_parity(omega, tightness, x, target, scale=None):
    """Loss and gradient in one kernel against the reference."""
    n = x.shape[0]
    scale = torch.ones(n, dtype=DOUBLE, device=x.device) if scale is None else scale
    working = working_dtype(x)
    value, gradient = engine.launch_loss(x, target, scale.to(working), omega, tightness, -100)
    expected, expected_rows = expected_of(omega, tightness, x, target, scale)
    assert value.dtype == working
    assert gradient.dtype == x.dtype
    assert not (value < 0).any()
    # distributions over half-precision scores go through a rational function that is 6e-5 off
    is_rough = not (isinstance(target, torch.Tensor) and target.ndim == 1) and x.itemsize == 2
    tight = 1e-4 if is_rough else TOLERANCE[working]
    torch.testing.assert_close(
        value.double(), expected, rtol=tight, atol=tight * 1e-3, equal_nan=True
    )
    error = (gradient.double() - expected_rows).norm(dim=-1)
    norm = expected_rows.norm(dim=-1)
    # a nearly solved row has a gradient of rounding errors
    assert torch.all((error <= TOLERANCE[x.dtype] * (norm + 0.1)) | norm.isnan())
    assert torch.equal(gradient.isnan(), expected_rows.isnan())
    return gradient


@modes(wide=(0.5,))
@pytest.mark.parametrize("dtype", [SINGLE, BFLOAT, HALF], ids=str)
@pytest.mark.parametrize("omega", OMEGAS)
def test_parity_in_other_dtypes(omega, dtype, tightness, path, generator):
    k = 264 if path == "wide" else 65  # whole groups and several blocks, or not
    x, y, labels, scale = draw(k, dtype, generator)
    if path == "wide":
        x[5] += 250.0  # scores whose sum with τ has no digits to spare
        x[4, -8:] += 25.0  # the highest are not in the first block
        scale[4] = 0.5
        x, y, labels, scale = (a[[1, 4, 5]] for a in (x, y, labels, scale))
        assert planning.lanes_of(x, y.to(dtype))[0] == 16 // x.itemsize
    assert_parity(omega, tightness, x, labels, scale)
    assert_parity(omega, tightness, x, y.to(dtype) if tightness == 0.5 else y, scale)


@pytest.mark.parametrize("dtype", [SINGLE, BFLOAT], ids=str)
@pytest.mark.parametrize("tightness", [0.5, 1.0])
def test_guesses_from_samples(tightness, dtype, generator, limit):
    limit(max_heavy_rows=0, max_precise=0, min_guess=0)
    k = 1040
    x, y, _, scale = draw(k, DOUBLE, generator)
    scale += 0.1
    x, y, scale = x[:4] * 0.001, y[:4], scale[:4]  # smooth rows, with a guess that is right
    y[0] = y[2]
    x[2, -1] = 10  # a single score that no sample has
    x[3, -9] = -200  # nor this one, which makes the row wide
    y[2, -1] = y[3, -9] = 1
    y /= y.sum(-1, keepdim=True)
    assert_parity("logistic", tightness, x.to(dtype), y, scale)


@pytest.mark.parametrize("omega", OMEGAS)
def test_rows_wider_than_a_tile(omega, generator):
    k = 8201  # a tile and a rest, and an offset that is no multiple of a vector
    x = (torch.randn(1, k, generator=generator) * 3).to(DEVICE)
    assert_parity(omega, 0.5, x, torch.tensor([8195], device=DEVICE))
    y = torch.softmax(torch.randn(1, k, generator=generator), -1)[:, :2300]
    y = (y / y.sum()).to(DEVICE)
    for tightness in (0.0, 2.0):
        assert_parity(omega, tightness, x[:, :2300], y)


@pytest.mark.parametrize("omega", OMEGAS)
def test_wide_rows_whose_first_block_is_masked(omega, generator, limit):
    """Far below zero; a row that is masked throughout is NaN."""
    limit(**WIDE)
    x = torch.randn(2, 640, generator=generator) - 200
    y = torch.softmax(torch.randn(2, 640, generator=generator), -1)
    x[0, :300], y[0, :300] = -math.inf, 0
    y /= y.sum(-1, keepdim=True)
    assert_parity(omega, 0.5, x[:1].to(DEVICE), y[:1].to(DEVICE))
    x[1] = -math.inf
    value, _ = engine.launch_loss(x.to(DEVICE), y.to(DEVICE), 1, omega, 0.5, -100)
    assert value.isnan().tolist() == [False, True]


@pytest.mark.parametrize("dtype", [DOUBLE, SINGLE, BFLOAT], ids=str)
@pytest.mark.parametrize("omega", OMEGAS)
def test_rows_that_start_anywhere(omega, dtype, generator, limit):
    limit(**WIDE, min_peel=0)
    x = torch.randn(7, 37, dtype=DOUBLE, generator=generator).mul(2).to(dtype).to(DEVICE)
    labels = torch.tensor([0, 7, 36, 29, 20, -100, 37], device=DEVICE)
    assert planning.lanes_of(x, labels) == (16 // x.itemsize, True)
    for tightness in (0.0, 0.5):
        assert_parity(omega, tightness, x, labels)


@modes()
@pytest.mark.parametrize("omega", OMEGAS)
def test_value_and_gradient_alone_are_the_same(omega, tightness, path, generator):
    x, y, labels, scale = (a[:2] for a in draw(9, DOUBLE, generator))
    for target in (labels, y):
        options = x, target, scale, omega, tightness, -100
        value, gradient = engine.launch_loss(*options)
        # three kernels, which a compiler may round in three ways
        alone = engine.launch_loss(*options, True, False)[0]
        torch.testing.assert_close(alone, value, rtol=1e-12, atol=1e-15)
        alone = engine.launch_loss(*options, False)[1]
        torch.testing.assert_close(alone, gradient, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("omega", [*OMEGAS, "tsallis:1.3"])
def test_ignored_rows_and_one_class(omega, path, generator):
    """Rows that are ignored are not read; bad rows of those that are read are NaN."""
    x = torch.randn(4, 33, dtype=DOUBLE, generator=generator).to(DEVICE)
    x[0] = math.nan
    x[3, 7] = math.inf
    labels = torch.tensor([-100, 33, -1, 2], device=DEVICE)
    value, gradient = engine.launch_loss(x, labels, 1, omega, 0.5, -100)
    assert value[0] == 0
    assert torch.equal(gradient[0], torch.zeros_like(gradient[0]))
    assert value[1:].isnan().all()
    assert gradient[1:].isnan().all()
    one, zero = x[1:3, :1], torch.zeros(2, dtype=torch.long, device=DEVICE)
    targets = [zero, torch.ones_like(one)] if omega in OMEGAS else [zero]
    for target, tightness in itertools.product(targets, MODES):
        for found in engine.launch_loss(one, target, 1, omega, tightness, -100):
            torch.testing.assert_close(found, torch.zeros_like(found), rtol=0, atol=1e-15)


@pytest.mark.parametrize("factors", [[1.0, 1.0, 1.0], [1.0, -2.0, 0.5]])
def test_scaling_rows_in_place(factors, generator):
    rows = torch.randn(3, 5000, dtype=DOUBLE, generator=generator).to(DEVICE)
    factors = torch.tensor(factors, dtype=DOUBLE, device=DEVICE)
    expected = rows * factors[:, None]
    engine.scale_rows_(rows, factors)
    assert torch.equal(rows, expected)


@pytest.mark.parametrize("n", [1, 2049, 70_000])
def test_counting_labels(n, generator):
    labels = torch.randint(-2, 3, (n,), generator=generator).to(DEVICE)
    assert engine._count(labels, -2).sum() == (labels != -2).sum()
    assert engine._count(labels, 7).sum() == n


@pytest.mark.parametrize("dtype", [DOUBLE, SINGLE, BFLOAT], ids=str)
@pytest.mark.parametrize("omega", OMEGAS)
def test_smoothed_labels(omega, dtype, path, generator):
    k, tightness = (33, 1.0) if dtype == DOUBLE else (64, 0.5)
    x, _, labels, scale = (a[3:5] for a in draw(k, dtype, generator))
    working = working_dtype(x)
    weight = (torch.rand(k, generator=generator) + 0.1).to(DEVICE)
    for weights in (None, weight):
        target, _ = smooth(labels, k, weights, 0.1, working)
        assert_parity(omega, tightness, x, target, scale)


@modes()
@pytest.mark.parametrize("omega", OMEGAS)
def test_nearly_solved_rows_keep_digits(omega, tightness, path, generator):
    """The loss is second order in p − y, which has lost the digits that the two share."""
    k, distance = 24, 1e-3
    x = torch.randn(2, k, generator=generator).to(DEVICE)
    near = x.double() + distance * torch.randn(2, k, dtype=DOUBLE, generator=generator).to(DEVICE)
    y = torch.from_numpy(regularizers_by_name()[omega].solve_link(near.cpu().numpy())).to(DEVICE)
    y = y.float() / y.float().sum(-1, keepdim=True)
    value = engine.launch_loss(x, y, 1, omega, tightness, -100, True, False)[0]
    expected, _ = solve(omega, tightness, y, x)
    assert (value >= 0).all()
    # p − y is of the size distance · p / (1 + c), with an error of some eps · p
    bound = 40 * torch.finfo(SINGLE).eps * (1 + tightness) / distance
    torch.testing.assert_close(value.double(), expected, rtol=min(bound, 0.2), atol=1e-30)


@modes()
@pytest.mark.parametrize("dtype", [DOUBLE, SINGLE], ids=str)
@pytest.mark.parametrize("omega", ["sparsemax", "entmax15"])
def test_many_ties_just_within_reach_of_a_peak(omega, dtype, tightness, path):
    """A rounding error of τ that is longer than their distance to it would lose them all."""
    k, peak = 600, SPECS[omega].power + tightness  # how far below it an entry still counts
    x = torch.zeros(4, k, dtype=DOUBLE)
    for row, margin in enumerate((2**-10, 1e-4, 1e-5)):
        x[row, 5] = peak - margin
    x[1] += 0.3
    x[2, 9] = x[2, 5]  # two peaks
    x[2, 10:] = peak / 2
    x[3, 5] = 1 - 1e-4
    x = x.to(dtype).to(DEVICE)
    y = torch.full((4, k), 1 / k, dtype=dtype)
    y[1] = 0
    y[1, 5] = 1
    for target in (torch.tensor([5, 5, 0, 5], device=DEVICE), y.to(DEVICE)):
        gradient = assert_parity(omega, tightness, x, target)
        assert gradient.double().sum(-1).abs().max() < 20 * torch.finfo(dtype).eps


def test_ties_that_share_less_than_the_digits_of_tau():
    """Each has 5e-9, and 2e5 of them 1e-3: τ in one number would be 2e-5 off in total."""
    k = 200_003
    x = torch.zeros(1, k, device=DEVICE)
    x[0, 0] = 1 - 2**-10
    labels = torch.tensor([7], device=DEVICE)
    value, gradient = engine.launch_loss(x, labels, 1, "sparsemax", 0.0, -100)
    expected, rows = expected_of("sparsemax", 0.0, x, labels, torch.ones(1, dtype=DOUBLE))
    torch.testing.assert_close(value.double(), expected, rtol=1e-6, atol=0)
    assert (gradient.double() - rows).norm() < 1e-6 * rows.norm()


@pytest.mark.parametrize("tightness", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("omega", OMEGAS)
def test_targets_that_sum_to_one_as_far_as_half_precision_can(omega, tightness, path):
    """The root of a solved row is at the end of its bracket, and beyond it if the sum is."""
    y = torch.tensor([[0.625, 0.3789], [0.625, 0.3711], [0.5, 0.5]], dtype=BFLOAT, device=DEVICE)
    x = (y.double() / y.double().sum(-1, keepdim=True)).log().to(BFLOAT)
    value, gradient = engine.launch_loss(x, y, 1, omega, tightness, -100)
    ones = torch.ones(3, dtype=DOUBLE, device=DEVICE)
    expected, rows = expected_of(omega, tightness, x, y, ones)
    # where targets do not sum to one the terms of the loss are not those of a solution
    assert (value - expected).abs().max() < 3e-4
    assert (gradient.double() - rows).abs().max() < 2e-3


def test_one_kernel_serves_many_tightnesses():
    shared = {"target": "rows", "k": 64, "inner": 0, "dtype": SINGLE, "lanes": 4, "peel": False}
    shared |= {"with_value": True, "with_gradient": True, "scale": "shared", "parts": 1}
    for omega in OMEGAS:
        spec = SPECS[omega]
        problems = {
            Problem(omega=omega, mode=spec.mode(c, False), **shared)
            for c in np.linspace(0.01, 0.99, 20)
        }
        assert len(problems) == 1
        assert len({spec.mode(c, False) for c in np.linspace(0, 9, 91)}) <= 4
    # Triton keys compiled kernels by what options print
    names = [option.name for option in fields(Options)]
    assert all(name in repr(Options(**dict.fromkeys(names, 0))) for name in names)


KINDS = [("logistic", "zero", "labels"), ("sparsemax", "other", "labels")]
KINDS += [("logistic", "one", "rows"), ("entmax15", "other", "rows"), ("sparsemax", "zero", "rows")]


def test_shapes_of_blocks_are_powers_of_two():
    sizes = [*range(1, 300, 7), *range(300, 40_000, 397), 50_257, 131_072, 200_003]
    shared = {"inner": 0, "with_value": True, "with_gradient": True, "scale": "shared", "parts": 1}
    for k, dtype, (omega, mode, target) in itertools.product(
        sizes, (BFLOAT, SINGLE, DOUBLE), KINDS
    ):
        shared["dtype"] = dtype
        for lanes in (1, 16 // dtype.itemsize):
            problem = Problem(omega=omega, mode=mode, target=target, k=k, lanes=lanes, **shared)
            constants = planning.plan_for.__wrapped__(problem).constants
            o = constants["o"]
            for size in map(int, (o.rows, max(o.block, o.groups), constants["num_warps"])):
                assert size > 0, problem
                assert size & (size - 1) == 0, problem


def moved(x):
    """Rows that begin one entry later, and lie one entry further apart."""
    wide = torch.full((len(x), x.shape[1] + 1), torch.nan, dtype=x.dtype, device=x.device)
    wide[:, 1:] = x
    return wide[:, 1:]


@pytest.mark.parametrize("alpha", [1.3, 2.0])
def test_links_of_rows_that_lie_anyhow(alpha, generator):
    theta, upstream = torch.randn(2, 5, 8, generator=generator).to(DEVICE)
    p = link_launch.link(theta, alpha)
    assert torch.equal(link_launch.link(moved(theta), alpha), p)
    gradient, _ = link_launch.link_gradient(p, upstream, alpha)
    for given in ((moved(p), upstream), (p, moved(upstream)), (moved(p), moved(upstream))):
        torch.testing.assert_close(link_launch.link_gradient(*given, alpha)[0], gradient)


@pytest.mark.parametrize("omega", ["logistic", "sparsemax"])
def test_losses_of_rows_that_lie_anyhow(omega, generator):
    theta, y = torch.randn(2, 5, 8, generator=generator).to(DEVICE)
    y = torch.softmax(y, -1)
    for target, others in ((y, [moved(y)]), (torch.arange(5, device=DEVICE), [])):
        expected = engine.launch_loss(theta, target, 1, omega, 0.5, -1)
        for other, x in itertools.product((target, *others), (theta, moved(theta))):
            found = engine.launch_loss(x, other, 1, omega, 0.5, -1)
            torch.testing.assert_close(found, expected)
            written = x.clone() if x is theta else moved(theta)
            in_place = engine.launch_loss(written, other, 1, omega, 0.5, -1, in_place=True)
            assert in_place[1] is written
            torch.testing.assert_close(in_place, expected)
