"""Soft ranks, soft sorts, top-k masks, and losses and links on structured sets."""

import numpy as np
import pytest
import torch
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
)
from fitzpatrick.torch import FitzpatrickLoss, StructuredLink, StructuredLoss
from fitzpatrick.torch import functional as F  # noqa: N812

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


def test_a_large_strength_gives_means() -> None:
    values = draw(3, 6)
    assert_close(F.soft_rank(values, regularization_strength=1e9), 3.5, rtol=0, atol=1e-7)
    mean = values.mean(-1, keepdim=True).expand(3, 6)
    assert_close(F.soft_sort(values, regularization_strength=1e9), mean, rtol=0, atol=1e-7)


@pytest.mark.parametrize("function", [F.soft_rank, F.soft_sort], ids=lambda f: f.__name__)
@pytest.mark.parametrize("strength", [0.3, 3.0])
def test_gradients(function, strength: float) -> None:
    values = draw(4, 5, seed=1).requires_grad_()
    torch.autograd.gradcheck(lambda x: function(x, "l2", strength), values)
    torch.autograd.gradgradcheck(lambda x: function(x, "l2", strength), values)


def test_dtypes() -> None:
    half = VALUES.to(torch.bfloat16)
    assert F.soft_rank(half).dtype == torch.bfloat16
    assert F.soft_sort(half).dtype == torch.bfloat16


def test_topk_mask() -> None:
    scores = draw(6, 7, 4, seed=2)
    mask = F.topk_mask(scores, 3, dim=1)
    expected = CappedSimplex(3).project(scores.movedim(1, -1).numpy())
    assert_close(mask.movedim(1, -1), expected, rtol=0, atol=1e-13)
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


def test_errors() -> None:
    with pytest.raises(ValueError, match="regularization must be 'l2', got 'kl'"):
        F.soft_rank(VALUES, regularization="kl")
    for strength in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="regularization_strength must be a positive number"):
            F.soft_sort(VALUES, regularization_strength=strength)
        with pytest.raises(ValueError, match="regularization_strength must be a positive number"):
            F.topk_mask(VALUES, 2, strength)
    with pytest.raises(ValueError, match=r"values must have shape \(…, n\)"):
        F.soft_rank(torch.tensor(1.0))
    with pytest.raises(TypeError, match="or a set of fitzpatrick"):
        StructuredLoss("sparsemap")
    with pytest.raises(ValueError, match="target must have the shape of the scores"):
        StructuredLoss(Birkhoff())(torch.zeros(2, 3, 3), torch.eye(3))
    with pytest.raises(ValueError, match="is not in the domain"):
        StructuredLoss(Permutahedron(3))(torch.zeros(1, 3), torch.zeros(1, 3))


def test_vectors_of_any_set_along_any_axis() -> None:
    omega, scores = SquaredNorm(L2Ball()), draw(3, 5)
    criterion = FitzpatrickLoss(omega, dim=0, reduction="none")
    y = omega.domain.project(-scores)
    expected = fp.FitzpatrickLoss(omega).value(y, scores)
    torch.testing.assert_close(criterion(scores.T, y.T), expected)
    assert torch.autograd.gradcheck(lambda x: criterion(x, y.T), scores.T.requires_grad_())
