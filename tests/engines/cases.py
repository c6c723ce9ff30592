"""Targets and scores for the engines, in every form of targets."""

from typing import Any

import numpy as np
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick.regularizers import Regularizer, Tsallis
from tests import helpers
from tests.helpers import seeded

# by the name of the Fenchel-Young loss; the last has a number for a name
REGULARIZERS: dict[str, Regularizer] = {
    **fp.losses.regularizers_by_name(),
    "entmax13": Tsallis(1.3),
}
SIMPLEX = [name for name, omega in REGULARIZERS.items() if omega.domain.has_labels]


def make_loss(name: str, tightness: float = 1.0) -> fp.losses.Loss:
    """The loss of a regularizer at a tightness."""
    return fp.FitzpatrickLoss(REGULARIZERS[name], tightness)


def bind_loss(loss: fp.losses.Loss, y: Any, k: int, *args: Any, **options: Any) -> Any:
    """The regularizer and the tightness of a loss, bound to targets."""
    return fp.engines.bind(loss.regularizer, loss.tightness, y, k, *args, **options)


def targets(name: str, n: int, k: int, seed: int) -> list[Any]:
    """Targets of a loss: dense, CSR, and labels if it has any."""
    rng, domain = seeded(seed), REGULARIZERS[name].domain
    y = helpers.targets(domain, rng, n, k, "float64")
    return [y, sparse.csr_array(y), *([rng.integers(0, k, n)] if domain.has_labels else [])]


def scores(n: int, k: int, scale: float, dtype: str, seed: int) -> np.ndarray:
    """Gaussian scores; scale 0 makes them all equal."""
    return (seeded(seed).normal(size=(n, k)) * scale).astype(dtype)
