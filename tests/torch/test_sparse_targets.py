"""Targets that list the classes of a row: equal to proportions, at every door of PyTorch."""

import functools
import math

import pytest
import torch
from conftest import assert_compiles, every_engine, loss_of, needs_triton
from tests.interpreter import WIDE

import fitzpatrick as fp
from fitzpatrick.torch import (
    FitzpatrickLogisticLoss,
    LinearSparsemaxLoss,
    RowStats,
    SparseTargets,
)
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

LOSSES = ("fitzpatrick_logistic", "fitzpatrick_sparsemax", "fitzpatrick_entmax15")
TIGHTNESSES = (0.0, 0.5, 1.0, 2.0)
# (classes, classes in a list, dtype); tests/parity has small lists of every loss, with second
# derivatives and classes out of range
SHAPES = [(7, 7, torch.bfloat16), (1000, 256, torch.float64), (200_003, 256, torch.float32)]
# Both ways to compute round each of some k terms; the roots are as good as their dtype.
TOLERANCES = {torch.float64: 1e-11, torch.float32: 1e-4, torch.bfloat16: 2e-2}


def draw(n, k, m, dtype=torch.float64, seed=0, rest=None):
    """Lists of m classes, every other row with padding in the middle, and the last row empty."""
    generator = torch.Generator().manual_seed(seed)
    indices = torch.stack([torch.randperm(k, generator=generator)[:m] for _ in range(n)])
    values = torch.rand(n, m, generator=generator, dtype=torch.float64) + 0.01
    if m > 1:
        indices[::2, m // 2] = -7
        values[::2, m // 2] = 5.0  # of no account
    indices[-1] = -1
    total = values.masked_fill(indices < 0, 0.0).sum(-1, keepdim=True)
    values = values / total.clamp(min=1e-9)
    return SparseTargets(indices, values.to(dtype) * (1 if rest is None else 0.75), rest)


def scores_of(n, k, dtype=torch.float64, seed=1, scale=3.0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(n, k, generator=generator, dtype=torch.float64) * scale
    return scores.to(dtype).requires_grad_()


def dense(targets, k):
    """The rows that count, as proportions, and their numbers."""
    kept = (targets.indices >= 0).any(-1).nonzero()[:, 0]
    return targets.to_dense(k)[kept], kept


def assert_close(one, other, dtype=torch.float64):
    tolerance = TOLERANCES[dtype]
    bounds = {"rtol": tolerance, "atol": tolerance * 0.05}
    torch.testing.assert_close(one.double(), other.double(), **bounds)


def assert_equal(one, other, *leaves):
    """Losses, and the gradients of multiples."""
    found, expected = (
        (x, *torch.autograd.grad(3 * x.sum(), leaves, retain_graph=True)) for x in (one, other)
    )
    for first, second in zip(found, expected, strict=True):
        assert_close(first, second)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("k", "m", "dtype"), SHAPES, ids=str)
def test_lists_are_proportions(name, k, m, dtype):
    target = draw(3, k, m, torch.float64 if dtype == torch.float64 else torch.float32)
    x, (y, kept) = scores_of(3, k, dtype), dense(target, k)
    for tightness in TIGHTNESSES if k < 10 else [1.0]:
        loss = loss_of(name)(x, target, tightness=tightness)
        z = x.detach().double().requires_grad_()
        expected = loss_of(name)(z[kept], y.double(), tightness=tightness, validate=False)
        assert_close(loss, expected, dtype)
        assert_close(_grad(loss, x), _grad(expected, z), dtype)


def test_orders_of_rows_take_lists():
    x, target = scores_of(4, 9), draw(4, 9, 3)
    y, kept = dense(target, 9)
    alphas = torch.tensor([1.2, 1.5, 1.8, 1.4], dtype=torch.float64)
    assert_close(F.entmax_loss(x, target, alphas), F.entmax_loss(x[kept], y, alphas[kept]))


def _grad(loss, x):
    return torch.autograd.grad(loss, x)[0]


@pytest.mark.parametrize("name", LOSSES)
def test_heads(name):
    head = loss_of(f"linear_{name}")
    h, w = scores_of(6, 5), scores_of(40, 5, seed=2)
    target = draw(6, 40, 8)
    weight = torch.rand(40, dtype=torch.float64)
    for options in ({}, {"weight": weight}, {"label_smoothing": 0.1}, {"reduction": "none"}):
        loss = head(h, w, target, chunk_size=2, **options)
        assert_equal(loss, loss_of(name)(h @ w.T, target, **options), h, w)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_options_are_those_of_proportions(reduction):
    k, weight = 9, torch.rand(9, dtype=torch.float64)
    x, target = scores_of(5, k), draw(5, k, 4)
    y, kept = dense(target, k)
    weights, smoothing = {"weight": weight}, {"label_smoothing": 0.2}
    for options in (weights, smoothing, {**weights, **smoothing}, {}):
        given = {**options, "reduction": reduction}
        loss = F.fitzpatrick_logistic_loss(x, target, **given)
        expected = F.fitzpatrick_logistic_loss(x[kept], y, **given)
        if reduction == "none":
            assert loss[-1] == 0
            loss = loss[kept]
        assert_close(loss, expected)


def test_axes_and_modules():
    x = scores_of(2 * 3 * 4, 1).detach().reshape(2, 3, 4).clone()
    indices = torch.tensor([[0, 2], [1, -1]])[:, None].expand(2, 4, 2)
    values = torch.tensor([[0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)[:, None].expand(2, 4, 2)
    target = SparseTargets(indices, values)
    y = target.to_dense(3).movedim(-1, 1)
    for reduction in ("none", "mean"):
        module = FitzpatrickLogisticLoss(reduction=reduction)
        assert_close(module(x, target), module(x, y))
        last = F.sparsemax_loss(x.movedim(1, -1), target, dim=-1, reduction=reduction)
        assert_close(last, F.sparsemax_loss(x, y, reduction=reduction))
    head = LinearSparsemaxLoss(5, 3, dtype=torch.float64)
    h = scores_of(8, 5).detach().reshape(2, 4, 5)
    assert_close(head(h, target), head(h, target.to_dense(3)))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta:UserWarning")
def test_sparse_tensors():
    y = torch.tensor([[0.25, 0, 0.75], [0, 1.0, 0]], dtype=torch.float64)
    x = scores_of(2, 3)
    for sparse in (y.to_sparse(), y.to_sparse_csr()):
        assert_close(F.sparsemax_loss(x, sparse), F.sparsemax_loss(x, y))
    twice = torch.sparse_coo_tensor(
        [[0, 0, 1], [2, 2, 0]], [0.5, 0.5, 1.0], (2, 3), check_invariants=True
    )
    assert SparseTargets.from_sparse(twice).to_dense(3).tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("tightness", TIGHTNESSES)
def test_bucket_is_a_class_more(tightness):
    """The loss over m + 1 classes, by its definition, and its derivatives in float64."""
    target, x = draw(4, 8, 3, rest="bucket"), scores_of(4, 8)

    def by_hand(x):
        losses = []
        for row, indices, values in zip(x[:-1], target.indices, target.values, strict=False):
            own = indices[indices >= 0]
            others = torch.tensor([i not in own for i in range(8)])
            merged = torch.cat([row[own], row[others].logsumexp(0)[None]])
            y = values[indices >= 0]
            y = torch.cat([y, 1 - y.sum()[None]])
            losses.append(F.fitzpatrick_logistic_loss(merged, y, tightness=tightness))
        return torch.stack(losses).mean()

    def loss(x):
        return F.fitzpatrick_logistic_loss(x, target, tightness=tightness)

    assert_close(loss(x), by_hand(x))
    assert_close(_grad(loss(x), x), _grad(by_hand(x), x))
    assert torch.autograd.gradcheck(loss, x)
    assert torch.autograd.gradgradcheck(loss, x)
    h, w = scores_of(4, 5), scores_of(8, 5, seed=3)
    head = F.linear_fitzpatrick_logistic_loss(h, w, target, tightness=tightness)
    assert_close(head, loss(h @ w.T))


@every_engine
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("is_log", [False, True])
def test_nothing_is_left_in_a_bucket_but_rounding_errors(dtype, is_log, engine):
    """Of a list of all classes; with a class left, or with more than an error, there is a rest."""
    x, k = scores_of(50, 20, torch.float32), 20
    logs = torch.log_softmax(scores_of(50, k, torch.float32, seed=5).detach(), -1).to(dtype)
    indices = torch.arange(k).expand(50, k)
    values = logs if is_log else logs.exp()
    target = SparseTargets(indices, values, "bucket", is_log)
    loss = F.logistic_loss(x, target, reduction="none", engine=engine)
    y = target.proportions(torch.float64)
    expected = F.logistic_loss(x.double(), y / y.sum(-1, keepdim=True), reduction="none")
    # of terms that are off by a rounding error of the values each
    assert_close(loss, expected, torch.bfloat16 if dtype == torch.bfloat16 else torch.float32)
    some = SparseTargets(indices.masked_fill(indices == 3, -1), values, "bucket", is_log)
    listed = some.proportions(torch.float32).sum(-1, dtype=torch.float64)
    assert torch.equal(some.lists(k, torch.float32)[:, 1, -1], (1 - listed).clamp(0).float())
    less = SparseTargets(indices, values - 1 if is_log else values / 2, "bucket", is_log)
    assert F.logistic_loss(x, less, reduction="none", validate=False).isinf().all()


@pytest.mark.parametrize("rest", ["renormalize", "bucket"])
def test_logarithms(rest):
    target, x = draw(4, 8, 3, rest=rest), scores_of(4, 8)
    logs = SparseTargets(target.indices, target.values.log(), rest, log_values=True)
    one = F.fitzpatrick_logistic_loss(x, target)
    assert_close(F.fitzpatrick_logistic_loss(x, logs), one)
    if rest == "renormalize":
        scaled = SparseTargets(target.indices, target.values * 4 / 3)
        assert_close(F.fitzpatrick_logistic_loss(x, scaled), one)
        assert_close(F.sparsemax_loss(x, logs), F.sparsemax_loss(x, scaled))
        shifted = SparseTargets(target.indices, target.values.log() + 3, rest, log_values=True)
        assert_close(F.fitzpatrick_logistic_loss(x, shifted), one)


def test_transforms_and_compilers():
    x, target = scores_of(4, 6), draw(4, 6, 3, rest="bucket")

    def rows(x, target):
        return F.fitzpatrick_logistic_loss(x, target, reduction="sum")

    mapped = torch.func.vmap(torch.func.grad(rows))(x.detach(), target)
    assert_close(mapped, _grad(rows(x, target), x))
    assert_compiles(rows, x, target, learned=[x])

    def head(h, w, indices, values):
        targets = SparseTargets(indices, values, "renormalize")
        return F.linear_fitzpatrick_sparsemax_loss(h, w, targets)

    h, w = scores_of(4, 5), scores_of(6, 5, seed=3)
    assert_compiles(head, h, w, target.indices, target.values)


def test_half_precision_and_autocast():
    x, target = scores_of(4, 50, torch.bfloat16), draw(4, 50, 6, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.fitzpatrick_logistic_loss(x, target)
    assert loss.dtype == torch.float32
    assert_close(loss, F.fitzpatrick_logistic_loss(x.double(), target), torch.bfloat16)


def test_no_rows():
    x, target = scores_of(3, 4), SparseTargets(torch.full((3, 2), -1), torch.zeros(3, 2))
    loss = F.sparsemax_loss(x, target)
    assert loss.isnan()
    assert not _grad(loss, x).any()
    assert F.sparsemax_loss(x, target, reduction="sum") == 0
    nothing = SparseTargets(torch.empty(3, 0, dtype=torch.long), torch.empty(3, 0))
    assert F.logistic_loss(x, nothing, reduction="sum") == 0


def lists(indices, values, **options):
    return SparseTargets(torch.tensor(indices), torch.tensor(values), **options)


PAIRS, X = [[0, 1], [2, 3]], torch.zeros(2, 4)
BUCKET = lists([[0], [1]], [[0.5], [0.5]], rest="bucket")
LEARNED = SparseTargets(BUCKET.indices, BUCKET.values.clone().requires_grad_(), "bucket")
SHIFTED = {"rest": "renormalize", "log_values": True}
loss = functools.partial(F.logistic_loss, X)
# (kind, message, function, *arguments)
REFUSED = [
    (ValueError, message, loss, target)
    for message, target in (
        ("row 1 lists the class 4.*0 to 3", lists([[0, 1], [2, 4]], [[0.5, 0.5]] * 2)),
        ("row 1 lists the class 2 twice", lists([[0, 1], [2, 2]], [[0.5, 0.5]] * 2)),
        ("row 1 has the value -0.5", lists(PAIRS, [[0.5, 0.5], [-0.5, 1.0]])),
        ("row 0 has the value 3", lists(PAIRS, [[3.0, 0.5], [0.5, 0.5]])),
        ("row 1 has the value nan", lists(PAIRS, [[0.5, 0.5], [math.nan, 1.0]])),
        ("row 1 .* logarithms", lists([[0], [2]], [[0.0], [0.5]], log_values=True)),
        ("row 1 .* nan .* logarithms", lists(PAIRS, [[0.0, 0.0], [math.nan, 0.0]], **SHIFTED)),
        ("row 1 .* inf .* logarithms", lists(PAIRS, [[0.0, 0.0], [0.0, math.inf]], **SHIFTED)),
        ("row 1 sums to 0.5.*rest='renormalize'", lists([[0], [2]], [[1.0], [0.5]])),
        ("row 1 sums to 1.7.*divide", lists(PAIRS, [[0.5, 0.5], [0.9, 0.8]], rest="bucket")),
        ("row 1 sums to 1.80967, .*subtract its log-sum-exp",
         lists(PAIRS, [[-1.0, -1.0], [-0.1, -0.1]], rest="bucket", log_values=True)),
        ("row 1 sums to 0", lists([[0], [2]], [[1.0], [0.0]], rest="renormalize")),
        ("row 1 sums to 0,", lists([[0], [2]], [[-1.0], [-math.inf]], **SHIFTED)),
        (r"must have shape \(2, m\)", lists([0, 1], [0.5, 0.5])),
        (r"must have shape \(2, m\).*got \(1, 1\)", lists([[0]], [[1.0]])),
        ("must have one shape", lists([[0], [2]], [1.0, 1.0])),
        ("not in target", LEARNED),
    )
] + [
    (ValueError, r"target row \(1, 2\) lists the class 5", F.logistic_loss, torch.zeros(2, 4, 3),
     lists([[[0, 1]] * 3, [[0, 1], [0, 1], [5, 0]]], [[[0.5, 0.5]] * 3] * 2)),
    (ValueError, "for the logistic losses", F.sparsemax_loss, X, BUCKET),
    (ValueError, "have no weight", loss, BUCKET, torch.ones(4)),
    (ValueError, "label_smoothing", loss, BUCKET, None, -100, "mean", 0.1),
    (ValueError, "rest must be", SparseTargets, X, X, "other"),
    (TypeError, "COO or CSR tensor .* got list", SparseTargets.from_sparse, [[1.0]]),
    (TypeError, "COO or CSR tensor .*strided", SparseTargets.from_sparse, X),
    (TypeError, "integer indices", loss, lists([[0.0], [1.0]], [[1.0], [1.0]])),
    (TypeError, "must be a tensor, got SparseTargets", F.sigmoid_loss, X, BUCKET),
    (ValueError, "same rows and classes", F.distillation_loss, X, X, X, X[:1]),
    (ValueError, "losses on the simplex", functools.partial(F.distillation_loss, loss="sigmoid"),
     X, X, X, X),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[1])
def test_bad_lists_are_refused(case):
    kind, message, function, *given = case
    with pytest.raises(kind, match=message):
        function(*given)


@every_engine
def test_a_class_out_of_range_spoils_its_row_alone(engine):
    x, target = scores_of(5, 9), draw(5, 9, 3)
    target.indices[1, 0] = 9
    for options in ({}, {"weight": torch.ones(9)}, {"label_smoothing": 0.1}):
        given = {"reduction": "none", "validate": False, "engine": engine, **options}
        found = F.sparsemax_loss(x, target, **given)
        gradient = _grad(found.sum(), x)
        for rows in (found, gradient[:, 0]):
            assert rows.isnan().tolist() == [False, True, False, False, False]


def test_small_indices_and_logarithms_far_from_zero():
    """Unsigned numbers have no padding, and logarithms up to a constant no bounds."""
    x = scores_of(2, 4)
    expected = F.sparsemax_loss(x, lists(PAIRS, [[0.5, 0.5]] * 2))
    small = torch.tensor(PAIRS, dtype=torch.uint8)
    assert_close(F.sparsemax_loss(x, SparseTargets(small, torch.full((2, 2), 0.5))), expected)
    logs = lists(PAIRS, [[-900.0, -900.0], [900.0, 900.0]], rest="renormalize", log_values=True)
    assert_close(F.sparsemax_loss(x, logs), expected)


def test_class_numbers_have_all_their_digits():
    """In lists of single precision, too, which has odd numbers up to 2**24 alone."""
    numbers = [2**24 + 1, 0]
    target = lists([numbers], [[0.5, 0.5]])
    for num_classes in (2**24 + 2, None):
        assert target.lists(num_classes, torch.float32)[0, 0].tolist() == numbers


def test_moving_targets():
    moved = draw(3, 5, 2, rest="bucket").to("cpu")
    assert (moved.rest, moved.log_values) == ("bucket", False)


CAPS = [(3.0, False), (3.0, True), (300.0, True), (None, True)]


def capped(x, cap):
    return cap * torch.tanh(x / cap)


@pytest.fixture(params=["reference", "registers", "wide"])
def engine(request):
    """An engine; the kernel with rows in registers, or in blocks that begin anywhere."""
    if request.param == "reference":
        return "reference"
    limit = request.getfixturevalue("limit")
    limit(**({**WIDE, "min_peel": 0} if request.param == "wide" else {}))
    return "triton"


@pytest.mark.parametrize(("cap", "is_learned"), CAPS)
@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "sparsemax", "entmax15"])
@pytest.mark.parametrize("has_labels", [False, True])
def test_scores_are_capped_and_scaled(name, has_labels, cap, is_learned, engine):
    # the losses together have each reduction of each kind of target
    reduction = "mean" if has_labels == (name == "sparsemax") else "none"
    leaves = [scores_of(6, 5), scores_of(9, 5, seed=2), scores_of(1, 9, seed=3)]
    h, w, bias = *leaves[:2], leaves[2][0]
    target = torch.tensor([0, 8, -100, 3, 4, 1]) if has_labels else draw(6, 9, 3)
    scale = torch.tensor([1.7], dtype=torch.float64, requires_grad=True) if is_learned else 1.5
    leaves += [scale] * is_learned
    scores, options = h @ w.T + bias, {"engine": engine, "reduction": reduction}
    given = {"temperature": 0.5, "softcap": cap, "logit_scale": scale, **options}
    transformed = (scores if cap is None else capped(scores, cap)) * scale * 2
    expected = loss_of(name)(transformed, target, reduction=reduction)
    assert_equal(loss_of(name)(scores, target, **given), expected, *leaves)
    head = loss_of(f"linear_{name}")
    value = head(h, w, target, linear_bias=bias, chunk_size=4, **given)
    assert_equal(value, expected, *leaves)


@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "sparsemax", "entmax15"])
@pytest.mark.parametrize("has_labels", [False, True])
def test_scores_are_capped_in_single_precision(name, has_labels, engine):
    """A mean comes with its gradients, which the backward pass multiplies."""
    target = torch.tensor([0, 8, -100, 3, 4, 1]) if has_labels else draw(6, 9, 3)
    x, scale = scores_of(6, 9, torch.float32), torch.tensor([1.7], requires_grad=True)
    results = []
    for which in (engine, "reference"):
        value = loss_of(name)(x, target, engine=which, softcap=3.0, logit_scale=scale)
        results.append(torch.autograd.grad(3 * value, (x, scale)))
    for one, other in zip(*results, strict=True):
        assert_close(one, other, torch.float32)


@pytest.mark.parametrize("target", [torch.tensor([0]), lists([[0, -1]], [[1.0, 0.0]])], ids=str)
def test_a_cap_keeps_masked_classes_out(target, engine):
    x = torch.tensor([[1.0, -math.inf, 2.0]], requires_grad=True)
    loss = F.logistic_loss(x, target, softcap=5.0, engine=engine)
    plain = F.logistic_loss(x[:, ::2], torch.tensor([0]), softcap=5.0)
    assert_close(loss, plain, torch.float32)
    assert torch.isfinite(_grad(loss, x)).all()
    x, scale = x.double(), torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    loss = F.logistic_loss(x, target, logit_scale=scale, engine=engine)
    plain = F.logistic_loss(x[:, ::2], torch.tensor([0]), logit_scale=scale)
    assert_equal(loss, plain, scale)
    x = torch.tensor([[1.0, math.inf, math.nan], [1.0, math.inf, 2.0]])
    many = target.repeat(2) if isinstance(target, torch.Tensor) else lists([[0], [0]], [[1.0]] * 2)
    losses = F.logistic_loss(x, many, softcap=5.0, engine=engine, reduction="none")
    assert losses.isnan().tolist() == [True, False]
    # an ignored row that holds NaN contributes nothing
    x = torch.tensor([[1.0, 0.0, math.nan], [1.0, 0.0, 2.0]], dtype=torch.float64)
    x, last = x.requires_grad_(), x[1:].clone().requires_grad_()
    ignored = torch.tensor([-100, 0])
    if not isinstance(target, torch.Tensor):
        ignored = lists([[-1], [0]], [[0.0], [1.0]])
    for cap in (None, 5.0):
        given = {"logit_scale": scale, "softcap": cap, "reduction": "sum"}
        loss = F.logistic_loss(x, ignored, engine=engine, **given)
        (rows, by_scale) = torch.autograd.grad(loss, (x, scale))
        expected = F.logistic_loss(last, torch.tensor([0]), **given)
        last_row, scalar = torch.autograd.grad(expected, (last, scale))
        assert torch.equal(rows[0], torch.zeros(3))
        assert_close(rows[1:], last_row)
        assert_close(by_scale, scalar)


def test_second_derivatives_of_scaled_scores(engine):
    x, scale = scores_of(3, 5), torch.tensor(1.3, dtype=torch.float64, requires_grad=True)

    def loss(x, scale):
        given = {"softcap": 3.0, "logit_scale": scale, "engine": engine}
        return F.fitzpatrick_logistic_loss(x, torch.tensor([1, 2, 3]), **given)

    assert torch.autograd.gradgradcheck(loss, (x, scale), fast_mode=True)


@needs_triton
def test_a_head_of_one_class_by_a_kernel():
    """Its value 1 is no class among those that rows are padded to."""
    h, w, target = scores_of(2, 3, torch.float32), torch.ones(1, 3), lists([[0], [0]], [[1.0]] * 2)
    assert F.linear_sparsemax_loss(h, w, target, engine="triton") == 0


@needs_triton
@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize("rest", [None, "renormalize", "bucket"])
def test_lists_by_a_kernel(rest, is_log):
    target = draw(7, 50, 5, rest=rest)
    target.indices[3, 0] = 60  # stays out of range
    values = target.values.log() if is_log else target.values
    target = SparseTargets(target.indices, values, rest, is_log)
    for indices in (target.indices, target.indices.int()):
        given = target.with_tensors(indices, target.values)
        assert_close(
            given.lists(50, torch.float64, by_kernel=True), target.lists(50, torch.float64)
        )


@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "sparsemax"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_distillation_from_two_heads(name, reduction):
    h, w = scores_of(6, 5), scores_of(9, 5, seed=2)
    x, v = scores_of(6, 7, seed=4), scores_of(9, 7, seed=5)
    b = scores_of(1, 9, seed=3).detach()[0].requires_grad_()
    options = {"linear_bias": b, "teacher_bias": b.detach(), "loss": name}
    options |= {"temperature": 2.0, "softcap": 3.0, "reduction": reduction}

    def loss(h, w, x, v):
        return F.distillation_loss(h, w, x, v, teacher_softcap=4.0, chunk_size=4, **options)

    link = F.sparsemax if name == "sparsemax" else F.logistic
    scores, y = capped(h @ w.T + b, 3.0) / 2, link(capped(x @ v.T + b, 4.0) / 2).detach()
    expected = loss_of(name)(scores, y, reduction=reduction)
    assert_equal(loss(h, w, x, v), expected, h, w, b)
    assert_compiles(loss, h, w, x, v, learned=[h, w, b])
    assert F.distillation_loss(h[:0], w, x[:0], v).isnan()


def test_distillation_by_any_loss():
    """A regularizer that is not in the registry is known to compilers once it was used."""
    h, w, x, v = (scores_of(*shape, seed=i) for i, shape in enumerate(((4, 2), (5, 2)) * 2))
    loss = fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.3), tightness=0.5)
    distill = functools.partial(F.distillation_loss, loss=loss)
    total = distill(h, w, x, v)
    assert torch.autograd.grad(total, (x, v), allow_unused=True) == (None, None)
    assert_compiles(distill, h, w, x, v, learned=[h, w])


