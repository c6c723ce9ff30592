"""Run kernels, interpreted, and compiled rows on tensors between two pages without access.

An access outside of a tensor ends the process. Tensors end at the upper page, then begin at the
lower one. Prints a line before each kernel. Each takes one of the ends and one half of the forms of
targets, by turns, or, with FITZPATRICK_TEST_ALL=1, all of them.
"""

import ctypes
import functools
import itertools
import math
import mmap
import sys
from dataclasses import dataclass

import torch
from tests.helpers import TEST_ALL
from tests.interpreter import speed_up_interpreter

from fitzpatrick.engines.triton import entry_launch, link_launch
from fitzpatrick.engines.triton import launch as engine
from fitzpatrick.engines.triton import plan as planning
from fitzpatrick.torch import SparseTargets
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit
from fitzpatrick.torch._targets import smooth

PAGE = mmap.PAGESIZE
kept = []


def guarded(x, at_end):
    """A copy of ``x`` beside a page that must not be touched."""
    size = x.numel() * x.element_size()
    pages = max(math.ceil(size / PAGE), 1)
    block = mmap.mmap(-1, (pages + 2) * PAGE)
    libc = ctypes.CDLL(None, use_errno=True)
    start = ctypes.addressof(ctypes.c_char.from_buffer(block))
    for page in (0, pages + 1):
        address = ctypes.c_void_p(start + page * PAGE)
        if libc.mprotect(address, ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect failed")
    offset = PAGE + (pages * PAGE - size if at_end else 0)
    out = torch.frombuffer(block, dtype=x.dtype, count=x.numel(), offset=offset).view(x.shape)
    kept.append(block)
    return out.copy_(x)


LIMITS = {
    "in registers": planning.Limits(),
    "wide": planning.Limits(0, 0, 0, 0, max_precise=0, min_guess=512, min_peel=0),
}
TIGHTNESSES = {37: 0.0, 64: 1.0, 544: 0.5}  # of each number of classes
OMEGAS = ("logistic", "sparsemax", "entmax15")
ENTRIES = ("sigmoid", "poisson", "clipped:-inf:inf", "clipped:0.0:1.0")
STRIDE = 1 if TEST_ALL else 2
# (dtype, whether tensors end at the upper page)
ENDS = ((torch.float32, False), (torch.bfloat16, True))


@dataclass
class Guard:
    """Draws tensors that are guarded at one of their ends."""

    generator: torch.Generator
    at_end: bool = False

    def __call__(self, x):
        return guarded(x, self.at_end)

    def normal(self, *shape, dtype=torch.float32):
        return self(torch.randn(shape, generator=self.generator).to(dtype))

    def uniform(self, *shape, dtype=torch.float32):
        return self(torch.rand(shape, generator=self.generator).to(dtype))


def check_losses(guard, omega):
    """Losses on the simplex: labels, smoothed labels and proportions, in rows and in columns."""
    # each regularizer takes the ends that its neighbor leaves out
    first = OMEGAS.index(omega)
    for turn, (path, k) in enumerate(itertools.product(LIMITS, TIGHTNESSES), first):
        planning.plan_for.cache_clear()
        planning.LIMITS = LIMITS[path]
        tightness = TIGHTNESSES[k]
        for dtype, guard.at_end in ENDS[turn % STRIDE :: STRIDE]:
            print(omega, tightness, k, path, dtype, guard.at_end, flush=True)
            x = guard.normal(3, k, dtype=dtype)
            y = guard(torch.softmax(torch.randn(3, k, generator=guard.generator), -1).to(dtype))
            labels, weights = guard(torch.tensor([0, k - 1, -100])), guard(torch.ones(3))
            index = guard(labels.clamp(min=0))
            targets = [(labels, weights), (labels, None), (y, weights), (y, 3)]
            for weight in (None, guard.uniform(k)):
                target, _ = smooth(index, k, weight, 0.1, torch.float32)
                targets.append((target._replace(base=guard(target.base)), weights))
            # lists that reach from end to end, have gaps, and have no class
            classes = [[0, k - 1, 1, 2], [k - 2, -1, -1, k - 1], [-1] * 4]
            values = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0, 0, 0.5], [0] * 4])
            lists = guard(torch.stack([torch.tensor(classes, dtype=torch.float32), values], 1))
            targets += [(lists, weights), (lists, None)]
            given = guard(torch.tensor(classes)), guard(values), k, "renormalize", False
            assert_finite(engine.launch_lists(*given, torch.float32))
            more = guard(torch.tensor(1.5)), 9.0, guard(torch.zeros(3)), guard(torch.zeros(3, 4))
            half = (turn // 2 + guard.at_end) % STRIDE
            for target, scale in targets[half::STRIDE]:
                given = x, target, scale, omega, tightness, -100, True, True, False
                assert_finite(*engine.launch_loss(*given))
                if isinstance(target, torch.Tensor) and target.ndim != 2:
                    assert_finite(
                        *engine.launch_loss(*given, engine.Extras(*more)), more[2], more[3][:, :2]
                    )
            # what is out of range makes its row NaN, and nothing else
            lists[1, 0, 1], lists[2, 0, 3] = k + 10**6, k
            given = x, lists, weights, omega, tightness, -100
            values, rows = engine.launch_loss(*given)
            assert_finite(values[:1], rows[:1])
            assert values[1:].isnan().all(), values
            assert_finite(engine.launch_loss(*given, True, False)[0][:1])
            engine.scale_rows_(x, weights)
            if path == "in registers" and k < 100:
                images = guard.normal(2, k, 19, dtype=dtype)
                pixels = guard(torch.randint(0, k, (38,), generator=guard.generator))
                given = images, pixels, None, omega, tightness, -100
                assert_finite(engine.launch_loss(*given, True, False)[0])


def check_reference(guard):
    """Labels and lists that are not validated, by the rows of a CPU."""
    for k, omega in itertools.product(TIGHTNESSES, OMEGAS):
        for dtype, guard.at_end in ENDS:
            print("reference", omega, k, dtype, guard.at_end, flush=True)
            loss = functools.partial(getattr(F, f"{omega}_loss"), reduction="none", validate=False)
            for outside in (k, k + 10**6, 2**62):
                x = guard.normal(4, k, dtype=dtype).requires_grad_()
                indices = torch.tensor([[0, k - 1], [outside, 1], [-(2**62), -1], [1, outside]])
                lists = SparseTargets(guard(indices), guard(torch.full((4, 2), 0.5)))
                labels = guard(indices[:, 0])
                for target, is_wrong in ((lists, [0, 1, 0, 1]), (labels, [0, 1, 1, 0])):
                    values, stats = loss(x, target, return_stats=True)
                    (rows,) = torch.autograd.grad(values.sum(), x)
                    assert values.isnan().tolist() == is_wrong, values
                    assert rows.isnan().any(-1).tolist() == is_wrong, rows
                    assert_finite(*stats)


def check_history(guard):
    """The digits of a small call do not depend on the calls before, of which there are none yet."""
    guard.at_end = False
    x, large = guard.normal(64, 10), guard.normal(500, 1000)
    labels, rows = torch.arange(64) % 10, torch.softmax(guard.normal(64, 10), -1)

    def results():
        z = x.clone().requires_grad_()
        totals = [F.fitzpatrick_entmax15_loss(z, y, reduction="sum") for y in (labels, rows)]
        return *totals, *torch.autograd.grad(sum(totals), z), F.entmax15(x)

    first = results()
    for _ in range(2):
        F.fitzpatrick_entmax15_loss(large, torch.zeros(500).long())
        F.entmax15(large)
    assert all(map(torch.equal, first, results()))


def check_links(guard):
    """Links in rows, with masks, and in columns, and their backward passes."""
    for turn, (k, alpha) in enumerate(itertools.product((37, 64, 544), (2.0, 1.5, 1.3))):
        for dtype, guard.at_end in ENDS[turn % STRIDE :: STRIDE]:
            print("link", alpha, k, dtype, guard.at_end, flush=True)
            x = guard.normal(3, k, dtype=dtype)
            keep = guard((torch.rand(3, k, generator=guard.generator) < 0.7).to(torch.uint8))
            p = guard(link_launch.link(x, alpha))
            masked = link_launch.link(x, alpha, link_launch.RowMask(keep, 3, 1, 0, 0, k, 1))
            columns = link_launch.link(guard.normal(2, k, 5, dtype=dtype), alpha)
            rows, _ = link_launch.link_gradient(p, guard.normal(3, k, dtype=dtype), alpha)
            assert_finite(p, masked, columns, rows)


def check_entries(guard):
    """Entry-wise losses, weighted or not, summed or not."""
    cases = itertools.product(ENTRIES, TIGHTNESSES.items())
    for turn, (kernel, (k, tightness)) in enumerate(cases):
        for dtype, guard.at_end in ENDS[turn % STRIDE :: STRIDE]:
            print(kernel, tightness, k, dtype, guard.at_end, flush=True)
            x, y = guard.normal(3, k, dtype=dtype), guard.uniform(3, k, dtype=dtype)
            weight = guard.uniform(k, dtype=dtype).expand(3, k)
            pos_weight = guard.uniform(k, dtype=dtype) if kernel == "sigmoid" else None
            for given, is_summed in ((None, True), (weight, False)):
                call = entry_launch.EntryCall(kernel, tightness, is_summed)
                assert_finite(*entry_launch.entry_loss(x, y, given, pos_weight, 3, call))


def assert_finite(*tensors):
    """All of them are computed."""
    for x in tensors:
        assert x.isfinite().all()


def main():
    """For the regularizers and the other checks that are named on the command line."""
    speed_up_interpreter()
    guard = Guard(torch.Generator().manual_seed(0))
    # the kernels' own outputs are guarded, too
    for owner, name in ((torch.Tensor, "new_empty"), (torch, "empty_like")):
        allocate = getattr(owner, name)

        def allocate_guarded(*args, allocate=allocate, **options):
            x = allocate(*args, **options)
            return guard(x.zero_()) if x.numel() else x

        setattr(owner, name, allocate_guarded)
    others = {"history": check_history, "reference": check_reference}
    others |= {"links": check_links, "entries": check_entries}
    for name in sys.argv[1:]:
        if name in others:
            others[name](guard)
        else:
            check_losses(guard, name)
        print("done", flush=True)


if __name__ == "__main__":
    main()
