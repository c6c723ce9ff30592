"""The Triton kernels of attention, by the interpreter where there is no GPU, against the blocks."""

import inspect
import math

import attention_calls
import pytest
import torch
from attention_calls import check_call, draw_call
from conftest import TEST_SEED, assert_compiles
from torch.utils._python_dispatch import TorchDispatchMode

pytest.importorskip("triton", reason="the kernels need the package triton")
from fitzpatrick.engines.triton import attention_launch, launch
from fitzpatrick.engines.triton.attention_launch import fused_forward
from fitzpatrick.engines.triton.plan import Plan
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit
from fitzpatrick.torch._attention_call import prepare
from fitzpatrick.torch._entmax_attention import as_fused, is_roomy

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def draw(*shape, dtype=torch.float32):
    return attention_calls.draw(*shape, dtype=dtype).to(DEVICE)


@pytest.mark.parametrize("number", range(28))
def test_kernels_agree_with_dense_weights(number):
    call = draw_call(number + 1000 * TEST_SEED, 140, [16, 40, 64, 96, 128], [1.5, 2.0])
    check_call(call.to(DEVICE), engine="triton")


def value_and_gradients(given, weights, **options):
    leaves = [x.clone().requires_grad_() for x in given]
    if isinstance(options.get("scale"), torch.Tensor):
        leaves += [options["scale"].to(given[0].dtype).requires_grad_()]
        options["scale"] = leaves[3]
    out = F.entmax_attention(*leaves[:3], enable_gqa=True, **options)
    return [out.detach(), *torch.autograd.grad(out, leaves, weights)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scale", [0.25, 0.0])
def test_kernels_in_half_precision(dtype, scale):
    if dtype == torch.bfloat16 and DEVICE == "cpu":
        pytest.skip("Triton's interpreter multiplies the bits of bfloat16 as integers")
    q, k, v = (draw(*shape, dtype=dtype) for shape in ((1, 40, 32), (1, 70, 32), (1, 70, 16)))
    weights = draw(1, 40, 16, dtype=dtype)
    # what a query sees that sees none of these is their mean
    mask = torch.zeros(40, 70).index_fill(0, torch.arange(5), torch.finfo(torch.float32).min)
    options = {"attn_mask": mask.to(DEVICE), "scale": torch.tensor([scale], device=DEVICE)}
    exact = value_and_gradients([x.double() for x in (q, k, v)], weights.double(), **options)
    found = value_and_gradients([q, k, v], weights, engine="triton", **options)
    for one, other in zip(found, exact, strict=True):
        assert one.dtype == dtype
        # weights and gradients of scores are rounded before their products, and these once more;
        # the scale's gradient is the sum of those of 40 queries
        n_parts = 40 if other.numel() == 1 else 1
        bound = 4 * torch.finfo(dtype).eps * n_parts * max(1.0, float(other.abs().max()))
        torch.testing.assert_close(one.double(), other, rtol=0, atol=bound)


@pytest.mark.parametrize("form", ["cut", "transposed", "column", "row", "expanded"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_masks_of_any_strides(form, dtype):
    given, weights = [draw(3, n, 16) for n in (70, 131, 131)], draw(3, 70, 16)
    whole = torch.rand(3, 71, 132) < 0.7
    whole = (whole if dtype == torch.bool else torch.randn(whole.shape)).to(DEVICE)
    mask = {
        "cut": whole[:, 1:, 1:],
        "transposed": whole.mT.contiguous().mT[:, :70, :131],
        "column": whole[:, 1:, 3:4],
        "row": whole[1, 1:2, 1:],
        "expanded": whole[:1, 1:, 1:].expand(3, 70, 131),
    }[form]
    exact = value_and_gradients([x.double() for x in given], weights.double(), attn_mask=mask)
    found = value_and_gradients(given, weights, engine="triton", attn_mask=mask)
    for one, other in zip(found, exact, strict=True):
        size = max(1.0, float(other.abs().max()))
        torch.testing.assert_close(one.double(), other, rtol=0, atol=2e-5 * size)


def test_windows_that_begin_within_a_block():
    given, weights = [draw(1, 130, 16) for _ in range(3)], draw(1, 130, 16)
    options = {"window": (0, None)}
    exact = value_and_gradients([x.double() for x in given], weights.double(), **options)
    found = value_and_gradients(given, weights, engine="triton", **options)
    for one, other in zip(found, exact, strict=True):
        # sums of products over up to 130 numbers
        size = max(1.0, float(other.abs().max()))
        torch.testing.assert_close(one.double(), other, rtol=0, atol=2e-5 * size)


@pytest.mark.parametrize("engine", ["reference", "triton"])
def test_large_scores_and_queries_that_see_nothing(engine):
    k = torch.tensor([10000.0, 9999.5, 9999.0, -10000.0, 0.0], device=DEVICE)[None, :, None]
    q = torch.tensor([1.0, -1.0, 1.0], device=DEVICE)[None, :, None]
    options = {"scale": 1.0, "query_offset": -1, "is_causal": True}
    v, weights = draw(1, 5, 16), draw(1, 3, 16)
    found = value_and_gradients([q, k, v], weights, engine=engine, **options)
    exact = value_and_gradients([x.double() for x in (q, k, v)], weights.double(), **options)
    assert (found[0][0, 0] == 0).all()
    assert (found[1][0, 0] == 0).all()
    # the gradient in a query is a sum of keys of size 1e4, with weights that sum to zero
    for one, other, size in zip(found, exact, (1.0, 1e4, 1.0, 1.0), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-6, atol=2e-6 * size)


@pytest.mark.parametrize("alpha", [1.5, 2.0])
@pytest.mark.parametrize("size", [1e3, 1e5, 1e20])
def test_half_precision_beyond_the_digits_of_scores(size, alpha):
    """Single precision has no number between the largest of them and that less one."""
    k = draw(1, 70, 16, dtype=torch.float16).index_fill(1, torch.tensor(66, device=DEVICE), 60.0)
    v = draw(1, 70, 16, dtype=torch.float16)
    q = torch.full_like(k[:, :3], 60.0)
    found = F.entmax_attention(q, k, v, scale=size, alpha=alpha, engine="triton")
    torch.testing.assert_close(found, v[:, 66:67].expand(found.shape), rtol=0, atol=0)


@pytest.mark.parametrize("alpha", [1.5, 2.0])
@pytest.mark.parametrize("order", ["rising", "falling", "equal", "two levels", "crowd", "shelf"])
def test_orders_of_keys_that_are_misleading(order, alpha):
    """Guesses of τ come from the keys seen so far, and leave keys out that lie far below."""
    n = 640
    t = torch.linspace(0, 3, n)
    scores = {
        "rising": t,
        "falling": t.flip(0),
        "equal": torch.zeros(n),
        "two levels": torch.where(torch.arange(n) % 2 == 0, 0.25, 0.0),
        # α = 2 guesses too high after 64 equal keys, by more than the margin above the key of 0.08
        "crowd": torch.full((n,), -9.0).index_put(
            (torch.tensor([0, *range(64, 128), 256]),), torch.tensor([0.5, *[-0.1] * 64, 0.08])
        ),
        # and by 0.16 here, where the keys of 0.09 are not noted, and the sums do not fall below
        "shelf": torch.tensor([-9, 0.02, 0.27, 0.02, -9, 0.09, -9]).repeat_interleave(
            torch.tensor([2, 61, 2, 1, 58, 16, n - 140])
        ),
    }[order]
    k, v = scores[None, :, None].expand(5, n, 1).to(DEVICE), draw(5, n, 16)
    # each in a head of its own: the queries of a block read the same keys
    q = torch.tensor([1.0, 0.125, 8.0, -1.0, 40.0], device=DEVICE)[:, None, None]
    exact = F.entmax_attention(q.double(), k.double(), v.double(), scale=1.0, alpha=alpha)
    found = F.entmax_attention(q, k, v, scale=1.0, alpha=alpha, engine="triton")
    # scores up to 120, and sums of weights of hundreds of keys
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=5e-5 * float(v.abs().max()))


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_more_blocks_than_a_query_notes(alpha):
    """After that many pairs of blocks the queries mark them, and both kinds have weights here."""
    n = 128 * attention_launch.MAX_NOTED + 700
    scores = torch.stack([torch.linspace(0, x, n) for x in (0.02, -0.02, 1.0)])
    k, v = scores[:, :, None].to(DEVICE), draw(3, n, 16)
    q = torch.tensor([1.0, 0.5, 4.0], device=DEVICE)[None, :, None].expand(3, 3, 1)
    exact = F.entmax_attention(q.double(), k.double(), v.double(), scale=1.0, alpha=alpha)
    found = F.entmax_attention(q, k, v, scale=1.0, alpha=alpha, engine="triton")
    # sums of n weights, each rounded
    bound = 4 * n * torch.finfo(torch.float32).eps * float(exact.abs().max())
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=bound)


@pytest.mark.parametrize("alpha", [1.5, 2.0])
@pytest.mark.parametrize(
    ("n", "height"), [(128, 0.55), (192, 0.6), (64, 0.45), (128, 0.2), (128, 0.1)]
)
def test_a_key_above_many(n, height, alpha, monkeypatch):
    """A sum that is below one says nothing about keys just below τ: it is no place to stop.

    The interpreter has no bfloat16, whose tolerance is tested in float16.
    """
    tolerances = attention_launch._TOLERANCES
    monkeypatch.setitem(tolerances, torch.float16, tolerances[torch.bfloat16])
    q, k, v = (torch.zeros(1, rows, 16, dtype=torch.float16) for rows in (1, n, n))
    q[..., 0], k[:, n // 3, 0], v[..., 1] = 1, height, 1
    v[:, n // 3, :2] = torch.tensor([1.0, 0.0])
    given = q.to(DEVICE), k.to(DEVICE), v.to(DEVICE)
    found = F.entmax_attention(*given, scale=2.0, alpha=alpha, engine="triton")
    exact = F.entmax_attention(*(x.double() for x in given), scale=2.0, alpha=alpha)
    bound = torch.finfo(torch.bfloat16).eps
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=bound)


def test_weights_of_the_backward_pass_sum_to_one(monkeypatch):
    """Also where those of the first output are too far from it, by bfloat16's tolerance."""
    tolerances = attention_launch._TOLERANCES
    monkeypatch.setitem(tolerances, torch.float16, tolerances[torch.bfloat16])
    q, k = (torch.zeros(1, n, 16, dtype=torch.float16, device=DEVICE) for n in (1, 64))
    heights, counts = [0.0, 1.91, 0.0, 0.51, 1.23], torch.tensor([3, 1, 39, 7, 14])
    q[..., 0], k[0, :, 0] = 1, torch.tensor(heights).repeat_interleave(counts)
    v = draw(1, 64, 16, dtype=torch.float16).requires_grad_()
    F.entmax_attention(q, k, v, scale=1.0, engine="triton").sum().backward()
    total = float(v.grad[..., 0].double().sum())
    assert abs(total - 1) < torch.finfo(torch.float16).eps


def test_nan_stays_in_its_row():
    q, x = draw(1, 70, 16), draw(1, 70, 16)
    q[0, 3] = math.nan
    out = F.entmax_attention(q, x, x, engine="triton")
    assert out[0, 3].isnan().all()
    assert not out[0, 4:].isnan().any()
    assert not out[0, :3].isnan().any()


def test_kernels_mark_blocks_with_a_weight_alone():
    n = 512
    q = torch.eye(4, device=DEVICE).repeat_interleave(128, 0)[None]  # each looks at its own kind
    tensors, numbers = as_fused(*prepare(q, q.clone(), draw(1, n, 16), scale=20.0))
    found = fused_forward(tensors, numbers)[-1][0, 0, 0].cpu()
    rows, blocks = len(found), 16  # of single precision
    bits = (found[:, :1] >> torch.arange(blocks)) & 1
    kinds = torch.arange(rows)[:, None] // (rows // 4) == torch.arange(blocks) // (blocks // 4)
    assert torch.equal(bits.bool(), kinds)


def test_marks_of_blocks_that_are_too_many_to_note_are_of_no_weight():
    n = 128 * attention_launch.MAX_NOTED + 704  # pairs of blocks rise by less than the margin
    k = torch.linspace(0, 2, n, device=DEVICE)[None, :, None]
    call = as_fused(*prepare(torch.ones_like(k[:, :1]), k, draw(1, n, 16), scale=1.0))
    found = fused_forward(*call)[-1].flatten().cpu()
    bits = (found[:, None] >> torch.arange(32)).flatten()[: n // 32] & 1
    weights = F.entmax(k[..., 0].double(), 1.5).cpu()
    assert torch.equal(bits.bool(), (weights.reshape(-1, 32) > 0).any(1))


def test_second_derivatives_are_those_of_all_scores():
    given = [draw(2, 9, 16).requires_grad_(), *(draw(1, 12, 16).requires_grad_() for _ in range(2))]
    mask, slopes = (torch.rand(9, 12) < 0.7).to(DEVICE), torch.rand(2).to(DEVICE)
    scale = torch.tensor([0.25, 0.5], device=DEVICE).requires_grad_()
    given, found = [*given, scale], []
    for engine in "triton", "reference":
        options = {"is_causal": True, "attn_mask": mask, "alibi_slopes": slopes, "scale": scale}
        out = F.entmax_attention(*given[:3], enable_gqa=True, engine=engine, **options)
        first = torch.autograd.grad(out.square().sum(), given, create_graph=True)
        found.append(torch.autograd.grad(sum(x.square().sum() for x in first), given))
        # the second derivative in one argument alone
        fixed = [x.detach() for x in given[1:3]]
        out = F.entmax_attention(given[0], *fixed, enable_gqa=True, engine=engine)
        first = torch.autograd.grad(out.square().sum(), given[0], create_graph=True)[0]
        found[-1] += torch.autograd.grad(first.square().sum(), given[0])
    for one, other in zip(*found, strict=True):
        # two passes back, each with sums over up to 16 numbers
        size = float(other.abs().max())
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5 * max(size, 1.0))


def test_kernels_compile_in_a_graph():
    given = [draw(2, 70, 16).requires_grad_() for _ in range(3)]
    mask, scale = (torch.rand(70, 70) < 0.7).to(DEVICE), torch.ones(2, device=DEVICE)

    def attend(q, k, v):
        options = {"attn_mask": mask, "is_causal": True, "scale": scale, "engine": "triton"}
        return F.entmax_attention(q, k, v, **options)

    assert_compiles(attend, *given, rtol=0, atol=0)


def test_documents_that_are_not_validated_end_with_the_keys():
    x = draw(1, 40, 16)

    def attend(bounds):
        return F.entmax_attention(x, x, x, cu_seqlens=bounds, engine="triton")

    bounds = [torch.tensor([0, 10, end], device=DEVICE) for end in (40, 90)]
    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(bounds[1]), attend(bounds[0]), rtol=0, atol=0)


def test_kernels_are_the_default_where_a_program_has_their_memory(monkeypatch):
    capabilities = {(7, 5): False, (8, 0): True, (8, 6): False, (8, 9): False, (9, 0): True}
    for capability, is_enough in capabilities.items():
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _, found=capability: found)
        assert inspect.unwrap(is_roomy)(0) == is_enough
    monkeypatch.setattr(torch.version, "hip", "6.0")
    assert not inspect.unwrap(is_roomy)(0)


