"""Decoding from pages of keys, the attention module, and its registration with Hugging Face."""

import math
import sys
from types import SimpleNamespace

import pytest
import torch
from conftest import assert_compiles, skip_unless_multiplied
from hypothesis import given as drawn
from hypothesis import strategies as st

from fitzpatrick.torch import KeyPages, SparseAttention, register_huggingface
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

F64 = torch.float64
# Two ways to the same float64 sums, of scores up to size 100.
CLOSE = {"rtol": 0, "atol": 1e-11}


def draw(*shape, dtype=F64):
    return torch.randn(shape, dtype=F64).to(dtype)


def walk(*shape):
    """Keys that resemble their neighbors."""
    return (0.2 * draw(*shape)).cumsum(-2)


@pytest.mark.parametrize("keys", [draw, walk], ids=["random", "walk"])
@pytest.mark.parametrize("alpha", [1.0, 1.1, 1.5, 2.0, "heads"])
def test_pages_have_the_result_of_all_keys(keys, alpha):
    alpha = torch.tensor([1.4, 1.5, 1.7, 2.0], dtype=F64) if alpha == "heads" else alpha
    q, k, v = 2 * draw(2, 4, 3, 8), keys(2, 2, 700, 8), draw(2, 2, 700, 5)
    cache = KeyPages(k[:, :, :5], v[:, :, :5], page_size=16)
    for first, last in ((5, 6), (6, 6), (6, 130), (130, 699), (699, 700)):
        cache.append(k[:, :, first:last], v[:, :, first:last])
    assert len(cache) == 700
    assert cache.n_pages == 44
    assert torch.equal(cache.key, k)
    assert torch.equal(cache.value, v)
    for is_causal in (False, True):
        options = {"is_causal": is_causal, "query_offset": 697, "enable_gqa": True}
        expected = F.entmax_attention(q, k, v, alpha=alpha, scale=0.5, **options)
        output, pages_read = cache.attend(q, is_causal, 0.5, alpha=alpha)
        torch.testing.assert_close(output, expected, **CLOSE)
        assert pages_read.shape == (2, 4, 3)
        assert (pages_read >= 1).all()
        assert (pages_read <= 44).all()
    if keys is walk and not (
        isinstance(alpha, float) and alpha < 1.5
    ):  # nearly softmax, and with weights in many pages
        assert pages_read.double().mean() < 22


@drawn(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 9), st.booleans())
def test_pages_of_adversarial_keys(number, n_keys, page_size, is_tied):
    """Ties, scores on the edge of the support, bounds that no key attains, keys of any size."""
    generator = torch.Generator().manual_seed(number)
    shape = (1, n_keys, 2)
    k = torch.randint(-2, 3, shape, generator=generator).double()
    if not is_tied:
        k = k * 10 ** (3 * torch.rand(shape, generator=generator, dtype=F64) - 2)
    v, q = torch.eye(n_keys, dtype=F64)[None], torch.tensor([[[1.0, -1.0], [0.0, 0.5]]], dtype=F64)
    cache = KeyPages(k, v, page_size)
    for alpha in (1.3, 1.5, 2.0):
        weights, pages_read = cache.attend(q, scale=1.0, alpha=alpha)
        expected = F.entmax_attention(q, k, v, scale=1.0, alpha=alpha)
        torch.testing.assert_close(weights, expected, rtol=0, atol=1e-12)
        # every page with a weight has been read
        live = torch.nn.functional.pad(expected, (0, -n_keys % page_size)) > 0
        live_pages = live.unflatten(-1, (-1, page_size)).any(-1).sum(-1)
        assert (pages_read >= live_pages).all()


