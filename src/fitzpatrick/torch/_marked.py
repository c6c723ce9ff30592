"""The functions of :mod:`._graphs`, decorated for Dynamo; only traced functions import this."""

import torch

from ._graphs import MARKS

FUNCTIONS = {name: getattr(torch.compiler, mark)(one) for name, (mark, one) in MARKS.items()}