class Kernel:
    """In place of a kernel of Triton's, and of what that compiles."""

    arg_names = ("x", "n", "o")

    def __init__(self):
        self.n_compiled, self.started = 0, []

    def __getitem__(self, grid):
        def start(*given, **options):
            self.n_compiled += bool(options)
            self.started.append((grid[0], given[1]))
            return self

        return start


@pytest.mark.parametrize(
    ("takes_all_sizes", "hip", "n_compiled"), [(True, None, 3), (True, "6.0", 4), (False, None, 4)]
)
def test_kernels_are_compiled_for_types_and_alignments(
    takes_all_sizes, hip, n_compiled, monkeypatch
):
    """And for sizes, unless one kernel takes them all, which those of AMD's GPUs do not."""
    monkeypatch.setattr(launch, "_LAUNCHES_COMPILED", True)
    monkeypatch.setattr(torch.version, "hip", hip)
    kernel, x = Kernel(), torch.zeros(64)
    plan = Plan(kernel, {"o": 0}, takes_all_sizes=takes_all_sizes)
    cases = [(2, x, 16), (3, x, 16), (4, x, 17), (4, x[1:], 16), (4, x.double(), 16)]
    for programs, tensor, size in cases:
        launch.launch(plan, (programs,), (tensor,), (size,))
    assert kernel.started == [(programs, size) for programs, _, size in cases]
    assert kernel.n_compiled == n_compiled