def test_pages_do_not_heed_autocast():
    """Neither bounds nor scores are of half precision, which would skip pages with a weight."""
    k, v, q = walk(1, 500, 8).float(), draw(1, 500, 4).float(), draw(1, 2, 8).float()
    cache = KeyPages(k, v, 8)
    expected = cache.attend(q)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = cache.attend(q)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_pages_in_other_shapes_and_dtypes():
    skip_unless_multiplied(torch.bfloat16)
    q, k, v = (draw(n, 8, dtype=torch.bfloat16) for n in (2, 90, 90))
    output, pages_read = KeyPages(k, v, 8).attend(q)
    assert output.dtype == torch.bfloat16
    assert pages_read.shape == (2,)
    expected = F.entmax_attention(q.double(), k.double(), v.double())
    half = torch.finfo(torch.bfloat16).eps / 2
    torch.testing.assert_close(output.double(), expected, rtol=half, atol=1e-6)
    scale = torch.tensor(-0.3)  # the largest score belongs to the least product
    q, k, v = (x.float() for x in (q, k, v))
    found = KeyPages(k, v, 8).attend(q, scale=scale).output
    torch.testing.assert_close(found, F.entmax_attention(q, k, v, scale=scale), rtol=0, atol=1e-6)
    q, k, v = draw(1, 3, 8), draw(1, 2, 8), draw(1, 2, 4)
    first, *others = KeyPages(k, v).attend(q, is_causal=True).output[0]
    assert (first == 0).all()  # three queries, two keys: the first query is before all of them
    expected = F.entmax_attention(q, k, v, is_causal=True, query_offset=-1)[0]
    torch.testing.assert_close(torch.stack([first, *others]), expected, **CLOSE)
    empty = KeyPages(k[:, :0], v[:, :0])
    assert (empty.attend(q).output == 0).all()
    assert math.isnan(KeyPages(k * math.nan, v).attend(q).output[0, 0, 0])
    assert repr(empty) == "KeyPages of 0 keys in 0 pages of 64"


@pytest.mark.parametrize("most", [1, 1000])
def test_pages_are_gathered_for_a_few_queries_at_once(monkeypatch, most):
    q, k, v = draw(2, 7, 8), walk(2, 300, 8), draw(2, 300, 3)
    cache = KeyPages(k, v, 8)
    expected = cache.attend(q, is_causal=True)
    monkeypatch.setattr("fitzpatrick.torch._pages._MAX_ENTRIES", most)
    found = cache.attend(q, is_causal=True)
    torch.testing.assert_close(found.output, expected.output, **CLOSE)


def test_pages_in_a_compiled_step():
    k, v = walk(2, 50, 8), draw(2, 50, 3)
    cache = KeyPages(k[:, :40], v[:, :40], 4)

    @torch.compile(backend="eager")
    def step(q, k, v):
        cache.append(k, v)
        return 2 * cache.attend(q).output

    q = draw(2, 1, 8)
    found = step(q, k[:, 40:], v[:, 40:])
    torch.testing.assert_close(found, 2 * F.entmax_attention(q, k, v), **CLOSE)


def test_every_page_is_read_at_order_one():
    """Also if that is the order of one head alone."""
    q, k, v = draw(2, 1, 8), walk(2, 50, 8), draw(2, 50, 3)
    alpha = torch.tensor([1.0, 2.0], dtype=F64)
    output, pages_read = KeyPages(k, v, 2).attend(5 * q, alpha=alpha)
    torch.testing.assert_close(output, F.entmax_attention(5 * q, k, v, alpha=alpha), **CLOSE)
    assert pages_read[0] == 25 > pages_read[1]


def test_pages_without_a_bound_are_read():
    """The bound of a page is NaN if a key has infinite entries or NaN, even one that is hidden."""
    v = torch.arange(12, dtype=F64).reshape(1, 12, 1)
    q = torch.ones(1, 2, 2, dtype=F64)
    # a key in each of four pages, all keys of the first five, all keys
    for places in ([1, 5, 7, 9], list(range(10)), list(range(12))):
        k = torch.zeros(1, 12, 2, dtype=F64)
        k[0, :, 0] = torch.linspace(0, 0.1, 12)
        k[0, places, 1] = -math.inf
        for alpha in (1.3, 1.5, 2.0):
            expected = F.entmax_attention(q, k, v, scale=1.0, alpha=alpha)
            assert expected.isfinite().all()
            found = KeyPages(k, v, 2).attend(q, scale=1.0, alpha=alpha).output
            torch.testing.assert_close(found, expected, **CLOSE)
    k = torch.linspace(0, 0.1, 12, dtype=F64).reshape(1, 12, 1).clone()
    k[0, 11] = math.nan
    expected = F.entmax_attention(q[..., :1], k, v, is_causal=True, query_offset=10, scale=1.0)
    assert expected.isnan().flatten().tolist() == [False, True]
    found = KeyPages(k, v, 2).attend(q[..., :1], True, 1.0).output
    torch.testing.assert_close(found, expected, equal_nan=True, **CLOSE)


