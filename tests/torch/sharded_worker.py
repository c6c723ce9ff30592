"""Several processes that share the classes of a loss; each writes what went wrong.

All cases of a world size run in one group of processes, and all groups are forks of one process,
since importing PyTorch takes seconds.
"""

import copy
import functools
import itertools
import json
import os
import runpy
import sys
import traceback
from datetime import timedelta
from pathlib import Path

if __name__ == "__main__":
    # what they compare with is the core: Numba would take longer to compile than all cases
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    sys.modules["triton"] = None  # as if it were not installed: nothing requires it

import torch
import torch._dynamo  # here, so that each process does not import it anew
import torch.distributed as distributed
from forks import fork
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

import fitzpatrick as fp
import fitzpatrick.torch as ft
from fitzpatrick.regularizers._base import Elementwise
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit
from fitzpatrick.torch._sharded import ClassShard

# What the package promises: sharded losses and gradients are those of one process. Half precision
# is rounded once, from float32.
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-6}
ROUNDED = {dtype: torch.finfo(dtype).eps for dtype in (torch.bfloat16, torch.float16)}
EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_tensor_parallel.py"
N_CLASSES = 11  # no multiple of a number of processes
LABELS = torch.tensor([0, 10, 5, 3, 7, 2, 9, 4, 1, 6])
TIGHTNESSES = (0.0, 0.5, 1.0, 2.0)
FAMILIES = {
    "logistic": F.fitzpatrick_logistic_loss,
    "sparsemax": F.fitzpatrick_sparsemax_loss,
    "entmax15": F.fitzpatrick_entmax15_loss,
    "tsallis13": lambda x, y, **options: F.fitzpatrick_entmax_loss(x, y, 1.3, **options),
    "tsallis1": lambda x, y, **options: F.fitzpatrick_entmax_loss(x, y, 1.0, **options),
    "perceptron": F.perceptron_loss,
}


EVERY_LOSS = [
    *itertools.product(["logistic", "sparsemax", "entmax15", "tsallis13"], TIGHTNESSES),
    ("tsallis1", 0.5),
    ("perceptron", 0.0),
]
# targets and weights are made ready before a loss looks at them
SOME_LOSSES = [("logistic", 0.5), ("entmax15", 1.0), ("perceptron", 0.0)]


def numbers_that_travel(rounds, steps):
    """How many numbers a row each reduction has, by loss and target.

    Args:
        rounds: with four candidates for τ in each.
        steps: of Newton's method after the first.
    """
    sections, newton = [1, *[8] * rounds, 2, 1], [1, *[2] * (1 + steps), 2, 1]
    return {
        ("logistic", 0.0, "labels"): [1, 2],
        ("logistic", 1.0, "labels"): [1, 2],
        ("logistic", 0.0, "proportions"): [1, 2, 1],
        ("logistic", 1.0, "proportions"): newton,
        ("sparsemax", 1.0, "labels"): sections,
        ("entmax15", 1.0, "proportions"): sections,
        ("tsallis13", 0.0, "labels"): sections,
        ("perceptron", 0.0, "labels"): [1, 1, 1],
    }


NUMBERS = {torch.float32: numbers_that_travel(6, 4), torch.float64: numbers_that_travel(8, 6)}


def loss_of(family, tightness):
    function = FAMILIES[family]
    if family == "perceptron":
        return function
    return lambda *arguments, **options: function(*arguments, tightness=tightness, **options)


def scores_in(dtype):
    """Rows of every kind: small, large, ties, masked classes, a class far ahead."""
    generator = torch.Generator().manual_seed(7)
    scores = torch.randn(len(LABELS), N_CLASSES, generator=generator, dtype=torch.float64)
    scores[1] *= 1e-3
    scores[2] *= 10
    scores[3] = 0.25  # all tied
    scores[4, :6] = scores[4].max() + 1  # some tied at the top
    scores[5] *= 1e4
    scores[6, [0, 4, 8]] = -torch.inf
    scores[7] = -1e4
    scores[7, 4] = 1e4  # the label's
    scores[8] = scores[8] * 0.1 + 1e4
    scores[9, :6] = -torch.inf  # all that the first process has
    return scores.to(dtype)


