"""The functions against PyTorch's own losses: options, shapes, dtypes, autocast, tracing."""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as nn
from conftest import (
    CLASS_LOSSES,
    ENTRY_LOSSES,
    EPS,
    LABELS,
    ONE_OF_EACH_KIND,
    ROUNDING,
    SOME_CLASS_LOSSES,
    loss_of,
    targets_like,
    value_and_gradient,
)
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import fitzpatrick as fp
from fitzpatrick.torch import LogisticLoss, SparseTargets
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit


def assert_equal(actual, expected, rtol=ROUNDING["rtol"], atol=ROUNDING["atol"]):
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=True)


def test_entries_may_be_scalars():
    x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(F.sigmoid(x), torch.sigmoid(x))
    assert torch.autograd.gradcheck(F.sigmoid, x)
    assert_equal(F.sigmoid_loss(x, x.detach()), F.sigmoid_loss(x[None], x.detach()[None]))


SHAPES = {
    "matrix": ((6, 4), (6,)),
    "vector": ((4,), ()),
    "image": ((2, 4, 3, 2), (2, 3, 2)),
    "nothing": ((0, 4), (0,)),
}


WEIGHTS = {
    "none": None,
    "some": torch.tensor([0.5, 2.0, 1.0, 0.1], dtype=torch.float64),
    "zero": torch.tensor([0.0, 0.0, 1.0, 0.0], dtype=torch.float64),
}


def potential_of(labels, weight, ignore_index, reduction, label_smoothing):
    """Ω of smoothed labels, which cross_entropy leaves out."""
    counts = labels != ignore_index
    own = labels.masked_fill(~counts, 0)
    weight = torch.ones(4, dtype=torch.float64) if weight is None else weight
    q = weight * ((1 - label_smoothing) * nn.one_hot(own, 4).double() + label_smoothing / 4)
    total = q.sum(-1, keepdim=True)
    omega = total[..., 0] * fp.regularizers.Negentropy().value(q / total) * counts
    if reduction == "none":
        return omega
    return omega.sum() / (1 if reduction == "sum" else (weight[own] * counts).sum())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_reproduces_cross_entropy_on_labels(shape, weight, reduction, generator):
    scores_shape, labels_shape = SHAPES[shape]
    x = torch.randn(scores_shape, dtype=torch.float64, generator=generator)
    drawn = torch.randint(0, 4, labels_shape, generator=generator)
    some = drawn.masked_fill(drawn == 3, -100)  # the usual mixture
    cases = itertools.product((drawn, some, torch.full_like(drawn, -100)), (-100, 1), (0.0, 0.3))
    for labels, ignore_index, smoothing in cases:
        if ignore_index == 1:
            labels = labels.masked_fill(labels == -100, 1)
        options = {
            "weight": WEIGHTS[weight],
            "ignore_index": ignore_index,
            "reduction": reduction,
            "label_smoothing": smoothing,
        }
        value, gradient = value_and_gradient(F.logistic_loss, x, labels, **options)
        expected, expected_gradient = value_and_gradient(nn.cross_entropy, x, labels, **options)
        assert_equal(gradient, expected_gradient)
        assert value.shape == expected.shape
        assert torch.equal(value.isnan(), expected.isnan())
        if smoothing > 0:
            expected = expected + potential_of(labels, **options)
        size = expected.nan_to_num().max().item() if expected.numel() else 0.0
        assert_equal(value, expected, atol=60 * EPS * max(1.0, size))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("form", ["labels", "proportions", "lists"])
def test_weights_of_half_precision_are_not_rounded_again(form, smoothing, scores, generator):
    """Neither in products with targets nor in their sum over rows."""
    weight = torch.rand(4, generator=generator).bfloat16()
    y = targets_like("logistic", scores, generator)
    lists = SparseTargets(torch.arange(4).expand(5, 4), y)
    target = {"labels": LABELS, "proportions": y, "lists": lists}[form]
    losses = [
        F.fitzpatrick_logistic_loss(scores, target, w, label_smoothing=smoothing)
        for w in (weight, weight.double())
    ]
    assert torch.equal(*losses)


