"""What is said of wrong arguments: what was wrong, where, what was expected, what to do."""

import itertools
import re

import numpy as np
import pytest
import torch

import fitzpatrick as fp
import fitzpatrick.torch as ft
from fitzpatrick.sets import Birkhoff, Permutahedron
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

X, LABELS = torch.ones(3, 4), torch.tensor([0, 1, 2])
BALL = fp.regularizers.SquaredNorm(fp.sets.L2Ball())
Q, K, ROW = torch.ones(2, 4, 5, 8), torch.ones(2, 2, 6, 8), torch.ones(2, 1, 8)
PAGES = ft.KeyPages(torch.ones(2, 5, 8), torch.ones(2, 5, 3))
INPUT, LAYER = torch.ones(7, 3, 8), ft.SparseAttention(8, 2)
HIDDEN = INPUT[..., 0] > 0


def loss(x=X, y=LABELS, *weight, **options):
    return F.fitzpatrick_logistic_loss(x, y, *weight, **options)


def head(**given):
    arguments = {"input": torch.ones(3, 5), "linear_weight": torch.ones(7, 5), "target": LABELS}
    return F.linear_fitzpatrick_logistic_loss(**(arguments | given))


def entries(y, **options):
    return F.sigmoid_loss(torch.zeros(2, 3), y, **options)


def attention(**given):
    return F.entmax_attention(**({"query": Q, "key": K, "value": K, "enable_gqa": True} | given))


def attend(**masks):
    return LAYER(INPUT, INPUT, INPUT, **masks)


