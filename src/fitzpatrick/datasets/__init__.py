"""Multi-label data: the paper's sets by name, and readers for your own files."""

from ._arff import read_label_names
from ._download import Transfer
from ._errors import DataError, UnavailableError
from ._load import (
    Dataset,
    DatasetMismatchWarning,
    Split,
    cache_folder,
    dataset_names,
    load_dataset,
    where,
)
from ._registry import DATASETS, PAPER_LOSSES, DatasetInfo, Statistics
from ._table import Table, split_table
from .columns import Columns
from .libsvm import read_libsvm
from .options import ReadOptions
from .readers import frame_features, read_arff, read_cells, read_csv, read_inputs, read_table

__all__ = [
    "DATASETS", "PAPER_LOSSES", "Columns", "DataError", "Dataset", "DatasetInfo",
    "DatasetMismatchWarning", "ReadOptions", "Split", "Statistics", "Table", "Transfer",
    "UnavailableError", "cache_folder", "dataset_names", "frame_features", "load_dataset",
    "read_arff", "read_cells", "read_csv", "read_inputs", "read_label_names", "read_libsvm",
    "read_table", "split_table", "where",
]  # fmt: skip
