"""Derivatives of every order that exists, through every transform of PyTorch."""

import inspect

import pytest
import torch
from conftest import (
    CLASS_LOSSES,
    LABELS,
    LINKS,
    ONE_OF_EACH_KIND,
    ROUNDING,
    SOME_CLASS_LOSSES,
    TEST_ALL,
    every_engine,
    loss_of,
    module_name,
    needs_triton,
    targets_like,
)
from torch._dynamo.testing import CompileCounterWithBackend
from torch.autograd import gradcheck, gradgradcheck

import fitzpatrick as fp
import fitzpatrick.torch as ft
from fitzpatrick.torch import _reference as reference
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit


def cases(name, scores, generator):
    """Proportions or entries, and labels where there are classes."""
    yield targets_like(name, scores, generator)
    if name in CLASS_LOSSES:
        yield LABELS


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_gradcheck_and_gradgradcheck(name, reduction, scores, generator):
    """Of the mechanism; tests/parity has both derivatives of every loss."""
    x = scores.requires_grad_()
    for target in cases(name, scores, generator):

        def loss(x, target=target):
            return loss_of(name)(x, target, reduction=reduction)

        # the fast mode checks a random direction instead of each entry
        fast = {"fast_mode": not TEST_ALL}
        assert gradcheck(loss, x, check_forward_ad=True, check_batched_grad=True, **fast)
        assert gradgradcheck(loss, x, fast_mode=True)


@every_engine
def test_weights_of_entries_have_a_derivative(engine, scores):
    weight = torch.rand(4, dtype=torch.float64, requires_grad=True)
    options = {"engine": engine}
    assert gradcheck(lambda w: F.poisson_loss(scores, scores.exp(), weight=w, **options), weight)


OPTIONS = [
    {"weight": torch.tensor([0.5, 2.0, 1.0, 0.1]).double(), "ignore_index": 1},
    {"label_smoothing": 0.2},
    {"weight": torch.tensor([0.5, 2.0, 1.0, 0.1]).double(), "label_smoothing": 0.2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "+".join(options))
@pytest.mark.parametrize("name", SOME_CLASS_LOSSES)
def test_options_have_both_derivatives(name, options, generator):
    """Images of class indices, and of proportions."""
    x = torch.randn(2, 4, 3, dtype=torch.float64, generator=generator).requires_grad_()
    labels = torch.randint(0, 4, (2, 3), generator=generator)
    rows = torch.softmax(torch.randn(x.shape, dtype=torch.float64, generator=generator), 1)
    for target in (labels, rows):
        chosen = {k: v for k, v in options.items() if target is labels or k != "ignore_index"}

        def loss(x, target=target, chosen=chosen):
            return loss_of(name)(x, target, **chosen)

        assert gradcheck(loss, x, check_forward_ad=True, fast_mode=True)
        assert gradgradcheck(loss, x, fast_mode=True)


@pytest.mark.parametrize("name", LINKS)
def test_links_have_a_gradient_in_both_modes(name, scores):
    x = scores.requires_grad_()
    assert gradcheck(getattr(F, name), x, check_forward_ad=True, fast_mode=True)


def entries_by_a_kernel(x, labels, **options):
    return F.fitzpatrick_sigmoid_loss(x, x.detach().sigmoid(), engine="triton", **options)


def head(x, labels, **options):
    layer = torch.eye(4, dtype=x.dtype)
    return F.linear_fitzpatrick_sparsemax_loss(x, layer, labels, **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize(
    "loss",
    [F.fitzpatrick_entmax15_loss, pytest.param(entries_by_a_kernel, marks=needs_triton), head],
)
def test_a_graph_is_used_twice(loss, reduction, dtype, scores):
    """The second time scaled; in single precision a mean comes with its gradient."""
    x = scores.to(dtype).requires_grad_()
    total = 2 * loss(x, LABELS, reduction=reduction).sum()
    (first,) = torch.autograd.grad(total, x, retain_graph=True)
    kept = first.clone()
    (second,) = torch.autograd.grad(-3.0 * total, x)
    assert torch.equal(first, kept)
    torch.testing.assert_close(second, -3.0 * first, rtol=1e-5, atol=0)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_no_gradient_is_computed_without_grad(mode, scores, monkeypatch):
    expected = F.logistic_loss(scores, LABELS)

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(reference.ScaledRows, "value_and_gradient", fail)
    x = scores.clone().requires_grad_()
    with mode():
        loss = F.logistic_loss(x, LABELS)
    assert loss.grad_fn is None
    assert torch.equal(loss, expected)
    with pytest.raises(AssertionError):  # which is where it is computed otherwise
        F.logistic_loss(x, LABELS)


def test_every_loss_has_code_of_its_own():
    """``torch.compile`` counts how often it compiles a code, and gives up after eight."""
    modules = [getattr(ft, module_name(name)) for name in fp.loss_names()]
    for functions in (
        [loss_of(name) for name in fp.loss_names()],
        [getattr(F, name) for name in LINKS],
        [module.forward for module in modules],
        [module.link for module in modules],
    ):
        assert len({function.__code__ for function in functions}) == len(functions)
    for function in (F.sparsemax_loss, F.entmax15, ft.FitzpatrickLogisticLoss.forward):
        assert function.__name__ in inspect.getsource(function)


TSALLIS = [fp.FitzpatrickLoss(fp.regularizers.Tsallis(alpha)) for alpha in (1.2, 1.3)]
ISOLATED = "isolate_recompiles" in inspect.signature(torch.compile).parameters


@pytest.mark.skipif(not ISOLATED, reason="this PyTorch does not isolate recompilations")
def test_losses_of_any_regularizer_compile_in_isolation(scores):
    torch.compiler.reset()
    with torch._dynamo.config.patch(recompile_limit=1):
        for loss in TSALLIS:
            for function, labels in (
                (F.loss_function(loss), [LABELS]),
                (F.link_function(loss), []),
            ):
                compiled = torch.compile(
                    function, fullgraph=True, backend="eager", isolate_recompiles=True
                )
                torch.testing.assert_close(compiled(scores, *labels), function(scores, *labels))


@pytest.mark.skipif(not ISOLATED, reason="this PyTorch does not compile the hash of a dataclass")
def test_a_loss_function_may_be_made_in_a_compiled_function(scores):
    def loss(x, labels):
        return F.loss_function(fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.2)))(x, labels)

    F.loss_function(TSALLIS[0])(scores, LABELS)  # a compiler cannot register an unknown one
    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(scores, LABELS), loss(scores, LABELS))
    assert F.loss_function("sparsemax") is F.sparsemax_loss
    assert F.loss_function(fp.FitzpatrickLoss(fp.regularizers.Negentropy())) is (
        F.fitzpatrick_logistic_loss
    )
    assert F.link_function("fitzpatrick_sparsemax") is F.sparsemax


