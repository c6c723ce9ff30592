"""Sparse attention as a module, and as an attention implementation of Hugging Face's models."""

import functools
import importlib
import math
import operator
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as nn_functional
from torch import Tensor, nn

from .._validation import check_order
from . import _arguments as arguments
from ._attention import attend_densely
from ._attention_call import Window, as_window, prepare, seen_keys
from ._entmax_attention import entmax_attention
from .activations import Entmax

__all__ = ["SparseAttention", "register_huggingface"]


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    with_weights: bool,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """The output of :func:`entmax_attention`, and all its weights (…, heads, L, S) if wanted."""
    if not with_weights:
        return entmax_attention(query, key, value, attn_mask, **options), None
    out, weights = attend_densely(*prepare(query, key, value, attn_mask, **options))
    lead = query.shape[:-1]
    return out.reshape(*lead, value.shape[-1]), weights.reshape(*lead, key.shape[-2])


def _as_kept(
    mask: Any, expected: Sequence[tuple[int, ...]], shape: tuple[int, ...], name: str
) -> Tensor | None:
    """A mask of ``MultiheadAttention``, where True is left out, in the sense of attention."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor) or tuple(mask.shape) not in expected:
        got = f"shape {tuple(mask.shape)}" if isinstance(mask, Tensor) else repr(mask)
        raise ValueError(f"{name} must have the shape {' or '.join(map(str, expected))}, got {got}")
    if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
        kinds = "boolean, True where a key is left out, or numbers that are added to the scores"
        raise TypeError(f"{name} must be {kinds}, got {mask.dtype}")
    shaped: Tensor = ~mask if mask.dtype == torch.bool else mask
    return shaped.reshape(shape)


def _merge(*masks: Tensor | None) -> Tensor | None:
    """All masks: boolean ones as one boolean, else as numbers that are added to the scores."""
    given = [x for x in masks if x is not None]
    if all(x.dtype == torch.bool for x in given):
        return functools.reduce(operator.and_, given) if given else None
    hidden = [torch.where(x, 0.0, -math.inf) if x.dtype == torch.bool else x for x in given]
    return functools.reduce(operator.add, hidden)


class SparseAttention(nn.MultiheadAttention):
    r"""Multi-head attention whose weights are an α-entmax, in place of ``nn.MultiheadAttention``.

    The arguments up to ``dtype``, those of the call, the parameters and the state dict are those of
    :class:`torch.nn.MultiheadAttention`, whose weights can be loaded. With ``need_weights=False``
    the scores are never held all at once.

    Args:
        embed_dim: the width of queries and outputs.
        num_heads: how many heads share it.
        dropout: the probability that a weight is dropped, in training.
        bias: True if the projections have biases.
        add_bias_kv: True if one key and value are learned, and seen by all queries.
        add_zero_attn: True if a key and value of zeros are seen by all queries.
        kdim: the width of keys, ``embed_dim`` by default.
        vdim: the width of values, ``embed_dim`` by default.
        batch_first: True if inputs are (batch, length, width) instead of (length, batch, width).
        device: where the parameters are.
        dtype: of the parameters.
        alpha: from 1 to 2; a number, or a tensor with one for each head. A number is part of the
            module, not of its state dict, which stays that of a ``MultiheadAttention``.
        learnable: True if each head learns its α, a parameter that starts at ``alpha``. Loading the
            state dict of a ``MultiheadAttention``, which has none, then takes ``strict=False``.
        window: (left, right), as in :func:`.functional.entmax_attention`.

    Example:
        >>> import torch
        >>> layer = SparseAttention(16, 2, batch_first=True, learnable=True)
        >>> x = torch.ones(3, 5, 16)
        >>> output, weights = layer(x, x, x)
        >>> output.shape, weights.shape, layer.alpha.shape
        (torch.Size([3, 5, 16]), torch.Size([3, 5, 5]), torch.Size([2]))
        >>> output, _ = layer(x, x, x, need_weights=False, is_causal=True)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        *,
        alpha: float | Tensor = 1.5,
        learnable: bool = False,
        window: Window | None = None,
    ) -> None:
        options = dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device, dtype
        super().__init__(embed_dim, num_heads, *options)
        if isinstance(alpha, Tensor) or learnable:
            number = alpha if isinstance(alpha, Tensor) else check_order(alpha)
            out = self.out_proj.weight
            orders = torch.as_tensor(number, dtype=out.dtype, device=out.device)
            alpha = arguments.expand_to(orders, (num_heads,), "alpha", "one for each head").clone()
            arguments.check_parameters(alpha, out, "alpha", 1, 2)
        self.entmax = Entmax(alpha, learnable=learnable)
        as_window(window, False)
        self.window = window

    def _reset_parameters(self) -> None:
        self._qkv_same_embed_dim = self.in_proj_weight is not None
        super()._reset_parameters()
        # PyTorch's encoder layers would compute a softmax themselves when they are not trained
        self._qkv_same_embed_dim = False

    @property
    def alpha(self) -> float | Tensor:
        """α as it is now."""
        return self.entmax.alpha

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """Queries, keys and values (N, heads, length, width), with keys that all queries see."""
        packed: Tensor | None = self.in_proj_weight
        bias: Tensor | None = self.in_proj_bias
        separate = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        weights = separate if packed is None else packed.chunk(3)
        biases = [None] * 3 if bias is None else bias.chunk(3)
        q, k, v = map(nn_functional.linear, (query, key, value), weights, biases)
        if self.bias_k is not None and self.bias_v is not None:
            added = (k, self.bias_k), (v, self.bias_v)
            k, v = (torch.cat([x, b.to(x.dtype).expand(len(x), -1, -1)], 1) for x, b in added)
        if self.add_zero_attn:
            k, v = (nn_functional.pad(x, (0, 0, 0, 1)) for x in (k, v))
        heads = self.num_heads, self.head_dim
        return [x.reshape(*x.shape[:2], *heads).transpose(1, 2) for x in (q, k, v)]

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output, and the weights (N, L, S) or None; a boolean mask is True where it hides.

        In training the weights are those after dropout, as in ``MultiheadAttention``.
        ``is_causal`` needs no mask here, and one that comes with it holds as well.
        """
        inputs = {"query": query, "key": key, "value": value}
        widths = self.embed_dim, self.kdim, self.vdim
        for (name, x), width in zip(inputs.items(), widths, strict=True):
            # as an encoder's that was built with a layer of PyTorch's
            if getattr(x, "is_nested", False):
                raise TypeError(
                    f"{name} is a nested tensor, which SparseAttention does not take; "
                    "a TransformerEncoder makes none if its use_nested_tensor is False"
                )
            arguments.check_dense(x, name, "numbers")
            if x.ndim not in (2, 3) or x.ndim != query.ndim or x.shape[-1] != width:
                raise ValueError(
                    f"{name} must have 2 or 3 axes, as many as query, and the width {width}, got "
                    f"shape {tuple(x.shape)}"
                )
        is_batched, axis = query.ndim == 3, 0 if self.batch_first else 1
        q, k, v = (x.movedim(axis, 0) if is_batched else x[None] for x in inputs.values())
        n, length, n_keys = *q.shape[:2], k.shape[1]
        q, k, v = self._project(q, k, v)
        rows = (n, self.num_heads) if getattr(attn_mask, "ndim", 2) == 3 else (1, 1)
        expected = [(length, n_keys), (n * self.num_heads, length, n_keys)]
        mask = _as_kept(attn_mask, expected, (*rows, length, n_keys), "attn_mask")
        padded = [(n, n_keys)] if is_batched else [(n_keys,)]
        padding = _as_kept(key_padding_mask, padded, (n, 1, 1, n_keys), "key_padding_mask")
        added, window, seen = k.shape[2] - n_keys, self.window, None
        if added and (is_causal or window is not None):  # what was added is seen by all
            seen = seen_keys(q, n_keys, window, is_causal)
            window, is_causal = None, False
        mask = _merge(mask, padding, seen)
        if added and mask is not None:
            mask = nn_functional.pad(mask, (0, added), value=mask.dtype == torch.bool)
        dropout = self.dropout if self.training else 0.0
        options = {"is_causal": is_causal, "alpha": self.alpha, "window": window}
        out, weights = _attend(q, k, v, mask, need_weights, dropout_p=dropout, **options)
        out = self.out_proj(out.transpose(1, 2).flatten(2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not is_batched:
            return out[0], None if weights is None else weights[0]
        return out.movedim(0, axis), weights

    def extra_repr(self) -> str:
        """The arguments."""
        window = "" if self.window is None else f", window={self.window}"
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}{window}"


def _huggingface_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    *,
    alpha: float | Tensor = 1.5,
    **others: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention as Hugging Face's models call it: the output (N, L, heads, D), and weights."""
    for name in ("softcap", "s_aux", "sinks"):  # a cap of the scores, and learned sinks
        if others.get(name) is not None:
            raise NotImplementedError(f"entmax attention has no {name}, which this model asks for")
    if is_causal is None:
        is_causal = bool(getattr(module, "is_causal", True))
    n, n_keys = query.shape[-2], key.shape[-2]
    # a static cache may have room for more keys, which a mask or causality hides
    masks = (x if x is None else x[..., :n_keys] for x in (attention_mask, position_bias))
    out, weights = _attend(
        query,
        key,
        value,
        _merge(*masks),
        bool(others.get("output_attentions")),
        dropout_p=dropout,
        # a mask that is given has it all; one query is the last of a cache
        is_causal=is_causal and attention_mask is None and n > 1,
        scale=scaling,
        enable_gqa=query.shape[1] != key.shape[1],
        alpha=alpha,
    )
    return out.transpose(1, 2).contiguous(), weights


def register_huggingface(name: str = "entmax", alpha: float | Tensor = 1.5) -> None:
    """Register entmax attention with Hugging Face's ``transformers``.

    After that ``AutoModel.from_pretrained(…, attn_implementation="entmax")`` has it in all models
    that look their attention up. Weights that were trained with softmax have to be trained further.

    Args:
        name: what the models call it.
        alpha: from 1 to 2; a number, or a tensor with one for each head. Several names may have
            several orders.
    """
    try:
        interface = importlib.import_module("transformers").AttentionInterface
    except (ImportError, AttributeError) as error:
        raise ImportError(
            "register_huggingface needs the package transformers, 4.51 or later; install it with "
            "pip install 'transformers>=4.51'"
        ) from error
    interface.register(name, functools.partial(_huggingface_attention, alpha=alpha))
    try:
        masks = importlib.import_module("transformers.masking_utils")
    except ImportError:  # before 4.53 models make their masks themselves, whatever takes them
        return
    masks.AttentionMaskInterface.register(name, masks.sdpa_mask)
