r"""Exact decoding: a few queries against a long cache of keys, of which most are never read.

The keys are in pages. The least and the largest entry of a page's keys bound its scores,
:math:`\langle q, k\rangle \le \sum_e \max(q_e \min_j k_{je}, q_e \max_j k_{je})`. A key has a
weight only if its score is above τ, and τ rises with every key that is added. So pages are read by
falling bound, until the next bound is not above the τ of what was read: then no page that is left
has a key with a weight, and the result is that of all keys.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from . import _arguments as arguments
from . import _entmax as link
from . import _graphs as graphs
from ._attention_call import check_shapes, link_of, prepare
from ._entmax import EntmaxCall
from ._reference import widen
from ._targets import working_dtype

__all__ = ["KeyPages", "PagedAttention"]

# How many pages the first τ is of, on a CPU and on a GPU; then the number doubles.
_FIRST_PAGES = (4, 32)
# The entries of keys and values that are gathered at once.
_MAX_ENTRIES = 2**26


class PagedAttention(NamedTuple):
    """The output of :meth:`KeyPages.attend`, and how much of the cache it took."""

    output: Tensor  # (…, heads, L, D)
    pages_read: Tensor  # (…, heads, L), int64: pages of keys


class KeyPages:
    r"""A cache of keys and values for decoding, in pages that need not all be read.

    :meth:`attend` has the result of :func:`.functional.entmax_attention`, up to rounding, but skips
    pages that have no weight for certain. How many that are depends on the keys: many where those
    of a page resemble each other, as neighbors in a text do, none where keys are independent draws.
    There are no gradients.

    Args:
        key: (…, heads, S, E), copied; S may be 0.
        value: (…, heads, S, D), copied.
        page_size: how many keys a page has.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import KeyPages
        >>> key = torch.arange(1000.0).reshape(1, 1000, 1) / 100  # (heads, S, E)
        >>> cache = KeyPages(key, torch.ones(1, 1000, 3), page_size=10)
        >>> cache.append(torch.zeros(1, 1, 1), torch.zeros(1, 1, 3))
        >>> output, pages_read = cache.attend(torch.ones(1, 1, 1), is_causal=True)
        >>> output.shape, cache, pages_read.item()
        (torch.Size([1, 1, 3]), KeyPages of 1001 keys in 101 pages of 10, 5)
    """

    def __init__(self, key: Tensor, value: Tensor, page_size: int = 64) -> None:
        self.page_size = arguments.as_integer(page_size, "page_size must be an integer")
        if self.page_size < 1:
            raise ValueError(f"page_size must be at least 1, got {self.page_size}")
        _check_pair(key, value)
        self._length = 0
        self._lead = key.shape[:-2]
        pages = self._lead.numel(), 0
        self._key = key.new_empty(*pages, self.page_size, key.shape[-1])  # (heads, pages, page, E)
        self._value = value.new_empty(*pages, self.page_size, value.shape[-1])
        # of each page the highest and the lowest entries, (heads, pages, 2E)
        self._edges = key.new_empty(*pages, 2 * key.shape[-1], dtype=working_dtype(key))
        self.append(key, value)

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"KeyPages of {len(self)} keys in {self.n_pages} pages of {self.page_size}"

    @property
    def n_pages(self) -> int:
        """How many pages there are."""
        return -(-self._length // self.page_size)

    @property
    def key(self) -> Tensor:
        """All keys, (…, heads, S, E), not to be written to."""
        return self._joined(self._key)

    @property
    def value(self) -> Tensor:
        """All values, (…, heads, S, D), not to be written to."""
        return self._joined(self._value)

    def _joined(self, pages: Tensor) -> Tensor:
        rows = pages.flatten(1, 2)[:, : self._length]
        return rows.reshape(*self._lead, *rows.shape[1:])

    @graphs.untraced
    @torch.no_grad()
    def append(self, key: Tensor, value: Tensor) -> None:
        """Add keys (…, heads, n, E) and their values at the end."""
        _check_pair(key, value)
        for name, old, new in (("key", self.key, key), ("value", self.value, value)):
            kinds = [(*x.shape[:-2], x.shape[-1], x.dtype, x.device) for x in (old, new)]
            if kinds[0] != kinds[1]:
                shown = [f"{tuple(x.shape)} in {x.dtype} on {x.device}" for x in (old, new)]
                raise ValueError(
                    f"{name} must have the heads, the width, the dtype and the device of the "
                    f"cache, {shown[0]}, got {shown[1]}"
                )
        start, size = self._length, self.page_size
        end = start + key.shape[-2]
        first, n_pages, room = start // size, -(-end // size), self._key.shape[1]
        if n_pages > room:  # twice as much, so that many small additions cost no more than one
            for name in ("_key", "_value", "_edges"):
                pages = getattr(self, name)
                more = (0, 0) * (pages.ndim - 2) + (0, max(n_pages - room, room))
                setattr(self, name, torch.nn.functional.pad(pages, more))
        for pages, rows in ((self._key, key), (self._value, value)):
            part = pages.flatten(1, 2)[:, start:end]
            part.copy_(rows.reshape(part.shape))
        touched = self._key[:, first:n_pages]
        places = torch.arange(first * size, n_pages * size, device=key.device)
        is_key = (places < end).reshape(-1, size, 1)
        touched = torch.where(is_key, touched, touched[:, :, :1]).to(self._edges.dtype)
        high, low = touched.amax(-2), touched.amin(-2)
        # sums of as many products as the width have this error, in the bounds and in the scores
        error = 2 * (key.shape[-1] + 2) * torch.finfo(high.dtype).eps
        slack = error * torch.maximum(high.abs(), low.abs())
        self._edges[:, first:n_pages] = torch.cat([high + slack, low - slack], -1)
        self._length = end

    @graphs.untraced
    @torch.no_grad()
    def attend(
        self,
        query: Tensor,
        is_causal: bool = False,
        scale: float | Tensor | None = None,
        *,
        alpha: float | Tensor = 1.5,
    ) -> PagedAttention:
        """Attention of the queries to all keys of the cache.

        Args:
            query: (…, heads, L, E); the heads may be several for each head of keys.
            is_causal: True if the queries belong to the last L keys, and see none after their own.
            scale: as in :func:`.functional.entmax_attention`.
            alpha: as there. At 1 all keys have a weight, and every page is read.
        """
        device, dtype = self._key.device, self._edges.dtype
        with torch.autocast(device.type, enabled=False):  # bounds are of exact products
            given = query, self.key, self.value
            t, numbers = prepare(*given, scale=scale, enable_gqa=True, alpha=alpha)
            n, groups = query.shape[-2], t.query.shape[2]
            factor = numbers.scale if t.scale is None else t.scale[..., None, None].to(dtype)
            scaled = (t.query.to(dtype) * factor).flatten(0, 1).flatten(1, 2)
            # what no score of a page exceeds
            signs = torch.cat([scaled.clamp(min=0), scaled.clamp(max=0)], -1)
            bounds = signs @ self._edges[:, : self.n_pages].mT
            heads = torch.arange(len(scaled), device=device).repeat_interleave(groups * n)
            ends = len(self) + is_causal * torch.arange(1 - n, 1, device=device)
            ends = ends.clamp(min=0).repeat(len(scaled) * groups)
            orders = None if t.alpha is None else t.alpha.flatten().repeat_interleave(n)
            rows = scaled.flatten(0, 1), bounds.flatten(0, 1), heads, ends, orders
            output, counts = self._search(*rows, link_of(t, numbers))
        shape = query.shape[:-1]
        output = output.to(query.dtype).reshape(*shape, self._value.shape[-1])
        return PagedAttention(output, counts.reshape(shape))

    def _search(
        self,
        query: Tensor,  # (rows, E), times the scale
        bounds: Tensor,  # (rows, pages)
        heads: Tensor,  # (rows,): of keys
        ends: Tensor,  # (rows,): one after the last key that is seen
        orders: Tensor | None,  # (rows,), unless all have the order of the call
        call: EntmaxCall,
    ) -> tuple[Tensor, Tensor]:
        """Outputs (rows, D), and how many pages each row read; those of the highest bounds."""
        (n_rows, n_pages), size = bounds.shape, self.page_size
        places = torch.arange(n_pages * size, device=query.device).reshape(n_pages, size)
        bounds = bounds.masked_fill(places[:, 0] >= ends[:, None], -math.inf)
        output = query.new_zeros(n_rows, self._value.shape[-1])
        counts = -(-ends // size)
        every = torch.arange(n_rows, device=query.device)
        todo = [(every, min(_FIRST_PAGES[query.is_cuda], n_pages))] if bounds.numel() else []
        while todo:
            rows, count = todo.pop()
            entries = count * size * (self._key.shape[-1] + self._value.shape[-1])
            most = max(1, _MAX_ENTRIES // entries)
            if len(rows) > most:
                todo += [(part, count) for part in torch.split(rows, most)]
                continue
            # ties may come in another order next time, so that nothing is kept
            pages = bounds[rows].topk(count).indices
            keys = widen(self._key[heads[rows, None], pages].flatten(1, 2))
            is_hidden = places[pages].flatten(1) >= ends[rows, None]
            scores = (keys @ query[rows, :, None])[..., 0].masked_fill(is_hidden, -math.inf)
            order = None if orders is None else orders[rows]
            weights = link._solve(scores, order, scores != -math.inf, call)
            beta = call.alpha - 1 if order is None else order.to(scores.dtype) - 1
            top, reach = scores.amax(1), weights.amax(1) ** beta / beta
            tau = top - reach - 16 * torch.finfo(scores.dtype).eps * (top.abs() + reach)
            # NaN, which topk takes for the largest, rules no page out: neither as a bound nor as τ
            n_needed = (~(bounds[rows] <= tau[:, None])).sum(1)
            done, left = (x.nonzero()[:, 0] for x in (n_needed <= count, n_needed > count))
            if len(left):
                # kernels are compiled for few widths
                limit = n_pages if query.is_cuda else int(n_needed.amax())
                todo.append((rows[left], min(2 * count, limit)))
            rows, pages, weights = rows[done], pages[done], weights[done, :, None]
            values = widen(self._value[heads[rows, None], pages].flatten(1, 2))
            # values without a weight may be anything
            output[rows] = (weights.mT @ values.masked_fill(weights == 0, 0))[:, 0]
            counts[rows] = counts[rows].clamp(max=count)
        return output, counts


def _check_pair(key: Tensor, value: Tensor) -> None:
    for name, x in (("key", key), ("value", value)):
        arguments.check_dense(x, name, "numbers")
        if x.ndim < 2 or x.dtype != key.dtype:
            raise TypeError(
                f"key and value must be (…, heads, length, width) and have one dtype, got {name} "
                f"{tuple(x.shape)} in {x.dtype} with a key in {key.dtype}"
            )
    check_shapes(key, key, value, False)
