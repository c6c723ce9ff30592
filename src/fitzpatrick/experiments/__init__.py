"""The paper's protocol, comparisons on your own files, and saved models."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model_files import SavedModel

__all__ = ["load_model"]


def load_model(path: str | Path) -> "SavedModel":
    """A model that ``fitzpatrick fit`` saved: ``.predict(data)``, ``.target_names``, ``.kind``.

    Nothing in the file is executed, and whatever ``fit`` would not write is refused.

    Args:
        path: the file.

    Raises:
        DataError: for a file that is not a model, with the reason.
    """
    from .model_files import load  # scikit-learn is loaded when it is needed

    return load(Path(path))
