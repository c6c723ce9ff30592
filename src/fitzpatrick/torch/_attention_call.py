"""The arguments of attention: checked, and in the form that its operators take."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from .._validation import check_order
from ..engines.triton.attention_call import Numbers, Tensors
from . import _arguments as arguments
from ._engines import choose_engine
from ._entmax import EntmaxCall

# The regularizers of orders that have kernels or closed forms of their own.
_OMEGAS = {1.0: "logistic", 1.5: "entmax15", 2.0: "sparsemax"}

Window = tuple[int | None, int | None]

# Beyond all keys, for windows and offsets that 32 bits do not hold.
_FAR = 1 << 30


def link_of(t: Tensors, numbers: Numbers) -> EntmaxCall:
    """The link of rows of scores."""
    omega = _OMEGAS.get(numbers.alpha, "")
    engine = choose_engine(None, t.query, omega or "sparsemax")
    return EntmaxCall(omega, numbers.alpha, engine)


def check_shapes(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    """Raise unless queries, keys and values go with one another."""
    given = {"query": query, "key": key, "value": value}
    for name, x in given.items():
        arguments.check_dense(x, name, "numbers")
        if arguments.is_dtensor(x):
            raise TypeError(f"{name} is a DTensor, which attention does not take; pass to_local()")
        if x.ndim < 2:
            raise ValueError(
                f"{name} must have shape (…, heads, length, width), got {tuple(x.shape)}"
            )
        if x.ndim != query.ndim or x.shape[:-3] != query.shape[:-3]:
            raise ValueError(
                f"{name} must have the batch axes of query, whose shape is {tuple(query.shape)}, "
                f"got {tuple(x.shape)}"
            )
        if x.dtype != query.dtype:
            raise TypeError(f"query is {query.dtype} and {name} {x.dtype}; convert one of them")
        arguments.check_device(x, query, name, of="query")
    if key.shape[-1] != query.shape[-1] or key.shape[-1] == 0:
        raise ValueError(
            f"query and key must have one width, not 0, got {query.shape[-1]} and {key.shape[-1]}"
        )
    if value.shape[:-1] != key.shape[:-1]:
        raise ValueError(
            "value must have the heads and the length of key, whose shape is "
            f"{tuple(key.shape)}, got {tuple(value.shape)}"
        )
    heads = [(1, *x.shape)[-3] for x in (query, key)]
    if heads[0] == heads[1]:
        return
    if not enable_gqa:
        raise ValueError(
            f"query has {heads[0]} heads and key {heads[1]}; enable_gqa=True shares heads of keys"
        )
    if heads[1] == 0 or heads[0] % heads[1]:
        raise ValueError(
            f"with enable_gqa the {heads[0]} heads of query must be a multiple of the {heads[1]} "
            "of key"
        )


def _by_head(x: Any, query: Tensor, shape: Sequence[int], name: str) -> Tensor:
    """A tensor with one number for each head (B, K, G)."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor, got {getattr(x, 'dtype', x)!r}")
    arguments.check_device(x, query, name, of="query")
    expanded = arguments.expand_to(x, query.shape[:-2], name, "the batches and heads of query")
    return expanded.reshape(shape[:3])


def _as_mask(mask: Any, query: Tensor, shape: Sequence[int]) -> Tensor:
    """A mask (B, K, G, L, S), with a size of one where it is broadcast."""
    if not isinstance(mask, Tensor) or not (mask.dtype == torch.bool or mask.is_floating_point()):
        raise TypeError(
            "attn_mask must be a tensor, boolean (True where a key is seen) or floating-point "
            f"(added to the scores), got {getattr(mask, 'dtype', type(mask).__name__)}"
        )
    arguments.check_device(mask, query, "attn_mask", of="query")
    full = *query.shape[:-1], shape[-1]
    arguments.expand_to(mask, full, "attn_mask", "the shape of the scores")
    mask = mask[(None,) * (len(full) - mask.ndim)]
    *lead, n, s = mask.shape
    batches, heads = (lead[:-1], lead[-1]) if lead else ([], 1)
    if any(size > 1 for size in batches):
        mask = mask.expand(*query.shape[:-3], heads, n, s)
    grouped = shape[1:3] if heads > 1 else (1, 1)
    grouped_mask: Tensor = mask.reshape(math.prod(mask.shape[:-3]), *grouped, n, s)
    return grouped_mask


def as_window(window: Any, is_causal: bool) -> Window:
    """How many keys a query sees before and after its own place; None where that is no limit."""
    window = (None, None) if window is None else window
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise TypeError(f"window must be a pair (left, right), got {window!r}")
    left, right = (
        None if x is None else arguments.as_integer(x, "window must hold integers or None")
        for x in window
    )
    if (left or 0) < 0 or (right or 0) < 0:
        raise ValueError(f"window must not be negative, got {tuple(window)!r}")
    return left, 0 if is_causal else right


def _as_bounds(bounds: Any, length: int, query: Tensor) -> Tensor:
    """Where documents begin and end; raise unless that covers the sequence."""
    is_integer = isinstance(bounds, Tensor) and bounds.dtype in (torch.int32, torch.int64)
    if not is_integer or bounds.ndim != 1 or bounds.shape[0] < 2:
        raise TypeError(f"cu_seqlens must be a vector of at least two integers, got {bounds!r}")
    arguments.check_device(bounds, query, "cu_seqlens", of="query")
    if arguments.looks_at_values(None, bounds):
        numbers = bounds.tolist()
        if numbers[0] != 0 or numbers[-1] != length or numbers != sorted(numbers):
            raise ValueError(
                "cu_seqlens must rise from 0 to the length of the sequence, "
                f"{length}, got {numbers}"
            )
    checked: Tensor = bounds.long()
    return checked


