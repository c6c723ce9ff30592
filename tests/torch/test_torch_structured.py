"""Soft ranks, soft sorts, top-k masks, and losses and links on structured sets."""

import importlib
import itertools
import math

import numpy as np
import pytest
import torch
from conftest import assert_compiles
from tests.helpers import assert_close, seeded

import fitzpatrick as fp
from fitzpatrick.regularizers import Bernoulli, Negentropy, SquaredNorm
from fitzpatrick.sets import (
    Birkhoff,
    CappedSimplex,
    L2Ball,
    OrderSimplex,
    Permutahedron,
    Polytope,
    isotonic,
)
from fitzpatrick.torch import FitzpatrickLoss, StructuredLink, StructuredLoss
from fitzpatrick.torch import functional as F  # noqa: N812

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VALUES = torch.tensor([[8.0, 0.0, 5.0, 3.0, 2.0, 1.0, 6.0, 7.0, 9.0]], dtype=torch.float64)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor(seeded(seed).normal(size=shape))


def test_published_values() -> None:
    """Those of torchsort's documentation."""
    assert_close(F.soft_rank(VALUES), [[8, 1, 5, 4, 3, 2, 6, 7, 9]], rtol=0, atol=1e-14)
    expected = np.arange(9) + 5 / 9
    assert_close(F.soft_sort(VALUES), expected[None], rtol=0, atol=1e-14)
    hard = [[0, 1, 2, 3, 5, 6, 7, 8, 9]]
    assert_close(F.soft_sort(VALUES, regularization_strength=0.1), hard, rtol=0, atol=1e-13)
    assert not torch.signbit(F.soft_sort(torch.zeros(3))).any()  # no −0


def test_a_large_strength_gives_means() -> None:
    values = draw(3, 6)
    assert_close(F.soft_rank(values, regularization_strength=1e9), 3.5, rtol=0, atol=1e-7)
    mean = values.mean(-1, keepdim=True).expand(3, 6)
    assert_close(F.soft_sort(values, regularization_strength=1e9), mean, rtol=0, atol=1e-7)


every_function = pytest.mark.parametrize(
    "function", [F.soft_rank, F.soft_sort], ids=lambda f: f.__name__
)
every_regularization = pytest.mark.parametrize("regularization", ["l2", "kl"])


@every_function
@every_regularization
@pytest.mark.parametrize("strength", [0.3, 3.0])
def test_gradients(function, regularization: str, strength: float) -> None:
    values = draw(4, 5, seed=1).requires_grad_()
    torch.autograd.gradcheck(lambda x: function(x, regularization, strength), values)
    torch.autograd.gradgradcheck(lambda x: function(x, regularization, strength), values)


@pytest.mark.parametrize("strength", [0.1, 1.0, 10.0])
def test_entropic_ranks_and_sorts_by_their_definition(strength: float) -> None:
    """The least KL(p ‖ eᶻ) over a permutahedron: ⟨z − log p, v − p⟩ <= 0 at all of its vertices."""
    values = 2 * draw(6, 5, seed=6)
    values[0] = 1.0
    orders = torch.tensor(list(itertools.permutations(range(5))))
    places = torch.arange(1.0, 6.0, dtype=torch.float64)
    ranks = F.soft_rank(values, "kl", strength)
    exponentials = (-F.soft_sort(values, "kl", strength)).exp()
    for row in range(6):
        largest_first = -places / strength
        for p, weights, z in (
            (ranks[row], places, values[row] / strength),
            (exponentials[row], (-values[row]).exp(), largest_first),
        ):
            vertices = weights[orders]
            rounding = 64 * 2.0**-52 * weights.sum() * (1 + z.abs().max())
            assert abs(p.sum() - weights.sum()) <= rounding
            assert ((vertices - p) @ (z - p.log())).max() <= rounding
            assert Permutahedron(weights.tolist()).contains(p)


def test_entropic_ranks_of_far_and_equal_values() -> None:
    """Hard ranks where values are far apart, means where they are equal; finite gradients."""
    values = (1e4 * VALUES).requires_grad_()
    ranks = F.soft_rank(values, "kl", 1e-2)
    assert_close(ranks.detach(), [[8, 1, 5, 4, 3, 2, 6, 7, 9]], rtol=1e-14, atol=0)
    ranks.sum().backward()
    assert torch.isfinite(values.grad).all()
    assert_close(F.soft_rank(torch.ones(2, 4), "kl"), 2.5, rtol=1e-6, atol=0)
    sorted_values = F.soft_sort(VALUES, "kl", 1e-3)
    assert_close(sorted_values, VALUES.sort(-1).values, rtol=0, atol=9e3 * 2.0**-51)


