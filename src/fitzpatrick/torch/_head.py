r"""The head of a network: a linear layer and a loss in one, which never holds all scores.

The scores of a chunk of rows go into one buffer, become their own gradient, and that enters two
more matrix products:

.. math:: \Theta = X W^\top + b, \qquad G = \nabla L(\Theta), \qquad
          \nabla_X = G W, \quad \nabla_W = G^\top X, \quad \nabla_b = G^\top 1.

The gradient of a mean or a sum comes from the forward pass, and the backward pass only scales it.
Without a reduction, and in float16, where a gradient that waits for the loss scale would underflow,
the backward pass computes the scores once more, with the upstream gradient as a scale of the rows.

Rows with the label ``ignore_index`` are left out of all products.
"""

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.library import custom_op

from ._arguments import is_plain, is_transformed
from ._autograd import Gradients, computed_loss, refuse_derivative
from ._engines import compute, scale_, takes_transforms
from ._entmax import link_along
from ._handles import LossCall
from ._operators import as_number, as_operator_arguments
from ._reference import exact
from ._stats import StatsRequest
from ._targets import Weighing, listed_rows, nan_of_nothing, parts_of, scale_vector, working_dtype
from ._transform import Scaling

if TYPE_CHECKING:  # PyTorch may come without torch.distributed
    from ._sharded import ClassShard

_UNFUSED = "use the loss of torch.nn.functional.linear(input, linear_weight, linear_bias)"
ONE_DERIVATIVE = (
    "a linear loss has one derivative: its scores are gone when the second one is asked for; "
    f"{_UNFUSED}"
)
# Scores of a chunk and a padded weight together, on a GPU. Fewer rows would let the products wait
# for the memory, since each chunk reads and writes the gradient of the weight.
MAX_GPU_BYTES = 300 * 2**20
# Scores of a chunk on a CPU (benchmarks/cpu_head.py): they stay in its caches.
MAX_CPU_BYTES = 8 * 2**20
# Chunk sizes are multiples of this, which the tiles of matrix products are.
ROWS_TOGETHER = 128
# What chunks are divided by if a teacher computes their targets, which are float32. More chunks
# would sum the gradient of the weight in float32, which takes memory and time.
ROWS_WITH_TEACHER = 2
# Classes of a padded weight are a multiple of this.
CLASSES_TOGETHER = 64
# In more chunks than this a gradient of half precision is summed in float32. A sum rounded at
# each of m steps is off by about the square root of (m + 1)/2 roundings: on a GPU by 2.3 times the
# error of one product at 8 steps, and 3 times at 16 (benchmarks/gpu_head.py). A float32 buffer of
# the weight's size would be most of the memory that chunks save there; a CPU has room for it.
MAX_ROUNDINGS = {"cuda": 16, "cpu": 1}


class HeadCall(NamedTuple):
    """What is asked for besides tensors; it begins as a :class:`LossCall`.

    A ``chunk_size`` of 0 leaves the choice to this module. Products are computed in ``dtype``, and
    the loss is returned in ``output_dtype``. A cap of 0 is none, for the scores or the teacher's.
    """

    omega: str
    tightness: float
    engine: str
    ignore_index: int
    reduction: str
    label_smoothing: float
    chunk_size: int
    accumulate_dtype: torch.dtype | None
    dtype: torch.dtype
    output_dtype: torch.dtype
    softcap: float = 0.0
    teacher_softcap: float = 0.0

    @property
    def loss(self) -> LossCall:
        return LossCall(self.omega, self.tightness, self.engine, self.ignore_index)


class Layer(NamedTuple):
    """A linear layer and its input: rows x (n, h), weight (k, h), bias (k,) or None.

    A learned ``scale``, of one number, multiplies the scores once they are capped.
    """

    x: Tensor
    weight: Tensor
    bias: Tensor | None = None
    scale: Tensor | None = None

    @property
    def shape(self) -> tuple[int, ...]:  # of the scores
        return *self.x.shape[:-1], self.weight.shape[0]

    @property
    def device(self) -> torch.device:  # where ``exact`` looks for autocast
        return self.x.device

    def flat(self) -> "Layer":
        return self._replace(x=self.x.reshape(math.prod(self.x.shape[:-1]), self.x.shape[-1]))

    def scaled_by(
        self, transform: Scaling | None, *, is_whole: bool = True
    ) -> tuple["Layer", float]:
        """A layer whose scores are scaled, and their cap, 0 without one.

        Features are scaled instead of scores, since they are fewer. A learned factor stays outside
        of a cap, and of a layer that has some of the classes alone.
        """
        if transform is None:
            return self, 0.0
        factor, cap = transform
        if isinstance(factor, Tensor) and (cap or not is_whole):
            return self._replace(scale=factor.to(self.x.device)), cap
        scaling = Scaling(factor, 0.0)
        bias = None if self.bias is None else scaling.apply(self.bias)
        # the cap of scores that are scaled already
        cap = cap * float(factor) if cap and factor is not None else cap
        return Layer(scaling.apply(self.x), self.weight, bias), cap


