"""A linear layer and a loss in one: equal to the loss of all scores, whatever is asked for."""

import copy
import itertools
import math
import pickle
import re

import pytest
import torch
import torch.utils.checkpoint
from conftest import CLASS_LOSSES, EPS, TEST_ALL, module_name, needs_triton, skip_unless_multiplied
from tests.interpreter import WIDE
from torch.autograd import forward_ad

import fitzpatrick as fp
import fitzpatrick.torch as ft
from fitzpatrick.losses import ends
from fitzpatrick.torch import _head
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit
from fitzpatrick.torch._head import HeadCall, Layer
from fitzpatrick.torch._targets import smooth

N, H, K = 11, 5, 7
# Two ways to the same float64 numbers. The scores differ by the rounding of sums of five products
# of size one, the losses are within the documented 1e-13 on either side, and the gradients sum some
# ten such numbers, which may cancel.
DOUBLE = {"rtol": 1000 * EPS, "atol": 1000 * EPS}


def draw(generator, dtype=torch.float64, shape=(N,), k=K):
    """Input, weight, bias, labels with some ignored, and proportions."""
    options = {"dtype": torch.float64, "generator": generator}
    x = torch.randn(*shape, H, **options).to(dtype).requires_grad_()
    weight = torch.randn(k, H, **options).to(dtype).requires_grad_()
    bias = torch.randn(k, **options).to(dtype).requires_grad_()
    labels = torch.randint(0, k, shape, generator=generator)
    labels.view(-1)[2::4] = -100
    y = torch.softmax(2 * torch.randn(*shape, k, **options), -1).to(dtype)
    return x, weight, bias, labels, y


def unfused(name, x, linear_weight, target, *, linear_bias=None, chunk_size=None, **options):
    """The loss of all scores."""
    del chunk_size
    scores = torch.nn.functional.linear(x, linear_weight, linear_bias)
    return getattr(F, f"{name}_loss")(scores, target, dim=-1, **options)


def fused(name, *arguments, **options):
    return getattr(F, f"linear_{name}_loss")(*arguments, **options)


def loss_and_gradients(loss, leaves):
    """The loss, and the gradients of its sum, weighted in a way that tells rows apart."""
    upstream = torch.linspace(0.5, 2, loss.numel(), dtype=loss.dtype).reshape(loss.shape)
    return loss.detach(), *torch.autograd.grad((loss * upstream).sum(), leaves)


def compare(name, x, linear_weight, target, tolerance=DOUBLE, **options):
    learned = [options.get("linear_bias"), options.get("logit_scale")]
    leaves = [x, linear_weight, *(leaf for leaf in learned if isinstance(leaf, torch.Tensor))]
    found = loss_and_gradients(fused(name, x, linear_weight, target, **options), leaves)
    expected = loss_and_gradients(unfused(name, x, linear_weight, target, **options), leaves)
    torch.testing.assert_close(found, expected, **tolerance)


@pytest.mark.parametrize("has_labels", [True, False], ids=["labels", "proportions"])
@pytest.mark.parametrize("name", CLASS_LOSSES)
def test_all_options(name, has_labels, generator):
    x, weight, bias, labels, y = draw(generator)
    class_weight = torch.rand(K, generator=generator, dtype=torch.float64) + 0.1
    learned = {"logit_scale": torch.tensor([1.5], dtype=torch.float64, requires_grad=True)}
    transforms = {}, learned, {**learned, "softcap": 3.0, "temperature": 2.0}
    cases = itertools.product(
        ("mean", "sum", "none"), (None, bias), (None, class_weight), (0.0, 0.1), (None, 1, 4),
        transforms,
    )  # fmt: skip
    options = {"tightness": 0.5} if isinstance(fp.get_loss(name), fp.FitzpatrickLoss) else {}
    # memory may lie anyhow
    x = x.detach().T.contiguous().T.requires_grad_()
    weight = weight.detach().repeat_interleave(2, 1)[:, ::2].requires_grad_()
    head = getattr(ft, f"Linear{module_name(name)}")(H, K, dtype=torch.float64, **options)
    expected = fused(name, x, head.linear.weight, labels, **options)
    assert torch.equal(head(x, labels), expected)
    assert torch.equal(head.link(x), getattr(F, ends(name)[0])(head.linear(x)))
    for i, (reduction, linear_bias, w, smoothing, chunk_size, transform) in enumerate(cases):
        if not TEST_ALL and (i + CLASS_LOSSES.index(name)) % 11:
            continue  # the losses together see all of them
        compare(
            name, x, weight, labels if has_labels else y, reduction=reduction,
            linear_bias=linear_bias, weight=w, label_smoothing=smoothing, chunk_size=chunk_size,
            **options, **transform,
        )  # fmt: skip


