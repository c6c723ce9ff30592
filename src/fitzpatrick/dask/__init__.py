"""The estimators of :mod:`fitzpatrick.linear_model` on Dask: data in chunks, on workers.

The solver runs in this process, and coefficients and objective are the same as on one machine, up
to rounding. Only the rows live on workers: each evaluation, gradient or Hessian product is one
round over the chunks.
"""

try:
    import dask as _dask  # noqa: F401
except ImportError as error:
    raise ImportError(
        "fitzpatrick.dask needs Dask, which is not installed; install it with "
        "pip install 'fitzpatrick[dask]'"
    ) from error

from ._estimators import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
    fit_path,
)
from ._rounds import ChunkError

__all__ = [
    "ChunkError",
    "FitzpatrickClassifier",
    "FitzpatrickClassifierCV",
    "ProportionRegressor",
    "ProportionRegressorCV",
    "fit_path",
]
