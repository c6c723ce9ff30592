"""Inputs for the PyTorch tests; kernels run in Triton's interpreter where there is no GPU."""

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from tests.helpers import TEST_ALL, TEST_SEED

if os.environ.get("FITZPATRICK_TEST_GPU") == "1" and not torch.cuda.is_available():
    raise pytest.UsageError("FITZPATRICK_TEST_GPU=1 needs a CUDA device that PyTorch can use")

# What an earlier run compiled, perhaps for other instructions, is not used.
if "TORCHINDUCTOR_CACHE_DIR" not in os.environ:
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="fitzpatrick-inductor-")
    atexit.register(shutil.rmtree, os.environ["TORCHINDUCTOR_CACHE_DIR"], ignore_errors=True)
# Inductor compiles a program for each vector instruction that there may be, for seconds each. Its
# loops over numbers take the same graphs.
if not TEST_ALL:
    os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")
# Processes that would compile its other kernels take longer to start than those kernels.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

from tests.interpreter import limited, speed_up_interpreter

from fitzpatrick import get_loss, loss_names
from fitzpatrick.losses import regularizers_by_name
from fitzpatrick.torch import functional

speed_up_interpreter()

CLASS_LOSSES = [n for n in loss_names() if get_loss(n).regularizer.domain.has_labels]
ENTRY_LOSSES = [n for n in loss_names() if get_loss(n).regularizer.is_entrywise]
LINKS = sorted(regularizers_by_name())
# where all losses take the same path
ONE_OF_EACH_KIND = loss_names() if TEST_ALL else ["fitzpatrick_logistic", "fitzpatrick_sigmoid"]
SOME_CLASS_LOSSES = CLASS_LOSSES if TEST_ALL else ["fitzpatrick_logistic", "entmax15"]

# Labels of five rows of four classes, one of them ignored.
LABELS = torch.tensor([0, 3, -100, 2, 1])

# Two ways to the same float64 numbers, which are means or sums of at most 60 entries of size one:
# each entry is within the documented 1e-13, some 500 units of rounding, on either side, and a sum
# of n entries that cancel is n units off.
EPS = torch.finfo(torch.float64).eps
ROUNDING = {"rtol": 2 * 500 * EPS, "atol": 60 * EPS}

needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="the kernels need the package triton"
)
every_engine = pytest.mark.parametrize(
    "engine", ["reference", pytest.param("triton", marks=needs_triton)]
)


def skip_unless_multiplied(dtype: torch.dtype) -> None:
    """Skip a test of products of matrices that PyTorch lacks, as on some virtual machines."""
    x = torch.ones(16, 8, dtype=dtype)
    try:
        torch.nn.functional.linear(x, x)
    except RuntimeError as error:
        if "could not create a primitive" not in str(error):
            raise
        pytest.skip(f"PyTorch's own linear raises for {dtype} on this CPU")


def loss_of(name: str) -> Any:
    """The function of a registry name."""
    return getattr(functional, f"{name}_loss")


def value_and_gradient(
    function: Callable[..., torch.Tensor], x: torch.Tensor, *args: Any, **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """A loss, and the gradient of its sum."""
    x = x.detach().clone().requires_grad_()
    value = function(x, *args, **options)
    return value.detach(), torch.autograd.grad(value.sum(), x)[0]


def assert_compiles(
    function: Callable[..., torch.Tensor], *arguments: Any, learned: Any = None, **tolerance: float
) -> None:
    """One graph has the results of a function, and its gradients in the arguments that learn."""
    torch.compiler.reset()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    learned = [x for x in arguments if x.requires_grad] if learned is None else learned
    results = []
    for call in (compiled, function):
        out = call(*arguments)
        gradients = torch.autograd.grad(out.square().sum(), learned) if learned else []
        results.append([out.detach(), *gradients])
    torch.testing.assert_close(*results, **(tolerance or ROUNDING))


def module_name(name: str) -> str:
    """The class of a registry name."""
    return "".join(word.capitalize() for word in name.split("_")) + "Loss"


def targets_like(name: str, theta: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Targets strictly inside the domain of a loss, with the shape of theta."""
    u = torch.rand(theta.shape, dtype=theta.dtype, generator=generator) * 0.8 + 0.1
    return u / u.sum(-1, keepdim=True) if name in CLASS_LOSSES else u


@pytest.fixture
def limit() -> Iterator[Callable[..., None]]:
    """Change what Triton's planner goes by, for a test."""
    pytest.importorskip("triton", reason="needs triton")
    with contextlib.ExitStack() as stack:
        yield lambda **limits: stack.enter_context(limited(**limits))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(31 + TEST_SEED)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20241 + TEST_SEED)


@pytest.fixture
def scores(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(5, 4, dtype=torch.float64, generator=generator)