@pytest.mark.parametrize("alpha", [1.0, 1.25, 1.5, 2.0])
@pytest.mark.parametrize("tightness", [0.0, 1.0])
def test_heads_of_any_order(generator, alpha, tightness):
    x, weight, bias, labels, y = draw(generator)
    options = {"linear_bias": bias, "chunk_size": 4, "label_smoothing": 0.1}
    for target in (labels, y):
        compare("entmax", x, weight, target, alpha=alpha, tightness=tightness, **options)
    with pytest.raises(ValueError, match="alpha"):
        F.linear_entmax_loss(x, weight, labels, 2.5)


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 1, 4)], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_any_leading_shape(shape, reduction, generator):
    """Of the mean of no rows at all, too, which is NaN and has gradients of zero."""
    x, weight, bias, labels, y = draw(generator, shape=shape)
    for target in (labels, y, torch.full_like(labels, -100)):
        for w in (None, torch.ones(K, dtype=torch.float64)):
            loss = fused("fitzpatrick_logistic", x, weight, target, reduction=reduction, weight=w)
            assert loss.shape == (shape if reduction == "none" else ())
            compare(
                "fitzpatrick_logistic", x, weight, target, {**DOUBLE, "equal_nan": True},
                linear_bias=bias, reduction=reduction, weight=w,
            )  # fmt: skip


@pytest.mark.parametrize("transform", [{}, {"softcap": 3.0}, {"logit_scale": 2.0}], ids=str)
@pytest.mark.parametrize("ignore_index", [-100, 3, K, 255])
def test_ignored_rows_enter_no_product(ignore_index, transform, generator):
    x, weight, bias, labels, _ = draw(generator)
    labels = labels.masked_fill(labels == 3, 0).masked_fill(labels == -100, ignore_index)
    ignored = labels == ignore_index
    kept = x.detach()[~ignored].requires_grad_()
    bad = x.detach().clone()
    bad[ignored] = math.nan  # times zero would still be NaN
    bad.requires_grad_()
    scale = torch.tensor(transform.get("logit_scale", 1.5), dtype=torch.float64).requires_grad_()
    transform = {**transform, "logit_scale": scale, "linear_bias": bias}
    options = {"ignore_index": ignore_index, "chunk_size": 2, **transform}
    found = loss_and_gradients(
        fused("fitzpatrick_entmax15", bad, weight, labels, **options), [bad, weight, bias, scale]
    )
    expected = loss_and_gradients(
        unfused("fitzpatrick_entmax15", kept, weight, labels[~ignored], **transform),
        [kept, weight, bias, scale],
    )
    assert torch.equal(found[1][ignored], torch.zeros_like(bad[ignored]))
    found = found[0], found[1][~ignored], *found[2:]
    torch.testing.assert_close(found, expected, **DOUBLE)
    every = fused(
        "fitzpatrick_entmax15", bad, weight, labels, reduction="none", ignore_index=ignore_index
    )
    assert (every[ignored] == 0).all()
    assert every[~ignored].isfinite().all()


