"""α-entmax: values, derivatives in scores and in α, masks, modules; interpreted kernels, too."""

import numpy as np
import pytest
import torch

from fitzpatrick import FitzpatrickLoss
from fitzpatrick.regularizers import Tsallis
from fitzpatrick.torch import Budget, Entmax, Entmax15, Sparsemax
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

# NumPy computes what a kernel computes on both sides of a choice
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]

triton = pytest.mark.parametrize("engine", ["reference", "triton"])
ALPHAS = [1.0, 1.05, 1.3, 1.5, 1.8, 2.0]
# an entry is a power of at most 1/(α − 1) = 20 of a number with some rounding errors
TOLERANCE = {torch.float64: 200 * 2**-52, torch.float32: 200 * 2**-23, torch.bfloat16: 2**-8}


def draw(shape, dtype=torch.float64, seed=0):
    return torch.randn(
        shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


@triton
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_values_are_those_of_the_core(engine, dtype, alpha):
    x = 2 * draw((4, 9), dtype)
    p = F.entmax(x, alpha, engine=engine)
    expected = Tsallis(alpha).link(x.double().numpy())
    assert p.dtype == dtype
    assert (p.double() - torch.as_tensor(expected)).abs().max() < TOLERANCE[dtype]


@triton
def test_each_row_has_its_own_alpha(engine):
    x, alpha = draw((3, 2, 7)), torch.tensor([1.1, 1.5, 2.0], dtype=torch.float64)
    p = F.entmax(x, alpha.reshape(3, 1, 1), engine=engine)
    for rows, scores, a in zip(p, x, alpha, strict=True):
        torch.testing.assert_close(rows, F.entmax(scores, float(a)), rtol=1e-11, atol=1e-13)


@triton
def test_derivatives_in_scores_and_alpha(engine):
    x = draw((3, 4)).requires_grad_()
    alpha = torch.tensor([[1.2], [1.5], [1.9]], dtype=torch.float64, requires_grad=True)

    def function(x, alpha):
        return F.entmax(x, alpha, engine=engine)

    assert torch.autograd.gradcheck(function, (x, alpha))
    if engine == "reference":  # double backward takes the same formula in both
        assert torch.autograd.gradgradcheck(function, (x, alpha))


@triton
def test_the_derivative_in_alpha_has_a_limit_at_one(engine):
    x, v = draw((3, 6)), draw((3, 6), seed=1)
    alpha = torch.ones(3, 1, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad((F.entmax(x, alpha, engine=engine) * v).sum(), alpha)
    step = 1e-6
    ahead = F.entmax(x, 1 + step) - F.entmax(x, 1.0)
    # of first order in the step
    torch.testing.assert_close(slope[:, 0], (ahead * v).sum(-1) / step, rtol=1e-4, atol=20 * step)


@triton
@pytest.mark.parametrize("name", ["sparsemax", "entmax15", "logistic"])
@pytest.mark.parametrize("shape", [(2, 1, 1, 5), (4, 5), (1, 5), (2, 3, 4, 5)])
def test_masks_of_any_shape(engine, name, shape):
    x = draw((2, 3, 4, 5)).requires_grad_()
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)) < 0.6
    mask[..., 2] = True
    mask.reshape(-1, 5)[0] = False
    function = getattr(F, name)
    p = function(x, mask=mask, engine=engine)
    expected = function(x.masked_fill(~mask, -torch.inf))
    empty = ~mask.expand(x.shape).any(-1, keepdim=True)
    expected = torch.where(empty, 0.0, expected)
    torch.testing.assert_close(p, expected, rtol=1e-12, atol=1e-14)
    (slope,) = torch.autograd.grad((p * draw(p.shape, seed=5)).sum(), x)
    assert slope.isfinite().all()
    assert (slope[~mask.expand(x.shape)] == 0).all()


@triton
@pytest.mark.parametrize("masked", [False, True])
def test_classes_in_any_axis(engine, masked):
    x = draw((2, 6, 20)).requires_grad_()
    mask = draw((6, 1), seed=2) > -1 if masked else None
    p = F.entmax15(x, 1, mask=mask, engine=engine)
    moved = F.entmax15(x.movedim(1, -1), mask=None if mask is None else mask.T)
    torch.testing.assert_close(p, moved.movedim(-1, 1), rtol=1e-12, atol=1e-14)
    v = draw(p.shape, seed=4)
    (one,) = torch.autograd.grad(p, x, v)
    (other,) = torch.autograd.grad(moved.movedim(-1, 1), x, v)
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_rows_of_nothing_but_minus_infinity_are_nan_without_a_mask():
    assert F.sparsemax(torch.full((1, 3), -torch.inf)).isnan().all()


