"""Random calls of attention, and their results by all scores in float64."""

import itertools
import math
import random
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

HIDDEN = torch.finfo(torch.float32).min  # what some models add in place of −∞


def draw(*shape, dtype=torch.float32):
    """Normal numbers, rounded to eighths, so that float32 has their inner products exactly."""
    return (torch.randn(shape, dtype=torch.float64) * 8).round().div(8).to(dtype)


def steps_ahead(n, s, documents, offset):
    """How far each key is ahead of a query, (n, s); NaN in other documents."""
    ahead = torch.full((n, s), math.nan)
    bounds = map(itertools.pairwise, documents or ((0, n), (0, s)))
    for (a, b), (c, d) in zip(*bounds, strict=True):
        ahead[a:b, c:d] = torch.arange(d - c) - torch.arange(b - a)[:, None] - offset
    return ahead


def dense(q, k, v, alpha, scale, bias):
    """The output by all scores, in float64, the scores, and how near to τ those of a query are."""
    q, k, v = (x.double() for x in (q, k, v))
    repeats = q.shape[-3] // k.shape[-3]
    k, v = (x.repeat_interleave(repeats, -3) for x in (k, v))
    z = q @ k.mT * scale + bias
    p = F.entmax(z, alpha, mask=z.detach() != -math.inf)
    with torch.no_grad():
        top, reach = z.amax(-1, keepdim=True), p.amax(-1, keepdim=True) ** (alpha - 1)
        nearness = ((alpha - 1) * (z - top) + reach).abs().nan_to_num(math.inf).amin(-1)
    return p @ v, z.detach(), nearness


class Call(NamedTuple):
    """Arguments of a call: those that have a gradient, others, and what they mean."""

    learned: dict[str, Tensor]
    options: dict[str, Any]
    seen: Tensor  # (L, S): by causality, the window and documents
    distance: Tensor  # (L, S)

    def to(self, device):
        """The call with its tensors on a device."""

        def move(x):
            return type(x)(map(move, x)) if isinstance(x, tuple) else x.to(device)

        learned, options = (
            {k: move(x) if isinstance(x, Tensor) or k == "cu_seqlens" else x for k, x in y.items()}
            for y in (self.learned, self.options)
        )
        return Call(learned, options, self.seen.to(device), self.distance.to(device))

    def attend(self, given, **options):
        return F.entmax_attention(**{**self.options, **given, **options})

    def attend_densely(self, given):
        """The output in float64, the scores, and how near to τ those of a query are."""
        every = {**self.options, **given}
        alpha, scale = every["alpha"], every["scale"]
        if isinstance(alpha, Tensor):
            alpha = alpha.double()[..., None, None]
        if isinstance(scale, Tensor):
            scale = scale.double()[..., None, None]
        bias = torch.zeros_like(self.distance, dtype=torch.float64)
        if (slopes := every.get("alibi_slopes")) is not None:
            bias = bias - slopes.double()[..., None, None] * self.distance
        if (mask := every.get("attn_mask")) is not None:
            hides = mask.dtype == torch.bool
            bias = torch.where(mask, bias, -math.inf) if hides else bias + mask.double()
        bias = torch.where(self.seen, bias, -math.inf)
        return dense(every["query"], every["key"], every["value"], alpha, scale, bias)


def draw_mask(kind, shape, pick):
    """A mask that broadcasts to a shape, with a size of one in any of its axes."""
    *lead, n, s = shape
    some = [pick([1, size]) for size in shape]
    if kind == "padding":
        return torch.arange(s) < torch.randint(0, s + 1, (lead[0], *[1] * len(shape[1:])))
    if kind == "boolean":
        return torch.rand(some) < pick([0.05, 0.5, 0.9])
    if kind == "transposed":
        return (torch.rand(s, n) < 0.1).T
    if kind == "hides queries":
        return torch.rand(*some[:-1], 1) < 0.5
    mask = draw(*some) * pick([0.25, 2])
    mask[torch.rand(some) < 0.3] = -math.inf if kind != "least" else HIDDEN
    mask[..., : pick([0, 1]), :] = -math.inf if kind != "least" else HIDDEN
    mask = mask[(0,) * pick(range(len(lead) + 1))]
    return mask.to(pick([torch.float32, torch.float16, torch.float64])) if kind == "added" else mask