def proportions_in(dtype):
    """Targets of full and of small support, none where a class is masked."""
    generator = torch.Generator().manual_seed(8)
    y = torch.rand(len(LABELS), N_CLASSES, generator=generator, dtype=torch.float64) ** 3
    y[::2, 1::3] = 0
    y[scores_in(dtype) == -torch.inf] = 0
    y[0] = torch.nn.functional.one_hot(LABELS[0], N_CLASSES)
    y = y / y.sum(-1, keepdim=True)
    return y.to(dtype)


def lists_of(labels):
    """Each label with another class and padding, and a row of padding alone."""
    indices = torch.stack([labels, (labels + 3) % N_CLASSES, labels * 0 - 1], -1)
    indices[1] = -1
    values = torch.tensor([0.25, 0.75, 0.0], dtype=torch.float64).expand(indices.shape)
    return ft.SparseTargets(indices, values)


def weights_in(dtype):
    return torch.linspace(0.5, 2.0, N_CLASSES, dtype=dtype)


def ignored(at):
    return lambda _: LABELS.masked_fill(torch.isin(torch.arange(10), torch.tensor(at)), -100)


# (target, losses, options) by name
OPTIONS = {
    "labels": (ignored([]), EVERY_LOSS, {"reduction": "none"}),
    "weighted labels": (ignored([0, 6]), SOME_LOSSES, {"weight": weights_in}),
    "an ignored class": (ignored([]), SOME_LOSSES, {"ignore_index": 5, "reduction": "sum"}),
    "smoothed labels": (ignored([]), SOME_LOSSES, {"reduction": "none", "label_smoothing": 0.1}),
    "smoothed, weighted labels": (
        ignored([]),
        SOME_LOSSES,
        {"weight": weights_in, "label_smoothing": 0.2, "ignore_index": 7},
    ),
    "proportions": (proportions_in, SOME_LOSSES, {"reduction": "none", "label_smoothing": 0.3}),
    "weighted proportions": (
        proportions_in,
        EVERY_LOSS,
        {"weight": weights_in, "reduction": "none"},
    ),
}


def bounds(world_size):
    """Where the parts begin and end: uneven ones, and an empty one among four."""
    sizes = {2: [6, 5], 4: [3, 6, 0, 2]}[world_size]
    ends = list(itertools.accumulate(sizes))
    return list(zip([0, *ends[:-1]], ends, strict=True))


class HalfScores(Elementwise):
    """Formulas of the negentropy at θ/2."""

    def __init__(self, y, tightness):
        self.of_half = fp.regularizers.Negentropy().kernel(y, tightness)

    def point(self, s):
        p, d = self.of_half.point(s / 2)
        return p, d / 2

    def terms(self, s):
        return 2 * self.of_half.terms(s / 2)

    def start(self, theta):
        return 2 * self.of_half.start(theta / 2)

    def steps(self, theta):  # of all classes, of which the processes have different numbers
        return theta.shape[-1] + 1


class Doubled(fp.regularizers.SeparableRegularizer):
    """Twice the negentropy, as a user would write it; its text holds its address."""

    domain = fp.sets.Simplex()

    def potential(self, y):
        return 2 * fp.regularizers.Negentropy().potential(y)

    potential_gradient = potential_curvature = slope = None  # what second derivatives need

    def kernel(self, y, tightness):
        return HalfScores(y, tightness)


class Labeled(fp.sets.L2Ball):
    has_labels = True


def assert_same_on_all_ranks(x):
    """Bit for bit, NaN included."""
    x = x.detach().double().reshape(-1)
    others = [torch.empty_like(x) for _ in range(distributed.get_world_size())]
    distributed.all_gather(others, x)
    assert all(torch.equal(other.nan_to_num(), x.nan_to_num()) for other in others)


def loss_and_gradients(loss, *leaves):
    """The loss, and the gradients of its sum, weighted in a way that tells rows apart."""
    upstream = torch.linspace(1, 2, loss.numel(), dtype=loss.dtype).reshape(loss.shape)
    return loss.detach(), *torch.autograd.grad(loss, leaves, upstream, retain_graph=True)


class CountReductions(TorchDispatchMode):
    """The reductions that run inside, as (operation, shape)."""

    def __init__(self):
        super().__init__()
        self.shapes = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "allreduce" in str(function):
            self.shapes += [tuple(args[0][0].shape)]
        return function(*args, **(kwargs or {}))


