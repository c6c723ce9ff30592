"""The tightness: one number that leads from the Fenchel-Young loss through the Fitzpatrick loss."""

import copy
import inspect
import math
import pickle

import numpy as np
import pytest
import torch
from conftest import LABELS, ROUNDING, loss_of, module_name
from torch._dynamo.testing import CompileCounterWithBackend

import fitzpatrick as fp
import fitzpatrick.torch as ft
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

# PyTorch scripts its own decompositions the first time that forward mode runs
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")

FITZPATRICK = [n for n in fp.loss_names() if isinstance(fp.get_loss(n), fp.FitzpatrickLoss)]
FENCHEL_YOUNG = [n for n in fp.loss_names() if n not in FITZPATRICK]

BAD = [
    (-0.5, ValueError, "tightness must be 0 or between 1e-12"),
    (math.nan, ValueError, "tightness must be 0 or between 1e-12"),
    ("1", TypeError, "tightness must be a number, such as 0 "),
    (True, TypeError, "tightness must be a number"),
    (torch.ones(1), TypeError, "tightness must be a number"),
]


@pytest.mark.parametrize(("tightness", "error", "message"), BAD, ids=lambda x: repr(x)[:20])
def test_what_is_no_tightness_raises(tightness, error, message, scores):
    ball = fp.regularizers.SquaredNorm(fp.sets.L2Ball())
    criterion = ft.FitzpatrickLoss(ball)
    for function, *given in (
        (F.fitzpatrick_logistic_loss, scores, LABELS),
        (F.fitzpatrick_squared_loss, scores, scores),
        (ft.FitzpatrickSparsemaxLoss,),
        (ft.FitzpatrickLoss, ball),
    ):
        with pytest.raises(error, match=message):
            function(*given, tightness=tightness)
    with pytest.raises(error, match=message):
        criterion.tightness = tightness
    assert criterion.tightness == 1


def test_numbers_of_numpy(scores):
    expected = F.fitzpatrick_logistic_loss(scores, LABELS, tightness=2.0)
    for number in (2, np.int64(2), np.float32(2), np.float64(2), torch.tensor(2)):
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


def test_a_changed_number_does_not_compile_anew(scores):
    """A number is compiled in once, and is an argument from the second one on."""
    criterion = ft.FitzpatrickEntmax15Loss(label_smoothing=0.1)

    def function(x, tightness):
        return F.fitzpatrick_logistic_loss(x, LABELS, tightness=tightness)

    def module(x, tightness):
        criterion.tightness = tightness
        return criterion(x, LABELS)

    for case in (function, module):
        torch.compiler.reset()
        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(
            criterion if case is module else case, fullgraph=True, backend=counter
        )
        for tightness in (0.0, 0.25, 2.0):
            expected = case(scores, tightness)
            actual = compiled(scores, LABELS if case is module else tightness)
            torch.testing.assert_close(actual, expected, **ROUNDING)
            if case is function:
                x = scores.clone().requires_grad_()
                slopes = [torch.autograd.grad(f(x, tightness), x)[0] for f in (compiled, case)]
                torch.testing.assert_close(*slopes, **ROUNDING)
        assert counter.frame_count <= 4  # a number and a symbol, with a gradient or without


def test_a_number_that_is_none_raises_in_a_compiled_function(scores):
    compiled = torch.compile(
        lambda x, c: F.fitzpatrick_logistic_loss(x, LABELS, tightness=c), backend="eager"
    )
    for bad in (-1.0, math.nan):
        with pytest.raises(ValueError, match="tightness must be 0 or between 1e-12"):
            compiled(scores, bad)