def test_a_training_step_compiles_once_for_any_batch_size(generator):
    """By Inductor, with the backward pass, a batch of any size and any tightness."""
    weight = torch.randn(4, 3, generator=generator).requires_grad_()

    def step(inputs, labels, tightness):
        scores = torch.nn.functional.linear(inputs, weight)
        options = {"label_smoothing": 0.1, "tightness": tightness}
        return F.fitzpatrick_logistic_loss(scores, labels, **options)

    counter = CompileCounterWithBackend("inductor")
    compiled = torch.compile(step, fullgraph=True, dynamic=True, backend=counter)
    counts = set()
    for n, tightness in ((5, 0.5), (6, 0.7), (7, 1.5)):
        inputs = torch.randn(n, 3, generator=generator)
        labels = torch.randint(0, 4, (n,), generator=generator)
        found, expected = (f(inputs, labels, tightness) for f in (compiled, step))
        torch.testing.assert_close(found, expected)
        slopes = [torch.autograd.grad(loss, weight)[0] for loss in (found, expected)]
        torch.testing.assert_close(*slopes)
        counts.add(counter.frame_count)
    assert len(counts) == 1  # nothing is compiled anew


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


OPERATORS = torch.ops.fitzpatrick


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND)
def test_operators_pass_opcheck(name, scores, generator):
    # labels with derivatives, entries without
    grad = name in CLASS_LOSSES
    dtype = torch.float64 if grad else torch.float32
    x = scores[:3].to(dtype).requires_grad_(grad)
    scale = torch.rand(3, dtype=dtype, generator=generator)
    v = torch.randn(3, 4, dtype=dtype, generator=generator)
    omega = fp.losses.ends(name)[0]
    symbolic = torch.tensor(0.7, dtype=torch.float64)
    for target, more in zip(cases(name, x.detach(), generator), ([], [symbolic]), strict=False):
        target = target[:3]
        options = (omega, 0.7, "reference", -100, *more)
        torch.library.opcheck(OPERATORS.value.default, (x, target, scale, *options))
        torch.library.opcheck(
            OPERATORS.gradient.default, (x, target, scale.requires_grad_(grad), *options)
        )
        inputs = (x.detach(), target, scale.detach(), v.requires_grad_(grad))
        torch.library.opcheck(OPERATORS.hessian_product.default, (*inputs, omega, 0.7, -100, *more))
    torch.library.opcheck(OPERATORS.link.default, (x, None, None, omega, 0.0, "reference", "any"))