@pytest.mark.parametrize(("batch", "heads", "n"), [(0, 2, 3), (2, 2, 0), (0, 2, 0), (2, 0, 3)])
def test_pages_for_nothing(batch, heads, n):
    """Without a batch, a head or a query."""
    cache = KeyPages(torch.ones(batch, heads, 5, 8), torch.ones(batch, heads, 5, 3), 2)
    cache.append(torch.ones(batch, heads, 2, 8), torch.ones(batch, heads, 2, 3))
    assert cache.key.shape == (batch, heads, 7, 8)
    assert cache.value.shape == (batch, heads, 7, 3)
    for alpha in (1.5, torch.full((2 * heads,), 1.5)):
        q = torch.ones(batch, 2 * heads, n, 8)
        output, pages_read = cache.attend(q, is_causal=True, alpha=alpha)
        assert output.shape == (batch, 2 * heads, n, 3)
        assert pages_read.shape == (batch, 2 * heads, n)


OPTIONS = [
    {},
    {"bias": False, "batch_first": True},
    {"kdim": 5, "vdim": 7},
    {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
]


def pair_of_layers(options, **more):
    """PyTorch's layer with random parameters, and ours with the same."""
    theirs = torch.nn.MultiheadAttention(8, 2, **options, dtype=F64)
    for x in theirs.parameters():
        torch.nn.init.normal_(x)
    ours = SparseAttention(8, 2, **options, dtype=F64, **more)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def draw_inputs(options, batch=3):
    widths = 8, options.get("kdim", 8), options.get("vdim", 8)
    shapes = zip((4, 6, 6), widths, strict=True)
    inputs = [draw(batch, *shape) for shape in shapes]
    return inputs if options.get("batch_first") else [x.transpose(0, 1) for x in inputs]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_at_order_one_the_module_is_pytorchs(options):
    """With its state dict, its masks and its weights."""
    theirs, ours = pair_of_layers(options, alpha=1.0)
    inputs = draw_inputs(options)
    hidden, padding = torch.rand(4, 6) < 0.3, torch.rand(3, 6) < 0.3
    hidden[:, 0] = padding[:, 0] = False
    by_head = torch.where(torch.rand(6, 4, 6) < 0.3, -math.inf, draw(6, 4, 6))
    by_head[..., 0] = 0
    number = torch.zeros(3, 6, dtype=F64).masked_fill(padding, -math.inf)
    for masks in (
        {},
        {"attn_mask": hidden},
        {"key_padding_mask": padding},
        {"attn_mask": hidden, "key_padding_mask": padding},
        {"attn_mask": by_head, "key_padding_mask": number},
        {"attn_mask": by_head, "average_attn_weights": False},
    ):
        expected, expected_weights = theirs(*inputs, **masks)
        out, weights = ours(*inputs, **masks)
        torch.testing.assert_close(out, expected, **CLOSE)
        torch.testing.assert_close(weights, expected_weights, **CLOSE)
        out, weights = ours(*inputs, **masks, need_weights=False)
        torch.testing.assert_close(out, expected, **CLOSE)
        assert weights is None
    expected, _ = ours(*inputs, attn_mask=hidden, key_padding_mask=padding)
    added = torch.zeros(4, 6, dtype=F64).masked_fill(hidden, -math.inf)
    for mask, other in ((added, padding), (hidden, number)):  # PyTorch warns of two kinds
        out, _ = ours(*inputs, attn_mask=mask, key_padding_mask=other)
        torch.testing.assert_close(out, expected, **CLOSE)
    first = 0 if options.get("batch_first") else 1
    single = [x.select(first, 0) for x in inputs]
    for one, other in zip(ours(*single), theirs(*single), strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_module_is_sparse_and_causal(options):
    _, layer = pair_of_layers(options)
    inputs = draw_inputs(options)
    causal = torch.ones(4, 6, dtype=torch.bool).triu(1)
    expected, weights = layer(*inputs, attn_mask=causal)
    assert (weights[..., :6][:, causal] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]), **CLOSE)
    for more in ({}, {"need_weights": False}, {"need_weights": False, "attn_mask": causal}):
        torch.testing.assert_close(layer(*inputs, is_causal=True, **more)[0], expected, **CLOSE)


