"""Modules: one per registry name, any regularizer, and what modules are used for."""

import copy
import inspect
import pickle
import re

import pytest
import torch
import torch.utils.checkpoint
from conftest import (
    LABELS,
    LINKS,
    ONE_OF_EACH_KIND,
    ROUNDING,
    SOME_CLASS_LOSSES,
    assert_compiles,
    loss_of,
    module_name,
    targets_like,
)
from tests.user_regularizer import ScaledDistance

import fitzpatrick as fp
import fitzpatrick.torch as ft
from fitzpatrick.torch import _handles
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_modules_are_their_functions(name, scores, generator):
    target = targets_like(name, scores, generator)
    options = {"reduction": "sum", "weight": scores[0].exp()}
    module = getattr(ft, module_name(name))(**options)
    expected = getattr(F, f"{name}_loss")(scores, target, **options)
    assert torch.equal(module(scores, target), expected)
    assert torch.equal(ft.LossModule(name, **options)(scores, target), expected)
    assert "reduction='sum'" in repr(module)
    assert torch.equal(module.state_dict()["weight"], options["weight"])
    assert module.half().weight.dtype == torch.float16


@pytest.mark.parametrize("name", fp.loss_names())
def test_signatures_name_every_option(name):
    assert {f"{name}_loss", *LINKS} <= set(F.__all__)
    assert module_name(name) in ft.__all__
    module, function = getattr(ft, module_name(name)), getattr(F, f"{name}_loss")
    options = [*inspect.signature(function).parameters.values()][2:]
    assert {"reduction", "engine", "validate"} <= {option.name for option in options}
    assert [*inspect.signature(module).parameters.values()] == options
    assert [*inspect.signature(module.__init__).parameters][1:] == [o.name for o in options]
    assert f":func:`.functional.{name}_loss`" in module.__doc__
    elsewhere = re.search("are explained in :func:`(.*)`", function.__doc__)
    doc = getattr(F, elsewhere[1]).__doc__ if elsewhere else function.__doc__
    arguments = doc[doc.index("Args:") : doc.index("Returns:")]
    assert all(f"    {option.name}: " in arguments for option in options)


def test_options_are_attributes(scores):
    labels = torch.tensor([0, 3, 1, 2, 2])
    criterion = ft.FitzpatrickLogisticLoss()
    assert criterion.reduction == "mean"
    assert criterion.ignore_index == -100
    criterion.reduction = "none"
    criterion.ignore_index = 2
    expected = F.fitzpatrick_logistic_loss(scores, labels, reduction="none", ignore_index=2)
    assert torch.equal(criterion(scores, labels), expected)
    assert repr(criterion) == "FitzpatrickLogisticLoss(ignore_index=2, reduction='none')"


def test_one_tensor_may_be_both_weights(scores, generator):
    y, w = targets_like("sigmoid", scores, generator), torch.tensor([0.5, 2.0, 1.0, 0.1]).double()
    both = ft.SigmoidLoss(weight=w, pos_weight=w)(scores, y)
    assert torch.equal(both, F.sigmoid_loss(scores, y, weight=w, pos_weight=w))
    assert not torch.equal(both, F.sigmoid_loss(scores, y, weight=w))


def test_the_link_is_along_the_axis_of_the_loss(generator):
    images = torch.randn(2, 3, 4, 5, generator=generator)
    assert torch.equal(ft.SparsemaxLoss().link(images), F.sparsemax(images, dim=1))
    assert torch.equal(ft.SparsemaxLoss(dim=0).link(images), F.sparsemax(images, dim=0))
    assert torch.equal(ft.SparsemaxLoss(dim=0).link(images, dim=2), F.sparsemax(images, dim=2))
    assert torch.equal(ft.SigmoidLoss().link(images), F.sigmoid(images))


def test_the_link_of_any_regularizer_compiles_into_one_graph(scores):
    assert_compiles(ft.FitzpatrickLoss(fp.regularizers.Tsallis(1.2345)).link, scores)


