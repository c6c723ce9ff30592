"""Where fits are computed: with NumPy, or with PyTorch on the device that ``--device`` names."""

from typing import Any

import numpy as np
from scipy import sparse


def find_device(name: str) -> Any:
    """The ``torch.device`` of that name; an error if PyTorch cannot compute on it here."""
    import torch

    try:
        device = torch.device(name)
        torch.zeros(1, dtype=torch.float64, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(f"PyTorch cannot use the device {name!r} here: {reason}") from None
    return device


def describe_device(name: str | None) -> str:
    """What computes on the device of that name, in words.

    Raises:
        ImportError: if PyTorch is not installed.
        ValueError: if PyTorch cannot compute on the device here.

    Example:
        >>> describe_device(None)
        'NumPy'
    """
    if name is None:
        return "NumPy"
    device = find_device(name)
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"PyTorch {device}"


def on_device(X: Any, name: str | None) -> Any:
    """Features as a dense tensor on the device of that name; None leaves them as they are."""
    if name is None:
        return X
    import torch

    dense = X.toarray() if sparse.issparse(X) else np.array(X)  # which PyTorch may write to
    return torch.as_tensor(dense, device=find_device(name))
