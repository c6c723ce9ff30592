"""The Triton kernels against the core in float64.

Without a GPU they run in Triton's interpreter, on sizes that cross the borders of blocks; the
limits below which rows are held in registers are lowered to reach the kernels for wide rows.
"""

import math

import pytest
import torch

from fitzpatrick.torch import _reference as reference
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

pytest.importorskip("triton", reason="the kernels need the package triton")

from fitzpatrick.engines import triton as engine

# the interpreter computes with NumPy, which warns of infinities and NaN that are meant
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LOSSES = [
    prefix + name
    for name in ("logistic", "sparsemax", "entmax15")
    for prefix in ("", "fitzpatrick_")
]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}


@pytest.fixture(autouse=True)
def core(monkeypatch):
    """The reference is the core itself, not the engine for NumPy arrays."""
    monkeypatch.setattr(reference, "solve_blocks", lambda *_: None)


@pytest.fixture(params=["registers", "wide"])
def path(request, monkeypatch):
    engine._plan.cache_clear()
    if request.param == "wide":
        for limit in ("_LOGISTIC_LIMIT", "_SPARSE_LIMIT", "_ROWS_LIMIT", "_MOMENTS_LIMIT"):
            monkeypatch.setattr(engine, limit, 0)
    yield request.param
    engine._plan.cache_clear()


def draw(k, dtype, generator):
    """Rows that are plain, masked, tied, peaked, switched off and nearly solved."""
    x = torch.randn(6, k, dtype=torch.float64, generator=generator) * 2
    x[1, 1::2] = -math.inf
    x[2] = 0.5
    x[3] *= 50
    y = torch.softmax(2 * torch.randn(6, k, dtype=torch.float64, generator=generator), -1)
    y[0] = torch.nn.functional.one_hot(torch.tensor(k - 1), k)
    y[1, 1::2] = 0
    y[2, ::3] = 0
    y /= y.sum(-1, keepdim=True)
    y[5] = torch.softmax(x[5], -1)
    labels = torch.randint(0, k, (6,), generator=generator)
    labels[1] = 0
    scale = torch.rand(6, dtype=torch.float64, generator=generator)
    scale[4] = 0
    return x.to(dtype).to(DEVICE), y.to(DEVICE), labels.to(DEVICE), scale.to(DEVICE)


def assert_parity(name, x, target, scale, ignore_index=-100):
    """Loss and gradient in one kernel against the core."""
    working = torch.float64 if x.dtype == torch.float64 else torch.float32
    value, gradient = engine.value_and_gradient(x, target, scale.to(working), name, ignore_index)
    wide = target.double() if target.is_floating_point() else target
    options = (x.double(), wide, scale, name, ignore_index)
    expected, expected_gradient = reference.value_and_gradient(*options)
    assert value.dtype == working
    assert gradient.dtype == x.dtype
    # proportions of half-precision scores go through a rational function that is 6e-5 off
    rough = target.is_floating_point() and x.element_size() == 2
    tight = 1e-4 if rough else TOLERANCE[working]
    torch.testing.assert_close(
        value.double(), expected, rtol=tight, atol=tight * 1e-3, equal_nan=True
    )
    tolerance = TOLERANCE[x.dtype]
    error = (gradient.double() - expected_gradient).norm(dim=-1)
    norm = expected_gradient.norm(dim=-1)
    # a nearly solved row has a gradient of rounding errors
    assert torch.all((error <= tolerance * (norm + 0.1)) | norm.isnan())
    assert torch.equal(gradient.isnan(), expected_gradient.isnan())


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("k", [2, 3, 33, 522])
def test_parity(name, k, path, generator):
    x, y, labels, scale = draw(k, torch.float64, generator)
    assert_parity(name, x, labels, scale)
    assert_parity(name, x, y, scale)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_parity_in_other_dtypes(name, dtype, path, generator):
    x, y, labels, scale = draw(257, dtype, generator)
    if dtype == torch.float16:
        y[0] = y[2]  # a hard row with scores in the hundreds overflows float16
    assert_parity(name, x, labels, scale)
    assert_parity(name, x, y, scale)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_proportions_in_whole_groups(name, dtype, generator, monkeypatch):
    for limit in ("_ROWS_LIMIT", "_MOMENTS_LIMIT"):
        monkeypatch.setattr(engine, limit, 0)
    engine._plan.cache_clear()
    x, y, _, scale = draw(264, dtype, generator)
    y[0] = y[2]  # a hard row with scores in the hundreds overflows float16
    x[5] += 250.0  # scores whose sum with τ has no digits to spare
    x[4, -8:] += 25.0  # the highest are not in the first block
    scale[4] = 0.5
    assert engine._lanes(x, y)[0] == 16 // x.element_size()
    for target in (y, y.to(dtype)):
        assert_parity(name, x, target, scale)
    engine._plan.cache_clear()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_guesses_from_samples(dtype, generator, monkeypatch):
    for limit in ("_MOMENTS_LIMIT", "_GUESS_LIMIT"):
        monkeypatch.setattr(engine, limit, 0)
    engine._plan.cache_clear()
    k = 2080
    x, y, _, scale = draw(k, torch.float64, generator)
    scale += 0.1
    x, y, scale = x[:4] * 0.001, y[:4], scale[:4]  # smooth rows, with a guess that is right
    y[0] = y[2]
    x[2, -1] = 10  # a single score that no sample has
    x[3, -9] = -200  # nor this one, which makes the row wide
    y[2, -1] = y[3, -9] = 1
    y /= y.sum(-1, keepdim=True)
    assert_parity("fitzpatrick_logistic", x.to(dtype), y, scale)
    engine._plan.cache_clear()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_scores_too_far_apart_for_an_exponential(dtype, path, generator):
    x, y, labels, scale = draw(9, dtype, generator)
    for size in (100.0, 1e30):
        x = x.sign() * size + x
        x[0, :4] = torch.tensor([size, -size, 0.0, 1.0])
        y[0] = 0
        y[0, :2] = 0.5
        for name in LOSSES:
            assert_parity(name, x, y, scale)
            assert_parity(name, x, labels, scale)


