"""The tightness: one number that leads from the Fenchel-Young loss through the Fitzpatrick loss."""

import copy
import inspect
import itertools
import math
import pickle

import numpy as np
import pytest
import torch
from conftest import CLASS_LOSSES, ENTRY_LOSSES, ROUNDING, TEST_ALL, module_name, targets_like
from torch._dynamo.testing import CompileCounterWithBackend
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, vmap

import fitzpatrick as fp
import fitzpatrick.torch as ft
from fitzpatrick.losses import ends
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

# PyTorch scripts its own decompositions the first time that forward mode runs
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")

FITZPATRICK = [n for n in fp.loss_names() if isinstance(fp.get_loss(n), fp.FitzpatrickLoss)]
FENCHEL_YOUNG = [n for n in fp.loss_names() if n not in FITZPATRICK]
LABELS = torch.tensor([0, 3, -100, 2, 1])
TIGHTNESS = (0.0, 0.25, 1.0, 3.0)


def loss_of(name):
    return getattr(F, f"{name}_loss")


def value_and_gradient(function, x, *args, **options):
    x = x.detach().clone().requires_grad_()
    value = function(x, *args, **options)
    value.sum().backward()
    return value.detach(), x.grad


@pytest.mark.parametrize("name", FITZPATRICK)
def test_agrees_with_the_core(name, scores, generator):
    y = targets_like(name, scores, generator)
    for tightness in TIGHTNESS:
        core = fp.get_loss(name, tightness=tightness)
        actual = value_and_gradient(loss_of(name), scores, y, reduction="sum", tightness=tightness)
        value, gradient = core.value_and_gradient(y.numpy(), scores.numpy())
        assert actual[0].item() == pytest.approx(value.sum(), rel=ROUNDING["rtol"])
        torch.testing.assert_close(actual[1], torch.from_numpy(gradient), **ROUNDING)


@pytest.mark.parametrize("name", [n for n in FITZPATRICK if n in CLASS_LOSSES])
def test_agrees_with_the_core_on_labels(name, scores):
    labels = torch.tensor([0, 3, 1, 2, 1])
    for tightness in TIGHTNESS:
        core = fp.get_loss(name, tightness=tightness)
        options = {"reduction": "none", "tightness": tightness}
        actual = value_and_gradient(loss_of(name), scores, labels, **options)
        expected = core.value_and_gradient(labels.numpy(), scores.numpy())
        for one, other in zip(actual, expected, strict=True):
            torch.testing.assert_close(one, torch.from_numpy(other), **ROUNDING)


@pytest.mark.parametrize("name", FITZPATRICK)
def test_the_ends_are_the_named_losses(name, scores, generator):
    y = targets_like(name, scores, generator)
    fenchel_young = loss_of(ends(name)[0])
    assert torch.equal(loss_of(name)(scores, y, tightness=0), fenchel_young(scores, y))
    assert torch.equal(loss_of(name)(scores, y, tightness=1), loss_of(name)(scores, y))


@pytest.mark.parametrize("name", FITZPATRICK)
def test_the_loss_decreases(name, scores, generator):
    y = targets_like(name, scores, generator)
    rows = [loss_of(name)(scores, y, reduction="none", tightness=c) for c in TIGHTNESS]
    for looser, tighter in itertools.pairwise(rows):
        assert (tighter < looser).all()
        assert (tighter >= 0).all()


@pytest.mark.parametrize("tightness", [0.25, 3.0])
@pytest.mark.parametrize(
    "name", FITZPATRICK if TEST_ALL else ["fitzpatrick_logistic", "fitzpatrick_poisson"]
)
def test_both_derivatives(name, tightness, scores, generator):
    x = scores.requires_grad_()
    for target in (targets_like(name, scores, generator), LABELS):
        if target is LABELS and name in ENTRY_LOSSES:
            continue

        def loss(x, target=target):
            return loss_of(name)(x, target, tightness=tightness)

        assert gradcheck(loss, x, check_forward_ad=True, fast_mode=True)
        assert gradgradcheck(loss, x, fast_mode=True)


def test_half_precision_is_float32_inside(scores):
    for dtype in (torch.float16, torch.bfloat16):
        x = scores.to(dtype)
        half = F.fitzpatrick_entmax15_loss(x, LABELS, tightness=0.3)
        assert torch.equal(
            half, F.fitzpatrick_entmax15_loss(x.float(), LABELS, tightness=0.3).to(dtype)
        )


BAD = [
    (-0.5, ValueError, "tightness must be finite and not negative, got -0.5"),
    (math.nan, ValueError, "tightness must be finite and not negative"),
    (math.inf, ValueError, "tightness must be finite and not negative"),
    ("1", TypeError, "tightness must be a number, such as 0 "),
    (True, TypeError, "tightness must be a number"),
    (None, TypeError, "tightness must be a number"),
    (torch.tensor(1.0), TypeError, "tightness must be a number"),
]


@pytest.mark.parametrize(("tightness", "error", "message"), BAD, ids=lambda x: repr(x)[:20])
def test_what_is_no_tightness_raises(tightness, error, message, scores):
    ball = fp.regularizers.SquaredNorm(fp.sets.L2Ball())
    criterion = ft.FitzpatrickLoss(ball)
    with pytest.raises(error, match=message):
        F.fitzpatrick_logistic_loss(scores, LABELS, tightness=tightness)
    with pytest.raises(error, match=message):
        F.fitzpatrick_squared_loss(scores, scores, tightness=tightness)
    with pytest.raises(error, match=message):
        ft.FitzpatrickSparsemaxLoss(tightness=tightness)
    with pytest.raises(error, match=message):
        ft.FitzpatrickLoss(ball, tightness=tightness)
    with pytest.raises(error, match=message):
        criterion.tightness = tightness
    assert criterion.tightness == 1


