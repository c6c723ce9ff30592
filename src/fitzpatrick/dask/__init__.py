"""The estimators of :mod:`fitzpatrick.linear_model` on Dask: data in chunks, on workers.

The solver is that of one machine, and so are coefficients, objective and iterations. Only the rows
live on workers, and each evaluation, gradient or Hessian product is one round over their chunks.

Example:
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from fitzpatrick.dask import FitzpatrickClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    >>> model = FitzpatrickClassifier(loss="sparsemax").fit(X, y)
    >>> model.predict_proba(X)  # lazy
    dask.array<..., shape=(150, 3), dtype=float64, chunksize=(50, 3), chunktype=numpy.ndarray>
    >>> float(model.score(X, y)) > 0.9
    True
"""

try:
    import dask as _dask  # noqa: F401
except ImportError as error:
    raise ImportError(
        "fitzpatrick.dask needs Dask, which is not installed; install it with "
        "pip install 'fitzpatrick[dask]'"
    ) from error

from ._classifier import FitzpatrickClassifier, FitzpatrickClassifierCV
from ._path import fit_path
from ._regressor import ProportionRegressor, ProportionRegressorCV
from ._rounds import ChunkError

__all__ = [
    "ChunkError",
    "FitzpatrickClassifier",
    "FitzpatrickClassifierCV",
    "ProportionRegressor",
    "ProportionRegressorCV",
    "fit_path",
]
