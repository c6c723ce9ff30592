"""Which engine runs, and that compilers and transforms can go through each of them."""

import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from conftest import CLASS_LOSSES

import fitzpatrick as fp
from fitzpatrick.torch import _engine
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

pytestmark = [
    # the interpreter computes with NumPy, which warns of infinities and NaN that are meant
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    # PyTorch scripts its own decompositions the first time that forward mode runs
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs the package triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ENGINES = ["reference", pytest.param("triton", marks=needs_triton)]
KERNELS = [
    prefix + name
    for name in ("logistic", "sparsemax", "entmax15")
    for prefix in ("", "fitzpatrick_")
]
LABELS = torch.tensor([0, 3, -100, 2, 1], device=DEVICE)


def value_and_gradient(function, x, *args, **options):
    x = x.detach().clone().requires_grad_()
    value = function(x, *args, **options)
    value.sum().backward()
    return value.detach(), x.grad


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KERNELS)
def test_compiles_into_one_graph(name, engine, scores):
    loss = getattr(F, f"{name}_loss")
    torch._dynamo.reset()  # what other tests compiled of it counts against its limit
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    x = scores.to(DEVICE)
    for options in ({}, {"reduction": "none", "label_smoothing": 0.1}):
        actual = value_and_gradient(compiled, x, LABELS, engine=engine, **options)
        expected = value_and_gradient(loss, x, LABELS, engine=engine, **options)
        torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-14)


@needs_triton
def test_the_choice_on_a_gpu_compiles_into_one_graph(scores, monkeypatch):
    class Scores:  # what choose_engine asks of the scores
        is_cuda = True
        device = "cuda"

    def choose(x):
        engine = _engine.choose_engine(None, Scores, "sparsemax")
        return x + (engine == "triton")

    compiled = torch.compile(choose, fullgraph=True, backend="eager")
    assert torch.equal(compiled(scores), scores + 1)
    assert _engine.choose_engine(None, Scores, "perceptron") == "reference"
    monkeypatch.setattr(_engine, "_HAS_TRITON", False)
    assert _engine.choose_engine(None, Scores, "sparsemax") == "reference"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_first_backward_pass_may_be_batched(engine, reduction, scores):
    x = scores.to(DEVICE).requires_grad_()
    rows = F.fitzpatrick_logistic_loss(x, LABELS, engine=engine, reduction=reduction)
    upstream = torch.randn(3, *rows.shape, dtype=torch.float64, device=DEVICE)
    (batched,) = torch.autograd.grad(rows, x, upstream, is_grads_batched=True)
    for one, direction in zip(batched, upstream, strict=True):
        again = F.fitzpatrick_logistic_loss(x, LABELS, engine=engine, reduction=reduction)
        (expected,) = torch.autograd.grad(again, x, direction)
        torch.testing.assert_close(one, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("engine", ENGINES)
def test_transforms_go_through_the_engine(engine, scores):
    x = scores.to(DEVICE)
    labels = LABELS.clamp(min=0)

    def loss(x, label):
        return F.fitzpatrick_sparsemax_loss(x, label, engine=engine)

    rows = torch.func.vmap(torch.func.grad(loss))(x, labels)
    _, expected = value_and_gradient(
        F.fitzpatrick_sparsemax_loss, x, labels, reduction="sum", engine="reference"
    )
    torch.testing.assert_close(rows, expected, rtol=1e-12, atol=1e-14)
    hessian = torch.func.hessian(loss)(x[0], labels[0])
    expected = torch.func.hessian(F.fitzpatrick_sparsemax_loss)(x[0], labels[0])
    torch.testing.assert_close(hessian, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "entmax15"])
def test_each_row_of_no_reduction_has_its_own_upstream(name, engine, scores):
    factors = torch.tensor([1.0, -2.0, 3.0, 0.0, 0.5], dtype=torch.float64, device=DEVICE)
    loss = getattr(F, f"{name}_loss")

    def weighted(x):
        return factors * loss(x, LABELS, reduction="none", engine=engine)

    _, gradient = value_and_gradient(weighted, scores.to(DEVICE))
    _, plain = value_and_gradient(loss, scores.to(DEVICE), LABELS, reduction="sum", engine=engine)
    torch.testing.assert_close(gradient, plain * factors[:, None], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", CLASS_LOSSES)
def test_the_cpu_engine_agrees_with_the_core_on_bad_rows(name, scores):
    """Blocks of NumPy rows and the core on whole tensors, where nothing was checked."""
    x = scores.clone()
    x[0] = -torch.inf
    x[1, 2] = torch.nan
    x[2, 1] = torch.inf
    labels = torch.tensor([0, 1, 2, 4, -1])
    y = torch.full((5, 4), 0.25, dtype=torch.float64)
    y[3] = 0  # not a distribution
    loss = getattr(F, f"{name}_loss")
    for target, good in ((labels, []), (y, [4])):
        value, gradient = value_and_gradient(loss, x, target, reduction="none", validate=False)
        core = fp.get_loss(name)
        if target is y:
            expected = core.solve(y, x)
            torch.testing.assert_close(value[good], expected.value()[good])
            torch.testing.assert_close(gradient[good], (expected.y_star - y)[good])
        else:
            assert value[3:].isnan().all()
            assert gradient[3:].isnan().all()


def test_asking_for_what_is_not_there_raises(monkeypatch):
    x, labels = torch.zeros(2, 3), torch.tensor([0, 1])
    monkeypatch.setattr(_engine, "_HAS_TRITON", True)
    with pytest.raises(ValueError, match=r"no Triton kernel for the losses of Indicator\("):
        F.perceptron_loss(x, labels, engine="triton")
    tsallis = fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.3))
    with pytest.raises(ValueError, match=r"of Tsallis\(alpha=1.3\); there is one for those of Neg"):
        F.loss_function(tsallis)(x, labels, engine="triton")
    monkeypatch.setattr(_engine, "_IS_INTERPRETED", False)
    with pytest.raises(ValueError, match="needs scores on a CUDA device, got cpu"):
        F.logistic_loss(x, labels, engine="triton")
    monkeypatch.setattr(_engine, "_HAS_TRITON", False)
    with pytest.raises(ImportError, match="needs the package triton"):
        F.logistic_loss(x, labels, engine="triton")


def test_triton_is_never_required():
    code = """
import sys
sys.modules["triton"] = None  # as if it were not installed
import torch
from fitzpatrick.torch import functional as F
x = torch.zeros(2, 3, requires_grad=True)
F.sparsemax_loss(x, torch.tensor([0, 1])).backward()
assert x.grad.abs().sum() > 0
assert "fitzpatrick.engines.triton.launch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