def test_copies_share_their_loss(scores):
    weighted = ft.SparseSigmoidLoss(weight=torch.ones(4).double(), reduction="sum")
    target = torch.full_like(scores, 0.25)
    for twin in (copy.deepcopy(weighted), pickle.loads(pickle.dumps(weighted))):
        assert torch.equal(twin(scores, target), weighted(scores, target))
    criterion = ft.FitzpatrickLoss(fp.regularizers.Quadratic(torch.eye(4).double()))
    assert repr(criterion).startswith("FitzpatrickLoss(\n  Quadratic(A=tensor(")
    known = len(_handles._REGULARIZERS)
    y = torch.zeros_like(scores)
    for twin in (copy.deepcopy(criterion), pickle.loads(pickle.dumps(criterion))):
        assert twin.regularizer is criterion.regularizer
        assert torch.equal(twin(scores, y), criterion(scores, y))
    assert len(_handles._REGULARIZERS) == known
    elsewhere = pickle.dumps(criterion)
    del _handles._REGULARIZERS[criterion._omega]  # as in another process
    twin = pickle.loads(elsewhere)
    assert torch.equal(twin(scores, y), criterion(scores, y))
    assert torch.equal(twin.link(scores), criterion.link(scores))


def test_a_regularizer_of_the_users_own(scores):
    labels = torch.tensor([0, 3, 1, 2, -100])
    criterion = ft.FitzpatrickLoss(ScaledDistance(2.0), label_smoothing=0.1)
    reference = ft.FitzpatrickSparsemaxLoss(label_smoothing=0.1)
    torch.testing.assert_close(criterion(scores, labels), 2 * reference(scores / 2, labels))
    assert torch.autograd.gradcheck(lambda x: criterion(x, labels), scores.requires_grad_())
    assert torch.autograd.gradgradcheck(lambda x: criterion(x, labels), scores)
    assert_compiles(criterion, scores, labels)
    torch.testing.assert_close(criterion.link(scores), reference.link(scores / 2))


@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "sparsemax", "fitzpatrick_sigmoid"])
def test_modules_can_be_exported(name, scores, generator):
    target = targets_like(name, scores, generator)
    module = getattr(ft, module_name(name))(reduction="none")
    program = torch.export.export(module, (scores, target))
    x = 2 * scores
    torch.testing.assert_close(
        program.module()(x, target), module(x, target), rtol=ROUNDING["rtol"], atol=0
    )


@pytest.mark.parametrize("name", SOME_CLASS_LOSSES)
def test_gradients_may_be_recomputed_or_kept_elsewhere(name, scores):
    criterion, labels = getattr(ft, module_name(name))(), torch.tensor([0, 3, -100, 2, 2])
    layer = torch.nn.Linear(4, 4).double()

    def loss():
        return criterion(layer(scores), labels)

    (expected,) = torch.autograd.grad(loss(), layer.weight)
    again = torch.utils.checkpoint.checkpoint(loss, use_reentrant=False)
    assert torch.equal(torch.autograd.grad(again, layer.weight)[0], expected)
    with torch.autograd.graph.save_on_cpu():
        kept = loss()
    assert torch.equal(torch.autograd.grad(kept, layer.weight)[0], expected)


FENCHEL_YOUNG = [n for n in fp.loss_names() if isinstance(fp.get_loss(n), fp.FenchelYoungLoss)]


@pytest.mark.parametrize("name", FENCHEL_YOUNG)
def test_fenchel_young_losses_have_no_tightness(name):
    module = getattr(ft, module_name(name))
    assert "tightness" not in inspect.signature(loss_of(name)).parameters
    assert "tightness" not in inspect.signature(module).parameters
    criterion = module()
    assert criterion.tightness == 0
    assert criterion.loss == fp.get_loss(name)
    with pytest.raises(AttributeError, match=f"{module.__name__} is a Fenchel-Young loss"):
        criterion.tightness = 0.5


def test_the_tightness_is_an_attribute(scores):
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
