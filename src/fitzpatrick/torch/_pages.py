r"""Exact decoding: a few queries against a long cache of keys, of which most are never read.

The keys are in pages. The least and the largest entry of a page's keys bound its scores,
:math:`\langle q, k\rangle \le \sum_e \max(q_e \min_j k_{je}, q_e \max_j k_{je})`. A key has a
weight only if its score is above τ, and τ rises with every key that is added. So pages are read by
falling bound, until the next bound is not above the τ of what was read: then no page that is left
has a key with a weight, and the result is that of all keys.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import _arguments as arguments
from . import _entmax as link
from ._attention_call import check_shapes, link_of, prepare
from ._entmax import EntmaxCall
from ._reference import widen
from ._targets import working_dtype

__all__ = ["KeyPages", "PagedAttention"]

# How many pages the first τ is of, on a CPU and on a GPU; then the number doubles.
_FIRST_PAGES = (4, 32)
# The entries of keys that are gathered at once.
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
        size = arguments.as_integer(page_size, "page_size must be an integer")
        if size < 1:
            raise ValueError(f"page_size must be at least 1, got {size}")
        check_shapes(key, key, value, False)
        self.page_size = size
        self._length = 0
        self._lead = key.shape[:-2]
        *batches, heads, _, _ = [1, *key.shape]
        lead = math.prod(batches), heads
        self._key = key.new_empty(*lead, 0, size, key.shape[-1])  # (B, K, pages, page, E)
        self._value = value.new_empty(*lead, 0, size, value.shape[-1])
        # of each page the highest and the lowest entries, and the largest without their signs
        edges = *lead, 0, 3 * key.shape[-1]
        self._edges = torch.empty(edges, dtype=working_dtype(key), device=key.device)
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
        """All keys, (…, heads, S, E)."""
        return self._joined(self._key)

    @property
    def value(self) -> Tensor:
        """All values, (…, heads, S, D)."""
        return self._joined(self._value)

    def _joined(self, pages: Tensor) -> Tensor:
        rows = pages.flatten(2, 3)[:, :, : self._length]
        return rows.reshape(*self._lead, *rows.shape[2:])

    @torch.no_grad()
    def append(self, key: Tensor, value: Tensor) -> None:
        """Add keys (…, heads, n, E) and their values at the end."""
        check_shapes(self.key, key, value, False)
        if value.shape[-1] != self._value.shape[-1]:
            raise ValueError(
                f"value must have the width of the cache, {self._value.shape[-1]}, got "
                f"{value.shape[-1]}"
            )
        start, n, size = self._length, key.shape[-2], self.page_size
        if n == 0:
            return
        self._length += n
        self._reserve(self.n_pages)
        for pages, rows in ((self._key, key), (self._value, value)):
            part = pages.flatten(2, 3)[:, :, start : start + n]
            part.copy_(rows.reshape(part.shape))
        first = start // size
        touched = self._key[:, :, first : self.n_pages]
        places = torch.arange(first * size, self.n_pages * size, device=key.device)
        is_empty = (places >= self._length).reshape(-1, size, 1)
        low = touched.masked_fill(is_empty, math.inf).amin(-2)
        high = touched.masked_fill(is_empty, -math.inf).amax(-2)
        edges = torch.cat([high, low, torch.maximum(low.abs(), high.abs())], -1)
        self._edges[:, :, first : self.n_pages] = edges

    def _reserve(self, n_pages: int) -> None:
        """Room for this many pages, twice as many as before if they are not enough."""
        room = self._key.shape[2]
        if n_pages <= room:
            return
        for name in ("_key", "_value", "_edges"):
            old = getattr(self, name)
            new = old.new_empty(*old.shape[:2], max(n_pages, 2 * room), *old.shape[3:])
            new[:, :, :room] = old
            setattr(self, name, new)

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
            alpha: above 1, where weights are zeros; otherwise as there.
        """
        n, n_pages = query.shape[-2], self.n_pages
        with torch.autocast(query.device.type, enabled=False):  # bounds are of exact products
            t, numbers = prepare(
                query, self.key, self.value, None, 0.0, is_causal, scale, True,
                alpha=alpha, query_offset=len(self) - n,
            )  # fmt: skip
            dtype, device, heads = working_dtype(query), query.device, t.query.shape[:3].numel()
            orders = [numbers.alpha]
            if t.alpha is not None:  # on a GPU nothing else has looked at them
                orders = [float(order) for order in t.alpha.aminmax()] if heads else []
            if wrong := [order for order in orders if not 1 < order <= 2]:
                raise ValueError(f"alpha must be above 1 and at most 2, got {wrong[0]}")
            factor = numbers.scale if t.scale is None else t.scale[..., None, None].to(dtype)
            scaled = t.query.to(dtype) * factor
            ends = torch.full((n,), len(self), device=device) if t.ends is None else t.ends
            ends = ends.repeat(heads)
            key_heads = torch.arange(self._key.shape[:2].numel(), device=device)
            search = _Search(
                self._key.flatten(0, 1),
                self._value.flatten(0, 1),
                key_heads.repeat_interleave(t.query.shape[2] * n),
                scaled.flatten(0, -2),
                ends,
                None if t.alpha is None else t.alpha.flatten().repeat_interleave(n),
                link_of(t, numbers),
            )
            bounds = self._bounds(scaled.flatten(2, 3)).reshape(heads * n, n_pages)
            firsts = torch.arange(n_pages, device=device) * self.page_size
            output, counts = search.run(bounds.masked_fill(firsts >= ends[:, None], -math.inf))
        shape = query.shape[:-1]
        output = output.to(query.dtype).reshape(*shape, self._value.shape[-1])
        return PagedAttention(output, counts.reshape(shape))

    def _bounds(self, query: Tensor) -> Tensor:
        """What no score of a page exceeds, as it is computed: (B, K, queries, pages)."""
        # sums of as many products as the width have this error, here and in the scores
        error = 2 * (query.shape[-1] + 2) * torch.finfo(query.dtype).eps
        parts = query.clamp(min=0), query.clamp(max=0), error * query.abs()
        bounds: Tensor = torch.cat(parts, -1) @ self._edges[:, :, : self.n_pages].mT
        return bounds


