"""The reference engine: the formulas of the core, row by row, on whatever device the scores are.

On a CPU compiled rows compute them if the regularizer has any, at every size: the digits of a
result depend on its arguments alone. Every function takes scores θ of shape (n, k), a target
(labels of shape (n,), rows of shape (n, k), or lists of shape (n, 2, m)) and a scale that
multiplies a row's loss and its derivatives. Arithmetic is in float32 if the scores are half
precision. A row with the label ``ignore_index`` or the scale 0 contributes nothing, whatever its
scores; a label out of range makes its row NaN, since a device cannot raise.
"""

import functools
import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from ..engines import BoundLoss, CoreLoss, Labels, NoTargets, RowBlocks, bind_trusted
from ..engines.rows import BlockTask, Output
from ..engines.table import find_compiled, load_kernel, numba_compiles
from ..engines.targets import FloatArray, Scratch, TargetForm, wrap_targets
from ._handles import LossCall, regularizer_of
from ._stats import StatsRequest, clear_uncounted_, numbers_of
from ._targets import PADDING, REST, Scale, listed_rows, rows_of_lists, working_dtype

F = TypeVar("F", bound=Callable[..., Any])

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
# This many scores are one block of rows, for one thread.
_MAX_BLOCK = 1 << 16


def exact(function: F) -> F:
    """Compute as the formulas say: without autocast's half precision, or NumPy's warnings of ∞."""

    @functools.wraps(function)
    def wrapper(theta: Any, *args: Any, **options: Any) -> Any:
        device = theta.device.type
        with np.errstate(all="ignore"):
            if not torch.is_autocast_enabled(device):
                return function(theta, *args, **options)
            with torch.autocast(device, enabled=False):
                return function(theta, *args, **options)

    return cast(F, wrapper)