def expected_stats(x, y):
    """By their definitions, for rows (n, k) of targets; rows without any count for nothing."""
    p = torch.softmax(x, -1)
    best = x.gather(-1, y.argmax(-1, keepdim=True))[:, 0]
    is_correct = (best >= x.amax(-1)) & (y > 0).any(-1)
    entropy = -torch.special.xlogy(p, p).sum(-1)
    return RowStats(x.logsumexp(-1), entropy, torch.where(y > 0, x * y, 0.0).sum(-1), is_correct)


# the core, compiled rows that have the exponentials anyhow, and those that have not
@pytest.mark.parametrize("name", ["perceptron", "fitzpatrick_logistic", "logistic", "sparsemax"])
@pytest.mark.parametrize("k", [7, 20_000])
def test_stats_of_rows(name, k, engine):
    if engine == "triton" and (name == "perceptron" or k > 7):
        pytest.skip("there is no kernel, or it takes the interpreter long")
    x = scores_of(5, k).detach()
    x[0, 3] = -math.inf
    labels = torch.tensor([0, 6, -100, 3, int(x[4].argmax())])
    target = draw(5, k, 3)
    target.indices[0, ::2] = torch.tensor([0, 1])  # not the class that is masked
    one_hot = torch.nn.functional.one_hot(labels.clamp(0), k) * (labels >= 0)[:, None]
    weight = torch.rand(k, dtype=torch.float64)
    cases = [(labels, one_hot.double(), {}), (target, target.to_dense(k), {"weight": weight})]
    cases += [(target.to_dense(k), target.to_dense(k), {"validate": False})]
    cases += [(labels, one_hot.double(), {"weight": weight, "label_smoothing": 0.1})]
    for given, y, options in cases:
        for scores in (x, x.float()):
            options = {**options, "engine": engine}
            loss, stats = loss_of(name)(scores, given, return_stats=True, **options)
            assert torch.equal(
                loss.nan_to_num(), loss_of(name)(scores, given, **options).nan_to_num()
            )
            for found, expected in zip(stats, expected_stats(x, y), strict=True):
                assert_close(found, expected, scores.dtype)


