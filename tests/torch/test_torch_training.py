"""Training through the Triton engine: the front end's options reach it, and derivatives compose."""

import pytest
import torch

from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

pytest.importorskip("triton", reason="the kernels need the package triton")

from fitzpatrick.engines.triton import launch as engine

# the interpreter computes with NumPy, which warns of infinities and NaN that are meant
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LOSSES = ["logistic", "fitzpatrick_logistic", "fitzpatrick_sparsemax", "fitzpatrick_entmax15"]


@pytest.fixture
def launches(monkeypatch):
    """The scores of each launch."""
    seen, launch = [], engine.launch_loss
    monkeypatch.setattr(engine, "launch_loss", lambda x, *rest: seen.append(x) or launch(x, *rest))
    return seen


@pytest.mark.parametrize("name", LOSSES)
def test_training(name, generator):
    x = torch.randn(5, 7, dtype=torch.float64, generator=generator).to(DEVICE)
    labels = torch.tensor([0, 6, -100, 2, 1], device=DEVICE)
    weight = torch.rand(7, dtype=torch.float64, generator=generator).to(DEVICE)
    loss = getattr(F, f"{name}_loss")
    for target in (labels, torch.softmax(x.flip(0), -1)):
        results = []
        for which in ("triton", "reference"):
            scores = x.clone().requires_grad_()
            total = loss(scores, target, weight, engine=which)
            (2.0 * total).backward()
            results.append((total.detach(), scores.grad))
        torch.testing.assert_close(results[0], results[1], rtol=1e-11, atol=1e-13)
    few = x[:2, :3].clone().requires_grad_()
    labels = torch.tensor([0, 2], device=DEVICE)
    assert torch.autograd.gradcheck(lambda x: loss(x, labels, engine="triton"), few)
    assert torch.autograd.gradgradcheck(lambda x: loss(x, labels, engine="triton"), few)


def test_operators_pass_opcheck(generator):
    x = torch.randn(3, 5, dtype=torch.float64, generator=generator).to(DEVICE).requires_grad_()
    scale = torch.ones(3, dtype=torch.float64, device=DEVICE)
    options = (torch.tensor([0, 4, 2], device=DEVICE), scale, "logistic", 0.5, "triton", -1)
    torch.library.opcheck(torch.ops.fitzpatrick.value.default, (x, *options))
    torch.library.opcheck(torch.ops.fitzpatrick.gradient.default, (x, *options))


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA device")
@pytest.mark.parametrize("name", LOSSES)
def test_cuda_chooses_the_kernels(name, generator):
    x = torch.randn(64, 50_257, generator=generator).cuda().requires_grad_()
    labels = torch.randint(0, 50_257, (64,), generator=generator).cuda()
    loss = getattr(F, f"{name}_loss")
    automatic, forced = loss(x, labels), loss(x, labels, engine="triton")
    assert torch.equal(automatic, forced)
    torch.testing.assert_close(automatic, loss(x, labels, engine="reference"), rtol=1e-5, atol=0)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES[1:3])
