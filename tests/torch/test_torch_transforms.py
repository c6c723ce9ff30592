"""Transforms of transforms: what is there agrees with ``cross_entropy``, what is not raises."""

import pytest
import torch
import torch.nn.functional as nn
from conftest import CLASS_LOSSES, LABELS, ROUNDING, assert_compiles, every_engine
from torch.autograd import forward_ad, functional
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

import fitzpatrick as fp
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit


@pytest.fixture
def direction(generator):
    return torch.randn(5, 4, dtype=torch.float64, generator=generator)


def batched(loss, x, v):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(loss(x), x, v[0], is_grads_batched=True)[0]


def penalty(loss, x, v):
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(x), x, create_graph=True)
    return torch.autograd.grad((gradient**2).sum(), x, create_graph=True)[0]


THERE = {
    "per sample": lambda loss, x, v: vmap(grad(lambda row: loss(row.expand_as(x))))(x),
    "hessian": lambda loss, x, v: hessian(loss)(x),
    "jacrev twice": lambda loss, x, v: jacrev(jacrev(loss))(x),
    "jacrev of jacfwd": lambda loss, x, v: jacrev(jacfwd(loss))(x),
    "jvp": lambda loss, x, v: jvp(loss, (x,), (v,))[1],
    "jvp of grad": lambda loss, x, v: jvp(grad(loss), (x,), (v,))[1],
    "Hessian product, differentiated": lambda loss, x, v: jacrev(
        lambda v: jvp(grad(loss), (x,), (v,))[1]
    )(v),
    "functional.hvp": lambda loss, x, v: functional.hvp(loss, x, v)[1],
    "functional.vhp": lambda loss, x, v: functional.vhp(loss, x, v)[1],
    "functional.jacobian": lambda loss, x, v: functional.jacobian(loss, x, vectorize=True),
    "functional.hessian": lambda loss, x, v: functional.hessian(loss, x, vectorize=True),
    "batched gradient": batched,
    "gradient penalty": penalty,
}


@every_engine
@pytest.mark.parametrize("name", THERE)
def test_agrees_with_cross_entropy(name, engine, scores, direction):
    ours = THERE[name](lambda x: F.logistic_loss(x, LABELS, engine=engine), scores, direction)
    theirs = THERE[name](lambda x: nn.cross_entropy(x, LABELS), scores, direction)
    torch.testing.assert_close(ours, theirs, **ROUNDING)


def loss(x):
    return F.fitzpatrick_logistic_loss(x, LABELS)


def third(x):
    x = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(loss(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x, create_graph=True)
    return torch.autograd.grad(second.sum(), x)


NOT_THERE = {
    "jacfwd twice": ("forward mode", lambda x: jacfwd(jacfwd(loss))(x)),
    "jvp of hessian": ("forward mode", lambda x: jvp(hessian(loss), (x,), (x,))),
    "forward mode in the direction": (
        "forward mode",
        lambda x: jacfwd(lambda v: jvp(grad(loss), (x,), (v,))[1])(x),
    ),
    "link, jacfwd twice": ("forward mode", lambda x: jacfwd(jacfwd(F.sparsemax))(x)),
    "third derivative": ("two derivatives", third),
    "jacrev thrice": ("two derivatives", lambda x: jacrev(jacrev(jacrev(loss)))(x)),
    "entries' link, jacrev twice": ("two derivatives", lambda x: jacrev(jacrev(F.sigmoid))(x)),
}


@pytest.mark.parametrize("name", NOT_THERE)
def test_what_is_not_there_raises(name, scores):
    message, function = NOT_THERE[name]
    with pytest.raises(NotImplementedError, match=message):
        function(scores)


def dual(x, y):
    with forward_ad.dual_level():
        return F.logistic_loss(x, forward_ad.make_dual(y, y))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: jvp(lambda y: F.logistic_loss(x, y), (y,), (y,)),
        lambda x, y: jvp(F.logistic_loss, (x, y), (x, y)),
        lambda x, y: jvp(lambda y: F.sigmoid_loss(x, y), (y,), (y,)),
        lambda x, y: grad(lambda y: F.sparsemax_loss(x, y))(y),
        lambda x, y: grad(lambda w: F.logistic_loss(x, LABELS, w, label_smoothing=0.1))(y[0]),
        lambda x, y: F.sigmoid_loss(x, y, pos_weight=y[0].clone().requires_grad_()),
        dual,
    ],
)
def test_derivatives_in_the_target_raise(function, scores):
    with pytest.raises((NotImplementedError, ValueError), match="not in target"):
        function(scores, torch.softmax(scores.flip(0), -1))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_class_weights_have_a_derivative(reduction, scores):
    weight = torch.tensor([0.5, 2.0, 1.0, 0.1], dtype=torch.float64)

    def by_weight(weight, target=LABELS):
        return F.fitzpatrick_logistic_loss(scores, target, weight, reduction=reduction)

    for target in (LABELS, torch.softmax(scores, -1).flip(0)):
        assert torch.autograd.gradcheck(
            lambda w, target=target: by_weight(w, target),
            weight.clone().requires_grad_(),
            check_forward_ad=True,
        )
    slope = jvp(by_weight, (weight,), (weight.flip(0),))[1]
    torch.testing.assert_close(slope, grad(by_weight)(weight) @ weight.flip(0))


@pytest.mark.parametrize("function", [loss, grad(loss), hessian(loss), F.sparsemax])
def test_any_axis_is_mapped(function, scores):
    many = scores, 2 * scores
    for axis in (0, 1, 2):
        mapped = vmap(function, in_dims=axis)(torch.stack(many, axis))
        torch.testing.assert_close(mapped, torch.stack([function(x) for x in many]))


@pytest.mark.parametrize("name", fp.loss_names())
def test_a_batch_of_nothing_is_mapped_to_nothing(name):
    loss, x = getattr(F, f"{name}_loss"), torch.zeros(0, 3, 4)
    labels = torch.zeros(0, 3, dtype=torch.long)
    target = labels if name in CLASS_LOSSES else torch.zeros(0, 3, 4)
    shared = target.new_zeros(target.shape[1:])
    assert vmap(loss)(x, target).shape == (0,)
    assert vmap(lambda x: loss(x, shared, reduction="none"))(x).shape == (0, *shared.shape)
    assert vmap(grad(loss))(x[:, 0], target[:, 0]).shape == (0, 4)
    assert vmap(hessian(loss))(x, target).shape == (0, 3, 4, 3, 4)
    assert vmap(F.link_function(name))(x).shape == (0, 3, 4)


@pytest.mark.parametrize(
    "transform",
    [grad, hessian, lambda f: vmap(grad(f)), lambda f: lambda x: jvp(f, (x,), (x,))[1]],
    ids=["grad", "hessian", "per sample", "jvp"],
)
def test_transforms_compile_into_one_graph(transform, scores):
    def one(x):
        return F.fitzpatrick_logistic_loss(x, LABELS[0].expand(x.shape[:-1]), reduction="sum")

    assert_compiles(transform(one), scores)


def test_links_on_the_simplex_have_second_derivatives(scores):
    x = scores[0]
    of_ours = jacrev(jacrev(F.logistic))(x)
    torch.testing.assert_close(of_ours, jacrev(jacrev(lambda x: torch.softmax(x, -1)))(x))
    torch.testing.assert_close(jacfwd(jacrev(F.entmax15))(x), jacrev(jacrev(F.entmax15))(x))