def test_transforms():
    x = draw((4, 5))
    jacobian = torch.func.vmap(torch.func.jacrev(lambda r: F.entmax(r, 1.3)))(x)
    forward = torch.func.vmap(torch.func.jacfwd(lambda r: F.entmax(r, 1.3)))(x)
    torch.testing.assert_close(jacobian, forward)
    # rows of the Jacobian sum to zero, as the entries sum to one: 5 of them, each below 1
    assert jacobian.sum(1).abs().max() < 50 * torch.finfo(x.dtype).eps


def test_compiled_graphs_are_whole():
    x, alpha = draw((3, 5)).requires_grad_(), torch.full((3, 1), 1.4, dtype=torch.float64)
    alpha.requires_grad_()

    def function(x, alpha):
        return (F.entmax(x, alpha) * F.sparsemax(x)).sum()

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    found = torch.autograd.grad(compiled(x, alpha), (x, alpha))
    expected = torch.autograd.grad(function(x, alpha), (x, alpha))
    torch.testing.assert_close(found, expected)


def test_modules():
    x = draw((2, 4, 5), torch.float32)
    torch.testing.assert_close(Sparsemax()(x), F.sparsemax(x))
    torch.testing.assert_close(Entmax15(dim=1)(x), F.entmax15(x, 1))
    torch.testing.assert_close(Entmax(1.2)(x), F.entmax(x, 1.2))
    layer = Entmax(torch.full((4, 1), 1.5), learnable=True)
    torch.testing.assert_close(layer(x), F.entmax15(x), rtol=1e-4, atol=1e-5)
    layer(x)[..., 0].sum().backward()
    assert layer.logit_alpha.grad.shape == (4, 1)
    assert (layer.logit_alpha.grad != 0).all()
    assert repr(layer) == "Entmax(alpha=shape (4, 1), dim=-1, learnable=True)"
    assert repr(Sparsemax()) == "Sparsemax(dim=-1)"
    fixed = Entmax(torch.full((4, 1), 1.5))
    assert [name for name, _ in fixed.named_buffers()] == ["fixed_alpha"]


def test_budget_is_a_projection():
    x = draw((50, 7)).requires_grad_()
    p = F.budget(3 * x, 2.5)
    # the sum of 7 entries up to 1, each rounded
    assert (p.sum(-1) - 2.5).abs().max() < 50 * torch.finfo(x.dtype).eps
    assert ((p >= 0) & (p <= 1)).all()
    # no other point is on the far side of the projection: entries strictly inside share θ − p
    gap = 3 * x - p
    inside = (p > 0) & (p < 1)
    shared = torch.where(inside, gap, torch.nan).nanmean(-1, keepdim=True)
    # some rounding errors of scores below 16
    assert torch.where(inside, (gap - shared).abs(), 0).max() < 16 * 50 * torch.finfo(x.dtype).eps
    assert torch.autograd.gradcheck(lambda x: F.budget(x, 2.5), (x[:5],))
    torch.testing.assert_close(Budget(2.5)(x[:2]), F.budget(x[:2], 2.5))


def test_normmax_maximizes():
    x, alpha = 2 * draw((20, 6)), 1.7
    p = F.normmax(x, alpha)
    value = (p * x).sum(-1) - torch.linalg.vector_norm(p, alpha, dim=-1)
    others = torch.softmax(draw((200, 1, 6), seed=9) + torch.log(p + 1e-3), -1)
    rivals = (others * x).sum(-1) - torch.linalg.vector_norm(others, alpha, dim=-1)
    assert (value >= rivals - 1e-12).all()
    labels = torch.arange(20) % 6
    loss = F.normmax_loss(x, labels, alpha, reduction="none")
    # 1 is the norm of a vertex
    torch.testing.assert_close(loss, value + 1 - x.gather(1, labels[:, None])[:, 0])
    x.requires_grad_()
    (slope,) = torch.autograd.grad(F.normmax_loss(x, labels, alpha, "sum"), x)
    torch.testing.assert_close(slope, p - torch.nn.functional.one_hot(labels, 6))
    assert torch.autograd.gradcheck(lambda x: F.normmax(x, alpha), (x[:3],))