class Teacher:
    """Rows of targets that are the predictions of another layer."""

    ndim: ClassVar[int] = 2

    def __init__(self, layer: Layer, call: HeadCall) -> None:
        self._layer, self._call = layer, call
        self.shape = layer.shape

    def __getitem__(self, now: slice) -> Tensor:
        x, weight, bias, _ = self._layer
        bias = None if bias is None else bias.to(weight.dtype)
        scores = torch.nn.functional.linear(x[now].to(weight.dtype), weight, bias)
        if self._call.teacher_softcap:
            Scaling(None, self._call.teacher_softcap).apply_(scores)
        scores = scores.to(working_dtype(scores))  # those of the product are freed
        return link_along(self._call.omega, scores)


def _kept(target: Any, ignore_index: int) -> Tensor | None:
    """The indices of the rows that count; None if all do, or while a CUDA graph is captured."""
    if target.ndim == 2 or (target.is_cuda and torch.cuda.is_current_stream_capturing()):
        return None  # kernels give ignored rows a gradient of zeros
    counts = target != ignore_index if target.ndim == 1 else listed_rows(target)
    kept = counts.nonzero()[:, 0]
    return None if len(kept) == len(target) else kept


def _width(layer: Layer, call: HeadCall) -> int:
    """The number of classes, or the one that rows of scores are padded to.

    Matrix products on a GPU are slow where rows do not start at multiples of 16 bytes.
    """
    k = layer.weight.shape[0]
    if not (layer.weight.is_cuda or call.engine == "triton") or k * call.dtype.itemsize % 16 == 0:
        return k
    return -(-k // CLASSES_TOGETHER) * CLASSES_TOGETHER


def rows_of_chunk(
    n: int, width: int, weight: Tensor, call: HeadCall, shard: "ClassShard | None" = None
) -> int:
    """How many rows a chunk has: the same number in all processes that share the classes."""
    if call.chunk_size or n == 0:
        return min(call.chunk_size, n)
    k = weight.shape[0]
    if shard is not None:
        k = width = -(-int(shard.n_classes) // shard.n_shards)
    size = width * call.dtype.itemsize
    budget = MAX_CPU_BYTES if weight.is_cpu else MAX_GPU_BYTES
    if width != k:
        budget -= min(width * weight.shape[1] * call.dtype.itemsize, budget // 2)
    most = max(budget // size // ROWS_TOGETHER, 1) * ROWS_TOGETHER
    even = -(-n // -(-n // most))  # chunks of the same size
    return min(-(-even // ROWS_TOGETHER) * ROWS_TOGETHER, n)


def _accumulate(total: Tensor, gradient: Tensor, x: Tensor, beta: int) -> None:
    """total ← beta · total + gradientᵀ x, rounded once."""
    if total.dtype == gradient.dtype:
        total.addmm_(gradient.T, x, beta=beta)
    elif total.is_cuda and hasattr(torch.ops.aten.addmm, "dtype_out"):
        product = torch.ops.aten.addmm.dtype_out
        product(total, gradient.T, x, total.dtype, beta=beta, out=total)
    else:
        total.addmm_(gradient.T.to(total.dtype), x.to(total.dtype), beta=beta)


@torch.no_grad()
@exact
def _solve(
    layer: Layer,
    parts: Sequence[Tensor],
    weight: Tensor | None,
    call: HeadCall,
    wanted: Sequence[bool],
    upstream: Tensor | None = None,
    shard: "ClassShard | None" = None,
    stats: Tensor | None = None,
) -> tuple[Tensor, Gradients]:
    """The loss, and those gradients that are wanted, of x, weight, bias and scale.

    ``parts`` is a target, or the rows, the weight and perhaps the bias of a teacher. With an
    ``upstream`` gradient it multiplies the rows, and the loss is of no use. The numbers of rows
    that count are written into ``stats``. The dtypes are those of the call, whatever autocast would
    choose.
    """
    # a tensor, or what has rows of one
    target: Any = parts[0] if len(parts) == 1 else Teacher(Layer(*parts), call)
    k, dtype = layer.weight.shape[0], call.dtype
    x, w = layer.x.to(dtype), layer.weight.to(dtype)
    bias = None if layer.bias is None else layer.bias.to(dtype)
    working = working_dtype(x)
    has_labels = target.ndim != 2  # or lists of them
    width = _width(layer, call)
    # in padded rows class indices see further classes, whose score is −∞; the others see k classes
    sees_all = width == k or (has_labels and call.label_smoothing == 0 and call.engine == "triton")
    if width != k:
        w = torch.nn.functional.pad(w, (0, 0, 0, width - k))
        bias = None if bias is None else torch.nn.functional.pad(bias, (0, width - k))
        if has_labels and shard is None:
            # those out of range stay there
            outside = width + (call.ignore_index == width)
            is_outside = (target >= k) & (target != call.ignore_index)
            if target.ndim == 3:
                is_outside[:, 1] = False
            target = target.masked_fill(is_outside, outside)
    kept = _kept(target, call.ignore_index)
    if kept is not None:
        target = target[kept]
        upstream = upstream[kept] if upstream is not None and upstream.ndim else upstream
    n = target.shape[0]
    n_classes = k if shard is None else shard.n_classes
    weighing = Weighing(
        weight, n_classes, call.ignore_index, call.reduction, call.label_smoothing, shard
    )
    divisor = weighing.divisor(target, working)
    weights: Any = None
    transform = None
    if call.softcap or layer.scale is not None:
        transform = Scaling(layer.scale, call.softcap)
    is_in_kernel = shard is None and call.label_smoothing == 0
    is_in_kernel = is_in_kernel and takes_transforms(target, call.loss)
    if target.ndim == 3 and call.label_smoothing == 0:  # all together, in a few small kernels
        _, weights = weighing.weigh(target, working, divisor)
    step = rows_of_chunk(n, width, layer.weight, call, shard)
    if isinstance(target, Teacher) and not call.chunk_size:
        step = -(-step // ROWS_WITH_TEACHER)
    starts = range(0, n, step or 1)
    sums = _Sums(layer, w, wanted, _accumulation_dtype(layer, call, len(starts)))
    buffer = x.new_empty((step, width))
    values = x.new_zeros(len(x), dtype=working)  # those of rows that do not count stay zero
    for start in starts:
        some_target = y = None  # a teacher's rows are freed before it computes more
        now = slice(start, min(start + step, n))
        place = now if kept is None else kept[now]
        some = x[place]
        scores = buffer[: len(some)]
        if bias is None:
            torch.mm(some, w.T, out=scores)
        else:
            torch.addmm(bias, some, w.T, out=scores)
        kept_scores = by_factor = None
        if transform is not None and not is_in_kernel:
            kept_scores = transform.apply_(scores)
        elif wanted[3]:
            by_factor = values.new_empty(len(some))
        if width != k and sees_all:
            scores[:, k:] = -math.inf
        seen = scores if sees_all else scores[:, :k]
        some_target = target[now]
        request = None if stats is None else StatsRequest(some_target)
        if weights is None:
            y, scale = weighing.weigh(some_target, working, divisor)
        else:
            y, scale = some_target, weights[now]
        if upstream is not None:
            factors = scale_vector(scale, seen, parts_of(y)[0], call.ignore_index)
            scale = factors * (upstream[now] if upstream.ndim else upstream).to(working)
        if shard is not None:
            values[place], gradient = shard.compute(seen, y, scale, call.loss, dtype)
        else:
            values[place], gradient = compute(
                seen, y, scale, call.loss, with_gradient=any(wanted), in_place=any(wanted),
                stats=request, transform=transform if is_in_kernel else None, by_factor=by_factor,
            )  # fmt: skip
        if stats is not None and request is not None:
            stats[place] = request.answer
        if not any(wanted):
            continue
        if gradient.shape[1] != width:
            if gradient.data_ptr() != scores.data_ptr():
                seen.copy_(gradient)
            gradient = scores  # zero beyond k, as the padded weight is
        if transform is not None and kept_scores is not None:
            by_factor = transform.pull_back_(gradient, kept_scores)
        sums.add(gradient, some, place, by_factor)
    by_x, *others = sums.gradients()
    if by_x is not None and shard is not None:
        by_x = shard.sum(by_x)  # each process has the products with its own classes
    if call.reduction != "none":
        nan_of_no_rows = nan_of_nothing(divisor, values)
        values = values.sum() if nan_of_no_rows is None else values.sum() + nan_of_no_rows
    return values.to(call.output_dtype), (by_x, *others)


class _Sums:
    """The gradients of a layer, chunk by chunk, as far as they are wanted."""

    def __init__(self, layer: Layer, w: Tensor, wanted: Any, dtype: torch.dtype) -> None:
        self._layer, self._w, self._is_empty = layer, w, True
        dense, working = torch.contiguous_format, working_dtype(w)
        self._by_x = torch.zeros_like(layer.x, memory_format=dense) if wanted[0] else None
        self._by_weight = w.new_empty(w.shape, dtype=dtype) if wanted[1] else None
        self._by_bias = w.new_zeros(len(w), dtype=working) if wanted[2] else None
        self._by_scale = w.new_zeros((), dtype=working) if wanted[3] else None

    def add(
        self, gradient: Tensor, x: Tensor, place: slice | Tensor, by_scale: Tensor | None
    ) -> None:
        """A chunk: the gradient of its scores, its rows of the input, and which ones they are."""
        w, by_x = self._w, self._by_x
        if by_x is not None:
            if isinstance(place, slice) and by_x.dtype == w.dtype:
                torch.mm(gradient, w, out=by_x[place])
            else:
                by_x[place] = (gradient @ w).to(by_x.dtype)
        if self._by_weight is not None:
            _accumulate(self._by_weight, gradient, x, beta=0 if self._is_empty else 1)
        if self._by_bias is not None:
            self._by_bias += gradient.sum(0, dtype=self._by_bias.dtype)
        if self._by_scale is not None and by_scale is not None:
            self._by_scale += by_scale.sum()
        self._is_empty = False

    def gradients(self) -> Gradients:
        """Those of x, weight, bias and scale, without padded classes."""
        if self._is_empty and self._by_weight is not None:
            self._by_weight.zero_()
        padded, k = (self._by_weight, self._by_bias), len(self._layer.weight)
        sums = self._by_x, *(x if x is None else x[:k] for x in padded), self._by_scale
        return tuple(
            None if x is None or part is None else x.to(part.dtype)
            for x, part in zip(sums, self._layer, strict=True)
        )


def _accumulation_dtype(layer: Layer, call: HeadCall, n_chunks: int) -> torch.dtype:
    own = layer.weight.dtype
    if call.accumulate_dtype is not None:
        return call.accumulate_dtype
    most = MAX_ROUNDINGS.get(layer.weight.device.type, 1)
    is_rounded_often = n_chunks > most or own != call.dtype
    return torch.float32 if own.itemsize == 2 and is_rounded_often else own


def _is_fused(call: HeadCall) -> bool:
    return call.reduction != "none" and call.dtype != torch.float16


def _pull_back(
    call: HeadCall,
    shard: "ClassShard | None",
    tensors: Any,
    gradients: Gradients | None,
    upstream: Tensor,
    needed: Any,
) -> Gradients:
    """The backward pass of plain tensors; gradients of the forward pass are scaled in place."""
    if not is_plain(upstream):
        raise NotImplementedError(
            "the backward pass of a linear loss cannot be mapped (vmap, is_grads_batched); "
            f"{_UNFUSED}"
        )
    *layer, weight = tensors[:5]
    if gradients is None:
        given = Layer(*layer), tensors[5:], weight, call, needed[:4]
        _, gradients = _solve(*given, upstream, shard)
    else:
        gradients = tuple(g if g is None else scale_(g, upstream, call.engine) for g in gradients)
    if torch.is_grad_enabled():
        sources = [x for x in (*layer, upstream) if x is not None]
        gradients = tuple(
            None if g is None else refuse_derivative(g, ONE_DERIVATIVE, *sources) for g in gradients
        )
    return gradients


def _compute_linear_loss(*arguments: Any) -> tuple[Tensor, ...]:
    """The loss and its gradients in x, weight, bias and scale; empty if they are not wanted.

    The arguments are the layer, the class weights, the upstream gradient, the parts of the target,
    which gradients are wanted, a :class:`HeadCall`, and its tightness where that is a symbol.
    """
    weight, upstream, parts, wanted = arguments[4:8]
    call = HeadCall(*arguments[8:-1])
    call = call._replace(tightness=as_number(call.tightness, arguments[-1]))
    loss, gradients = _solve(Layer(*arguments[:4]), parts, weight, call, wanted, upstream)
    return loss, *(arguments[0].new_empty(0) if g is None else g for g in gradients)


# for compilers
linear_loss = custom_op(
    "fitzpatrick::linear_loss",
    _compute_linear_loss,
    mutates_args=(),
    schema="(Tensor x, Tensor linear_weight, Tensor? linear_bias, Tensor? scale, Tensor? weight, "
    "Tensor? upstream, Tensor[] parts, bool[] wanted, str omega, float tightness, str engine, "
    "int ignore_index, str reduction, float label_smoothing, int chunk_size, "
    "ScalarType? accumulate_dtype, ScalarType dtype, ScalarType output_dtype, float softcap, "
    "float teacher_softcap, Tensor? symbolic_tightness) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)


@linear_loss.register_fake
def _(*arguments: Any) -> tuple[Tensor, ...]:
    layer, wanted, call = arguments[:4], arguments[7], HeadCall(*arguments[8:-1])
    x = layer[0]
    loss = x.new_empty(x.shape[:1] if call.reduction == "none" else (), dtype=call.output_dtype)
    gradients = [
        x.new_empty(0) if part is None or not want else part.new_empty(part.shape)
        for part, want in zip(layer, wanted, strict=True)
    ]
    return loss, *gradients


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, _upstream, parts, _wanted = inputs[:8]
    *ctx.call, symbolic_tightness = inputs[8:]
    ctx.nothing = None, None, [None] * len(parts), *[None] * (len(inputs) - 7)
    ctx.is_fused = _is_fused(HeadCall(*ctx.call))
    gradients = output[1:]
    saved = gradients if ctx.is_fused else (*tensors, symbolic_tightness, *parts)
    ctx.save_for_backward(*saved)
    ctx.set_materialize_grads(False)


def _pull_back_operator(ctx: Any, upstream: Tensor | None, *further: Tensor | None) -> Gradients:
    if any(g is not None for g in further):
        raise NotImplementedError(ONE_DERIVATIVE)
    if upstream is None:
        return None, None, None, None, *ctx.nothing
    needed = list(ctx.needs_input_grad[:4])
    if ctx.is_fused:
        gradients = [g * upstream.to(g.dtype) for g in ctx.saved_tensors]
    else:
        *tensors, symbol = ctx.saved_tensors[:6]
        parts = ctx.saved_tensors[6:]
        _, *gradients = linear_loss(*tensors, upstream, parts, needed, *ctx.call, symbol)
    asked = (g if need else None for g, need in zip(gradients, needed, strict=True))
    return *asked, *ctx.nothing


linear_loss.register_autograd(_pull_back_operator, setup_context=_save)


def head_loss(
    layer: Layer,
    parts: Sequence[Tensor],
    weight: Tensor | None,
    call: HeadCall,
    shard: "ClassShard | None" = None,
    *,
    is_eager: bool,
    stats: Tensor | None = None,
) -> Tensor:
    """The loss of rows x (n, h), with its first derivatives.

    ``parts`` is a target, or the rows, the weight and perhaps the bias of a teacher. With a shard,
    weight and bias are those of its classes. The tensors are ordinary ones if ``is_eager``; then
    there may be ``stats``, zeros (n, 4) to write the numbers of the rows into.
    """
    if is_transformed():
        raise NotImplementedError(
            "a linear loss is differentiated by backward() and torch.autograd.grad, not by "
            f"torch.func or in forward mode; there, {_UNFUSED}"
        )
    if stats is not None and not is_eager:
        raise NotImplementedError(
            "return_stats of a linear loss needs eager tensors, and torch.compile traces these; "
            "call the loss outside of the compiled function"
        )
    is_fused = _is_fused(call)
    needs = [part is not None and part.requires_grad and torch.is_grad_enabled() for part in layer]
    wanted = [need and is_fused for need in needs]
    if shard is None and not is_eager:
        omega, tightness, *rest = call
        number, symbol = as_operator_arguments(tightness)
        given = *layer, weight, None, parts, wanted
        out: Tensor = linear_loss(*given, omega, number, *rest, symbol)[0]
        return out
    loss, gradients = _solve(layer, parts, weight, call, wanted, shard=shard, stats=stats)
    if not any(needs):
        return loss
    pull_back = functools.partial(_pull_back, call, shard)
    kept = gradients if is_fused else None
    return computed_loss(loss, pull_back, kept, *layer, weight, *parts)