@every_function
@every_regularization
def test_dtypes_and_batches(function, regularization: str) -> None:
    half = function(VALUES.to(torch.bfloat16), regularization)
    assert half.dtype == torch.bfloat16
    single = function(VALUES.float(), regularization)
    double = function(VALUES, regularization)
    assert_close(single, double, rtol=16 * 2.0**-23, atol=16 * 2.0**-23)
    values = draw(2, 3, 4, seed=7)
    together = function(values, regularization)
    alone = [[function(row, regularization) for row in rows] for rows in values]
    assert_close(together, torch.stack([torch.stack(rows) for rows in alone]), rtol=0, atol=1e-14)


def test_topk_mask() -> None:
    scores = draw(6, 7, 4, seed=2)
    mask = F.topk_mask(scores, 3, dim=1)
    expected = CappedSimplex(3).project(scores.movedim(1, -1).numpy())
    assert_close(mask.movedim(1, -1), expected, rtol=0, atol=1e-13)
    assert_close(F.topk_mask(scores, 2.5, dim=1).sum(1), 2.5, rtol=0, atol=1e-13)
    hard = F.topk_mask(scores, 3, 1e-6, 1)
    assert_close(hard.sum(1), 3.0, rtol=0, atol=1e-9)
    highest = scores.topk(3, dim=1).indices
    assert_close(torch.gather(hard, 1, highest), 1.0, rtol=0, atol=1e-9)
    torch.autograd.gradcheck(lambda x: F.topk_mask(x, 2), draw(3, 5, seed=3).requires_grad_())


CASES = [
    (SquaredNorm(Permutahedron(4)), (4,)),
    (SquaredNorm(OrderSimplex()), (4,)),
    (Bernoulli(CappedSimplex(2)), (4,)),
    (SquaredNorm(Birkhoff()), (3, 3)),
    (Negentropy(Birkhoff()), (3, 3)),
    (SquaredNorm(Polytope(Permutahedron(4).maximize, batched=True)), (4,)),
]


@pytest.mark.parametrize(("omega", "shape"), CASES, ids=lambda x: str(x)[:40])
def test_losses_and_links_on_sets(omega, shape) -> None:
    """Those of the core, with gradients; PyTorch's first and second derivatives agree with them."""
    scores, other = draw(5, *shape, seed=4), draw(5, *shape, seed=5)
    target = torch.tensor(omega.link(other.numpy()))
    core = fp.FitzpatrickLoss(omega, 0.5)
    value, gradient = core.value_and_gradient(target.numpy(), scores.numpy())
    given = scores.clone().requires_grad_()
    loss = StructuredLoss(omega, 0.5, reduction="none")(given, target)
    assert_close(loss.detach(), value, rtol=1e-12, atol=1e-13)
    loss.sum().backward()
    assert_close(given.grad, gradient, rtol=1e-12, atol=1e-12)
    mean = StructuredLoss(omega, 0.5)(scores, target)
    assert_close(mean, value.mean(), rtol=1e-12, atol=0)
    link = StructuredLink(omega)
    assert_close(link(scores), omega.link(scores.numpy()), rtol=1e-12, atol=1e-13)
    given = scores.clone().requires_grad_()
    (link(given) * other).sum().backward()
    product = fp.FenchelYoungLoss(omega).hessian_product(
        target.numpy(), scores.numpy(), other.numpy()
    )
    assert_close(given.grad, product, rtol=1e-10, atol=1e-11)


def test_a_set_stands_for_its_squared_norm() -> None:
    assert StructuredLoss(Birkhoff()).loss == fp.FitzpatrickLoss(SquaredNorm(Birkhoff()))
    assert StructuredLink(OrderSimplex()).regularizer == SquaredNorm(OrderSimplex())


def test_vectors_of_any_set_along_any_axis() -> None:
    omega, scores = SquaredNorm(L2Ball()), draw(3, 5)
    criterion = FitzpatrickLoss(omega, dim=0, reduction="none")
    y = omega.domain.project(-scores)
    expected = fp.FitzpatrickLoss(omega).value(y, scores)
    torch.testing.assert_close(criterion(scores.T, y.T), expected)
    assert torch.autograd.gradcheck(lambda x: criterion(x, y.T), scores.T.requires_grad_())


def _rank_and_sort(x: torch.Tensor) -> torch.Tensor:
    found = [f(x, r, 0.7) for f in (F.soft_rank, F.soft_sort) for r in ("l2", "kl")]
    return torch.stack([*found, F.topk_mask(x, 1.625)])


def test_compilers_and_transformations() -> None:
    """A graph is the first to meet this k; ranks and sorts are found by an operator."""
    values = draw(4, 5, seed=1).requires_grad_()
    assert_compiles(_rank_and_sort, values, rtol=1e-14, atol=1e-14)
    x = values.detach()
    for dim in (0, 1):
        mapped = torch.func.vmap(_rank_and_sort, dim, 1)(x.movedim(0, dim))
        assert_close(mapped, _rank_and_sort(x), rtol=1e-15, atol=1e-15)
    expected = torch.autograd.functional.jacobian(_rank_and_sort, x)
    assert_close(torch.func.jacrev(_rank_and_sort)(x), expected, rtol=1e-14, atol=1e-14)