def test_stats_of_rows_that_have_none(engine):
    x = torch.zeros(5, 3)
    x[0, 1], x[1, 2], x[2] = math.nan, math.inf, -math.inf
    x[4] = torch.tensor([math.nan, -math.inf, -math.inf])
    for name in ("logistic", "sparsemax", *["perceptron"] * (engine == "reference")):
        for target in (torch.tensor([0, 2, 1, 1, 1]), lists([[0], [2], *[[1]] * 3], [[1.0]] * 5)):
            _, stats = loss_of(name)(x, target, return_stats=True, engine=engine)
            torch.testing.assert_close(stats.log_sum_exp, x.logsumexp(-1), equal_nan=True)
            assert stats.entropy.isfinite().tolist() == [False, False, False, True, False]
            assert stats.is_correct.tolist() == [False, True, True, True, False]


def test_stats_of_heads_and_modules():
    x, labels = scores_of(5, 7), torch.tensor([0, 6, -100, 3, 1])
    w, target = torch.eye(7, dtype=torch.float64), draw(5, 7, 3)
    bucket = draw(5, 7, 3, rest="bucket")
    for given, options in (
        (labels, {}), (target, {}), (bucket, {}), (labels, {"label_smoothing": 0.1})
    ):  # fmt: skip
        loss, stats = F.logistic_loss(x, given, return_stats=True, **options)
        assert_close(loss, F.logistic_loss(x, given, **options))
        head, others = F.linear_logistic_loss(
            x, w, given, return_stats=True, chunk_size=2, **options
        )
        assert_close(head, loss)
        assert_close(_grad(head, x), _grad(loss, x))
        kept = (labels if given is labels else target.indices.amax(-1)) >= 0
        for one, other in zip(stats, others, strict=True):
            assert_close(one[kept], other[kept])
            assert not other[~kept].any()
    module = FitzpatrickLogisticLoss(return_stats=True, softcap=2.0)
    _, stats = module(x, labels)
    assert_close(stats.log_sum_exp, capped(x.detach(), 2.0).logsumexp(-1))