def widen(x: Tensor) -> Tensor:
    """``x`` itself, or in float32 if it is half precision."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


class _Buffers(threading.local):
    """The buffers of a thread, which stay."""

    def __init__(self) -> None:
        self.scratch = Scratch()


_BUFFERS = _Buffers()


@functools.lru_cache(maxsize=256)
def _load(omega: str, is_link: bool = False) -> Any:
    """What makes the compiled kernel of the losses of a regularizer, or of its link, or None."""
    entry = find_compiled(regularizer_of(omega), is_link=is_link)
    return load_kernel(entry.kernel) if entry is not None and numba_compiles() else None


class _CpuRows:
    """A row-wise loss at its targets, or a link, for tensors on a CPU."""

    def __init__(
        self,
        omega: str,
        tightness: float,
        y: Tensor | None,
        theta: Tensor,
        with_stats: bool = False,
    ) -> None:
        n, k = shape = len(theta), theta.shape[1]
        dtype = _DOUBLE if theta.dtype is torch.float64 else _SINGLE
        targets: TargetForm = NoTargets(shape, dtype)
        if y is not None:
            given = y.numpy(force=True)
            targets = wrap_targets(_matrix(given, k) if y.ndim == 3 else given, shape, dtype)
        make = _load(omega, y is None)
        loss = regularizer_of(omega), tightness, targets
        n_threads = torch.get_num_threads()
        self.stats = np.empty((n, 4)) if with_stats and make is not None else None
        self._bound: BoundLoss
        if make is None:
            self._bound = bind_trusted(*loss, n_threads, "numpy")
        elif theta.numel() <= _MAX_BLOCK:
            self._bound = RowBlocks(make(*loss), 1, self.stats, _BUFFERS.scratch)
        else:
            self._bound = RowBlocks(make(*loss), n_threads, self.stats)

    def value(self, theta: Tensor) -> Tensor:
        return torch.from_numpy(self._bound.value(theta.numpy(force=True)))

    # outputs are in the order of rows, whatever the order of θ
    def value_and_gradient(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        x = theta.numpy(force=True)
        out = np.empty(len(x), x.dtype), np.empty(x.shape, x.dtype)
        self._bound.value_and_gradient(x, out)
        return torch.from_numpy(out[0]), torch.from_numpy(out[1])

    def hessian_product(self, theta: Tensor, v: Tensor) -> Tensor:
        x = theta.numpy(force=True)
        out = np.empty(x.shape, x.dtype)
        return torch.from_numpy(self._bound.hessian_product(x, v.numpy(force=True), out))

    def y_star(self, theta: Tensor) -> Tensor:
        return torch.from_numpy(self._bound.y_star(theta.numpy(force=True)))


def _matrix(lists: FloatArray, k: int) -> Any:
    """Lists of classes as CSR rows."""
    classes, values = lists[:, 0], lists[:, 1]
    is_kept = (classes >= 0) & (values != 0)
    starts = np.zeros(len(lists) + 1, np.intp)
    np.cumsum(is_kept.sum(axis=1), out=starts[1:])
    entries = values[is_kept], classes[is_kept].astype(np.intp), starts
    return sparse.csr_array(entries, (len(lists), k))


class _OneRest:
    """The negentropy at lists, where the classes that are not listed are one.

    Entries without a target enter the loss as one sum. So they are a class whose score is their
    log-sum-exp, and whose target is 0, or the rest that a list has.
    """

    def __init__(self, lists: Tensor, call: LossCall) -> None:
        classes, values = lists[:, 0].long(), lists[:, 1]
        self._is_class = classes >= 0
        # in place of padding stands the first class of the row
        places = torch.arange(classes.shape[1], device=classes.device)
        first = self._is_class.to(torch.uint8).argmax(-1, keepdim=True)
        self._source = torch.where(self._is_class, places, first)
        self._columns = classes.gather(-1, self._source)
        rest = values.masked_fill(classes != REST, 0.0).sum(-1, keepdim=True)
        self._y = torch.cat([values.masked_fill(~self._is_class, 0.0), rest], -1)
        self._call = call

    def _own(self, x: Tensor, fill: float) -> Tensor:
        """The entries of listed classes."""
        return x.gather(-1, self._columns).masked_fill(~self._is_class, fill)

    def _merge(self, theta: Tensor) -> tuple[Any, Tensor, Tensor]:
        """The loss, the scores of listed classes and of all others, the shares of the latter."""
        shares = theta.scatter(-1, self._columns, -math.inf)
        top = shares.amax(-1, keepdim=True)
        # in place: a new matrix of scores takes longer than the arithmetic
        shares.sub_(top.masked_fill(top == -math.inf, 0.0)).exp_()
        total = shares.sum(-1, keepdim=True)
        merged = torch.cat([self._own(theta, -math.inf), top + total.log()], -1)
        shares.div_(total.masked_fill(total == 0, 1.0))
        return _bind_targets(self._call, merged, self._y.to(merged.dtype)), merged, shares

    def _split_(self, merged: Tensor, shares: Tensor) -> Tensor:
        """The transposed derivative: what belongs to all others is shared among them, in place."""
        own = merged[:, :-1].gather(-1, self._source)
        return shares.mul_(merged[:, -1:]).scatter_(-1, self._columns, own)

    def value(self, theta: Tensor) -> Tensor:
        bound, merged, _ = self._merge(theta)
        return cast(Tensor, bound.value(merged))

    def value_and_gradient(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        bound, merged, shares = self._merge(theta)
        value, gradient = bound.value_and_gradient(merged)
        return value, self._split_(gradient, shares)

    def hessian_product(self, theta: Tensor, v: Tensor) -> Tensor:
        bound, merged, shares = self._merge(theta)
        mean = (shares * v).sum(-1, keepdim=True)
        own = self._own(v, 0.0)
        product = bound.hessian_product(merged, torch.cat([own, mean], -1))
        slope = bound.value_and_gradient(merged)[1][:, -1:]
        bend = self._split_(torch.cat([own * 0, slope], -1), shares.clone()) * (v - mean)
        return self._split_(product, shares).add_(bend)


class ScaledRows(NamedTuple):
    """A loss at targets that exist, the scores in working precision, and what multiplies the rows.

    Some rows count for nothing (``is_ignored``), or have a label that is no class.
    """

    bound: Any
    theta: Tensor
    factor: Tensor | float
    is_ignored: Tensor | None
    is_outside: Tensor | None

    def value(self) -> Tensor:
        return self._scale_values(self.bound.value(self.theta))

    def value_and_gradient(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        values, gradient = self.bound.value_and_gradient(self.theta)
        return self._scale_values(values), self._scale_rows(gradient, dtype)

    def hessian_product(self, v: Tensor, dtype: torch.dtype) -> Tensor:
        product = self.bound.hessian_product(self.theta, v.to(self.theta.dtype))
        return self._scale_rows(product, dtype)

    def _scale_values(self, values: Tensor) -> Tensor:
        if self.is_outside is not None:
            values = values.masked_fill(self.is_outside, math.nan)
        if self.is_ignored is not None:
            values = values.masked_fill(self.is_ignored, 0.0)
        # the factor of a mean over nothing is infinite: 0 · ∞ is NaN
        return values if _is_one(self.factor) else values * self.factor

    def _scale_rows(self, rows: Tensor, dtype: torch.dtype) -> Tensor:
        """Rows of a gradient or of a Hessian product; those of compiled rows are buffers."""
        factor = self.factor
        if isinstance(factor, Tensor) and factor.ndim:
            factor = factor[:, None]
        if not isinstance(self.bound, _CpuRows):
            rows = rows * factor  # a product of the core may be its own argument
        elif not _is_one(factor):
            rows.mul_(factor)
        if self.is_outside is not None:
            rows.masked_fill_(self.is_outside[:, None], math.nan)
        if self.is_ignored is not None:
            rows.masked_fill_(self.is_ignored[:, None], 0.0)
        return (rows if rows.dtype == dtype else rows.to(dtype)).contiguous()


def _is_one(factor: Tensor | float) -> bool:
    return isinstance(factor, float) and factor == 1


def _bind(
    theta: Tensor, target: Tensor, scale: Scale, call: LossCall, with_stats: bool = False
) -> ScaledRows:
    theta = widen(theta)
    bind = functools.partial(_bind_targets, call, theta, with_stats=with_stats)
    return bind_tensors(theta, widen(target), scale, call.ignore_index, theta.shape[1], bind)


def _bind_targets(
    call: LossCall, theta: Tensor, y: Tensor, with_stats: bool = False
) -> BoundLoss | _CpuRows | _OneRest:
    """Bind a loss to its targets: to compiled or NumPy rows on a CPU, else to the core."""
    k, omega = theta.shape[1], regularizer_of(call.omega)
    has_rows = theta.is_cpu and omega.is_row_wise
    if y.ndim == 3:
        may_have_rest = not theta.is_cpu or bool((y[:, 0] == REST).any())
        if omega.entmax_alpha == 1 and may_have_rest:
            return _OneRest(y, call)
        # compiled rows take lists of classes that are fewer than all, with a target in each row
        if not (has_rows and y.shape[2] < k and _have_entries(y[:, 1])):
            y = rows_of_lists(y, k, theta.dtype)
    # a row of no proportions at all, which was not checked, is none of the engine's rows
    if has_rows and (y.ndim != 2 or not omega.domain.has_labels or _have_entries(y)):
        return _CpuRows(call.omega, call.tightness, y, theta, with_stats)
    return CoreLoss(omega, call.tightness, y)


def _have_entries(y: Tensor) -> bool:
    """True if each row of proportions on a CPU has some that is not zero."""
    return bool(y.numpy(force=True).sum(axis=-1).all())


def bind_tensors(
    theta: Tensor,
    y: Tensor,
    scale: Scale,
    ignore_index: int,
    n_classes: Tensor | int,
    bind: Callable[..., Any],
) -> ScaledRows:
    """Bind what ``bind`` makes of the targets to scores, with the factors of the rows."""
    is_ignored = is_outside = None
    if y.ndim == 2:
        y = y.to(theta.dtype)
    elif y.ndim == 3:
        is_ignored, is_outside = ~listed_rows(y), (y[:, 0] >= n_classes).any(-1)
        first_class = y.new_zeros(y.shape[1:])
        first_class[0, 1:], first_class[1, 0] = PADDING, 1
        y = torch.where((is_ignored | is_outside)[:, None, None], first_class, y)
    elif not (y.is_cpu and not 0 <= ignore_index < n_classes and _are_inside(y, n_classes)):
        is_ignored = y == ignore_index
        is_outside = ((y < 0) | (y >= n_classes)) & ~is_ignored
        y = torch.where(is_ignored | is_outside, 0, y)
    factor: Tensor | float
    if not isinstance(scale, Tensor):
        count: Any = scale
        if count is None:
            count = theta.shape[0] if is_ignored is None else (~is_ignored).sum()
        if isinstance(count, Tensor):
            factor = count.to(theta.dtype).reciprocal()
        else:
            factor = 1 / count if count else math.inf
    elif theta.is_cpu and scale.numel() and not scale.stride(0) and scale[0] != 0:
        factor = float(scale[0])  # one number, expanded
    else:
        factor = scale.to(theta.dtype)
        is_ignored = factor == 0 if is_ignored is None else (factor == 0) | is_ignored
    if theta.is_cpu:  # which may look, and then has less to do
        is_ignored, is_outside = _if_any(is_ignored), _if_any(is_outside)
    return ScaledRows(bind(y), theta, factor, is_ignored, is_outside)


def _if_any(mask: Tensor | None) -> Tensor | None:
    return mask if mask is not None and bool(mask.any()) else None


def _are_inside(labels: Tensor, n_classes: Tensor | int) -> bool:
    """True if all labels are classes; as unsigned numbers negative ones are out of range, too."""
    numbers = labels.numpy(force=True)
    is_inside = numbers.astype(np.int64, copy=False).view(np.uint64).max(initial=0) < n_classes
    return bool(is_inside)


def _compute_perceptron(
    theta: Tensor, labels: Tensor, scale: Scale, call: LossCall, with_gradient: bool
) -> tuple[Tensor, Tensor]:
    """The perceptron loss at labels, max θ − θ_j: scores are read once, and gradients written once.

    A gradient has two entries, 1 at the highest score and −1 at the label.
    """
    k = theta.shape[1]
    first = widen(theta[:, :1])
    rows = bind_tensors(first, labels, scale, call.ignore_index, k, lambda y: y[:, None])
    top, best = theta.max(-1, keepdim=True)
    own: Tensor = rows.bound
    values = rows._scale_values((widen(top) - widen(theta.gather(-1, own)))[:, 0])
    if not with_gradient:
        return values, theta
    # 0 · NaN is NaN in all of a row, as with any other loss
    nothing = torch.zeros_like(first).masked_fill_(top.isnan(), math.nan)
    step = torch.where(best == own, nothing, nothing + 1)
    ends = torch.cat([nothing, step, -step], -1)
    ends = rows._scale_rows(ends, theta.dtype)
    gradient = ends[:, :1].expand(theta.shape).clone(memory_format=torch.contiguous_format)
    gradient.scatter_(-1, best, ends[:, 1:2])
    return values, gradient.scatter_(-1, own, ends[:, 2:])


@exact
def compute(
    theta: Tensor,
    target: Tensor,
    scale: Scale,
    call: LossCall,
    with_gradient: bool,
    stats: StatsRequest | None = None,
) -> tuple[Tensor, Tensor]:
    """Losses of the rows, (n,), in working precision, and gradients in θ, (n, k), in its dtype.

    The scores themselves are in place of gradients that are not asked for. Compiled rows answer a
    request for numbers of the target in the pass that computes the losses.
    """
    numbers = None
    if target.ndim == 1 and call.omega == "perceptron":
        out = _compute_perceptron(theta, target, scale, call, with_gradient)
    else:
        has_numbers = stats is not None and stats.target is target
        rows = _bind(theta, target, scale, call, has_numbers)
        out = rows.value_and_gradient(theta.dtype) if with_gradient else (rows.value(), theta)
        numbers = getattr(rows.bound, "stats", None)
    if stats is not None and numbers is None:
        stats.answer = numbers_of(theta, stats.target, call.ignore_index)
    elif stats is not None:
        found = torch.from_numpy(numbers).to(working_dtype(theta))
        stats.answer = clear_uncounted_(found, target, theta.shape[1], call.ignore_index)
    return out


@exact
def hessian_product(
    theta: Tensor, target: Tensor, scale: Scale, v: Tensor, call: LossCall
) -> Tensor:
    """Hessians of the rows in θ, applied to the rows of v, shape (n, k)."""
    return _bind(theta, target, scale, call).hessian_product(v, theta.dtype)


def compute_few_labels(
    theta: Tensor, labels: Tensor, omega: str, tightness: float, divisor: float
) -> tuple[Tensor, Tensor] | None:
    """The sum of the losses of a small batch at int64 labels, and its gradient, both divided.

    None if there are no compiled rows, or if they do not know one of the rows, such as one with a
    label that is no class.
    """
    n, k = theta.shape
    make = _load(omega) if 0 < n * k <= _MAX_BLOCK else None
    if make is None:
        return None
    x = theta.numpy(force=True)
    if not x.flags.carray:
        return None
    kernel = make(regularizer_of(omega), tightness, Labels((n, k), x.dtype, labels.numpy()))
    scratch = _BUFFERS.scratch
    values, rows = scratch.array("values", (n,), x.dtype), np.empty((n, k), x.dtype)
    task = BlockTask(Output.GRADIENT, slice(0, n), x, values, rows, scratch)
    total = kernel.run(task, float(divisor))
    if math.isnan(total):
        return None
    return torch.from_numpy(np.asarray(total, x.dtype)), torch.from_numpy(rows)


@exact
def link(theta: Tensor, omega: str) -> Tensor:
    """ŷ(θ) = ∇Ω*(θ), shape (n, k)."""
    regularizer, scores = regularizer_of(omega), widen(theta)
    if theta.is_cpu and regularizer.is_row_wise:
        out = _CpuRows(omega, 0.0, None, scores).y_star(scores)
    else:
        out = regularizer.solve_link(scores)
    return out.to(theta.dtype).contiguous()


@functools.lru_cache(maxsize=256)
def _load_link_product(omega: str) -> Callable[..., None]:
    no_rows = Labels((0, 1), _DOUBLE, np.zeros(0, np.int64))
    formula = _load(omega)(regularizer_of(omega), 0.0, no_rows).link_formula
    return functools.partial(load_kernel("compiled.links:multiply_by_jacobian"), formula)


def compute_link_product(p: Tensor, v: Tensor, omega: str) -> Tensor | None:
    """The Jacobian of a link on the simplex at its predictions, times v; None if not compiled."""
    if not _has_compiled_product(p, v) or _load(omega) is None:
        return None
    x = p.numpy(force=True)
    out = np.empty(x.shape, x.dtype)
    _load_link_product(omega)(x, v.numpy(force=True), out, _threads_for(p))
    return torch.from_numpy(out)


def solve_entmax(theta: Tensor, alpha: Tensor) -> Tensor | None:
    """α-entmax of rows on a CPU with an α each, (n,); None if not compiled."""
    if not (_has_compiled_product(theta, theta) and theta.ndim == 2 and numba_compiles()):
        return None
    x = theta.numpy(force=True)
    out = np.empty(x.shape, x.dtype)
    orders = alpha.double().numpy(force=True)
    load_kernel("compiled.links:solve_links")(x, orders, out, _threads_for(theta))
    return torch.from_numpy(out)


def compute_entmax_product(p: Tensor, v: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor] | None:
    """The Jacobian times v, and the derivative along v in α, (n,), for an α of each row."""
    if not (_has_compiled_product(p, v) and p.ndim == 2 and numba_compiles()):
        return None
    x = p.numpy(force=True)
    out, by_alpha = np.empty(x.shape, x.dtype), np.empty(len(x))
    orders = alpha.double().numpy(force=True)
    multiply = load_kernel("compiled.links:multiply_by_jacobians")
    multiply(x, v.numpy(force=True), orders, out, by_alpha, _threads_for(p))
    return torch.from_numpy(out), torch.from_numpy(by_alpha)


def _has_compiled_product(p: Tensor, v: Tensor) -> bool:
    return p.is_cpu and p.dtype in (torch.float32, torch.float64) and v.dtype == p.dtype


def _threads_for(x: Tensor) -> int:
    return torch.get_num_threads() if x.numel() > _MAX_BLOCK else 1
