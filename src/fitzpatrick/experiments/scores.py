"""Scores of predicted proportions that people know from classification."""

import numpy as np


def accuracy(Y: np.ndarray, predictions: np.ndarray) -> float:
    """Share of the rows whose largest prediction is at one of their largest targets.

    Example:
        >>> accuracy(np.eye(2), np.asarray([[0.6, 0.4], [0.7, 0.3]]))
        0.5
    """
    chosen = np.take_along_axis(Y, predictions.argmax(axis=1)[:, None], axis=1)[:, 0]
    return float((chosen == Y.max(axis=1)).mean())


def log_loss(Y: np.ndarray, predictions: np.ndarray) -> float:
    """Mean of -Σ y log p over the rows; infinite where a p is 0 and its y is not.

    Example:
        >>> round(log_loss(np.eye(2), np.asarray([[0.6, 0.4], [0.7, 0.3]])), 4)
        0.8574
        >>> log_loss(np.eye(2), np.eye(2)[::-1])
        inf
    """
    with np.errstate(divide="ignore"):
        terms = Y[Y > 0] * np.log(predictions[Y > 0])
    return float(-terms.sum() / Y.shape[0])
