"""Run the kernels, interpreted, on tensors between two pages that nobody may touch.

An access outside of a tensor ends the process. Tensors end at the upper page, then begin at the
lower one. Prints a line before each kernel. Each takes one half of the forms of targets, by turns,
or, with FITZPATRICK_TEST_ALL=1, all of them.
"""

import ctypes
import itertools
import math
import mmap
import os
import sys

import torch
from interpreter import speed_up_interpreter

from fitzpatrick.engines.triton import launch as engine
from fitzpatrick.engines.triton import plan as planning
from fitzpatrick.engines.triton.targets import smooth

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


def main():
    """For the regularizers named on the command line."""
    speed_up_interpreter()
    generator = torch.Generator().manual_seed(0)
    allocate = torch.Tensor.new_empty
    at_end = False
    # the kernels' own outputs are guarded, too
    torch.Tensor.new_empty = lambda *args, **options: (
        lambda x: guarded(x.zero_(), at_end) if x.numel() else x
    )(allocate(*args, **options))
    limits = {
        "in registers": planning.Limits(),
        "wide": planning.Limits(0, 0, 0, 0, max_precise=0, min_guess=512, min_peel=0),
    }
    stride = 1 if os.environ.get("FITZPATRICK_TEST_ALL") == "1" else 2
    cases = itertools.product(sys.argv[1:], (37, 64, 544), limits)
    for turn, (omega, k, path) in enumerate(cases):
        planning.plan_for.cache_clear()
        planning.LIMITS = limits[path]
        tightness = {37: 0.0, 64: 1.0, 544: 0.5}[k]
        for dtype, at_end in ((torch.float32, False), (torch.bfloat16, True)):
            print(omega, tightness, k, path, dtype, at_end, flush=True)
            x = guarded(torch.randn(3, k, generator=generator).to(dtype), at_end)
            y = guarded(torch.softmax(torch.randn(3, k, generator=generator), -1).to(dtype), at_end)
            labels = guarded(torch.tensor([0, k - 1, -100]), at_end)
            weights = guarded(torch.ones(3), at_end)
            index = guarded(labels.clamp(min=0), at_end)
            targets = [(labels, weights), (labels, None), (y, weights), (y, 3)]
            for weight in (None, guarded(torch.rand(k, generator=generator) + 0.1, at_end)):
                target, _ = smooth(index, k, weight, 0.1, torch.float32)
                targets.append((target._replace(base=guarded(target.base, at_end)), weights))
            for target, scale in targets[(turn + at_end) % stride :: stride]:
                value, rows = engine.value_and_gradient(x, target, scale, omega, tightness, -100)
                assert value.isfinite().all()
                assert rows.isfinite().all()
            engine.scale_rows_(rows, weights)
            if path == "in registers" and k < 100:
                images = guarded(torch.randn(2, k, 19, generator=generator).to(dtype), at_end)
                pixels = guarded(torch.randint(0, k, (38,), generator=generator), at_end)
                value = engine.value(images, pixels, None, omega, tightness, -100)
                assert value.isfinite().all()
    print("done")


if __name__ == "__main__":
    main()