def test_reductions(name, reduction, generator):
    x = torch.randn(6, 9, dtype=torch.float64, generator=generator).to(DEVICE)
    y = torch.softmax(x.flip(0), -1)
    labels = torch.tensor([3, 0, -100, 8, 1, 1], device=DEVICE)
    loss = getattr(F, f"{name}_loss")
    upstream = torch.arange(1.0, 7.0, dtype=torch.float64, device=DEVICE)
    for target in (labels, y):
        results = []
        for which in ("triton", "reference"):
            scores = x.clone().requires_grad_()
            out = loss(scores, target, reduction=reduction, engine=which)
            factor = upstream if reduction == "none" else upstream[1]
            out.backward(factor, retain_graph=True)
            first = scores.grad.clone()
            out.backward(factor)  # the same once more, from nothing that was kept
            torch.testing.assert_close(scores.grad, 2 * first, rtol=1e-12, atol=1e-15)
            results.append((out.detach(), first))
        torch.testing.assert_close(results[0], results[1], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", LOSSES[1:])
@pytest.mark.parametrize("shape", [(2, 5, 4, 8), (7, 40)], ids=str)
def test_classes_beside_other_axes(name, shape, generator, launches):
    axis = 1 if len(shape) > 2 else 0
    x = torch.randn(shape, dtype=torch.float64, generator=generator).to(DEVICE)
    k = shape[axis]
    labels = torch.randint(0, k, x.movedim(axis, -1).shape[:-1], generator=generator).to(DEVICE)
    labels.view(-1)[1::5] = -100
    weight = torch.rand(k, dtype=torch.float64, generator=generator).to(DEVICE)
    loss = getattr(F, f"{name}_loss")
    for reduction in ("mean", "none"):
        results = []
        for which in ("triton", "reference"):
            scores = x.clone().requires_grad_()
            options = {"weight": weight, "dim": axis, "reduction": reduction, "engine": which}
            out = loss(scores, labels, **options)
            assert out.shape == (labels.shape if reduction == "none" else ())
            total = (out * out).sum()
            (gradient,) = torch.autograd.grad(total, scores, retain_graph=True, create_graph=True)
            (second,) = torch.autograd.grad((gradient**2).sum(), scores, retain_graph=True)
            total.backward()
            results.append((out.detach(), gradient.detach(), second, scores.grad))
        torch.testing.assert_close(results[0], results[1], rtol=1e-10, atol=1e-13)
    assert launches[0].ndim == launches[-1].ndim == 3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LOSSES[1:3])
def test_label_smoothing(name, weighted, generator):
    x = torch.randn(4, 9, dtype=torch.float64, generator=generator).to(DEVICE)
    labels = torch.tensor([0, 8, -100, 3], device=DEVICE)
    weight = torch.rand(9, dtype=torch.float64, generator=generator).to(DEVICE)
    options = {"weight": weight if weighted else None, "label_smoothing": 0.1}
    loss = getattr(F, f"{name}_loss")
    for reduction in ("mean", "none"):
        results = []
        for which in ("triton", "reference"):
            scores = x.clone().requires_grad_()
            out = loss(scores, labels, engine=which, reduction=reduction, **options)
            (out * out).sum().backward(retain_graph=True)
            first = scores.grad.clone()
            (second,) = torch.autograd.grad((out * out).sum(), scores, create_graph=True)
            torch.testing.assert_close(second.detach(), first, rtol=1e-10, atol=1e-14)
            results.append((out.detach(), first))
        torch.testing.assert_close(results[0], results[1], rtol=1e-10, atol=1e-13)


def test_one_kernel_makes_loss_and_gradient(generator, launches):
    x = torch.randn(5, 7, generator=generator).to(DEVICE).requires_grad_()
    labels = torch.tensor([0, 6, -100, 2, 1], device=DEVICE)
    (2.0 * F.sparsemax_loss(x, labels, engine="reference")).backward()
    expected, x.grad = x.grad, None
    (2.0 * F.sparsemax_loss(x, labels, engine="triton")).backward()
    assert len(launches) == 1
    torch.testing.assert_close(x.grad, expected, rtol=1e-5, atol=1e-7)


def test_batched_upstream_gradients_of_columns(generator):
    x = torch.randn(2, 5, 20, dtype=torch.float64, generator=generator).to(DEVICE).requires_grad_()
    labels = torch.randint(0, 5, (2, 20), generator=generator).to(DEVICE)
    upstream = torch.randn(3, 2, 20, dtype=torch.float64, generator=generator).to(DEVICE)
    rows = []
    for which in ("triton", "reference"):
        out = F.sparsemax_loss(x, labels, reduction="none", engine=which)
        rows += torch.autograd.grad(out, x, upstream, is_grads_batched=True)
    torch.testing.assert_close(rows[0], rows[1], rtol=1e-11, atol=1e-13)


def test_smoothed_labels_copy_strided_scores_once(generator, monkeypatch):
    x = torch.randn(64, 20, generator=generator).to(DEVICE).T
    copies = []
    contiguous = torch.Tensor.contiguous
    monkeypatch.setattr(
        torch.Tensor, "contiguous", lambda x: copies.append(x.shape) or contiguous(x)
    )
    loss = F.sparsemax_loss(
        x, torch.arange(20, device=DEVICE), label_smoothing=0.1, engine="triton"
    )
    assert loss.isfinite()
    assert copies.count(x.shape) == 1