@pytest.mark.parametrize("wanted", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_gradients_that_are_asked_for(wanted, reduction, generator, monkeypatch):
    x, weight, bias, labels, _ = draw(generator)
    products, accumulate = [], _head._accumulate
    monkeypatch.setattr(
        _head, "_accumulate", lambda *a, **k: products.append(1) or accumulate(*a, **k)
    )
    for leaf, want in zip((x, weight, bias), wanted, strict=True):
        leaf.requires_grad_(bool(want))
    options = {"linear_bias": bias, "reduction": reduction}
    losses = [f("logistic", x, weight, labels, **options) for f in (fused, unfused)]
    assert losses[0].requires_grad == any(wanted)
    leaves = [leaf for leaf in (x, weight, bias) if leaf.requires_grad]
    if leaves:
        found, expected = (loss_and_gradients(loss, leaves) for loss in losses)
        torch.testing.assert_close(found, expected, **DOUBLE)
    assert len(products) == wanted[1]


def test_chunks_are_all_there_is_of_the_scores(generator, monkeypatch):
    x, weight, _, labels, _ = draw(generator)
    seen, compute = [], _head.compute
    monkeypatch.setattr(
        _head, "compute", lambda s, *a, **k: seen.append(len(s)) or compute(s, *a, **k)
    )
    fused("logistic", x, weight, labels, chunk_size=3)
    assert seen == [3, 3, 2]  # of eight rows that count
    seen.clear()
    with torch.no_grad():
        fused("logistic", x, weight, labels.clamp(min=0), chunk_size=100)
    assert seen == [11]


SHAPES = [
    (8192, 4096, 128256),
    (8192, 2048, 32768),
    (16384, 768, 50257),
    (2048, 4096, 128256),
    (16384, 2048, 151936),
]


@pytest.mark.parametrize(("n", "h", "k"), SHAPES)
def test_memory_of_a_chunk_on_a_gpu(n, h, k):
    weight = torch.empty(k, h, dtype=torch.bfloat16, device="meta")
    options = {"chunk_size": 0, "accumulate_dtype": None, "dtype": torch.bfloat16}
    call = HeadCall("logistic", 1.0, "triton", -100, "mean", 0.0, **options, output_dtype=None)
    width = _head._width(Layer(weight, weight, None), call)
    assert width % 8 == 0
    assert width - k in range(64)
    rows = _head.rows_of_chunk(n, width, weight, call)
    padded = 2 * width * h if width != k else 0
    assert 2 * rows * width + padded <= 300 * 2**20
    assert rows >= 1024
    # half precision is rounded so often that the gradient keeps half of its digits
    assert -(-n // rows) <= 16


@pytest.mark.parametrize("accumulate_dtype", [None, torch.float32])
def test_digits_of_the_gradient_of_the_weight(accumulate_dtype, generator):
    skip_unless_multiplied(torch.bfloat16)
    x, weight, _, labels, _ = draw(generator, torch.bfloat16, (512,), 64)
    labels = labels.clamp(min=0)
    exact = [t.detach().double().requires_grad_() for t in (x, weight)]
    (expected,) = torch.autograd.grad(unfused("logistic", *exact, labels), exact[1])

    def error(loss):
        (gradient,) = torch.autograd.grad(loss, weight)
        assert gradient.dtype == torch.bfloat16
        return float((gradient.double() - expected).norm())

    options = {"chunk_size": 16, "accumulate_dtype": accumulate_dtype}
    found = error(fused("logistic", x, weight, labels, **options))
    # rounded once, as the other one is: some ten thousand roundings leave them a few percent apart
    assert found <= 1.25 * error(unfused("logistic", x, weight, labels))
    # rounded at each of 32 chunks: off by four roundings or more, against two of the scores
    options["accumulate_dtype"] = torch.bfloat16
    assert error(fused("logistic", x, weight, labels, **options)) > 1.5 * found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("has_labels", [True, False], ids=["labels", "proportions"])
def test_dtypes(dtype, has_labels, generator):
    skip_unless_multiplied(dtype)
    # sums of at most eleven rounded numbers of size one, twice: of the scores and of the gradients
    eps = torch.finfo(dtype).eps
    x, weight, bias, labels, y = draw(generator, dtype)
    for name, reduction in itertools.product(CLASS_LOSSES, ("mean", "none")):
        tolerance = {"rtol": 16 * eps, "atol": 16 * eps}
        if name == "perceptron":  # a step: scores that tie but for rounding fall on either side
            x, weight, bias = (t.detach().round().requires_grad_() for t in (x, weight, bias))
        scale = torch.tensor(1.5, requires_grad=True)
        transform = {"softcap": 4.0, "logit_scale": scale} if name == "entmax15" else {}
        compare(
            name, x, weight, labels if has_labels else y, tolerance, linear_bias=bias,
            reduction=reduction, chunk_size=4, validate=False, **transform,
        )  # fmt: skip


def test_float16_gradients_wait_for_the_loss_scale(generator):
    skip_unless_multiplied(torch.float16)
    # weights so small that gradients of the scores would be among the last numbers before 0, 6e-8
    x, weight, _, labels, _ = draw(generator, torch.float16)
    options = {"weight": torch.full((K,), 1e-6), "reduction": "sum", "chunk_size": 4}
    (found,) = torch.autograd.grad(2.0**15 * fused("logistic", x, weight, labels, **options), x)
    exact = [t.detach().double().requires_grad_() for t in (x, weight)]
    loss = 2.0**15 * unfused("logistic", *exact, labels, **options)
    (expected,) = torch.autograd.grad(loss, exact[0])
    # seven products of rounded numbers of size 0.03 or less, from scores that are rounded, too
    eps = torch.finfo(torch.float16).eps
    torch.testing.assert_close(found.double(), expected, rtol=16 * eps, atol=16 * 0.03 * eps)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_autocast(reduction, generator):
    skip_unless_multiplied(torch.bfloat16)
    x, weight, bias, labels, _ = draw(generator, torch.float32, (3, 4))
    with torch.autocast("cpu", torch.bfloat16):
        options = {"linear_bias": bias, "reduction": reduction, "chunk_size": 5}
        ours = fused("fitzpatrick_logistic", x, weight, labels, **options)
        theirs = unfused("fitzpatrick_logistic", x, weight, labels, **options)
    assert ours.dtype == theirs.dtype == torch.float32
    found = loss_and_gradients(ours, [x, weight, bias])
    expected = loss_and_gradients(theirs, [x, weight, bias])
    eps = torch.finfo(torch.bfloat16).eps
    torch.testing.assert_close(found, expected, rtol=4 * eps, atol=4 * eps)
    with torch.autocast("cpu", torch.bfloat16):  # float64 stays as it is
        x, weight, _, labels, _ = draw(generator)
        assert fused("logistic", x, weight, labels).dtype == torch.float64
        mixed = fused("logistic", x.float(), weight.bfloat16(), labels)
    assert mixed.dtype == torch.float32


def test_what_cannot_be_differentiated_says_so(generator):
    x, weight, _, labels, _ = draw(generator)

    def loss(x):
        return F.linear_logistic_loss(x, weight, labels)

    (gradient,) = torch.autograd.grad(loss(x), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="has one derivative"):
        gradient.sum().backward()
    for transform in (torch.func.grad, torch.func.jacrev):
        with pytest.raises(NotImplementedError, match=r"not by torch\.func"):
            transform(loss)(x.detach())
    with pytest.raises(NotImplementedError, match=r"not by torch\.func"):
        torch.func.vmap(loss)(torch.stack([x.detach(), x.detach()]))
    with pytest.raises(NotImplementedError, match="forward mode"), forward_ad.dual_level():
        loss(x)
    with pytest.raises(NotImplementedError, match="cannot be mapped"):
        torch.autograd.grad(loss(x), x, torch.ones(2), is_grads_batched=True)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_compile(reduction, generator):
    x, weight, bias, labels, _ = draw(generator)
    scale = torch.tensor([1.5], dtype=torch.float64, requires_grad=True)
    leaves = x, weight, bias, scale

    def loss(x, weight, bias, scale, tightness):
        return F.linear_fitzpatrick_logistic_loss(
            2 * x, weight, labels, linear_bias=bias, tightness=tightness, reduction=reduction,
            chunk_size=4, softcap=3.0, logit_scale=scale,
        )  # fmt: skip

    torch.compiler.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for tightness in (1.0, 0.5, 2.0) if reduction == "mean" else (1.0,):  # a number, then a symbol
        found = loss_and_gradients(compiled(*leaves, tightness), leaves)
        expected = loss_and_gradients(loss(*leaves, tightness), leaves)
        torch.testing.assert_close(found, expected, **DOUBLE)


def test_the_operator_passes_opcheck(generator):
    x, weight, bias, labels, y = draw(generator)
    for target, reduction in ((labels, "mean"), (y, "none")):
        wanted = [reduction == "mean", False, reduction == "mean", False]
        call = HeadCall(
            "logistic", 1.0, "reference", -100, reduction, 0.1, 4, None, x.dtype, x.dtype
        )
        tensors = x, weight.detach(), bias, None, None, None, [target]
        # without the test that differentiates all outputs: gradients are among them
        torch.library.opcheck(
            torch.ops.fitzpatrick.linear_loss.default,
            (*tensors, wanted, *call, None),
            test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
        )


def test_module_state(generator):
    x, _, _, labels, _ = draw(generator, torch.float32)
    head = ft.LinearFitzpatrickLogisticLoss(
        H, K, bias=True, weight=torch.ones(K), tightness=0.5, ignore_index=-100, chunk_size=2
    )
    assert set(head.state_dict()) == {"linear.weight", "linear.bias", "weight"}
    shown = "in_features=5, num_classes=7, bias=True, tightness=0.5, chunk_size=2"
    assert shown in re.sub(r"\s+", " ", repr(head))
    expected = head(x, labels)
    for other in (copy.deepcopy(head), pickle.loads(pickle.dumps(head))):
        assert torch.equal(other(x, labels), expected)
    head.tightness = 1.0
    assert head(x, labels) < expected
    assert copy.deepcopy(head).double()(x.double(), labels).dtype == torch.float64
    embedding = torch.nn.Embedding(K, H)
    head.linear.weight = embedding.weight  # tied
    head(embedding(torch.tensor([1, 2])), torch.tensor([2, 1])).backward()
    assert embedding.weight.grad is not None


LIMITS = {"registers": {}, "wide": WIDE, "peeled": {**WIDE, "min_peel": 1}}
IN_PLACE = [
    (omega, path, target)
    for omega in ("logistic", "sparsemax", "entmax15")
    for path, target in itertools.product(
        ("registers", "wide"), ("labels", "proportions", "smoothed", "weighted")
    )
]
IN_PLACE += [(omega, "peeled", "labels") for omega in ("logistic", "sparsemax")]
IN_PLACE += [("tsallis:1.3", "wide", "labels")]


@pytest.mark.parametrize(("omega", "path", "form"), IN_PLACE)
def test_kernels_write_gradients_over_scores(omega, path, form, generator, limit):
    launch = pytest.importorskip("fitzpatrick.engines.triton.launch").launch_loss
    limit(**LIMITS[path])
    k = {"registers": 24, "wide": 264, "peeled": 261}[path]  # 264: two blocks
    n = 4 if path == "registers" else 2
    scores = 2 * torch.randn(n, k, generator=generator)
    scores[0, 3] = -math.inf
    labels = torch.tensor([1, k - 1, -100, k])[:n]  # the last one is out of range
    weight = torch.rand(k, generator=generator) + 0.1 if form == "weighted" else None
    target = {"labels": labels, "proportions": torch.softmax(scores.flip(0), -1)}.get(
        form, smooth(labels.clamp(0, k - 1), k, weight, 0.1, torch.float32)[0]
    )
    options = torch.tensor([0.5, 2.0, 1.0, 1.0])[:n], omega, 0.5, -100, True, True
    beside = launch(scores, target, *options)
    buffer = scores.new_full((n, k + 8), 7.0)
    buffer[:, :k] = scores
    over = launch(buffer[:, :k], target, *options, in_place=True)
    assert over[1].data_ptr() == buffer.data_ptr()
    for one, other in zip(beside, over, strict=True):
        assert torch.equal(one.nan_to_num(99.0), other.nan_to_num(99.0))
    assert (buffer[:, k:] == 7).all()


@needs_triton
@pytest.mark.parametrize("k", [7, 8], ids=["odd", "even"])
@pytest.mark.parametrize("name", ["logistic", "fitzpatrick_sparsemax", "fitzpatrick_entmax15"])
def test_the_head_through_the_kernels(name, k, generator):
    x, weight, bias, labels, y = draw(generator, torch.float32, (5,), k)
    labels[1] = 3
    # float32 scores of size ten, and gradients that sum five of them
    eps = torch.finfo(torch.float32).eps
    tolerance = {"rtol": 64 * eps, "atol": 64 * eps}
    cases = [(labels, "mean", None, 0.0), (labels, "none", bias, 0.0), (y, "mean", bias, 0.0)]
    cases.append((labels, "mean", bias, 0.1))
    for target, reduction, linear_bias, smoothing in cases:
        leaves = [x, weight] if linear_bias is None else [x, weight, linear_bias]
        options = {"linear_bias": linear_bias, "reduction": reduction, "label_smoothing": smoothing}
        loss = fused(name, x, weight, target, engine="triton", chunk_size=3, **options)
        found = loss_and_gradients(loss, leaves)
        expected = loss_and_gradients(unfused(name, x, weight, target, **options), leaves)
        torch.testing.assert_close(found, expected, **tolerance)
        with torch.no_grad():
            alone = fused(name, x, weight, target, engine="triton", chunk_size=3, **options)
        torch.testing.assert_close(alone, found[0], **tolerance)


@needs_triton
@pytest.mark.parametrize("ignore_index", [-100, 7, 64])
def test_labels_out_of_range_among_padded_classes(ignore_index, generator):
    x, weight, _, labels, _ = draw(generator, torch.float32)
    labels = labels.clamp(min=0)
    labels[[1, 2]] = ignore_index
    labels[[3, 4, 5]] = torch.tensor([9, 64, -1])
    loss = F.linear_logistic_loss(
        x, weight, labels, reduction="none", engine="triton", validate=False,
        ignore_index=ignore_index,
    )  # fmt: skip
    assert loss.isnan().tolist() == [
        label not in range(K) and label != ignore_index for label in labels.tolist()
    ]
    assert (loss[labels == ignore_index] == 0).all()


def test_a_layer_that_computes_something_else_is_not_ignored():
    class Adapted(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) + x.sum()

    head = ft.LinearFitzpatrickLogisticLoss(4, 3)
    head.linear = Adapted(4, 3, bias=False)
    with pytest.raises(TypeError, match=r"linear must be a torch\.nn\.Linear, got Adapted"):
        head(torch.ones(2, 4), torch.tensor([0, 1]))


def test_gradients_accumulate_and_pass_through_checkpoints(generator):
    x, weight, bias, labels, _ = draw(generator)
    leaves, options = (x, weight, bias), {"linear_bias": bias, "reduction": "sum", "chunk_size": 4}

    def loss(rows):
        return fused("fitzpatrick_logistic", x[rows], weight, labels[rows], **options)

    expected = torch.autograd.grad(loss(slice(N)), leaves)
    torch.utils.checkpoint.checkpoint(loss, slice(4), use_reentrant=False).backward()
    loss(slice(4, N)).backward()
    torch.testing.assert_close(tuple(leaf.grad for leaf in leaves), expected, **DOUBLE)