MASKS = ["", "padding", "boolean", "transposed", "hides queries", "added", "least"]


def draw_call(number, longest, widths, alphas, learns_all=False):
    """The call of a number; with a gradient of α, masks and slopes, too, if it ``learns_all``."""
    pick = (chance := random.Random(number)).choice
    kind, alpha = MASKS[number % len(MASKS)], pick(alphas)
    n, s = (chance.randint(1, longest) for _ in range(2))
    batch, key_heads, groups = pick([1, 2]), pick([1, 2]), pick([1, 2, 3])
    heads = key_heads * groups
    width, value_width = pick(widths), pick(widths)
    size = pick([0.1, 1, 1, 4, 20]) / math.sqrt(width)
    learned = {
        "query": draw(heads, batch, n, width).transpose(0, 1),
        "key": draw(batch, key_heads, width, s).mT,
        "value": draw(batch, key_heads, s, value_width).clamp(-1, 1),
    }
    options = {
        "is_causal": pick([True, False]),
        "window": pick([None, None, (0, None), (9, 3), (None, 2), (40, 40)]),
        "query_offset": pick([0, 0, s - n, chance.randint(-5, s)]),
        "enable_gqa": True,
        "scale": pick([size, -size]),
        "alpha": alpha,
    }
    documents = None
    if pick([True, False, False]):
        cuts = ([0, *sorted(chance.randint(0, m) for _ in range(2)), m] for m in (n, s))
        documents = tuple(cuts)
        options["cu_seqlens"] = tuple(map(torch.tensor, documents))
    if pick([True, False]):
        learned["scale"] = size * torch.randn(pick([(heads,), (batch, heads)]))
    others = learned if learns_all else options
    if alpha == "heads":
        others["alpha"] = 1.1 + 0.9 * torch.rand(heads)
    if pick([True, False]):
        others["alibi_slopes"] = torch.rand(pick([(heads,), (batch, heads)])) / 4
    if kind:
        mask = draw_mask(kind, (batch, heads, n, s), pick)
        (options if mask.dtype == torch.bool else others)["attn_mask"] = mask
    ahead = steps_ahead(n, s, documents, options["query_offset"])
    left, right = (math.inf if x is None else x for x in options["window"] or (None, None))
    seen = (-ahead <= left) & (ahead <= (min(right, 0) if options["is_causal"] else right))
    return Call(learned, options, seen, ahead.abs().nan_to_num())


def check_call(call, **options):
    """Raise unless output and gradients are the exact ones, but for rounding in float32."""
    exact = {name: x.double().requires_grad_() for name, x in call.learned.items()}
    expected, z, nearness = call.attend_densely(exact)
    # a rounding of the largest score, and some of weights and values of size one
    size = float(z.abs().where(z > HIDDEN / 4, 0.0).amax())
    rounding = 1e-6 * max(1.0, size / 4)
    upstream = draw(*expected.shape).to(expected.device)
    # rounded scores may be on the other side of τ, where the derivative jumps, or is steep
    alpha = {**call.options, **call.learned}["alpha"]
    is_steep = (alpha[:, None] if isinstance(alpha, Tensor) else torch.tensor(alpha)) > 1.5
    upstream *= ~(is_steep & (nearness < 20 * rounding))[..., None]
    leaves = {name: x.clone().requires_grad_() for name, x in call.learned.items()}
    out = call.attend(leaves, **options)
    assert out.dtype == call.learned["query"].dtype
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=rounding)
    found = torch.autograd.grad(out, [*leaves.values()], upstream)
    gradients = torch.autograd.grad(expected, [*exact.values()], upstream.double())
    for name, one, other in zip(leaves, found, gradients, strict=True):
        # sums of products over up to 200 numbers
        size = max(1.0, float(other.abs().max()))
        assert one.dtype == call.learned[name].dtype
        half = torch.finfo(one.dtype).eps / 2  # a mask, and so its gradient, may be in float16
        torch.testing.assert_close(
            one.double(), other, rtol=half, atol=20 * rounding * size, msg=lambda m, n=name: n + m
        )
    is_dead = (expected == 0).all(-1)
    assert (out[is_dead] == 0).all()
    assert (found[0][is_dead] == 0).all()