def test_forward_derivatives() -> None:
    x, v = draw(4, 5, seed=11), draw(4, 5, seed=12)
    _, along = torch.func.jvp(_rank_and_sort, (x,), (v,))
    expected = torch.autograd.functional.jvp(_rank_and_sort, x, v)[1]
    assert_close(along, expected, rtol=1e-14, atol=1e-14)


# Kernels of isotonic regression.


def use_kernels(monkeypatch: pytest.MonkeyPatch):
    """The kernels, which then serve all tensors; interpreted where there is no GPU."""
    pytest.importorskip("triton")
    name = isotonic.KERNELS["cuda"]
    if DEVICE == "cpu":
        monkeypatch.setitem(isotonic.KERNELS, "cpu", name)
    return importlib.import_module(name)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch):
    return use_kernels(monkeypatch)


ROWS = {
    "random": lambda x: x,
    "ties": lambda x: np.round(x),
    "rising": lambda x: np.sort(x, axis=-1),
    "falling": lambda x: -np.sort(-x, axis=-1),
    "far apart": lambda x: 1e4 * x,
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ROWS)
def test_kernels_find_the_isotonic_regression(kernels, name: str, dtype: str) -> None:
    """That of scikit-learn; rows of the last axis, wherever they are in memory."""
    sklearn = pytest.importorskip("sklearn.isotonic")
    for shape in ((35, 6), (2, 3, 23), (4, 1), (0, 3)):
        x = torch.tensor(ROWS[name](seeded(len(shape)).normal(size=shape)))
        x = x.to(DEVICE, getattr(torch, dtype)).movedim(-1, 0).contiguous().movedim(0, -1)
        fit = kernels.block_means(x, kernels.decreasing_blocks(x, None))
        assert fit.dtype == x.dtype
        rows = x.double().cpu().numpy().reshape(-1, shape[-1])
        expected = [sklearn.isotonic_regression(row, increasing=False) for row in rows]
        # sums of 23 entries in float64, rounded to the dtype once
        slack = (torch.finfo(x.dtype).eps + 23 * 2.0**-52) * np.abs(rows).max(initial=0)
        expected = np.reshape(expected, shape)
        assert_close(fit.double().cpu(), expected, rtol=0, atol=slack)


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero):RuntimeWarning")  # of NumPy
def test_kernels_find_the_blocks_of_the_core(kernels) -> None:
    """With NaN, which stays in its row, and infinities; of means and of the entropy's levels."""
    x = seeded(3).normal(size=(40, 17))
    x[0, 3], x[1, 2], x[2, 5], x[3, 4:6], x[4] = np.nan, np.inf, -np.inf, np.inf, 1.0
    ordered = -np.sort(-3 * x, axis=-1)
    weights = np.log(np.arange(17.0, 0.0, -1)) + np.zeros_like(x)
    for rows, log_weights in ((x, None), (ordered, weights), (weights, ordered)):
        given = [None if a is None else torch.tensor(a, device=DEVICE) for a in (rows, log_weights)]
        with np.errstate(all="ignore"):
            starts = isotonic.decreasing_blocks(rows, log_weights)
            means = isotonic.block_means(rows, starts)
        found = kernels.decreasing_blocks(*given)
        np.testing.assert_array_equal(found.cpu(), starts)
        found = kernels.block_means(given[0], found).cpu()
        np.testing.assert_allclose(found, means, rtol=1e-14, atol=1e-14)


def test_means_of_long_blocks_keep_their_digits(kernels) -> None:
    """Sums are compensated: as exact for many entries that cancel as for few."""
    u = np.stack([np.full(600, 0.1), np.where(np.arange(600) % 2, -1e8, 1e8) + 0.1])
    starts = torch.tensor(np.arange(600) == 0, device=DEVICE).expand(2, 600)
    means = kernels.block_means(torch.tensor(u, device=DEVICE), starts).cpu()
    expected = [[math.fsum(row) / 600] * 600 for row in u]
    assert_close(means, expected, rtol=2.0**-51, atol=0)


def test_ranks_and_projections_by_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    x = draw(4, 5, seed=13)
    expected, jacobian = _rank_and_sort(x), torch.func.jacrev(_rank_and_sort)(x)
    use_kernels(monkeypatch)
    y = x.to(DEVICE)
    assert_close(_rank_and_sort(y).cpu(), expected, rtol=1e-14, atol=1e-14)
    assert_close(torch.func.jacrev(_rank_and_sort)(y).cpu(), jacobian, rtol=1e-14, atol=1e-14)
    for domain in (Permutahedron(5), OrderSimplex()):
        p = domain.project(y)
        assert_close(p.cpu(), domain.project(x.numpy()), rtol=1e-14, atol=1e-14)
        along = domain.project_derivative(y, p)
        core = domain.project_derivative(x.numpy(), p.cpu().numpy())
        assert_close(along.cpu(), core, rtol=1e-14, atol=1e-14)