@pytest.mark.parametrize("name", LOSSES)
def test_rows_wider_than_a_tile(name, generator):
    k = 8201  # a tile and a rest, and an offset that is no multiple of a vector
    x = torch.randn(1, k, generator=generator) * 3
    scale = torch.ones(1, dtype=torch.float64)
    assert_parity(name, x.to(DEVICE), torch.tensor([8195], device=DEVICE), scale.to(DEVICE))
    y = torch.softmax(torch.randn(1, k, generator=generator), -1)
    assert_parity(name, x.to(DEVICE), y.to(DEVICE), scale.to(DEVICE))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_rows_that_start_anywhere(name, dtype, generator, monkeypatch):
    for limit in ("_LOGISTIC_LIMIT", "_SPARSE_LIMIT", "_PEEL_LIMIT"):
        monkeypatch.setattr(engine, limit, 0)
    engine._plan.cache_clear()
    x = torch.randn(11, 37, dtype=torch.float64, generator=generator).mul(2).to(dtype)
    labels = torch.tensor([0, 1, 7, 8, 36, 35, 29, 28, 20, -100, 37])
    scale = torch.ones(1, dtype=torch.float64).expand(11)
    assert engine._lanes(x, labels) == (16 // x.element_size(), True)
    assert_parity(name, x.to(DEVICE), labels.to(DEVICE), scale.to(DEVICE))
    engine._plan.cache_clear()


@pytest.mark.parametrize("name", LOSSES)
def test_value_and_gradient_alone_are_the_same(name, path, generator):
    x, y, labels, scale = draw(9, torch.float64, generator)
    for target in (labels, y):
        value, gradient = engine.value_and_gradient(x, target, scale, name, -100)
        alone = engine.value(x, target, scale, name, -100)
        assert torch.equal(alone.isfinite(), value.isfinite())
        # three kernels, which a compiler may round in three ways
        torch.testing.assert_close(alone, value, rtol=1e-12, atol=1e-15)
        torch.testing.assert_close(
            engine.gradient(x, target, scale, name, -100), gradient, rtol=1e-12, atol=1e-15
        )


@pytest.mark.parametrize("name", LOSSES)
def test_one_class(name, path):
    x = torch.tensor([[3.0], [-2.0]], dtype=torch.float64, device=DEVICE)
    scale = torch.ones(2, dtype=torch.float64, device=DEVICE)
    labels = torch.zeros(2, dtype=torch.long, device=DEVICE)
    for target in (labels, torch.ones(2, 1, dtype=torch.float64, device=DEVICE)):
        value, gradient = engine.value_and_gradient(x, target, scale, name, -100)
        torch.testing.assert_close(value, torch.zeros_like(value), rtol=0, atol=1e-15)
        torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", LOSSES)
def test_ignored_bad_and_nan_rows(name, path, generator):
    x = torch.randn(5, 33, dtype=torch.float64, generator=generator)
    x[0] = math.nan
    x[3, 7] = math.nan
    x[4, 9] = math.inf
    labels = torch.tensor([-100, 33, -1, 2, 2])
    scale = torch.ones(5, dtype=torch.float64)
    value, gradient = engine.value_and_gradient(
        x.to(DEVICE), labels.to(DEVICE), scale.to(DEVICE), name, -100
    )
    assert value[0] == 0
    assert torch.equal(gradient[0], torch.zeros_like(gradient[0]))
    assert value[1:].isnan().all()
    assert gradient[1:].isnan().all()


@pytest.mark.parametrize("name", LOSSES)
def test_strided_rows(name, path, generator):
    x = torch.randn(4, 3, 40, dtype=torch.float64, generator=generator).to(DEVICE)
    labels = torch.tensor([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]], device=DEVICE)
    scale = torch.rand(8, dtype=torch.float64, generator=generator).to(DEVICE)[::2]
    assert_parity(name, x[:, 1, 4:37], labels[:, 1], scale)
    assert_parity(name, x[:, 1].T[:4], labels[:, 0] % 4, scale)