class _Search(NamedTuple):
    """Queries as rows, and what each of them looks for its keys in."""

    key: Tensor  # (heads, pages, page, E)
    value: Tensor  # (heads, pages, page, D)
    heads: Tensor  # (rows,): of keys
    query: Tensor  # (rows, E), times the scale
    ends: Tensor  # (rows,): one after the last key that is seen
    orders: Tensor | None  # (rows,), unless all have the order of the call
    call: EntmaxCall

    def run(self, bounds: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs (rows, D), and how many pages each row read; those of the highest bounds."""
        rows, n_pages = bounds.shape
        output = self.query.new_zeros(rows, self.value.shape[-1])
        counts = -(-self.ends // self.key.shape[2])
        left = torch.arange(rows, device=bounds.device)  # the rows that are not done
        count = min(_FIRST_PAGES[bounds.is_cuda], n_pages)
        while len(left) > 0 and count > 0:
            # ties may come in another order next time, so that nothing is kept
            pages = bounds.topk(count).indices
            scores = self._scores(left, pages)
            orders = None if self.orders is None else self.orders[left]
            weights = link._solve(scores, orders, scores != -math.inf, self.call)
            beta = self.call.alpha - 1 if orders is None else orders.to(scores.dtype) - 1
            top, reach = scores.amax(1), weights.amax(1) ** beta / beta
            tau = top - reach - 16 * torch.finfo(scores.dtype).eps * (top.abs() + reach)
            # NaN, which topk takes for the largest, rules no page out: neither as a bound nor as τ
            n_needed = (~(bounds <= tau[:, None]) & (bounds != -math.inf)).sum(1)
            most = int(n_needed.amax())
            is_left = n_needed > count
            at: Any = ~is_left if most > count else slice(None)
            done = left[at]
            output[done] = self._outputs(done, weights[at], pages[at])
            counts[done] = counts[done].clamp(max=count)
            if most <= count:
                break
            left, bounds = left[is_left], bounds[is_left]
            # kernels are compiled for few widths
            count = min(2 * count, n_pages if bounds.is_cuda else most)
        return output, counts

    def _scores(self, rows: Tensor, pages: Tensor) -> Tensor:
        """Scores of the keys of pages (rows, pages), −∞ of those that are not seen."""
        size = self.key.shape[2]
        products = [
            (keys @ query[..., None])[..., 0]
            for keys, query in self._gathered(self.key, rows, pages, self.query[rows])
        ]
        places = pages[..., None] * size + torch.arange(size, device=pages.device)
        is_hidden = places.flatten(1) >= self.ends[rows, None]
        return torch.cat(products).masked_fill(is_hidden, -math.inf)

    def _outputs(self, rows: Tensor, weights: Tensor, pages: Tensor) -> Tensor:
        """Σpv of rows; values without a weight may be anything."""
        sums = []
        for values, p in self._gathered(self.value, rows, pages, weights):
            values = values.masked_fill(p[..., None] == 0, 0)
            sums.append((p[:, None] @ values)[:, 0])
        return torch.cat(sums)

    def _gathered(
        self, cache: Tensor, rows: Tensor, pages: Tensor, numbers: Tensor
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """What the cache holds at the pages of some rows, and the numbers of these rows."""
        step = max(1, _MAX_ENTRIES // max(1, pages.shape[1] * cache[0, 0].numel()))
        parts = (torch.split(x, step) for x in (self.heads[rows, None], pages, numbers))
        for heads, at, of_rows in zip(*parts, strict=True):
            yield widen(cache[heads, at].flatten(1, 2)), of_rows