INTEGERS = [torch.int8, torch.int32, torch.uint8, torch.uint64]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_labels_of_any_integer_dtype(dtype, generator):
    x = torch.randn(4, 300, dtype=torch.float64, generator=generator)
    labels = torch.tensor([0, 1, 2, 100])
    actual = F.fitzpatrick_logistic_loss(x, labels.to(dtype))
    assert_equal(actual, F.fitzpatrick_logistic_loss(x, labels))
    with pytest.raises(ValueError, match="target 100 at 3 is out of range"):
        F.fitzpatrick_logistic_loss(x[:, :100], labels.to(dtype))
    if dtype == torch.int8:
        with pytest.raises(ValueError, match="target -1 at 0 is out of range"):
            F.logistic_loss(x[:1], torch.tensor([-1], dtype=dtype), ignore_index=255)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_reproduces_cross_entropy_on_proportions(smoothing, reduction, generator):
    x = torch.randn(3, 4, 2, dtype=torch.float64, generator=generator)
    y = torch.softmax(torch.randn(3, 4, 2, dtype=torch.float64, generator=generator), 1)
    options = {"reduction": reduction, "label_smoothing": smoothing}
    value, gradient = value_and_gradient(F.logistic_loss, x, y, **options)
    expected, expected_gradient = value_and_gradient(nn.cross_entropy, x, y, **options)
    assert_equal(gradient, expected_gradient)
    q = (1 - smoothing) * y + smoothing / 4
    omega = fp.regularizers.Negentropy().value(q.movedim(1, -1).contiguous())
    constant = {"mean": omega.mean(), "sum": omega.sum(), "none": omega}[reduction]
    assert_equal(value - constant, expected, atol=60 * EPS * constant.abs().max().item())


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_reproduces_binary_cross_entropy(soft, reduction, weighted, positive, generator):
    x = torch.randn(3, 2, 4, dtype=torch.float64, generator=generator) * 3
    y = torch.rand(3, 2, 4, dtype=torch.float64, generator=generator)
    y = y if soft else y.round()
    options = {
        "reduction": reduction,
        "weight": torch.tensor([[0.5], [2.0]], dtype=torch.float64) if weighted else None,
        "pos_weight": torch.tensor([3.0, 1.0, 0.2, 1.0]).double() if positive else None,
    }
    value, gradient = value_and_gradient(F.sigmoid_loss, x, y, **options)
    theirs = nn.binary_cross_entropy_with_logits
    expected, expected_gradient = value_and_gradient(theirs, x, y, **options)
    assert_equal(gradient, expected_gradient)
    # Ω(y) is not in theirs: c Ω(w y / c) with c = w y + 1 − y and the positive weight w
    ones = torch.ones_like(y)
    w = ones if options["pos_weight"] is None else ones * options["pos_weight"]
    c = w * y + 1 - y
    omega = fp.regularizers.Bernoulli().value((w * y / c)[..., None])
    omega = omega * c * (ones if options["weight"] is None else options["weight"])
    constant = {"mean": omega.mean(), "sum": omega.sum(), "none": omega}[reduction]
    assert_equal(value - constant, expected, atol=60 * EPS * constant.abs().max().item())


def test_classes_in_any_axis(generator):
    x = torch.randn(3, 2, 5, dtype=torch.float64, generator=generator)
    labels, loss = torch.randint(0, 5, (3, 2), generator=generator), F.fitzpatrick_sparsemax_loss
    expected = loss(x.reshape(6, 5), labels.reshape(6), reduction="none").reshape(3, 2)
    assert_equal(loss(x, labels, dim=-1, reduction="none"), expected)
    assert_equal(loss(x.movedim(-1, 1), labels, reduction="none"), expected)
    assert_equal(loss(x.movedim(-1, 0), labels, dim=0, reduction="none"), expected)