def spans_of(
    query: Tensor,
    n_keys: int,
    window: Window = (None, None),
    cu_seqlens: Any = None,
    offset: int = 0,
    with_levels: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The first key that each query sees, the end, and the key that it is level with, int32 (L,).

    There are few operations, since each of them takes as long on a GPU as a small kernel.
    """
    n, (left, right) = query.shape[-2], window
    options: Any = {"dtype": torch.int32, "device": query.device}

    def rising(first: int) -> Tensor:
        first = max(-_FAR, min(first, _FAR))
        return torch.arange(first, first + n, **options).clamp_(0, n_keys)

    if cu_seqlens is None:
        starts = torch.zeros(n, **options) if left is None else rising(offset - left)
        ends = torch.full((n,), n_keys, **options) if right is None else rising(offset + right + 1)
        levels = torch.arange(offset, offset + n, **options) if with_levels else None
        return starts, ends, levels
    pair = cu_seqlens if isinstance(cu_seqlens, (tuple, list)) else (cu_seqlens, cu_seqlens)
    if len(pair) != 2:
        raise TypeError("cu_seqlens must be a tensor, or a pair: for queries and for keys")
    of_queries = _as_bounds(pair[0], n, query)
    of_keys = _as_bounds(pair[1], n_keys, query)
    if of_queries.shape != of_keys.shape:
        raise ValueError(
            "cu_seqlens must have as many documents of queries as of keys, got "
            f"{of_queries.shape[0] - 1} and {of_keys.shape[0] - 1}"
        )
    places = torch.arange(n, device=query.device)
    document = torch.searchsorted(of_queries[1:-1], places, right=True)
    # documents on a GPU are not validated, and kernels read where they are told
    of_keys = of_keys.clamp(0, n_keys)
    start, end = of_keys[document], of_keys[1:][document]
    level = places + (of_keys - of_queries)[document] + offset
    first = start if left is None else torch.clamp(level - left, start, end)
    last = end if right is None else torch.clamp(level + right + 1, first, end)
    return first.int(), last.int(), level.int() if with_levels else None


def seen_keys(query: Tensor, n_keys: int, window: Window | None, is_causal: bool) -> Tensor:
    """Which keys a window or causality lets each query see, (L, S)."""
    starts, ends, _ = spans_of(query, n_keys, as_window(window, is_causal))
    places = torch.arange(n_keys, device=query.device)
    return (places >= starts[:, None]) & (places < ends[:, None])


def prepare(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | Tensor | None = None,
    enable_gqa: bool = False,
    alpha: float | Tensor = 1.5,
    window: Window | None = None,
    cu_seqlens: Tensor | tuple[Tensor, Tensor] | None = None,
    alibi_slopes: Tensor | None = None,
    query_offset: int = 0,
) -> tuple[Tensors, Numbers]:
    """The arguments of :func:`entmax_attention`, checked, for the operators."""
    if isinstance(query, Tensor) and arguments.is_autocast(query):  # type: ignore[redundant-expr]
        given: tuple[Any, ...] = query, key, value
        query, key, value = (
            x.to(arguments.product_dtype(x)) if isinstance(x, Tensor) else x for x in given
        )
    check_shapes(query, key, value, enable_gqa)
    dropout_p = arguments.as_float(dropout_p, "dropout_p")
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"dropout_p must be between 0 and 1, got {dropout_p}")
    query_offset = arguments.as_integer(query_offset, "query_offset must be an integer")
    query_heads, heads = ((1, *x.shape)[-3] for x in (query, key))
    n, n_keys, width = query.shape[-2], key.shape[-2], key.shape[-1]
    shape = math.prod(query.shape[:-3]), heads, query_heads // max(1, heads), n, n_keys
    order, orders = 0.0, None
    if isinstance(alpha, Tensor):
        orders = _by_head(alpha, query, shape, "alpha")
        arguments.check_parameters(alpha, query, "alpha", 1, 2)
    else:
        order = check_order(alpha)
        if order not in _OMEGAS:
            orders = torch.full(shape[:3], order, dtype=torch.float64, device=query.device)
    number = 1 / math.sqrt(width) if scale is None else scale
    if isinstance(number, torch.SymFloat):  # a compiler's, which an operator does not take
        number = torch.ones((), dtype=torch.float64, device=query.device) * number
    scales = None
    if isinstance(number, Tensor):
        number, scales = 0.0, _by_head(number, query, shape, "scale")
    elif isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(f"scale must be a number, a tensor or None, got {scale!r}")
    spans: tuple[Tensor | None, Tensor | None, Tensor | None] = None, None, None
    slopes = None if alibi_slopes is None else _by_head(alibi_slopes, query, shape, "alibi_slopes")
    if is_causal or any(x is not None for x in (window, cu_seqlens, slopes)):
        limits = as_window(window, is_causal)
        spans = spans_of(query, n_keys, limits, cu_seqlens, query_offset, slopes is not None)
    tensors = Tensors(
        query.reshape(*shape[:4], width),
        key.reshape(*shape[:2], *key.shape[-2:]),
        value.reshape(*shape[:2], *value.shape[-2:]),
        None if attn_mask is None else _as_mask(attn_mask, query, shape),
        orders,
        scales,
        slopes,
        *spans,
        torch.randint(1 << 62, ()) if dropout_p > 0 else None,
    )
    return tensors, Numbers(float(number), float(dropout_p), order)