@pytest.mark.parametrize("factors", [[1.0, 1.0, 1.0], [1.0, -2.0, 0.5]])
def test_scaling_rows_in_place(factors, generator):
    rows = torch.randn(3, 5000, dtype=torch.float64, generator=generator).to(DEVICE)
    expected = rows * torch.tensor(factors, dtype=torch.float64, device=DEVICE)[:, None]
    engine.scale_rows_(rows, torch.tensor(factors, dtype=torch.float64, device=DEVICE))
    assert torch.equal(rows, expected)


@pytest.mark.parametrize("name", LOSSES)
def test_training_through_the_engine(name, generator):
    x = torch.randn(5, 7, dtype=torch.float64, generator=generator).to(DEVICE)
    labels = torch.tensor([0, 6, -100, 2, 1], device=DEVICE)
    weight = torch.rand(7, dtype=torch.float64, generator=generator).to(DEVICE)
    loss = getattr(F, f"{name}_loss")
    for target in (labels, torch.softmax(x.flip(0), -1)):
        gradients = []
        for which in ("triton", "reference"):
            scores = x.clone().requires_grad_()
            total = loss(scores, target, weight, engine=which)
            (2.0 * total).backward()
            gradients.append((total.detach(), scores.grad))
        torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-11, atol=1e-13)
    few = x[:2, :3].clone().requires_grad_()
    labels = torch.tensor([0, 2], device=DEVICE)
    assert torch.autograd.gradcheck(lambda x: loss(x, labels, engine="triton"), few)
    assert torch.autograd.gradgradcheck(lambda x: loss(x, labels, engine="triton"), few)


def test_operators_pass_opcheck(generator):
    x = torch.randn(3, 5, dtype=torch.float64, generator=generator).to(DEVICE).requires_grad_()
    scale = torch.ones(3, dtype=torch.float64, device=DEVICE)
    options = (torch.tensor([0, 4, 2], device=DEVICE), scale, "fitzpatrick_logistic", "triton", -1)
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


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_scales_that_need_no_tensor(name, reduction, generator):
    x, y, labels, _ = draw(9, torch.float64, generator)
    labels[2] = -100
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
        torch.testing.assert_close(results[0], results[1], rtol=1e-11, atol=1e-13, equal_nan=True)


@pytest.mark.parametrize("n", [1, 2049, 70_000])
def test_counting_labels(n, generator):
    labels = torch.randint(-2, 3, (n,), generator=generator).to(DEVICE)
    assert engine._count(labels, -2).sum() == (labels != -2).sum()
    assert engine._count(labels, 7).sum() == n


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", [(2, 5, 4, 8), (1, 3, 33), (7, 40)], ids=str)
def test_classes_beside_other_axes(name, shape, generator, monkeypatch):
    axis = 1 if len(shape) > 2 else 0
    x = torch.randn(shape, dtype=torch.float64, generator=generator).to(DEVICE)
    k = shape[axis]
    labels = torch.randint(0, k, x.movedim(axis, -1).shape[:-1], generator=generator).to(DEVICE)
    labels.view(-1)[1::5] = -100
    weight = torch.rand(k, dtype=torch.float64, generator=generator).to(DEVICE)
    loss = getattr(F, f"{name}_loss")
    seen = []
    launch = engine._launch
    monkeypatch.setattr(engine, "_launch", lambda x, *rest: seen.append(x) or launch(x, *rest))
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
    assert seen[0].ndim == seen[-1].ndim == 3


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_smoothed_labels(name, weighted, path, generator):
    x, _, labels, _ = draw(33, torch.float64, generator)
    x[1] = x[0] + 1  # a masked class has a target now, and so an infinite loss
    labels[4] = -100
    weight = torch.rand(33, dtype=torch.float64, generator=generator).to(DEVICE)
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_smoothed_labels_in_other_dtypes(name, dtype, path, generator):
    x, _, labels, _ = draw(64, dtype, generator)
    x[1] = x[0]
    weight = torch.rand(64, generator=generator).to(DEVICE)
    loss = getattr(F, f"{name}_loss")
    for weights in (None, weight):
        scores, wide = x.clone().requires_grad_(), x.double().requires_grad_()
        options = {"label_smoothing": 0.1, "reduction": "sum"}
        loss(scores, labels, weights, engine="triton", **options).backward()
        wider = None if weights is None else weights.double()
        loss(wide, labels, wider, engine="reference", **options).backward()
        error = (scores.grad.double() - wide.grad).norm(dim=-1)
        assert torch.all(error <= TOLERANCE[dtype] * (wide.grad.norm(dim=-1) + 0.1))


