"""The losses for Keras 3, on its PyTorch and JAX backends.

Keras calls a loss with ``(y_true, y_pred)``, in this order, and reduces the losses of the samples
itself. Models end without a softmax: ``y_pred`` holds scores, and training begins with
``model.compile("adam", fitzpatrick.keras.FitzpatrickLoss())``.
"""

from typing import Any

try:
    import keras  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError as error:
    raise ImportError(
        "fitzpatrick.keras needs Keras 3, which is not installed; install it with pip install keras"
    ) from error

from .losses import Loss, get_loss

__all__ = ["FitzpatrickLoss"]


@keras.saving.register_keras_serializable(package="fitzpatrick")
class FitzpatrickLoss(keras.losses.Loss):  # type: ignore[misc]  # Keras is not annotated
    """A loss of the registry, along the last axis of the scores.

    Args:
        loss: its registry name, such as ``"fitzpatrick_sparsemax"`` or ``"entmax15"``.
        tightness: c of a Fitzpatrick loss; None for 1.
        name: of the loss in logs; None for the registry name.
        **options: Keras's own: ``reduction``, ``dtype``.

    Targets are class indices, of shape (…) or (…, 1), or proportions in the shape of the scores.
    Losses of separate entries have targets of that shape, and the mean over the last axis.
    """

    def __init__(
        self,
        loss: str = "fitzpatrick_logistic",
        tightness: float | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name=name or loss, **options)
        self.loss, self.tightness = loss, tightness
        self._function = _per_sample(get_loss(loss, tightness))

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Losses of the samples."""
        return self._function(y_true, y_pred)

    def get_config(self) -> dict[str, Any]:
        """What ``keras.saving.deserialize_keras_object`` makes the loss of."""
        return {**super().get_config(), "loss": self.loss, "tightness": self.tightness}


def _per_sample(loss: Loss) -> Any:
    omega, backend = loss.regularizer, keras.backend.backend()
    has_labels = omega.domain.has_labels

    def compute(y: Any, scores: Any) -> Any:
        shape = tuple(scores.shape)
        if len(y.shape) > len(shape):
            raise ValueError(
                f"y_true of shape {tuple(y.shape)} has more axes than y_pred of shape {shape}; are "
                "the arguments swapped? Keras takes y_true first, and y_pred holds scores"
            )
        # Keras passes class indices as floating-point numbers, perhaps with an axis of their own
        if has_labels and (len(y.shape) < len(shape) or (y.shape[-1] == 1 and shape[-1] > 1)):
            y = keras.ops.cast(keras.ops.reshape(y, shape[:-1]), "int32")
        if backend == "torch":
            from .torch import functional

            axis = {"dim": -1} if has_labels else {}
            rows: Any = functional.loss_function(loss)(scores, y, reduction="none", **axis)
            return rows if has_labels else keras.ops.mean(rows, axis=-1)
        from .jax import make_fitzpatrick_loss

        is_labels = has_labels and len(y.shape) < len(shape)
        rows = make_fitzpatrick_loss(omega, loss.tightness, integer_labels=is_labels)(scores, y)
        return rows if has_labels else rows / shape[-1]

    if backend not in ("torch", "jax"):
        raise RuntimeError(f"Keras runs on {backend}; set KERAS_BACKEND=torch or KERAS_BACKEND=jax")
    return compute