def raised(kind, function, *arguments, **options):
    """The message of the error that a call must raise."""
    try:
        function(*arguments, **options)
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def case(method):
    """Mark a method that a process runs by itself."""
    method.is_case = True
    return method


class Cases:
    """What a process of a group tries, one method a case."""

    def __init__(self, rank, world_size):
        self.rank, self.world_size = rank, world_size
        self.group = distributed.group.WORLD
        self.own = slice(*bounds(world_size)[rank])
        self.is_thorough = world_size == 2

    def even_part(self, k=N_CLASSES):
        """Classes of this process where each has some."""
        edges = torch.linspace(0, k, self.world_size + 1).long().tolist()
        return slice(edges[self.rank], edges[self.rank + 1])

    def compare(self, function, scores, target, **options):
        """The sharded loss and its gradient are those of one process."""
        whole, part = (x.clone().requires_grad_() for x in (scores, scores[:, self.own]))
        expected, gradient = loss_and_gradients(function(whole, target, **options), whole)
        has_rows = isinstance(target, torch.Tensor) and target.is_floating_point()
        own_target = target[:, self.own] if has_rows else target
        loss = function(part, own_target, process_group=self.group, **options)
        found = loss_and_gradients(loss, part)
        rtol = (TOLERANCES | ROUNDED)[scores.dtype]
        tolerance = {"rtol": rtol, "atol": min(rtol, 1e-6), "equal_nan": True}
        torch.testing.assert_close(found, (expected, gradient[:, self.own]), **tolerance)
        assert_same_on_all_ranks(loss)
        return loss

    @case
    def every_option(self):
        """Labels, proportions, weights, smoothing and ignored rows."""
        for name, (target_of, losses, options) in OPTIONS.items():
            # they take the precisions by turns: labels the one, proportions the other
            dtypes = itertools.cycle(TOLERANCES)
            if "weight" in options:
                next(dtypes)
            losses = losses if self.is_thorough else losses[:: 1 + len(TIGHTNESSES)]
            for (family, tightness), dtype in zip(losses, dtypes, strict=False):
                given = {k: v(dtype) if callable(v) else v for k, v in options.items()}
                loss = loss_of(family, tightness)
                try:
                    self.compare(loss, scores_in(dtype), target_of(dtype), **given)
                except AssertionError as error:
                    error.add_note(f"{name=} {family=} {tightness=} {dtype=}")
                    raise

    @case
    def learned_scales(self):
        """Every rank has the whole derivative in a number that multiplies the scores."""
        scores, double = scores_in(torch.float64), torch.float64
        x, layer = scores[:, :3].clamp(-1, 1), scores[:7].T.clamp(-1, 1)
        layer[8, 3] = -torch.inf  # masks a class that is no label
        scale = torch.tensor([1.5], dtype=double, requires_grad=True)
        for softcap, reduction in itertools.product((None, 2.0), ("mean", "none")):
            found = []
            for group in (None, self.group):
                own, some = (slice(None),) * 2 if group is None else (self.own, self.even_part())
                given = {"softcap": softcap, "reduction": reduction, "process_group": group}
                given |= {"logit_scale": scale}
                plain = F.fitzpatrick_logistic_loss(scores[:, own], LABELS, **given)
                head = F.linear_fitzpatrick_sparsemax_loss(
                    x, layer[some, :3], LABELS, linear_bias=layer[some, 3], **given
                )
                found += [[loss_and_gradients(loss, scale) for loss in (plain, head)]]
            torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)

    @case
    def lists_of_classes(self):
        target, scores = lists_of(LABELS), scores_in(torch.float64)
        for family, tightness in SOME_LOSSES:
            loss = loss_of(family, tightness)
            self.compare(loss, scores, target, reduction="none")
            self.compare(loss, scores, target, weight=weights_in(torch.float64))
        bucket, part = (
            ft.SparseTargets(target.indices, target.values, "bucket"),
            scores[:, self.own],
        )
        raised(ValueError, F.logistic_loss, part, bucket, process_group=self.group)

    @case
    def rows_without_an_answer(self):
        """NaN scores, and rows that are masked throughout, spoil their own row alone."""
        scores = scores_in(torch.float64)
        scores[0, 7], scores[1, 1] = torch.nan, torch.nan  # of one process, and of another
        for family, tightness in SOME_LOSSES:
            loss = loss_of(family, tightness)
            found = self.compare(loss, scores, LABELS, reduction="none")
            assert found.isnan().nonzero().tolist() == [[0], [1]]
        scores[2] = -torch.inf
        found = self.compare(F.fitzpatrick_entmax15_loss, scores, LABELS, reduction="none")
        assert found.isnan().nonzero().tolist() == [[0], [1], [2]]

    @case
    def maxima(self):
        """A NaN of any rank makes the largest of all ranks infinite, on all of them."""
        shard = ClassShard(self.group, self.rank, 0, N_CLASSES)
        numbers = torch.arange(4.0)[:, None].repeat(1, 2)
        for place in range(self.world_size):
            own = numbers + self.rank
            if self.rank == place:
                own[place % 2] = torch.nan
            found = shard.max(own)
            expected = numbers + self.world_size - 1
            expected[place % 2] = torch.inf
            assert torch.equal(found, expected)

    @case
    def wide_rows(self):
        """Thresholds among many classes, small and large steps between them."""
        if not self.is_thorough:
            return
        k = 4000
        generator = torch.Generator().manual_seed(9)
        labels = torch.randint(k, (6,), generator=generator)
        self.own = self.even_part(k)
        for dtype in TOLERANCES:
            scores = torch.randn(6, k, generator=generator, dtype=torch.float64)
            scores[1] *= 0.01
            scores[2] = -(0.99 ** torch.arange(k))
            scores[3] = -1 + 10.0 ** (-9 * torch.rand(k, generator=generator, dtype=torch.float64))
            scores[3, 0] = 0
            scores[4] = scores[4].round()  # ties
            scores = scores.to(dtype)
            for family in ("logistic", "sparsemax", "entmax15", "tsallis13"):
                self.compare(loss_of(family, 1.0), scores, labels, reduction="none")
        self.own = slice(*bounds(self.world_size)[self.rank])

    @case
    def own_regularizer(self):
        """Any separable potential on the simplex has it, without a bound on τ from above."""

        module = ft.FitzpatrickLoss(Doubled(), tightness=0.5, reduction="none")

        def loss(scores, target, process_group=None, **_):
            module.process_group = process_group
            return module(scores, target)

        self.compare(loss, scores_in(torch.float64), proportions_in(torch.float64))
        self.compare(loss, scores_in(torch.float64), LABELS)
        module.process_group, module.validate = self.group, False
        message = raised(TypeError, module, scores_in(torch.float64)[:, self.own], LABELS)
        assert "HalfScores.steps asks for 16777217 Newton steps" in message
        assert "scores of all classes" in raised(NotImplementedError, module.link, LABELS)
        ball = ft.FitzpatrickLoss(fp.regularizers.SquaredNorm(Labeled()), process_group=self.group)
        message = raised(TypeError, ball, scores_in(torch.float64)[:, self.own], LABELS)
        assert "need all classes in one process" in message

    @case
    def unchecked(self):
        """Without a look at values, places and sizes stay tensors."""
        scores = scores_in(torch.float64)
        self.compare(F.fitzpatrick_logistic_loss, scores, LABELS, validate=False)
        options = {"weight": weights_in(torch.float64), "label_smoothing": 0.1, "validate": False}
        self.compare(F.fitzpatrick_entmax15_loss, scores, LABELS, **options)
        self.compare(F.sparsemax_loss, scores, proportions_in(torch.float64), **options)
        outside = LABELS.clone()
        outside[3] = N_CLASSES
        options = {"reduction": "none", "validate": False}
        found = self.compare(F.fitzpatrick_logistic_loss, scores, outside, **options)
        assert found.isnan().nonzero().tolist() == [[3]]

    @case
    def shapes_and_precisions(self):
        if not self.is_thorough:
            return
        scores = torch.stack([scores_in(torch.float64)] * 2)  # (2, n, k)
        labels = torch.stack([LABELS, LABELS.flip(0)])
        part, group = scores[..., self.own], {"process_group": self.group}
        expected = F.sparsemax_loss(scores, labels, dim=-1)
        for given, dim in ((part, -1), (part.movedim(-1, 1), None)):
            torch.testing.assert_close(
                F.sparsemax_loss(given, labels.int(), dim=dim, **group), expected
            )
        assert F.sparsemax_loss(part[0, :0], labels[0, :0], **group).isnan()
        for dtype in ROUNDED:
            some = scores[0, :5].to(dtype)
            self.compare(F.fitzpatrick_entmax15_loss, some, LABELS[:5])
            with torch.autocast("cpu", dtype=torch.bfloat16):
                found = F.fitzpatrick_entmax15_loss(some[:, self.own], LABELS[:5], **group)
            assert found.dtype == torch.float32

    @case
    def derivatives(self):
        """Learned weights have a gradient; second derivatives raise; a graph is used twice."""
        scores = scores_in(torch.float64)[:5]
        weight = weights_in(torch.float64)
        weight[LABELS[0]] = 0.0  # the weight of a row, whose derivative is its loss all the same
        whole_weight, weight = (weight.clone().requires_grad_() for _ in range(2))
        part = scores[:, self.own].clone().requires_grad_()
        F.fitzpatrick_logistic_loss(scores, LABELS[:5], whole_weight).backward()
        group = {"process_group": self.group}
        loss = F.fitzpatrick_logistic_loss(part, LABELS[:5], weight, **group)
        loss.backward(retain_graph=True)
        torch.testing.assert_close(weight.grad, whole_weight.grad)
        masked = scores.clone()
        masked[0, LABELS[0]] = -torch.inf  # a loss of ∞, which weighs nothing
        expected = F.fitzpatrick_logistic_loss(masked, LABELS[:5], weight.detach())
        found = F.fitzpatrick_logistic_loss(masked[:, self.own], LABELS[:5], weight, **group)
        torch.testing.assert_close(found, expected)
        once = part.grad.clone()
        loss.backward()
        torch.testing.assert_close(part.grad, 2 * once)
        options = {"create_graph": True}
        (gradient,) = torch.autograd.grad(
            F.sparsemax_loss(part, LABELS[:5], **group), part, **options
        )
        if gradient.numel():
            message = raised(NotImplementedError, gradient.sum().backward)
            assert "differentiated once" in message
        with_group = functools.partial(F.sparsemax_loss, target=LABELS[:5], **group)
        message = raised(NotImplementedError, torch.func.grad(with_group), part.detach())
        assert "not by torch.func" in message
        y = proportions_in(torch.float64)[:5, self.own]
        loss = F.sparsemax_loss
        assert "weight.detach()" in raised(NotImplementedError, loss, part, y, weight, **group)
        smoothed = {"label_smoothing": 0.2, **group}
        message = raised(NotImplementedError, loss, part, LABELS[:5], weight, **smoothed)
        assert "a weight that changes the target" in message

    @case
    def reductions(self):
        """What travels is what the page says: numbers of each row, and how many reductions."""
        for dtype in TOLERANCES if self.is_thorough else [torch.float32]:
            for (family, tightness, kind), numbers in NUMBERS[dtype].items():
                y = LABELS if kind == "labels" else proportions_in(dtype)[:, self.own]
                part = scores_in(dtype)[:, self.own].clone().requires_grad_()
                options = {"validate": False, "process_group": self.group}
                with CountReductions() as counted:
                    loss_of(family, tightness)(part, y, **options).backward()
                n = len(LABELS)
                meeting = (self.world_size, 6)
                assert counted.shapes == [meeting, *((n, m) for m in numbers)], family

    @case
    def disagreements(self):
        """Every rank raises, at once, and the group stays usable."""
        scores, weight = scores_in(torch.float64)[:, self.own], weights_in(torch.float64)
        y = proportions_in(torch.float64)[:, self.own].clone()
        loss, is_first = F.fitzpatrick_logistic_loss, self.rank == 0
        rows = slice(0, 5 if is_first else 6)
        outside, wrong = LABELS.clone(), y.clone()
        outside[4] = N_CLASSES
        wrong[2, :is_first] = -0.5
        elsewhere = "the arguments of rank 0"
        for message, x, target, options in (
            ("differ in the number of rows (5 and 6)", scores[rows], LABELS[rows], {}),
            ("the dtype of the scores", scores.float() if is_first else scores, LABELS, {}),
            ("its options", scores, LABELS, {"label_smoothing": 0.1 if is_first else 0.2}),
            ("its options", scores, LABELS, {"softcap": 1.0 if is_first else 2.0}),
            ("the class indices", scores, LABELS.flip(0) if is_first else LABELS, {}),
            (f"target {N_CLASSES} at 4 is out of range: input has {N_CLASSES} classes", scores,
             outside, {}),
            (f"({N_CLASSES},), got (3,)", scores, LABELS, {"weight": weight[:3]}),
            ("the class weights", scores, LABELS, {"weight": weight[:3] if is_first else weight}),
            ("the class weights", scores, LABELS, {"weight": 2 * weight if is_first else weight}),
            ("the class weights", scores, LABELS, {"weight": None if is_first else weight}),
            ("floating-point" if is_first else elsewhere, scores, LABELS,
             {"weight": weight.long() if is_first else weight}),
            ("must have shape (10,)" if is_first else elsewhere, scores,
             LABELS[:3] if is_first else LABELS, {}),
            ("sums to", scores, y * 0.5, {}),
            ("target row 2 has an entry that is negative or NaN", scores, wrong, {}),
            ("all classes in one process", scores, LABELS, {"engine": "triton"}),
            ("mesh.get_group()", scores, LABELS, {"process_group": "tp"}),
        ):  # fmt: skip
            options = {"process_group": self.group, **options}
            found = raised((TypeError, ValueError), loss, x, target, **options)
            assert message in found, f"{message} is not in {found}"
        first = distributed.new_group([0])
        if not is_first:
            found = raised(ValueError, loss, scores, LABELS, process_group=first)
            assert f"rank {self.rank} is not a member" in found
        loss(scores, LABELS.to(torch.uint16), process_group=self.group)

    @case
    def groups(self):
        """A group of some ranks, in an order of its own classes."""
        last = self.world_size - 1
        group = distributed.new_group([0, last])
        if self.rank in (0, last):
            own = slice(0, 4) if self.rank == 0 else slice(4, N_CLASSES)
            scores = scores_in(torch.float64)
            found = F.entmax15_loss(scores[:, own], LABELS, process_group=group)
            torch.testing.assert_close(found, F.entmax15_loss(scores, LABELS))

    def compare_dtensors(self, function, y, placements, mesh, scores=None, **options):
        """Losses and gradients of scores that a mesh shares, at targets that it shares alike."""
        scores = scores_in(torch.float64) if scores is None else scores
        whole = scores.clone().requires_grad_()
        expected = function(whole, y, **options)
        expected.sum().backward()
        shared = distribute_tensor(scores, mesh, placements).requires_grad_()
        is_rows = y.is_floating_point()
        wanted = [Replicate() if p.is_shard(1) and not is_rows else p for p in placements]
        for places in (wanted, [Replicate()] * len(wanted)):
            target = distribute_tensor(y, mesh, places)
            found = function(shared, target, **options)
            assert isinstance(found, DTensor)
            torch.testing.assert_close(found.full_tensor(), expected)
        found.sum().full_tensor().backward()
        assert list(shared.grad.placements) == list(placements)
        torch.testing.assert_close(shared.grad.full_tensor(), whole.grad)
        return shared

    @case
    def dtensors(self):
        """Classes, rows or both over the axes of a mesh, with every reduction."""
        mesh, double = init_device_mesh("cpu", (self.world_size,)), torch.float64
        places = [(mesh, [Shard(1)]), (mesh, [Shard(0)])]
        if self.world_size == 4:
            places = [(init_device_mesh("cpu", (2, 2)), [Shard(0), Shard(1)])]
        some, weight = ignored([0, 6])(None), weights_in(double)
        for (on, placements), reduction in itertools.product(places, ("mean", "sum", "none")):
            given = placements, on
            compare = functools.partial(self.compare_dtensors, reduction=reduction)
            compare(F.fitzpatrick_logistic_loss, some, *given)
            compare(F.fitzpatrick_sparsemax_loss, some, *given, label_smoothing=0.1, weight=weight)
            shared = compare(F.entmax15_loss, proportions_in(double), *given, weight=weight)
            nothing = distribute_tensor(LABELS * 0 - 100, on, [Replicate()] * len(placements))
            assert (F.logistic_loss(shared, nothing).full_tensor().isnan()).all()
            # of one row and one class all processes but one have none
            for one in (scores_in(double)[:1], scores_in(double)[:5, :1]):
                compare(F.sparsemax_loss, one.softmax(1), *given, scores=one)
                compare(F.entmax15_loss, one.argmax(1), *given, scores=one)
        loss, labels = F.logistic_loss, distribute_tensor(LABELS, mesh, [Shard(0)])
        by_rows = distribute_tensor(scores_in(double), mesh, [Shard(0)]).requires_grad_()
        turned = distribute_tensor(scores_in(double).T.contiguous(), mesh, [Shard(1)])
        torch.testing.assert_close(
            loss(turned, labels, dim=0).full_tensor(), loss(by_rows, labels).full_tensor()
        )
        for link in (F.entmax15, F.sigmoid):
            found = link(by_rows)
            torch.testing.assert_close(found.full_tensor(), link(scores_in(double)))
            found.full_tensor().sum().backward()
        lists = ft.SparseTargets(labels.unsqueeze(-1), distribute_tensor(
            torch.ones(len(LABELS), 1, dtype=double), mesh, [Shard(0)]))  # fmt: skip
        torch.testing.assert_close(
            loss(by_rows, lists).full_tensor(), loss(by_rows, labels).full_tensor()
        )
        by_classes = distribute_tensor(scores_in(double), mesh, [Shard(1)])
        learned = weight.requires_grad_()
        for error, message, function, *arguments in (
            (ValueError, "needs all classes of a row", F.sparsemax, by_classes),
            (ValueError, "target must be a DTensor with the placements", loss, by_rows, LABELS),
            (ValueError, "or be replicated", loss, by_classes, labels),
            (ValueError, "leave process_group out", functools.partial(
                loss, process_group=self.group), by_classes, LABELS),
            (NotImplementedError, "input.to_local()", functools.partial(
                loss, return_stats=True), by_rows, labels),
            (NotImplementedError, "weight of a mean", loss, by_rows, labels, learned),
        ):  # fmt: skip
            assert message in raised(error, function, *arguments)

    @case
    def data_parallel(self):
        """The gradients of a head are those of means of halves of a batch."""
        if self.world_size != 2:
            return
        labels = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])
        indices = torch.stack([labels, (labels + 1) % 4], -1)
        values = torch.tensor([0.5, 0.25]).expand(8, 2)
        inputs = torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(8, 3) ** 3
        own = slice(4 * self.rank, 4 * self.rank + 4)

        def train(model, rows):
            model(inputs[rows], labels[rows])[0].backward()
            for rest in ("renormalize", "bucket"):
                lists = ft.SparseTargets(indices[rows], values[rows], rest)
                model(inputs[rows], lists)[0].backward()

        head = ft.LinearFitzpatrickLogisticLoss(3, 4, bias=True, chunk_size=3, return_stats=True)
        together = DistributedDataParallel(head.double())  # which takes the weights of rank 0
        alone = copy.deepcopy(head)
        train(together, own)
        train(alone, slice(8))
        for one, other in zip(head.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad)
        assert "fitzpatrick.engines.triton.launch" not in sys.modules

    @case
    def example(self):
        """The script trains a head as one process does."""
        train = runpy.run_path(str(EXAMPLE))["train"]
        classes = slice(500 * self.rank, None if self.rank == 1 else 500 * (self.rank + 1))
        if self.world_size == 2:
            losses, weight = train("fitzpatrick_logistic", 3, classes, self.group)
            expected, expected_weight = train("fitzpatrick_logistic", 3)
            # rounding errors of float64 in a few steps
            torch.testing.assert_close(losses, expected, rtol=1e-12, atol=0)
            torch.testing.assert_close(weight, expected_weight, rtol=0, atol=1e-12)
            assert losses[-1] < losses[0]

    @case
    def heads(self):
        """A layer whose classes are shared has the gradients of the whole one."""
        own, generator = self.even_part(), torch.Generator().manual_seed(3)
        dtypes = TOLERANCES if self.is_thorough else [torch.float32]
        heads = (
            (F.linear_fitzpatrick_logistic_loss, ignored([2])(None), {"chunk_size": 3}),
            (F.linear_fitzpatrick_sparsemax_loss, LABELS, {"reduction": "none"}),
            (F.linear_entmax15_loss, LABELS, {"label_smoothing": 0.1, "weight": weights_in}),
            (F.linear_fitzpatrick_sparsemax_loss, lists_of(LABELS), {}),
            (F.linear_logistic_loss, proportions_in(torch.float64),
             {"weight": weights_in, "chunk_size": 4}),
        )  # fmt: skip
        for dtype, (function, target, options) in itertools.product(dtypes, heads):
            options = {k: v(dtype) if callable(v) else v for k, v in options.items()}
            has_rows = isinstance(target, torch.Tensor) and target.is_floating_point()
            x = torch.randn(len(LABELS), 6, generator=generator, dtype=torch.float64).to(dtype)
            layer = torch.randn(N_CLASSES, 7, generator=generator, dtype=torch.float64).to(dtype)
            results = []
            for classes, group in ((slice(None), None), (own, self.group)):
                leaves = x, layer[classes, :6], layer[classes, 6]
                leaves = [leaf.clone().requires_grad_() for leaf in leaves]
                y = target[:, classes].to(dtype) if has_rows else target
                given = {**options, "linear_bias": leaves[2], "process_group": group}
                loss = function(*leaves[:2], y, **given)
                results.append(loss_and_gradients(loss, *leaves))
            (expected, by_x, *others), found = results
            expected = expected, by_x, *(gradient[own] for gradient in others)
            # the products have rounding errors of their own, of up to ten terms of size one
            close = {"rtol": 10 * TOLERANCES[dtype], "atol": 10 * TOLERANCES[dtype]}
            torch.testing.assert_close(found, expected, **close)
            assert_same_on_all_ranks(found[0])
            assert_same_on_all_ranks(found[1])
        module = ft.LinearFitzpatrickLogisticLoss(
            6, own.stop - own.start, weight=torch.ones(N_CLASSES), process_group=self.group
        )
        module(torch.ones(2, 6), LABELS[:2]).backward()
        x = torch.ones(2 if self.rank else 3, 6)
        message = raised(ValueError, module, x, LABELS[: len(x)])
        assert "differ in the number of rows (3 and 2)" in message
        if not self.is_thorough:
            return
        graphs = []

        def inspect(graph, _):
            graphs.append(graph)
            return graph.forward

        torch.compile(module, backend=inspect)(torch.ones(2, 6), LABELS[:2]).backward()
        assert graphs == []  # a head with a group runs as it is
        mesh = init_device_mesh("cpu", (self.world_size,))
        module.linear.weight = torch.nn.Parameter(
            DTensor.from_local(module.linear.weight.detach(), mesh, [Shard(0)], run_check=False)
        )
        message = raised(TypeError, module, torch.ones(2, 6), LABELS[:2])
        assert "linear_weight is a DTensor, which heads do not take" in message