@pytest.mark.parametrize("name", LOSSES)
def test_one_kernel_makes_loss_and_gradient(name, generator, monkeypatch):
    x = torch.randn(5, 7, generator=generator).to(DEVICE).requires_grad_()
    labels = torch.tensor([0, 6, -100, 2, 1], device=DEVICE)
    loss = getattr(F, f"{name}_loss")
    (2.0 * loss(x, labels, engine="reference")).backward()
    expected, x.grad = x.grad, None
    launches = []
    launch = engine._launch
    monkeypatch.setattr(engine, "_launch", lambda *args: launches.append(args) or launch(*args))
    (2.0 * loss(x, labels, engine="triton")).backward()
    assert len(launches) == 1
    torch.testing.assert_close(x.grad, expected, rtol=1e-5, atol=1e-7)


def test_shapes_of_blocks_are_powers_of_two():
    for k in [*range(1, 300), *range(300, 40_000, 7), 50_257, 131_072, 200_003]:
        for size in (2, 4, 8):
            for lanes in (1, 16 // size):
                shapes = [engine._rows_shape(name, k, size, lanes) for name in LOSSES]
                shapes += [engine._sparse_shape(k, size, lanes)]
                shapes += [engine._logistic_shape(k, size, lanes)]
                for shape in shapes:
                    for name in ("ROWS", "BLOCK", "GROUPS", "num_warps"):
                        value = shape.get(name, 1)
                        assert value & (value - 1) == 0, (k, size, lanes, shape)
                        assert value > 0


@pytest.mark.parametrize("name", LOSSES)
def test_widths_between_powers_of_two(name, generator):
    x = torch.randn(1, 3500, generator=generator).to(DEVICE)
    y = torch.softmax(torch.randn(1, 3500, generator=generator), -1).to(DEVICE)
    assert_parity(name, x, y, torch.ones(1, dtype=torch.float64, device=DEVICE))


@pytest.mark.parametrize("height", [-200.0, -5000.0])
@pytest.mark.parametrize("name", LOSSES)
def test_wide_rows_whose_first_block_is_masked(name, height, generator):
    k = 4096
    x = torch.randn(1, k, generator=generator) + height
    y = torch.softmax(torch.randn(1, k, generator=generator), -1)
    x[:, :2100] = -math.inf
    y[:, :2100] = 0
    y /= y.sum()
    scale = torch.ones(1, dtype=torch.float64, device=DEVICE)
    assert_parity(name, x.to(DEVICE), y.to(DEVICE), scale)
    x[:] = -math.inf
    value, _ = engine.value_and_gradient(x.to(DEVICE), y.to(DEVICE), 1, name, -100)
    assert value.isnan().all()


REACH = {"sparsemax": 1, "fitzpatrick_sparsemax": 2, "entmax15": 2, "fitzpatrick_entmax15": 3}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("name", REACH)
def test_many_ties_just_within_reach_of_a_peak(name, dtype, path):
    """A rounding error of τ that is longer than their distance to it would lose them all."""
    k, peak = 1500, REACH[name]
    x = torch.zeros(4, k, dtype=torch.float64)
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
    scale = torch.ones(4, dtype=torch.float64, device=DEVICE)
    for target in (torch.tensor([5, 5, 0, 5], device=DEVICE), y.to(DEVICE)):
        assert_parity(name, x, target, scale)
        _, gradient = engine.value_and_gradient(x, target, 1, name, -100)
        assert gradient.double().sum(-1).abs().max() < 20 * torch.finfo(dtype).eps


@pytest.mark.parametrize("offset", [-3000.0, 1000.0])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_wide_rows_do_not_depend_on_an_offset(name, offset, generator):
    x = (torch.randn(1, 2500, generator=generator) + offset).to(DEVICE)
    y = torch.softmax(torch.randn(1, 2500, generator=generator), -1).to(DEVICE)
    scale = torch.ones(1, dtype=torch.float64)
    _, gradient = engine.value_and_gradient(x, y, 1, name, -100)
    _, expected = reference.value_and_gradient(x.double(), y.double(), scale, name, -100)
    assert (gradient - expected).norm() <= 1e-5 * expected.norm()


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