@pytest.mark.parametrize("window", [(0, 0), (1, None), (None, 1)])
@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_a_window_does_not_hide_added_keys(window, alpha):
    options = OPTIONS[-1]
    _, plain = pair_of_layers(options, alpha=alpha)
    windowed = SparseAttention(8, 2, **options, dtype=F64, alpha=alpha, window=window)
    windowed.load_state_dict(plain.state_dict())
    inputs = draw_inputs(options)
    ahead = torch.arange(6) - torch.arange(4)[:, None]
    left, right = (math.inf if x is None else x for x in window)
    far = (-ahead > left) | (ahead > right)
    for is_causal in (False, True):
        hidden = far | (ahead > 0) if is_causal else far
        expected, expected_weights = plain(*inputs, attn_mask=hidden)
        out, weights = windowed(*inputs, is_causal=is_causal)
        torch.testing.assert_close(out, expected, **CLOSE)
        torch.testing.assert_close(weights, expected_weights, **CLOSE)
        assert alpha > 1 or (weights[..., 6:] > 0).all()
        out, _ = windowed(*inputs, is_causal=is_causal, need_weights=False)
        torch.testing.assert_close(out, expected, **CLOSE)


@pytest.mark.parametrize("sizes", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
@pytest.mark.parametrize("alpha", [1.0, 1.5, torch.tensor([1.2, 1.7])], ids=["1", "1.5", "heads"])
def test_the_module_of_empty_inputs(sizes, alpha):
    """An empty batch, no queries, or no keys, without which only the bias is left."""
    n, length, n_keys = sizes
    layer = SparseAttention(8, 2, batch_first=True, alpha=alpha)
    torch.nn.init.ones_(layer.out_proj.bias)
    query, key = torch.ones(n, length, 8), torch.ones(n, n_keys, 8)
    for masks in ({}, {"is_causal": True}, {"key_padding_mask": key[..., 0] < 0}):
        out, weights = layer(query, key, key, **masks)
        assert out.shape == (n, length, 8)
        assert weights.shape == (n, length, n_keys)
        assert (out == 1).all()
        assert torch.equal(layer(query, key, key, need_weights=False, **masks)[0], out)


def test_every_head_learns_its_order():
    layer = SparseAttention(8, 2, learnable=True, dropout=0.3, window=(2, 1), batch_first=True)
    x = draw(2, 9, 8, dtype=torch.float32)
    layer(x, x, x, need_weights=False)[0].square().sum().backward()
    (order,) = [p for name, p in layer.named_parameters() if name == "entmax.logit_alpha"]
    assert order.shape == (2,)
    assert (order.grad != 0).all()
    missing = layer.load_state_dict(
        torch.nn.MultiheadAttention(8, 2).state_dict(), strict=False
    ).missing_keys
    assert missing == ["entmax.logit_alpha"]
    layer.eval()
    out = layer(x, x, x, need_weights=False)[0]
    assert torch.equal(out, layer(x, x, x, need_weights=False)[0])  # nothing is dropped
    _, weights = layer(x, x, x)
    far = (torch.arange(9)[:, None] - torch.arange(9) > 2) | torch.ones(9, 9).triu(2).bool()
    assert (weights[:, far] == 0).all()
    assert SparseAttention(8, 2, alpha=torch.tensor([1.2, 1.8])).alpha.tolist() == pytest.approx(
        [1.2, 1.8]
    )
    assert repr(layer).startswith("SparseAttention(\n  embed_dim=8, num_heads=2")


def test_an_encoder_layer_of_pytorchs_stays_sparse():
    """It has a fast path for inference that computes a softmax of the layer's parameters."""
    encoder = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, dtype=F64)
    encoder.self_attn = SparseAttention(8, 2, batch_first=True, dtype=F64)
    torch.nn.init.normal_(encoder.self_attn.in_proj_weight)
    x = draw(2, 5, 8)
    trained = encoder(x)
    encoder.eval()
    with torch.no_grad():
        torch.testing.assert_close(encoder(x), trained.detach(), **CLOSE)


@pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype")
def test_an_encoder_of_pytorchs_that_makes_nested_tensors():
    """It decides that when it is built, from the layer that is there then."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 1).eval()
    encoder.layers[0].self_attn = SparseAttention(8, 2, batch_first=True)
    x, padding = torch.ones(2, 5, 8), torch.arange(5) >= torch.tensor([[5], [3]])
    with torch.no_grad():
        with pytest.raises(TypeError, match="if its use_nested_tensor is False"):
            encoder(x, src_key_padding_mask=padding)
        encoder.use_nested_tensor = False
        assert encoder(x, src_key_padding_mask=padding).shape == x.shape
    nested = torch.nested.nested_tensor([x[0]])
    with pytest.raises(TypeError, match="query must be a dense tensor, got a nested one"):
        F.entmax_attention(nested, nested, nested)


def test_parameters_are_made_and_drawn_as_pytorchs():
    """On the meta device, and anew."""
    layers = []
    for kind in (torch.nn.MultiheadAttention, SparseAttention):
        torch.manual_seed(0)
        layers.append(kind(8, 2, add_bias_kv=True))
        layers[-1]._reset_parameters()
    theirs, ours = (layer.state_dict() for layer in layers)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    with torch.device("meta"):
        layer = SparseAttention(8, 2, learnable=True)
    assert all(x.is_meta for x in layer.parameters())


def test_the_module_compiles():
    layer = SparseAttention(8, 2, learnable=True, batch_first=True)
    x, learned = draw(2, 6, 8, dtype=torch.float32), [layer.entmax.logit_alpha]
    for need in (False, True):
        attend = lambda x, need=need: layer(x, x, x, need_weights=need)[0]  # noqa: E731
        assert_compiles(attend, x, learned=learned, rtol=0, atol=1e-6)


class Registry(dict):
    """What ``transformers`` keeps its attention and mask functions in."""

    def register(self, name, function):
        self[name] = function


def test_registration_with_huggingface(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match="needs the package transformers"):
        register_huggingface()
    attention, masks, sdpa_mask = Registry(), Registry(), object()
    stand_in = SimpleNamespace(AttentionInterface=attention)
    monkeypatch.setitem(sys.modules, "transformers", stand_in)
    monkeypatch.setitem(sys.modules, "transformers.masking_utils", None)
    register_huggingface("sparse", alpha=2.0)
    assert masks == {}
    masking = SimpleNamespace(AttentionMaskInterface=masks, sdpa_mask=sdpa_mask)
    monkeypatch.setitem(sys.modules, "transformers.masking_utils", masking)
    register_huggingface()
    assert masks == {"entmax": sdpa_mask}
    q, k, v = draw(2, 4, 5, 8), draw(2, 2, 7, 8), draw(2, 2, 7, 6)
    module = torch.nn.Module()
    module.is_causal, module.num_key_value_groups = True, 2
    for name, alpha in (("entmax", 1.5), ("sparse", 2.0)):
        function, options = attention[name], {"alpha": alpha, "enable_gqa": True}
        # the first five tokens of a static cache, the last one alone, all of them with a mask
        out, weights = function(module, q, k, v, None, scaling=0.3, dropout=0.0)
        expected = F.entmax_attention(q, k, v, scale=0.3, is_causal=True, **options)
        assert torch.equal(out, expected.transpose(1, 2))
        assert weights is None
        out, weights = function(module, q[:, :, -1:], k, v, None, output_attentions=True)
        expected = F.entmax_attention(q[:, :, -1:], k, v, **options)
        torch.testing.assert_close(out, expected.transpose(1, 2), **CLOSE)
        assert weights.shape == (2, 4, 1, 7)
        mask = torch.rand(2, 1, 5, 9) > 0.4
        out, _ = function(module, q, k, v, mask, is_causal=False)
        expected = F.entmax_attention(q, k, v, mask[..., :7], **options)
        assert torch.equal(out, expected.transpose(1, 2))
        bias = draw(1, 4, 5, 9)
        out, _ = function(module, q, k, v, mask, position_bias=bias)
        both = torch.where(mask, bias, -math.inf)[..., :7]
        expected = F.entmax_attention(q, k, v, both, **options)
        torch.testing.assert_close(out, expected.transpose(1, 2), **CLOSE)
        out, _ = function(module, q, k, v, None, position_bias=bias)
        expected = F.entmax_attention(q, k, v, bias[..., :7], is_causal=True, **options)
        assert torch.equal(out, expected.transpose(1, 2))
        for name in ("softcap", "s_aux", "sinks"):
            with pytest.raises(NotImplementedError, match=f"no {name}"):
                function(module, q, k, v, None, **{name: 30.0})


def test_weights_are_those_after_dropout():
    """As in MultiheadAttention: they make the output, and are 0 or doubled at p = ½."""
    layer = SparseAttention(8, 1, dropout=0.5, batch_first=True, alpha=1.0).double()
    x = torch.randn(3, 6, 8, dtype=torch.float64)
    out, weights = layer(x, x, x)
    _, before = layer.eval()(x, x, x)
    is_dropped = weights == 0
    assert is_dropped.any()
    torch.testing.assert_close(weights, torch.where(is_dropped, 0.0, 2 * before), **CLOSE)
    values = layer._project(x, x, x)[2][:, 0]
    torch.testing.assert_close(out, layer.out_proj(weights @ values), **CLOSE)
    assert "alpha=1" in repr(layer)