@pytest.mark.parametrize("name", SOME_CLASS_LOSSES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_ignored_rows_count_for_nothing(name, smoothing, scores):
    options, x = {"label_smoothing": smoothing}, scores.clone()
    x[2] = math.nan
    value, gradient = value_and_gradient(loss_of(name), x, LABELS, **options)
    keep = LABELS >= 0
    expected = value_and_gradient(loss_of(name), scores[keep], LABELS[keep], **options)
    assert_equal((value, gradient[keep]), expected)
    assert not gradient[2].any()
    if smoothing == 0:  # so do those whose class weighs nothing
        options["weight"] = torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
        x[4] = math.nan
        value, gradient = value_and_gradient(loss_of(name), x, LABELS, **options)
        keep[4] = False
        expected = value_and_gradient(loss_of(name), scores[keep], LABELS[keep])
        assert_equal((value, gradient[keep]), expected)
        assert not gradient[4].any()


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_empty_batches(name):
    x = torch.zeros(0, 4, requires_grad=True)
    target = torch.zeros(0, 4) if name in ENTRY_LOSSES else torch.zeros(0, dtype=torch.long)
    loss = loss_of(name)
    assert math.isnan(loss(x, target).item())
    total = loss(x, target, reduction="sum")
    total.backward()
    assert total.item() == 0
    assert loss(x, target, reduction="none").shape == (target.shape)


@pytest.mark.parametrize("name", [name for name in F.__all__ if name.endswith("_probabilities")])
def test_probabilities_of_nothing(name):
    for shape in ((0, 4), (4, 0)):
        assert getattr(F, name)(torch.zeros(shape)).shape == shape


@pytest.mark.parametrize("name", fp.loss_names())
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_float32_inside(name, dtype, scores, generator):
    x, y = scores.to(dtype), targets_like(name, scores, generator).float()
    value, gradient = value_and_gradient(loss_of(name), x, y)
    expected, expected_gradient = value_and_gradient(loss_of(name), x.float(), y)
    assert value.dtype == gradient.dtype == dtype
    assert_equal(value, expected.to(dtype), rtol=0, atol=0)
    last_place = torch.finfo(dtype).eps
    # gradients of single entries, over 20, are rounded in float32 on both sides
    assert_equal(gradient.float(), expected_gradient, rtol=last_place, atol=2**-23)


@pytest.mark.parametrize("name", fp.loss_names())
def test_float32_scores_are_the_same_under_autocast(name, scores, generator):
    x, y = scores.float(), targets_like(name, scores, generator).float()
    cases = [(y, {})]
    if name in CLASS_LOSSES:
        weight = torch.tensor([0.5, 2.0, 1.0, 0.1])
        cases += [(y, {"weight": weight}), (LABELS, {"weight": weight, "label_smoothing": 0.1})]
    for target, options in cases:
        outside = value_and_gradient(loss_of(name), x, target, **options)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = value_and_gradient(loss_of(name), x, target, **options)
        assert all(map(torch.equal, inside, outside))


def test_matrix_products_of_the_core_are_exact_under_autocast(scores):
    loss = F.loss_function(fp.FitzpatrickLoss(fp.regularizers.Quadratic(torch.eye(4) + 0.3)))
    outside = value_and_gradient(loss, scores.float(), torch.zeros(5, 4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = value_and_gradient(loss, scores.float(), torch.zeros(5, 4))
    assert all(map(torch.equal, inside, outside))


def test_gradients_of_float16_wait_for_the_loss_scale():
    # 1e-5 before the loss scale, where float16 has two digits
    x = torch.zeros(16, 4096, dtype=torch.float16)
    labels = torch.zeros(16, dtype=torch.long)

    def scaled(x):
        return F.fitzpatrick_logistic_loss(x, labels).float() * 2.0**12

    _, gradient = value_and_gradient(scaled, x)
    _, expected = value_and_gradient(scaled, x.float())
    assert gradient.dtype == torch.float16
    assert_equal(gradient.float(), expected, rtol=torch.finfo(torch.float16).eps, atol=0)


def test_numbers_may_be_of_numpy(scores):
    labels = torch.tensor([0, 3, 1, 2, 2])
    expected = F.logistic_loss(scores, labels, ignore_index=2)
    assert_equal(F.logistic_loss(scores, labels, ignore_index=np.int64(2)), expected)
    assert_equal(F.logistic_loss(scores, labels, ignore_index=2, dim=np.int64(1)), expected)
    expected_tightness = F.fitzpatrick_logistic_loss(scores, labels, tightness=2.0)
    for number in (2, np.int64(2), np.float32(2), np.float64(2), torch.tensor(2)):
        found = F.fitzpatrick_logistic_loss(scores, labels, tightness=number)
        assert torch.equal(found, expected_tightness)
    module = LogisticLoss(ignore_index=np.int64(2))
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    assert_equal(compiled(scores, labels), expected)


def test_tensors_without_values_are_not_looked_at(scores):
    labels = torch.tensor([0, 3, 1, 2, 2])
    graph = make_fx(lambda x: F.fitzpatrick_logistic_loss(x, labels))(scores)
    assert_equal(graph(2 * scores), F.fitzpatrick_logistic_loss(2 * scores, labels))
    with FakeTensorMode():
        fake = F.sparsemax_loss(torch.zeros(2, 3), torch.zeros(2, dtype=torch.long))
    assert fake.shape == ()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_meta_tensors_have_shapes_and_dtypes(name, dtype):
    x = torch.empty(2, 3, 4, dtype=dtype, device="meta", requires_grad=True)
    labels = torch.empty(2, 4, dtype=torch.long, device="meta")
    target = x.detach() if name in ENTRY_LOSSES else labels
    value = loss_of(name)(x, target)
    value.backward()
    rows = loss_of(name)(x, target, reduction="none")
    link = F.link_function(name)(x, dim=1)
    for actual, shape in ((value, ()), (x.grad, x.shape), (rows, target.shape), (link, x.shape)):
        assert (actual.shape, actual.dtype, actual.device.type) == (shape, dtype, "meta")
    with pytest.raises(RuntimeError, match="meta tensors do not have"):
        loss_of(name)(x, target, validate=True)


# it says so of what it does not compile
@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace:UserWarning")
def test_values_are_not_looked_at_while_a_transform_runs(scores):
    labels = torch.tensor([0, 3, 1, 2, 2])

    def loss(x):
        return F.logistic_loss(x, labels, validate=True)

    with pytest.raises(RuntimeError, match="validate=True looks at the values"):
        torch.func.grad(loss)(scores)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="validate=True looks at the values"):
        torch.compile(loss, fullgraph=True, backend="eager")(scores)
    labels[1] = 4
    with pytest.raises(ValueError, match="target 4 at 1 is out of range"):  # not compiled
        torch.compile(loss, backend="eager")(scores)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["logistic", "fitzpatrick_sparsemax", "sigmoid"])
def test_traced_means(name, generator):
    loss = getattr(F, f"{name}_loss")
    x = torch.randn(5, 7, generator=generator)
    y = torch.softmax(torch.randn(5, 7, generator=generator), -1)
    traced = torch.jit.trace(lambda a, b: loss(a, b, validate=False), (x, y))
    torch.testing.assert_close(traced(x, y), loss(x, y))
    torch.testing.assert_close(traced(x[:3], y[:3]), loss(x[:3], y[:3]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_rows_of_the_perceptron(dtype, generator):
    """NaN spoils its row; a row that is ignored, or whose label is the highest, is not pulled."""
    x = torch.randn(4, 50, generator=generator).to(dtype)
    x[1, 3] = math.nan
    labels = torch.tensor([4, 5, int(x[2].argmax()), -100])
    value, gradient = value_and_gradient(F.perceptron_loss, x, labels, reduction="none")
    assert (
        value.isnan().tolist() == gradient.isnan().all(-1).tolist() == [False, True, False, False]
    )
    assert not gradient[2:].any()
    assert gradient[0].abs().sum() == 2