def test_everything_of_entmax_is_here():
    peer = pytest.importorskip("entmax", reason="compares with the package entmax")
    x = draw((5, 8))
    labels = torch.arange(5)
    pairs = [
        (peer.sparsemax(x), F.sparsemax(x)),
        (peer.entmax15(x), F.entmax15(x)),
        (peer.entmax_bisect(x, 1.3), F.entmax(x, 1.3)),
        (peer.normmax_bisect(x, 1.6), F.normmax(x, 1.6)),
        (peer.budget_bisect(x, 2.0), F.budget(x, 2.0)),
        (peer.sparsemax_loss(x, labels), F.sparsemax_loss(x, labels, reduction="none")),
        (peer.entmax15_loss(x, labels), F.entmax15_loss(x, labels, reduction="none")),
        (peer.entmax_bisect_loss(x, labels, 1.3), F.entmax_loss(x, labels, 1.3, reduction="none")),
        (peer.normmax_bisect_loss(x, labels, 1.6), F.normmax_loss(x, labels, 1.6, "none")),
    ]
    for theirs, ours in pairs:
        # their bisection of 50 steps ends near 2^−50 times the interval, before it is rescaled
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.by_turns("alpha", "tightness")
@triton
@pytest.mark.parametrize("tightness", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("alpha", [1.02, 1.3, 1.8])
def test_losses_of_any_alpha_at_labels(engine, alpha, tightness):
    x, labels = 2 * draw((4, 9)), torch.tensor([0, 3, -100, 8])
    x[0, 0] += 4  # near a certain prediction
    x.requires_grad_()
    loss = F.fitzpatrick_entmax_loss(
        x, labels, alpha, tightness=tightness, reduction="none", engine=engine
    )
    expected = FitzpatrickLoss(Tsallis(alpha), tightness)
    known = labels != -100
    scores = x.detach().numpy()[known.numpy()]
    value, gradient = expected.value_and_gradient(labels[known].numpy(), scores)
    # powers up to 1/(α − 1) = 50 of numbers with some 40 rounding errors on either side
    bound = 50 * 40 * np.finfo(float).eps
    np.testing.assert_allclose(loss[known].detach(), value, rtol=bound, atol=bound)
    (rows,) = torch.autograd.grad(loss.sum(), x)
    np.testing.assert_allclose(rows[known], gradient, rtol=bound, atol=bound)
    assert (rows[~known] == 0).all()


def test_bad_input():
    x = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match=r"alpha must be between 1 and 2, got 0\.5"):
        F.entmax(x, 0.5)
    with pytest.raises(ValueError, match="alpha must be between 1 and 2, got nan"):
        F.entmax(x, float("nan"))
    with pytest.raises(ValueError, match=r"alpha must be between 1 and 2, got 2\.5"):
        F.entmax(x, torch.tensor([[1.5], [2.5], [1.0]]))
    with pytest.raises(TypeError, match="alpha must be a number from 1 to 2, got 'two'"):
        F.entmax(x, "two")
    with pytest.raises(ValueError, match=r"alpha of shape \(5,\) cannot be broadcast"):
        F.entmax(x, torch.full((5,), 1.5))
    with pytest.raises(TypeError, match=r"mask must be a boolean tensor, .* got torch.float32"):
        F.sparsemax(x, mask=torch.ones(4))
    with pytest.raises(TypeError, match=r"mask must be a boolean tensor, .* got list"):
        F.sparsemax(x, mask=[True])
    with pytest.raises(ValueError, match=r"mask of shape \(3,\) cannot be broadcast"):
        F.sparsemax(x, mask=torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="a learnable alpha must start strictly between 1 and 2"):
        Entmax(2.0, learnable=True)
    with pytest.raises(ValueError, match="budget must be between 0 and the number of classes, 4"):
        F.budget(x, 5.0)
    with pytest.raises(ValueError, match="alpha must be above 1"):
        F.normmax(x, 1.0)
    with pytest.raises(ValueError, match=r"no Triton kernel .* at proportions"):
        F.entmax_loss(x, torch.full((2, 3, 4), 1 / 3), 1.3, engine="triton")