CASES = [name for name, value in vars(Cases).items() if getattr(value, "is_case", False)]


def join(rank, world_size, folder, seconds):
    """Make a group of processes that wait so long for one another."""
    distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/rendezvous",
        rank=rank,
        world_size=world_size,
        timeout=timedelta(seconds=seconds),
    )
    torch.set_num_threads(1)


def run(rank, world_size, folder):
    """Try all cases and write what went wrong, by case."""
    join(rank, world_size, folder, 100)
    cases = Cases(rank, world_size)
    results = {}
    for name in CASES:
        try:
            getattr(cases, name)()
            results[name] = ""
        except Exception:
            results[name] = f"rank {rank}: {traceback.format_exc()}"
        distributed.barrier()
    Path(folder, f"{rank}.json").write_text(json.dumps(results))
    distributed.barrier()


def lose_one(rank, folder):
    """The last of two processes ends after its first loss; the other one is to say so."""
    join(rank, 2, folder, 5)
    scores = scores_in(torch.float64)[:, slice(*bounds(2)[rank])]
    group = {"process_group": distributed.group.WORLD}
    F.sparsemax_loss(scores, LABELS, **group)
    if rank == 0:
        message = raised(RuntimeError, F.sparsemax_loss, scores, LABELS, **group)
        Path(folder, "0.json").write_text(json.dumps(message))


# how many processes run which function, by the name of the folder that they write to
GROUPS = {"2": (2, run, 2), "4": (4, run, 4), "lost": (2, lose_one)}


if __name__ == "__main__":
    codes = []
    for name, (n, function, *arguments) in GROUPS.items():
        folder = Path(sys.argv[1], name)
        folder.mkdir()
        codes += fork(n, function, *arguments, folder)
    sys.exit(max(map(abs, codes)))