# (kind, message, function, *arguments, options)
ERRORS = [
    # scores and targets
    (TypeError, "floating-point scores.*Losses take the scores first", loss, LABELS, X),
    (TypeError, "must be a tensor", loss, [[1.0]]),
    (TypeError, "must be a tensor of scores, got ndarray", loss, X.numpy()),
    (TypeError, "must be a tensor", loss, X, [0, 1, 2]),
    (TypeError, "to_dense", loss, X.to_sparse()),
    (TypeError, "convert it with", loss, X, X.bool()),
    (ValueError, "at 1 is out of range: input has 4 classes", loss, X, torch.tensor([0, 4, 1])),
    (ValueError, r"class indices must have shape \(3,\)", loss, X, torch.tensor([0, 1])),
    (ValueError, "one-hot rows are proportions", loss, X, torch.eye(4).long()[:3]),
    (ValueError, "must have the shape of the scores", loss, X, torch.tensor([0.2, 0.8])),
    (ValueError, "it sums to 1.5", loss, X, torch.full((3, 4), 0.375)),
    (ValueError, r"target\.detach", loss, X, torch.full((3, 4), 0.25).requires_grad_()),
    (ValueError, "at least one axis", loss, torch.tensor(1.0), torch.tensor(0)),
    (ValueError, "at least one axis, the classes", F.sparsemax, torch.tensor(1.0)),
    (ValueError, "at least one class", loss, torch.ones(3, 0)),
    (ValueError, "on cpu and target on meta", loss, X, LABELS.to("meta")),
    # options
    (RuntimeError, r"init_process_group\(\) first, on every rank", loss, {"process_group": "tp"}),
    (ValueError, "reduction must be", loss, {"reduction": "average"}),
    (ValueError, "dim=2 is not an axis", loss, {"dim": 2}),
    (TypeError, "dim must be the number of an axis", loss, {"dim": 1.0}),
    (ValueError, "engine must be one of", loss, {"engine": "cuda"}),
    (TypeError, "validate must be True, False or None", loss, {"validate": "yes"}),
    (ValueError, "label_smoothing must be between", loss, {"label_smoothing": 1.5}),
    (TypeError, "label_smoothing must be a number", loss, {"label_smoothing": True}),
    (TypeError, "ignore_index must be a class index", loss, {"ignore_index": True}),
    (TypeError, "ignore_index must be a class index", loss, {"ignore_index": 1.5}),
    (ValueError, "ignore_index=1 is a class", loss, X, torch.softmax(X, 1), {"ignore_index": 1}),
    (ValueError, "one entry per class", loss, X, LABELS, torch.ones(2)),
    (TypeError, "weight must be a tensor", loss, X, LABELS, [1.0, 2.0, 3.0, 4.0]),
    (TypeError, "weight must hold floating-point", loss, X, LABELS, torch.ones(4).long()),
    (ValueError, "weight on meta; move it with", loss, X, LABELS, torch.ones(4, device="meta")),
    *((ValueError, f"{name} must be a positive number", function, {name: number})
      for name, number in (("temperature", 0.0), ("softcap", -1.0), ("logit_scale", torch.inf))
      for function in (loss, ft.FitzpatrickLogisticLoss)),
    (ValueError, "weight must not be negative", loss, X, LABELS, -X[0], {"label_smoothing": 0.1}),
    # losses of entries, and of vectors
    (ValueError, r"in row 1.*entry 0 is 2, outside \[0, 1\]", entries,
     torch.tensor([[0.0, 0, 0], [2, 0, 0]])),
    (ValueError, "cannot be broadcast", entries, torch.zeros(2, 3), {"weight": torch.ones(2)}),
    (TypeError, "pos_weight", F.squared_loss, X, X, {"pos_weight": X}),
    (TypeError, "pos_weight is for targets between 0 and 1",
     F.loss_function(fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(), 0.5)), X, X,
     {"pos_weight": X}),
    (ValueError, "at least one entry", F.loss_function(fp.FitzpatrickLoss(BALL)), X[:, :0],
     X[:, :0]),
    (ValueError, "target is not in the domain", ft.FitzpatrickLoss(BALL), X, 10 * X),
    # links
    (ValueError, r"alpha must be between 1 and 2, got 0\.5", F.entmax, X, 0.5),
    (ValueError, "alpha must be between 1 and 2, got nan", F.entmax, X, float("nan")),
    (ValueError, r"between 1 and 2, got 2\.5", F.entmax, X, torch.tensor([[1.5], [2.5], [1.0]])),
    (ValueError, "between 1 and 2, got nan", F.entmax, X, torch.tensor([[1.5], [torch.nan], [1]])),
    (TypeError, "alpha must be a number from 1 to 2, got 'two'", F.entmax, X, "two"),
    (ValueError, r"alpha of shape \(5,\) cannot be", F.entmax, X, torch.full((5,), 1.5)),
    (ValueError, "a tensor alpha is for a loss of tightness 0", F.entmax_loss, X, LABELS,
     torch.full((3,), 1.5), {"tightness": 1.0}),
    (TypeError, "boolean tensor, .* got torch.float32", F.sparsemax, X, {"mask": torch.ones(4)}),
    (TypeError, r"boolean tensor, .* got list", F.sparsemax, X, {"mask": [True]}),
    (ValueError, r"mask of shape \(3,\) cannot be", F.sparsemax, X, {"mask": LABELS.bool()}),
    (TypeError, "mask is for links on the simplex", F.link_function(fp.FitzpatrickLoss(BALL)), X,
     {"mask": X.bool()}),
    (ValueError, "budget must be between 0 and the number of classes, 4", F.budget, X, 5.0),
    (ValueError, r"budget must be between 0 and 4, got -1\.0", F.budget, X,
     torch.tensor([[2.0], [-1.0], [0.0]])),
    (ValueError, r"budget of shape \(5,\) cannot be", F.budget, X, torch.ones(5)),
    (ValueError, "alpha must be above 1, and finite, got inf", F.normmax, X, torch.inf),
    (TypeError, "alpha must be a number, got a tensor of shape", F.normmax_loss, X, LABELS, X[0]),
    (ValueError, "must start strictly between 1 and 2", ft.Entmax, 2.0, {"learnable": True}),
    # modules
    (ValueError, "reduction must be", ft.LogisticLoss, {"reduction": "avg"}),
    (ValueError, "label_smoothing must be", ft.LogisticLoss, {"label_smoothing": -1.0}),
    (TypeError, "ignore_index must be", ft.LogisticLoss, {"ignore_index": 1.5}),
    (ValueError, "engine must be one of", ft.LogisticLoss, {"engine": "cuda"}),
    (TypeError, "validate must be", ft.LogisticLoss, {"validate": "yes"}),
    (TypeError, "weight must be a tensor, got list", ft.LogisticLoss, {"weight": [1.0, 2.0]}),
    (TypeError, "unexpected keyword argument 'label_smoothing'", ft.SigmoidLoss,
     {"label_smoothing": 0.1}),
    (TypeError, r"has no option 'pos_weight'; its options are weight", ft.FitzpatrickLoss,
     fp.regularizers.SquaredNorm(), {"pos_weight": X}),
    (TypeError, "regularizer must be .* got 'negentropy'", ft.FitzpatrickLoss, "negentropy"),
    (TypeError, "use LossModule", ft.FenchelYoungLoss, fp.get_loss("logistic")),
    (ValueError, "did you mean 'logistic'", ft.LossModule, "logistics"),
    (ValueError, "did you mean 'logistic'", F.loss_function, "logistics"),
    (ValueError, r"one entry per class, \(7,\), got \(3,\)", ft.LinearLogisticLoss, 5, 7,
     {"weight": torch.ones(3)}),
    (ValueError, "accumulate_dtype must be", ft.LinearLogisticLoss, 5, 7,
     {"accumulate_dtype": torch.float16}),
    (ValueError, "at least one row", ft.LinearLogisticLoss, 5, 7, {"chunk_size": 0}),
    # linear losses
    (ValueError, r"\(classes, 5\).*got \(7, 4\)", head, {"linear_weight": torch.ones(7, 4)}),
    (ValueError, "must have at least one class", head, {"linear_weight": torch.ones(0, 5)}),
    (TypeError, "linear_weight.*torch.int32", head, {"linear_weight": torch.ones(7, 5).int()}),
    (TypeError, "linear_weight must be a tensor.*list", head, {"linear_weight": [[1.0]]}),
    (TypeError, "float32.*float64.*autocast", head, {"linear_weight": torch.ones(7, 5).double()}),
    (ValueError, "on cpu.*on meta", head, {"linear_weight": torch.ones(7, 5, device="meta")}),
    (ValueError, r"one entry per class, \(7,\), got \(6,\)", head, {"linear_bias": torch.ones(6)}),
    (TypeError, "linear_bias.*torch.int64", head, {"linear_bias": torch.ones(7).long()}),
    (TypeError, "input must be a tensor of features, got list", head, {"input": [[1.0]]}),
    (TypeError, "floating-point features", head, {"input": torch.ones(3, 5).long()}),
    (ValueError, "at least one axis", head, {"input": torch.tensor(1.0)}),
    (ValueError, r"shape \(3,\).*got \(3, 1\)", head, {"target": torch.zeros(3, 1).long()}),
    (ValueError, r"shape of the scores, \(3, 7\), got \(3,\)", head, {"target": torch.zeros(3)}),
    (ValueError, "it sums to 0", head, {"target": torch.zeros(3, 7)}),
    (ValueError, "target 7 at 1 is out of range", head, {"target": torch.tensor([0, 7, 1])}),
    (ValueError, "ignore_index=2", head,
     {"target": torch.full((3, 7), 1 / 7), "ignore_index": 2}),
    (ValueError, r"weight must have one entry per class, \(7,\)", head, {"weight": torch.ones(6)}),
    (ValueError, "not in weight", head, {"weight": torch.ones(7).requires_grad_()}),
    (ValueError, "at least one row, got 0", head, {"chunk_size": 0}),
    (TypeError, "chunk_size must be a number of rows", head, {"chunk_size": 2.5}),
    (ValueError, "accumulate_dtype.*bfloat16", head, {"accumulate_dtype": torch.bfloat16}),
    # attention
    (TypeError, "key must be a tensor", attention, {"key": [1.0]}),
    (TypeError, "query must hold floating-point", attention, {"query": Q.long()}),
    (TypeError, "query is torch.float32 and value torch.float64", attention, {"value": K.double()}),
    (ValueError, "query is on cpu and key on meta", attention, {"key": K.to("meta")}),
    (ValueError, "query must have shape", attention, {"query": torch.ones(8)}),
    (ValueError, "key must have the batch axes of query", attention, {"key": K[:1]}),
    (ValueError, "one width, not 0, got 8 and 7", attention, {"key": torch.ones(2, 2, 6, 7)}),
    (ValueError, "value must have the heads and the length of key", attention,
     {"value": K[:, :, 1:]}),
    (ValueError, "query has 4 heads and key 2; enable_gqa=True", attention, {"enable_gqa": False}),
    (ValueError, "multiple of the 2 of key", attention, {"query": torch.ones(2, 3, 5, 8)}),
    (TypeError, "attn_mask must be a tensor, boolean", attention,
     {"attn_mask": torch.ones(5, 6).int()}),
    (ValueError, "attn_mask of shape", attention, {"attn_mask": torch.ones(6, 6)}),
    (ValueError, "attn_mask on meta", attention, {"attn_mask": torch.ones(5, 6, device="meta")}),
    (ValueError, "dropout_p must be between 0 and 1", attention, {"dropout_p": 1.5}),
    (TypeError, "scale must be a number, a tensor", attention, {"scale": "0.1"}),
    (TypeError, "scale must be a floating-point tensor", attention, {"scale": torch.tensor(1)}),
    (ValueError, "scale of shape", attention, {"scale": torch.ones(3)}),
    (ValueError, "alpha must be between 1 and 2", attention, {"alpha": 2.5}),
    (ValueError, "alpha must be between 1 and 2", attention, {"alpha": torch.full((4,), 0.5)}),
    (ValueError, "alpha of shape", attention, {"alpha": torch.full((4, 1, 1), 1.5)}),
    (TypeError, "window must be a pair", attention, {"window": 3}),
    (ValueError, "window must not be negative", attention, {"window": (-1, 2)}),
    (TypeError, "window must hold integers", attention, {"window": (1.5, 2)}),
    (TypeError, "cu_seqlens must be a vector", attention, {"cu_seqlens": torch.tensor([0.0, 5.0])}),
    (ValueError, "cu_seqlens must rise from 0 to", attention, {"cu_seqlens": torch.tensor([0, 5])}),
    (ValueError, "cu_seqlens must rise", attention,
     {"cu_seqlens": (torch.tensor([0, 3, 2, 5]), torch.tensor([0, 3, 4, 6]))}),
    (ValueError, "as many documents of queries as of keys", attention,
     {"cu_seqlens": (torch.tensor([0, 3, 5]), torch.tensor([0, 6]))}),
    (TypeError, "cu_seqlens must be a tensor, or a pair", attention,
     {"cu_seqlens": (torch.tensor([0, 5]),)}),
    (TypeError, "alibi_slopes must be a floating-point tensor", attention, {"alibi_slopes": 0.5}),
    (ValueError, "alibi_slopes of shape", attention, {"alibi_slopes": torch.ones(2)}),
    (TypeError, "query_offset must be an integer", attention, {"query_offset": 0.5}),
    (ValueError, "page_size must be at least 1", ft.KeyPages, PAGES.key, PAGES.value, 0),
    (TypeError, "page_size must be an integer", ft.KeyPages, PAGES.key, PAGES.value, 1.5),
    (ValueError, "value must have the heads", ft.KeyPages, PAGES.key, torch.ones(2, 4, 3)),
    *((ValueError, "key must have the heads, the width, the dtype", PAGES.append, row, row[..., :3])
      for row in (ROW[..., :3], ROW[:1], ROW[None], ROW.double())),
    (ValueError, "value must have the heads, the width", PAGES.append, ROW, ROW),
    (TypeError, "query must be a tensor", PAGES.attend, None),
    (ValueError, "query must have shape", PAGES.attend, ROW[0, 0]),
    (ValueError, "multiple of the 2", PAGES.attend, torch.ones(3, 1, 8)),
    (TypeError, "key must hold floating-point numbers", ft.KeyPages, PAGES.key.long(), PAGES.value),
    (ValueError, "between 1 and 2", PAGES.attend, ROW, {"alpha": 3}),
    (ValueError, "scale of shape", PAGES.attend, PAGES.key, {"scale": torch.ones(5)}),
    (ValueError, "2 or 3 axes", LAYER, INPUT[0, 0], INPUT, INPUT),
    (ValueError, "the width 8", LAYER, INPUT, INPUT[..., :7], INPUT),
    (ValueError, "as many as query", LAYER, INPUT, INPUT[0], INPUT[0]),
    (TypeError, "value must be a tensor", LAYER, INPUT, INPUT, None),
    (ValueError, "key must have the batch axes", LAYER, INPUT, INPUT[:, :2], INPUT[:, :2]),
    (ValueError, "the length of key", LAYER, INPUT, INPUT, INPUT[:2]),
    (ValueError, r"\(7, 7\) or \(6, 7, 7\), got shape \(4,\)", attend, {"attn_mask": X[0]}),
    # a transposed mask has as many entries, and hides other keys
    (ValueError, r"shape \(3, 7\), got shape \(7", attend, {"key_padding_mask": HIDDEN}),
    (ValueError, r"shape \(3, 7\), got shape \(2", attend, {"key_padding_mask": HIDDEN.flatten()}),
    (TypeError, "must be boolean, True where", attend, {"key_padding_mask": HIDDEN.T.long()}),
    (ValueError, "strictly between 1 and 2", ft.SparseAttention, 8, 2,
     {"alpha": 2.0, "learnable": True}),
    (TypeError, "alpha must be a number", ft.SparseAttention, 8, 2,
     {"alpha": "1.5", "learnable": True}),
    (ValueError, r"alpha of shape \(3,\) .* to \(2,\), one for each head", ft.SparseAttention, 8, 2,
     {"alpha": torch.full((3,), 1.5)}),
    (ValueError, "alpha must be between 1 and 2, got 2.5", ft.SparseAttention, 8, 2,
     {"alpha": torch.tensor(2.5)}),
    (TypeError, "window must be a pair", ft.SparseAttention, 8, 2, {"window": 3}),
    (TypeError, "key and value must be .* got value", ft.KeyPages, PAGES.key, PAGES.value.double()),
    (TypeError, "key and value must be .* got key", ft.KeyPages, PAGES.key[0, 0], PAGES.value),
    (TypeError, "dropout_p must be a number", attention, {"dropout_p": "x"}),
    # sets
    (ValueError, "must be 'l2' or 'kl', got 'l1'", F.soft_rank, X, {"regularization": "l1"}),
    *((ValueError, "regularization_strength must be a positive number", *call)
      for x in (0.0, -1.0, float("nan"))
      for call in ((F.soft_sort, X, {"regularization_strength": x}), (F.topk_mask, X, 2, x))),
    (ValueError, r"values must have shape \(…, n\)", F.soft_rank, torch.tensor(1.0)),
    (TypeError, "or a set of fitzpatrick", ft.StructuredLoss, "sparsemap"),
    (ValueError, "target must have the shape of the scores", ft.StructuredLoss(Birkhoff()),
     torch.zeros(2, 3, 3), torch.eye(3)),
    (ValueError, "is not in the domain", ft.StructuredLoss(Permutahedron(3)), X[:1, :3],
     torch.zeros(1, 3)),
]  # fmt: skip
BAD_TIGHTNESSES = [
    (ValueError, "tightness must be 0 or between 1e-12", -0.5),
    (ValueError, "tightness must be 0 or between 1e-12", float("nan")),
    (TypeError, "tightness must be a number, such as 0 ", "1"),
    (TypeError, "tightness must be a number", True),
    (TypeError, "tightness must be a number", torch.ones(1)),
]
TAKERS = [(loss,), (F.fitzpatrick_squared_loss, X, X), (ft.FitzpatrickSparsemaxLoss,)]
TAKERS += [(ft.FitzpatrickLoss, BALL), (setattr, ft.FitzpatrickLoss(BALL), "tightness")]
ERRORS += [
    (kind, message, *taker, *([c] if taker[0] is setattr else [{"tightness": c}]))
    for (kind, message, c), taker in itertools.product(BAD_TIGHTNESSES, TAKERS)
]


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case[1])
def test_errors(case):
    kind, message, function, *given = case
    options = given[-1] if isinstance(given[-1], dict) else {}
    with pytest.raises(kind, match=message) as caught:
        function(*given[: len(given) - bool(options)], **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dim", [1, 2])
def test_bad_proportions_are_named_by_their_place_and_axis(dim):
    x = torch.zeros(2, 3, 3, 4)
    y = torch.full_like(x, 1 / 3)
    y[1, 2, 1, 3] = 0.25  # a row along either axis
    place, entry = {1: ("[1, :, 1, 3]", 2), 2: ("[1, 2, :, 3]", 1)}[dim]
    with pytest.raises(ValueError, match=re.escape(f"{place} it sums to 0.9166")):
        F.logistic_loss(x, y, dim=dim)
    y[1, 2, 1, 3] = -1
    with pytest.raises(ValueError, match=re.escape(f"at target{place} entry {entry} is -1, but")):
        F.logistic_loss(x, y, dim=dim)


@pytest.mark.parametrize("option", ["tightness", "label_smoothing", "temperature", "softcap"])
@pytest.mark.parametrize("kind", [torch.tensor, np.float32, np.array])
def test_numbers_may_be_those_of_any_library(option, kind):
    torch.testing.assert_close(loss(**{option: kind(0.25)}), loss(**{option: 0.25}))


@pytest.mark.parametrize("option", ["tightness", "label_smoothing"])
def test_tensors_that_are_no_numbers(option):
    with pytest.raises(TypeError, match=f"{option} must be a number, got a tensor of shape"):
        loss(**{option: torch.tensor([0.25])})
    with pytest.raises(TypeError, match=f"{option} must be a number, got a tensor on meta"):
        loss(**{option: torch.tensor(0.25, device="meta")})
    with pytest.raises(TypeError, match=f"{option} must not require a gradient") as caught:
        loss(**{option: torch.tensor(0.25, requires_grad=True)})
    assert ("decreases" in str(caught.value)) == (option == "tightness")


@pytest.mark.parametrize("name", [name for name in ft.__all__ if "Fitzpatrick" in name])
def test_a_tightness_that_is_a_parameter(name):
    sizes = (3, 4) if name.startswith("Linear") else (BALL,) * (name == "FitzpatrickLoss")
    with pytest.raises(TypeError, match="tightness must not require a gradient: the loss decr"):
        getattr(ft, name)(*sizes, tightness=torch.nn.Parameter(torch.tensor(0.5)))


def test_a_number_that_is_none_raises_in_a_compiled_function():
    compiled = torch.compile(lambda x, c: loss(x, tightness=c), backend="eager")
    for bad in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="tightness must be 0 or between 1e-12"):
            compiled(X, bad)
