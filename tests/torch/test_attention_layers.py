"""Decoding from pages of keys, the attention module, and its registration with Hugging Face."""

import math

import pytest
import torch
from conftest import TEST_SEED, skip_unless_multiplied
from hypothesis import given as drawn
from hypothesis import strategies as st

from fitzpatrick.torch import KeyPages
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

F64 = torch.float64
# Two ways to the same float64 sums, of scores up to size 100.
CLOSE = {"rtol": 0, "atol": 1e-11}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(47 + TEST_SEED)


def draw(*shape, dtype=F64):
    return torch.randn(shape, dtype=F64).to(dtype)


def walk(*shape):
    """Keys that resemble their neighbors."""
    return (0.2 * draw(*shape)).cumsum(-2)


@pytest.mark.parametrize("keys", [draw, walk], ids=["random", "walk"])
@pytest.mark.parametrize("alpha", [1.1, 1.5, 2.0, "heads"])
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


def test_clusters_are_skipped():
    """One cluster of a hundred is near the query: its page and a first handful are read."""
    centers = draw(100, 16).sign()
    k = (centers[:, None] + 0.05 * draw(100, 64, 16)).reshape(1, 6400, 16)
    v, q = draw(1, 6400, 4), 4 * centers[37].reshape(1, 1, 16)
    output, pages_read = KeyPages(k, v).attend(q)
    torch.testing.assert_close(output, F.entmax_attention(q, k, v), **CLOSE)
    assert int(pages_read) == 4


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


def test_errors_of_pages():
    cache = KeyPages(torch.ones(2, 5, 4), torch.ones(2, 5, 3))
    cases = [
        (ValueError, "page_size must be at least 1", lambda: KeyPages(cache.key, cache.value, 0)),
        (TypeError, "page_size must be an integer", lambda: KeyPages(cache.key, cache.value, 1.5)),
        (ValueError, "value must have the heads", lambda: KeyPages(cache.key, torch.ones(2, 4, 3))),
        (ValueError, "one width", lambda: cache.append(torch.ones(2, 1, 3), torch.ones(2, 1, 3))),
        (
            ValueError,
            "width of the",
            lambda: cache.append(torch.ones(2, 1, 4), torch.ones(2, 1, 4)),
        ),
        (ValueError, "multiple of the 2", lambda: cache.attend(torch.ones(3, 1, 4))),
        (ValueError, "alpha must be above 1", lambda: cache.attend(torch.ones(2, 1, 4), alpha=1)),
        (ValueError, "between 1 and 2", lambda: cache.attend(torch.ones(2, 1, 4), alpha=3)),
        (ValueError, "scale of shape", lambda: cache.attend(cache.key, scale=torch.ones(5))),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message):
            call()
