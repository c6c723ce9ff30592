"""What workers do with a chunk of rows: check and measure it, make samples of it, sum over them.

A chunk without a sample that counts is None, and so is everything made of it.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from .. import engines
from .._array import Array
from .._weights import check_each_weight
from ..engines import HessianOperator
from ..linear_model._binary import BinaryLoss
from ..linear_model._checks import check_squares, merge_duplicates
from ..linear_model._design import Design, Scaling, dense_design, scaled, sparse_design
from ..linear_model._rotation import gram, principal_directions
from ..linear_model._rows import Samples
from ..linear_model._targets import check_finite
from ..losses import Loss
from ._rounds import ChunkError
from ._statistics import Summary, summarize_rows
from ._targets import TargetCheck, TargetSummary


@dataclass(frozen=True, eq=False)
class Chunk:
    """Checked rows.

    Args:
        index: the number of the chunk.
        X: features, dense or sparse; None once a design has been made of them.
        y: targets as the check of the data returns them.
        weights: None for ones.
        targets: what is known of the targets.
    """

    index: int
    X: Array
    y: Array
    weights: Array | None
    targets: TargetSummary


@dataclass(frozen=True, eq=False)
class Encoding:
    """What becomes of the targets and weights of all chunks.

    Args:
        classes: the labels that become numbers; None where targets stay as they are.
        class_weights: one number per class, or None.
    """

    classes: Array | None = None
    class_weights: Array | None = None


@dataclass(frozen=True, eq=False)
class Transformation:
    """What becomes of the features of all chunks."""

    scaling: Scaling
    basis: Array | None
    fit_intercept: bool


@dataclass(frozen=True, eq=False)
class Binding:
    """The loss that all targets are bound to.

    Args:
        loss: any loss.
        n_classes: k.
        binary: whether two classes share one row of coefficients.
        first: how many samples come before those of each chunk.
        n_threads: threads of each task.
    """

    loss: Loss
    n_classes: int
    binary: bool
    first: dict[int, int]
    n_threads: int


def check_rows(
    index: int, check: TargetCheck, loss: Loss, X: Any, y: Any, weights: Any = None
) -> Chunk | None:
    """The rows of a chunk; an error names the chunk and the row within it."""
    if X.shape[0] == 0 and len(y) == 0:
        return None
    try:
        X = check_features(X)
        check_squares(X)
        weights = None if weights is None else check_each_weight(np.asarray(weights), X)
        y, targets = check(y, X, weights, loss)
    except (TypeError, ValueError) as error:
        raise ChunkError(f"chunk {index}: {error}") from error
    return Chunk(index, X, y, weights, targets)


def check_features(X: Any) -> Array:
    """Features (n, d) as floats, dense or sparse; an error names the row."""
    X = check_array(
        X,
        input_name="X",
        accept_sparse=("csr", "csc"),
        dtype=(np.float64, np.float32),
        order="C",
        ensure_all_finite=False,
    )
    check_finite(X, "X", "drop the row or fill the gap")
    return merge_duplicates(X.tocsr() if sparse.issparse(X) else X)


def summarize(measure: bool, chunk: Chunk | None) -> Summary | None:
    """What is known of a chunk; its features are measured if asked for."""
    if chunk is None:
        return None
    return summarize_rows(chunk.index, chunk.X, chunk.weights, chunk.targets, measure=measure)


def encode(chunk: Chunk | None, encoding: Encoding) -> Chunk | None:
    """Labels as numbers, weights with those of the classes, no samples of weight 0."""
    if chunk is None:
        return None
    y, weights = chunk.y, chunk.weights
    if encoding.classes is not None:
        y = np.searchsorted(encoding.classes, y)
    if encoding.class_weights is not None:
        by_class = encoding.class_weights[y]
        weights = by_class if weights is None else by_class * weights
    if weights is None or weights.all():
        return replace(chunk, y=y, weights=weights)
    rows = np.flatnonzero(weights)
    if len(rows) == 0:
        return None
    return replace(chunk, X=chunk.X[rows], y=y[rows], weights=weights[rows])


def gram_of(chunk: Chunk | None, scaling: Scaling) -> Array | None:
    """The Gram matrix of scaled features."""
    return None if chunk is None else gram(scaled(chunk.X, scaling), chunk.weights)


def stack(chunks: list[Chunk | None]) -> Chunk:
    """Several chunks as one."""
    found = [chunk for chunk in chunks if chunk is not None]
    weights = [chunk.weights for chunk in found if chunk.weights is not None]
    return replace(
        found[0],
        X=np.concatenate([chunk.X for chunk in found]),
        weights=np.concatenate(weights) if weights else None,
    )


def directions_of(chunk: Chunk, scaling: Scaling) -> Array:
    """The principal directions of scaled features."""
    return principal_directions(scaled(chunk.X, scaling), chunk.weights)


def make_design(chunk: Chunk | None, given: Transformation) -> Design | None:
    """The features as the solvers see them."""
    if chunk is None:
        return None
    X, weights, scaling = chunk.X, chunk.weights, given.scaling
    if sparse.issparse(X):
        return sparse_design(X, weights, scaling, given.fit_intercept)
    return dense_design(scaled(X, scaling), weights, scaling, given.fit_intercept, given.basis)


def without_features(chunk: Chunk | None) -> Chunk | None:
    """Targets and weights alone."""
    return None if chunk is None else replace(chunk, X=None)


def weighted_spectrum(design: Design | None, chunk: Chunk | None) -> Array | None:
    """The spectrum of a chunk times its weight, and the weight."""
    if design is None or chunk is None:
        return None
    weight = design.n_samples if chunk.weights is None else chunk.weights.sum()
    return np.append(weight * design.spectrum, weight)


def bind(design: Design | None, chunk: Chunk | None, binding: Binding) -> Samples | None:
    """Samples: the loss bound to the targets; an error names the chunk."""
    if design is None or chunk is None:
        return None
    try:
        loss = engines.bind(
            binding.loss, chunk.y, binding.n_classes, design.like.dtype, binding.n_threads
        )
    except (TypeError, ValueError) as error:
        raise ChunkError(f"chunk {chunk.index}: {error}") from error
    n_scores = 1 if binding.binary else binding.n_classes
    bound = BinaryLoss(loss) if binding.binary else loss
    return Samples(design, bound, chunk.weights, n_scores, binding.first[chunk.index])


def is_ready(samples: Samples | None) -> bool:
    """Says that samples are there."""
    return samples is None or samples.design.n_samples > 0


def scores(samples: Samples | None, parameters: Array) -> Array | None:
    """Θ of a chunk."""
    if samples is None:
        return None
    return samples.design.scores(parameters, out=samples.empty_scores())


def evaluate(samples: Samples | None, theta: Array | None) -> tuple[float, Array | None] | None:
    """The sum of the losses of a chunk, and its gradient."""
    if samples is None:
        return None
    return samples.evaluate(theta, (samples.empty_values(), samples.empty_scores()))


def hessian(
    samples: Samples | None, theta: Array | None, step: Array | None = None
) -> HessianOperator | None:
    """The Hessians of the rows of a chunk, or their means over steps like the given one."""
    return None if samples is None else samples.hessian(theta, step, samples.empty_scores())


def curvature(samples: Samples | None, operator: HessianOperator | None) -> Array | None:
    """The curvature of the classes in a chunk."""
    if samples is None or operator is None:
        return None
    return samples.curvature_of_classes(operator, samples.empty_scores())


def product(
    samples: Samples | None, operator: HessianOperator | None, direction: Array
) -> Array | None:
    """The Hessian product of a chunk."""
    if samples is None or operator is None:
        return None
    return samples.product(operator, direction, samples.empty_scores())


def total(parts: list[Array | None]) -> Array | None:
    """The sum of arrays."""
    found = [part for part in parts if part is not None]
    if len(found) < 2:
        return found[0] if found else None
    result = found[0] + found[1]
    for part in found[2:]:
        result += part
    return result


def total_evaluation(
    parts: list[tuple[float, Array | None] | None],
) -> tuple[float, Array | None] | None:
    """The sum of evaluations; one without a gradient has overflowed, and so has the sum."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    gradients = [gradient for _, gradient in found]
    overflows = any(gradient is None for gradient in gradients)
    return sum(value for value, _ in found), None if overflows else total(gradients)
