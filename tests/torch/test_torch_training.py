"""Training through the Triton engine: the front end's options reach it, and derivatives compose."""

import itertools

import pytest
import torch
from conftest import TEST_ALL

from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

pytest.importorskip("triton", reason="the kernels need the package triton")

from fitzpatrick.engines.triton import launch as engine

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LOSSES = ["logistic", "fitzpatrick_sparsemax", "fitzpatrick_entmax15"]


@pytest.fixture
def launches(monkeypatch):
    """The scores of each launch."""
    seen, launch = [], engine.launch_loss
    monkeypatch.setattr(engine, "launch_loss", lambda x, *rest: seen.append(x) or launch(x, *rest))
    return seen


# (shape, axis of the classes, which targets, options); the second kind of shape is read in columns
CASES = {
    "labels": ((5, 7), 1, "labels", {"weight": True}),
    "proportions": ((5, 7), 1, "rows", {"weight": True}),
    "smoothed": ((4, 9), 1, "labels", {"label_smoothing": 0.1}),
    "smoothed, weighted": ((4, 9), 1, "labels", {"weight": True, "label_smoothing": 0.1}),
    "images": ((2, 5, 4, 8), 1, "labels", {"weight": True}),
    "columns": ((7, 40), 0, "labels", {}),
}


# Each case has each reduction and each loss; in the wide version, each pair of them.
REDUCTIONS = ("mean", "none", "sum")
PAIRS = [
    (case, LOSSES[k], REDUCTIONS[j])
    for i, case in enumerate(CASES)
    for j, k in itertools.product(range(3), repeat=2)
    if TEST_ALL or (i + j + k) % 3 == 0
]


@pytest.mark.parametrize(("case", "name", "reduction"), PAIRS)
def test_engines_agree(case, name, reduction, generator, launches):
    """Losses, gradients, the same once more, and second derivatives."""
    shape, axis, kind, options = CASES[case]
    x = torch.randn(shape, dtype=torch.float64, generator=generator).to(DEVICE)
    k = shape[axis]
    labels = torch.randint(0, k, x.movedim(axis, -1).shape[:-1], generator=generator).to(DEVICE)
    labels.view(-1)[2::5] = -100
    target = labels if kind == "labels" else torch.softmax(x.flip(0), axis)
    options = {**options, "dim": axis, "reduction": reduction}
    if "weight" in options:
        options["weight"] = torch.rand(k, dtype=torch.float64, generator=generator).to(DEVICE)
    results = []
    for which in ("triton", "reference"):
        scores = x.clone().requires_grad_()
        out = getattr(F, f"{name}_loss")(scores, target, engine=which, **options)
        total = (out * out).sum()
        (first,) = torch.autograd.grad(total, scores, retain_graph=True)
        (again,) = torch.autograd.grad(total, scores, create_graph=True)
        torch.testing.assert_close(again.detach(), first, rtol=1e-10, atol=1e-14)
        (second,) = torch.autograd.grad((again**2).sum(), scores)
        results.append((out.detach(), first, second))
    torch.testing.assert_close(results[0], results[1], rtol=1e-10, atol=1e-13)
    assert launches[0].ndim == (3 if case in ("images", "columns") else 2)


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA device")
@pytest.mark.parametrize("name", LOSSES)
def test_cuda_chooses_the_kernels(name, generator):
    x = torch.randn(64, 50_257, generator=generator).cuda().requires_grad_()
    labels = torch.randint(0, 50_257, (64,), generator=generator).cuda()
    loss = getattr(F, f"{name}_loss")
    automatic, forced = loss(x, labels), loss(x, labels, engine="triton")
    assert torch.equal(automatic, forced)
    torch.testing.assert_close(automatic, loss(x, labels, engine="reference"), rtol=1e-5, atol=0)


def test_one_kernel_makes_loss_and_gradient(generator, launches):
    x = torch.randn(5, 7, generator=generator).to(DEVICE).requires_grad_()
    labels = torch.tensor([0, 6, -100, 2, 1], device=DEVICE)
    (2.0 * F.sparsemax_loss(x, labels, engine="reference")).backward()
    expected, x.grad = x.grad, None
    (2.0 * F.sparsemax_loss(x, labels, engine="triton")).backward()
    assert len(launches) == 1
    torch.testing.assert_close(x.grad, expected, rtol=1e-5, atol=1e-7)