def test_numbers_of_numpy(scores):
    expected = F.fitzpatrick_logistic_loss(scores, LABELS, tightness=2.0)
    for number in (2, np.int64(2), np.float32(2), np.float64(2)):
        assert torch.equal(F.fitzpatrick_logistic_loss(scores, LABELS, tightness=number), expected)


@pytest.mark.parametrize("name", FENCHEL_YOUNG)
def test_fenchel_young_losses_have_none(name):
    module = getattr(ft, module_name(name))
    assert "tightness" not in inspect.signature(loss_of(name)).parameters
    assert "tightness" not in inspect.signature(module).parameters
    criterion = module()
    assert criterion.tightness == 0
    assert criterion.loss == fp.get_loss(name)
    with pytest.raises(AttributeError, match=f"{module.__name__} is a Fenchel-Young loss"):
        criterion.tightness = 0.5


def test_an_attribute_of_modules(scores):
    criterion = ft.FitzpatrickLogisticLoss(tightness=0.5)
    assert repr(criterion) == "FitzpatrickLogisticLoss(tightness=0.5)"
    assert criterion.loss == fp.FitzpatrickLoss(fp.regularizers.Negentropy(), 0.5)
    for tightness in (0.5, 2):
        criterion.tightness = tightness
        expected = F.fitzpatrick_logistic_loss(scores, LABELS, tightness=tightness)
        assert torch.equal(criterion(scores, LABELS), expected)
        for twin in (copy.deepcopy(criterion), pickle.loads(pickle.dumps(criterion))):
            assert twin.tightness == tightness
            assert torch.equal(twin(scores, LABELS), expected)
    assert repr(criterion) == "FitzpatrickLogisticLoss(tightness=2)"
    criterion.tightness = 1
    assert repr(criterion) == "FitzpatrickLogisticLoss()"
    assert not criterion.state_dict()


def test_any_loss_of_the_core(scores):
    omega = fp.regularizers.Tsallis(1.3)
    loss = fp.FitzpatrickLoss(omega, tightness=0.5)
    expected = ft.FitzpatrickLoss(omega, tightness=0.5)(scores, LABELS)
    assert torch.equal(ft.LossModule(loss)(scores, LABELS), expected)
    assert torch.equal(F.loss_function(loss)(scores, LABELS), expected)
    assert (
        repr(ft.FitzpatrickLoss(omega, 0.5)) == "FitzpatrickLoss(Tsallis(alpha=1.3), tightness=0.5)"
    )
    named = fp.get_loss("fitzpatrick_sparsemax", tightness=0.5)
    expected = F.fitzpatrick_sparsemax_loss(scores, LABELS, tightness=0.5)
    assert torch.equal(F.loss_function(named)(scores, LABELS), expected)
    assert torch.equal(ft.LossModule(named)(scores, LABELS), expected)


def test_a_changed_number_does_not_compile_anew(scores):
    """A number is compiled in once, and is an argument from the second one on."""
    criterion = ft.FitzpatrickEntmax15Loss(label_smoothing=0.1)

    def function(x, tightness):
        return F.fitzpatrick_logistic_loss(x, LABELS, tightness=tightness)

    def module(x, tightness):
        criterion.tightness = tightness
        return criterion(x, LABELS)

    def per_sample(x, tightness):
        def loss(x):
            return F.fitzpatrick_sparsemax_loss(x, LABELS[0], tightness=tightness)

        return vmap(grad(loss))(x)

    for case in (function, module, per_sample):
        torch.compiler.reset()
        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(
            criterion if case is module else case, fullgraph=True, backend=counter
        )
        for i in range(10):
            tightness = 0.25 * i
            expected = case(scores, tightness)
            actual = compiled(scores, LABELS if case is module else tightness)
            torch.testing.assert_close(actual, expected, **ROUNDING)
        assert counter.frame_count <= 2


def test_gradients_of_a_compiled_number(scores):
    def loss(x, tightness):
        return F.fitzpatrick_sigmoid_loss(x, torch.full_like(x, 0.25), tightness=tightness)

    torch.compiler.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for tightness in (0.5, 0.75, 1.5):
        actual = value_and_gradient(compiled, scores, tightness)
        expected = value_and_gradient(loss, scores, tightness)
        torch.testing.assert_close(actual, expected, **ROUNDING)


def test_a_number_that_is_none_raises_in_a_compiled_function(scores):
    compiled = torch.compile(
        lambda x, c: F.fitzpatrick_logistic_loss(x, LABELS, tightness=c), backend="eager"
    )
    for bad in (-1.0, math.nan):
        with pytest.raises(ValueError, match="tightness must be finite and not negative"):
            compiled(scores, bad)


def test_operators_take_the_number_as_a_tensor(scores):
    arguments = scores, LABELS.clamp(min=0), torch.ones(5, dtype=torch.float64), "logistic"
    value, gradient = torch.ops.fitzpatrick.value, torch.ops.fitzpatrick.gradient
    symbolic = torch.tensor(0.5, dtype=torch.float64)
    for operator in (value, gradient):
        expected = operator(*arguments, 0.5, "reference", -100)
        assert torch.equal(operator(*arguments, math.nan, "reference", -100, symbolic), expected)
