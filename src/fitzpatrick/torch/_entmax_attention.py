"""Entmax attention with PyTorch's arguments, by fused kernels where there are some, or in blocks.

The function is public in :mod:`fitzpatrick.torch.functional`.
"""

import functools

import torch
import torch.nn.functional as nn
from torch import Tensor

from ..engines.triton.attention_call import Numbers, Tensors
from . import _arguments as arguments
from . import _graphs as graphs
from ._attention import attend, attend_densely
from ._attention_call import Window, prepare, spans_of
from ._engines import choose_engine

_MAX_WIDTH = 256  # that the kernels are compiled for
# NVIDIA GPUs where a program has 160 KiB of shared memory, which kernels for that width need
_ROOMY = ((8, 0), (9, 0), (10, 0), (10, 3))


@graphs.constant
@functools.cache
def is_roomy(index: int | None) -> bool:
    """True if a GPU has room for the kernels of all widths."""
    return torch.version.hip is None and torch.cuda.get_device_capability(index) in _ROOMY


def _missing_for(t: Tensors, numbers: Numbers) -> list[str]:
    """What a call asks for that the kernels do not have."""
    width, dtype = max(t.query.shape[-1], t.value.shape[-1]), t.query.dtype
    is_recorded = torch.is_grad_enabled()
    missing = {
        "gradient of attn_mask": is_recorded and t.mask is not None and t.mask.requires_grad,
        "gradient of alibi_slopes": is_recorded and t.slopes is not None and t.slopes.requires_grad,
        "a scale of zero": t.scale is None and numbers.scale == 0,
        "dropout_p": numbers.dropout_p > 0,
        "alpha other than 1.5 and 2": numbers.alpha not in (1.5, 2.0),
        "float64": dtype == torch.float64,
        f"widths above {_MAX_WIDTH}": width > _MAX_WIDTH,
        "single precision with widths above 128": dtype == torch.float32 and width > 128,
        "transforms of torch.func": arguments.is_transformed(),
        "empty sequences": t.query.numel() == 0 or t.value.numel() == 0,
    }
    return [name for name, is_missing in missing.items() if is_missing]


def as_fused(t: Tensors, numbers: Numbers) -> tuple[Tensors, Numbers]:
    """A call in the form that the kernels take: contiguous, with ends and no negative scales."""
    query, scale = t.query, t.scale
    if t.starts is None:
        starts, ends, _ = spans_of(query, t.key.shape[2])
        t = t._replace(starts=starts, ends=ends)
    if scale is not None:
        sign = torch.where(scale < 0, -1, 1).detach()
        query, scale = query * sign[..., None, None].to(query.dtype), scale * sign
        numbers = numbers._replace(scale=1.0)
    query, key, value = (x.contiguous() for x in (query, t.key, t.value))
    return t._replace(query=query, key=key, value=value, scale=scale), numbers