class Operations(TorchDispatchMode):
    """Counts operations of PyTorch's that compute something, or fill memory."""

    count = 0

    def __torch_dispatch__(self, function, types, given=(), options=None):
        is_empty = function.overloadpacket in (torch.ops.aten.empty, torch.ops.aten.empty_like)
        self.count += function.namespace == "aten" and not (function.is_view or is_empty)
        return function(*given, **(options or {}))


@pytest.mark.parametrize(
    ("options", "most"), [({}, 2), ({"is_causal": True}, 3), ({"window": (9, 3)}, 4)]
)
def test_few_operations_come_before_the_kernels(options, most):
    """Each of them takes a GPU's host as long as a small kernel runs."""
    x = draw(2, 20, 16)
    with Operations() as operations:
        F.entmax_attention(x, x, x, engine="triton", **options)
    assert operations.count <= most


def test_what_kernels_refuse():
    x, number = draw(1, 5, 16), torch.ones(1, device=DEVICE, requires_grad=True)
    cases = [
        ({"attn_mask": number.expand(5, 5)}, "gradient of attn_mask"),
        ({"alibi_slopes": number}, "gradient of alibi_slopes"),
        ({"scale": 0.0}, "a scale of zero"),
        ({"alpha": 1.3}, "alpha other than 1.5 and 2"),
        ({"dropout_p": 0.5}, "dropout_p"),
    ]
    for options, name in cases:
        with pytest.raises(ValueError, match=f'engine="triton" has no {name}'):
            F.entmax_attention(x, x, x, engine="triton", **options)
    with pytest.raises(ValueError, match="has no float64"):
        F.entmax_attention(x.double(), x.double(), x.double(), engine="triton")
    with pytest.raises(ValueError, match="has no empty sequences"):
        F.entmax_attention(x[:, :0], x, x, engine="triton")
    with pytest.raises(ValueError, match="engine must be one of"):
        F.entmax_attention(x, x, x, engine="flash")
    x = draw(1, 5, 129)
    with pytest.raises(ValueError, match="has no single precision with widths above 128"):
        F.entmax_attention(x, x, x, engine="triton")
