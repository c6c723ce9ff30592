"""Multi-label data: the paper's sets by name, and readers for your own files."""

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
from ._table import Table
from .arff import read_arff
from .csv_table import read_csv
from .libsvm import read_libsvm
from .readers import read_table

__all__ = [
    "DATASETS",
    "PAPER_LOSSES",
    "DataError",
    "Dataset",
    "DatasetInfo",
    "DatasetMismatchWarning",
    "Split",
    "Statistics",
    "Table",
    "Transfer",
    "UnavailableError",
    "cache_folder",
    "dataset_names",
    "load_dataset",
    "read_arff",
    "read_csv",
    "read_libsvm",
    "read_table",
    "where",
]
