"""Entry-wise losses by interpreted kernels, against the reference engine and the core."""

import pytest
import torch

from fitzpatrick import FitzpatrickLoss, get_loss
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit


def draw():
    generator = torch.Generator().manual_seed(1)
    x = 2 * torch.randn(6, 11, generator=generator, dtype=torch.float64)
    y = torch.rand(6, 11, generator=generator, dtype=torch.float64)
    return x, torch.where(y < 0.3, (y > 0.15).double(), y**9)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", ["fitzpatrick_sigmoid", "sparse_sigmoid"])
def test_weights_of_any_shape(name, reduction):
    x, y = (x.reshape(2, 3, 11) for x in draw())
    x.requires_grad_()
    function = getattr(F, f"{name}_loss")
    for shape in ((11,), (3, 1), (3, 11), (2, 1, 1), (1, 3, 1), (2, 3, 11), ()):
        weight = torch.rand(shape, generator=torch.Generator().manual_seed(2)).double()
        options = {"weight": weight, "pos_weight": 2 * weight + 1, "reduction": reduction}
        one = function(x, y, engine="triton", **options)
        other = function(x, y, engine="reference", **options)
        # sums of 66 terms of size one, each within the documented 1e-13
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
        gradients = [torch.autograd.grad(3 * loss.sum(), x)[0] for loss in (one, other)]
        torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("tightness", [0.3, 1.0, 100.0])
@pytest.mark.parametrize(("dtype", "tiny"), [(torch.float32, 1e-36), (torch.float64, 1e-100)])
def test_sigmoid_targets_whose_odds_are_out_of_range(dtype, tiny, tightness):
    y = torch.tensor([tiny, tiny, tiny * 1e-8, 0.5], dtype=dtype)
    x = torch.tensor([-1e4, 3.0, -500.0, 1.0], dtype=dtype, requires_grad=True)
    value = F.fitzpatrick_sigmoid_loss(x, y, tightness=tightness, reduction="none", engine="triton")
    (gradient,) = torch.autograd.grad(value.sum(), x)
    loss = FitzpatrickLoss(get_loss("sigmoid").regularizer, tightness)
    solution = loss.solve(y.double()[:, None], x.detach().double()[:, None])
    bound = {torch.float64: 1e-13, torch.float32: 1e-5}[dtype]  # the documented accuracy
    torch.testing.assert_close(value.double(), solution.value(), rtol=bound, atol=bound)
    rows = solution.gradient()[:, 0]
    torch.testing.assert_close(gradient.double(), rows, rtol=bound, atol=bound)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_compiled_graphs_call_the_kernel_once(reduction):
    x, y = draw()
    x.requires_grad_()
    weight = torch.rand(11, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    graphs = []

    def inspect(graph, _):
        graphs.append([str(node.target) for node in graph.graph.nodes])
        return graph.forward

    def loss(x):
        options = {"weight": weight, "reduction": reduction, "engine": "triton"}
        return F.fitzpatrick_sigmoid_loss(torch.tanh(x), y, tightness=0.5, **options).sum()

    compiled = torch.compile(loss, fullgraph=True, backend=inspect)
    results = [(out, *torch.autograd.grad(2 * out, x)) for out in (compiled(x), loss(x))]
    torch.testing.assert_close(*results)
    (graph,) = graphs
    assert sum("entry_loss" in target for target in graph) == 1
    assert not any("fitzpatrick.gradient" in target for target in graph)