def entmax_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | Tensor | None = None,
    enable_gqa: bool = False,
    *,
    alpha: float | Tensor = 1.5,
    window: Window | None = None,
    cu_seqlens: Tensor | tuple[Tensor, Tensor] | None = None,
    alibi_slopes: Tensor | None = None,
    query_offset: int = 0,
    engine: str | None = None,
) -> Tensor:
    r"""Attention whose weights are an α-entmax of the scores, many of them exact zeros.

    .. math:: \operatorname{entmax}_\alpha(s\,Q K^\top + \text{bias})\, V

    The arguments up to ``enable_gqa`` are those of
    :func:`torch.nn.functional.scaled_dot_product_attention`, which computes α = 1 where it can, and
    has no second derivatives on some devices. All scores are never held at once, except under the
    transforms of ``torch.func``, in forward mode and for second derivatives, which take memory for
    each pair of a query and a key. A query that sees no key has the output 0 and the gradient 0.

    Args:
        query: (…, heads, L, E).
        key: (…, heads, S, E), any S.
        value: (…, heads, S, D).
        attn_mask: broadcast to (…, heads, L, S): boolean, True where a key is seen, or numbers that
            are added to the scores, which may have a gradient. It may go with ``is_causal``.
        dropout_p: the probability that a weight is dropped; the others grow by 1/(1 − p).
        is_causal: True if query i sees the keys 0 to i, as in PyTorch; see ``query_offset``.
        scale: what multiplies the products, 1/√E by default. A tensor is a learned temperature for
            each head, (heads,), or for each head of each sequence, (…, heads).
        enable_gqa: True if key and value may have fewer heads, each for several heads of query.
        alpha: a number from 1 to 2, or a tensor of them, (heads,) or (…, heads), with a gradient.
            Values out of range are an error on a CPU and make rows NaN on a GPU. Gradient steps can
            leave the range: learn a logit, α = 1 + sigmoid(logit), as ``SparseAttention`` does.
        window: (left, right): query i sees the keys i − left to i + right. None is no limit.
        cu_seqlens: where documents in one sequence begin, and the end: (0, 3, 7) for two of three
            and four tokens, which do not see each other. A pair has those of queries and of keys;
            then places count from the beginning of a document.
        alibi_slopes: (heads,) or (…, heads): the slope times the distance of a query and a key is
            taken off their score.
        query_offset: the place of the first query among the keys, for ``is_causal``, ``window`` and
            ``alibi_slopes``. When decoding with a cache of keys it is S − L.
        engine: ``"triton"`` asks for fused kernels that skip blocks of keys without a weight, and
            raises for what they cannot do: they have α = 1.5 and 2, in single and half precision,
            but no dropout and no gradients of ``attn_mask`` and ``alibi_slopes``. ``"reference"``
            is blocks of PyTorch's operations, on every device. None is the kernels where they do
            and a GPU has room for all of them: NVIDIA's A100, H100, B200 and their kin.

    Returns:
        (…, heads, L, D), in the dtype of ``query``.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> query, key = torch.tensor([[[2.0]]]), torch.tensor([[[1.0], [0.5], [-1.0]]])
        >>> F.entmax_attention(query, key, torch.eye(3)[None])
        tensor([[[0.8307, 0.1693, 0.0000]]])
        >>> F.entmax_attention(query, key, torch.eye(3)[None], is_causal=True, alpha=2.0)
        tensor([[[1., 0., 0.]]])
    """
    options = alpha, window, cu_seqlens, alibi_slopes, query_offset
    tensors, numbers = prepare(
        query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, *options
    )
    is_asked = engine == "triton"
    has_kernels = choose_engine(engine, query, "sparsemax") == "triton"
    has_kernels = has_kernels and (is_asked or is_roomy(query.device.index))
    missing = _missing_for(tensors, numbers) if has_kernels else []
    if is_asked and missing:
        raise ValueError(
            f'entmax_attention with engine="triton" has no {", ".join(missing)}; use engine=None'
        )
    has_extras = any(x is not None for x in (window, cu_seqlens, alibi_slopes))
    is_masked_twice = is_causal and (attn_mask is not None or query_offset != 0)
    has_extras |= arguments.is_in_forward_mode()
    if numbers.alpha == 1 and not (has_extras or is_masked_twice or isinstance(scale, Tensor)):
        lead = (None,) * (4 - query.ndim)  # for fewer axes PyTorch has no fast kernels
        if attn_mask is not None:
            attn_mask = attn_mask[(None,) * (max(4, query.ndim) - attn_mask.ndim)]
            if attn_mask.dtype != torch.bool:
                attn_mask = attn_mask.to(query.dtype)
        q, k, v = query[lead], key[lead], value[lead]
        out = nn.scaled_dot_product_attention(
            q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    elif arguments.is_transformed():
        out = attend_densely(tensors, numbers)[0]
    elif has_kernels and not missing:
        out = attend(*as_fused(tensors, numbers), True)
    else:
        out = attend(tensors, numbers, False)
    return out.reshape(*query.shape[:-1], value.shape[-1])
