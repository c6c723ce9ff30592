"""Which engine runs, and that compilers and transforms can go through each of them."""

import pytest
import torch
from conftest import ROUNDING, assert_compiles, every_engine, needs_triton, value_and_gradient
from tests.user_regularizer import ScaledDistance

import fitzpatrick as fp
from fitzpatrick.engines import rows, table
from fitzpatrick.torch import _engines
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LABELS = torch.tensor([0, 3, -100, 2, 1], device=DEVICE)


@needs_triton
def test_kernels_compile_into_one_graph(scores):
    losses = F.fitzpatrick_logistic_loss, F.sparsemax_loss, F.fitzpatrick_entmax15_loss
    options = {"reduction": "none", "label_smoothing": 0.1}

    def compute(x):
        return torch.stack([loss(x, LABELS, engine="triton", **options) for loss in losses])

    assert_compiles(compute, scores.to(DEVICE).requires_grad_())


@needs_triton
def test_the_choice_on_a_gpu_compiles_into_one_graph(scores, monkeypatch):
    class Scores:  # what choose_engine asks of the scores
        is_cuda = True
        device = "cuda"

    def choose(x):
        engine = _engines.choose_engine(None, Scores, "sparsemax")
        return x + (engine == "triton")

    compiled = torch.compile(choose, fullgraph=True, backend="eager")
    assert torch.equal(compiled(scores), scores + 1)
    assert _engines.choose_engine(None, Scores, "perceptron") == "reference"
    monkeypatch.setattr(_engines, "_HAS_TRITON", False)
    assert _engines.choose_engine(None, Scores, "sparsemax") == "reference"


def test_a_coupled_regularizer_with_a_kernel_is_no_entmax_by_that(monkeypatch, scores):
    """What the table of kernels says of Ω says nothing of its link."""
    entry = table.Entry((ScaledDistance,), (fp.sets.Simplex,), "sparsemax")
    monkeypatch.setitem(table.KERNELS, "triton", [entry, *table.KERNELS["triton"]])
    link = F.link_function(fp.FenchelYoungLoss(ScaledDistance(2.0)))
    x = scores.clone().requires_grad_()
    p = link(x)
    torch.testing.assert_close(p, F.sparsemax(x / 2), **ROUNDING)
    upstream = scores.flip(0)
    (actual,) = torch.autograd.grad(p, x, upstream, retain_graph=True)
    (expected,) = torch.autograd.grad(F.sparsemax(x / 2), x, upstream)
    torch.testing.assert_close(actual, expected, **ROUNDING)


def test_asking_for_what_is_not_there_raises(monkeypatch):
    x, labels = torch.zeros(2, 3), torch.tensor([0, 1])
    monkeypatch.setattr(_engines, "_HAS_TRITON", True)
    with pytest.raises(ValueError, match=r"no Triton kernel for the losses of Indicator\("):
        F.perceptron_loss(x, labels, engine="triton")
    tsallis = fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.3))
    with pytest.raises(ValueError, match=r"of Tsallis\(alpha=1.3\) at proportions; there is one"):
        F.loss_function(tsallis)(x, torch.full((2, 3), 1 / 3), engine="triton")
    monkeypatch.setattr(_engines, "_IS_INTERPRETED", False)
    with pytest.raises(ValueError, match="needs scores on a CUDA device, got cpu"):
        F.logistic_loss(x, labels, engine="triton")
    monkeypatch.setattr(_engines, "_HAS_TRITON", False)
    with pytest.raises(ImportError, match="needs the package triton"):
        F.logistic_loss(x, labels, engine="triton")


@every_engine
@pytest.mark.parametrize("weighted", [False, True])
def test_smoothed_labels_out_of_range_are_nan_in_their_rows(engine, weighted, scores):
    x = scores.to(DEVICE)
    labels = torch.tensor([0, 7, -100, -3, 1], device=DEVICE)
    weight = torch.tensor([0.5, 2.0, 1.0, 0.1], device=DEVICE, dtype=torch.float64)
    options = {"label_smoothing": 0.1, "validate": False, "engine": engine}
    options["weight"] = weight if weighted else None
    bad = torch.tensor([False, True, False, True, False], device=DEVICE)
    loss = F.fitzpatrick_entmax15_loss
    value, gradient = value_and_gradient(loss, x, labels, reduction="none", **options)
    assert torch.equal(value.isnan(), bad)
    assert torch.equal(gradient.isnan().all(-1), bad)
    assert torch.equal(gradient.isnan().any(-1), bad)
    good = value_and_gradient(loss, x, labels.masked_fill(bad, 2), reduction="none", **options)
    torch.testing.assert_close(value[~bad], good[0][~bad], **ROUNDING)
    assert loss(x, labels, **options).isnan()


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("path", ["direct", "dispatched"])
def test_many_rows_of_half_precision_have_the_right_mean(soft, path):
    """More rows than bfloat16 counts, 256, or float16 holds, 65504."""
    n = 70_000
    labels = torch.zeros(n, dtype=torch.long)
    labels[::7] = -100
    target = torch.tensor([1.0, 0.0]).expand(n, 2) if soft else labels

    def loss(x):
        return F.fitzpatrick_logistic_loss(x, target, validate=False)

    for dtype in (torch.bfloat16, torch.float16):
        x = torch.zeros(n, 2, dtype=dtype)
        function = loss if path == "direct" else torch.func.vmap(loss)
        value = function(x if path == "direct" else x[None]).reshape(())
        # the loss at equal scores, ω(−1), is a number of its own in every row
        assert value.dtype == dtype
        assert value.item() == pytest.approx(0.2784645, rel=torch.finfo(dtype).eps)


CALLS = {
    "labels": lambda x: F.fitzpatrick_logistic_loss(x, x.detach().argmin(-1), reduction="none"),
    "rows": lambda x: F.sparsemax_loss(x, x.detach().softmax(-1), reduction="none"),
    "link": lambda x: F.entmax15(x).square(),
    "orders": lambda x: F.entmax(x, torch.linspace(1.1, 1.9, len(x))[:, None]).square(),
    "budget": lambda x: F.budget(x, 2.0).square(),
}


@pytest.mark.parametrize("name", CALLS)
def test_large_batches_take_the_threads_of_pytorch(name, monkeypatch, generator):
    """Each row goes to one thread, so that its digits do not depend on how many there are."""
    asked, pool = [], rows.ThreadPoolExecutor
    monkeypatch.setattr(rows, "ThreadPoolExecutor", lambda n: asked.append(n) or pool(n))
    x = torch.randn(4200, 100, generator=generator, dtype=torch.float64, requires_grad=True)
    before, results = torch.get_num_threads(), []
    try:
        for n_threads in (1, 3):
            torch.set_num_threads(n_threads)
            found = CALLS[name](x)
            results.append((found.detach(), *torch.autograd.grad(found.sum(), x)))
            assert set(asked) == ({2} if n_threads == 3 else set())  # beside the one that asks
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(*results, rtol=4 * 2.0**-52, atol=0)
