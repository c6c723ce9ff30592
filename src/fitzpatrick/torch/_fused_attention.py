"""Which calls of attention Triton's kernels take, and the form in which they take them."""

import torch

from ..engines.triton.attention_call import Numbers, Tensors
from . import _arguments as arguments
from . import _graphs as graphs

_MAX_WIDTH = 256  # that the kernels are compiled for
# NVIDIA GPUs where a program has 160 KiB of shared memory, which kernels for that width need
_ROOMY = ((8, 0), (9, 0), (10, 0), (10, 3))


@graphs.constant
def is_roomy(index: int | None) -> bool:
    """True if a GPU has room for the kernels of all widths."""
    return torch.version.hip is None and torch.cuda.get_device_capability(index) in _ROOMY


def missing_for(t: Tensors, numbers: Numbers) -> list[str]:
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
    """A call in the form that the kernels take: contiguous, with a span and no negative scales."""
    n, n_keys, query, scale = t.query.shape[3], t.key.shape[2], t.query, t.scale
    if t.span is None:
        ends = torch.full((n,), n_keys, dtype=torch.int32, device=query.device)
        span = torch.stack([torch.zeros_like(ends), torch.zeros_like(ends), ends])
    else:
        # documents on a GPU are not validated, and kernels read where they are told
        span = torch.cat([t.span[:1], t.span[1:].clamp(0, n_keys)]).int()
    if scale is not None:
        sign = torch.where(scale < 0, -1, 1).detach()
        query, scale = query * sign[..., None, None].to(query.dtype), scale * sign
        numbers = numbers._replace(scale=1.0)
    query, key, value = (x.contiguous() for x in (query, t.key, t.value))
    tensors = t._replace(query=query, key=key, value=value, scale=scale, span=span)
    return tensors, numbers._replace(is_fused=True)
