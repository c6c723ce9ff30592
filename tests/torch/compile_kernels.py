"""Compile kernels for an H100, which needs no GPU; prints a line for each before and after."""

import sys

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from fitzpatrick.engines import triton as engine

DTYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float64: "fp64"}


def compile_plan(plan, dtype, target_dtype):
    """What a launch of the plan would compile."""
    kernel, constants = plan._kernel, plan._constants
    kind = DTYPES[dtype]
    working = "*fp64" if dtype == torch.float64 else "*fp32"
    types = {"theta": f"*{kind}", "gradient": f"*{kind}", "target": target_dtype, "labels": "*i64"}
    types |= {"scale": working, "value": working, "mix": working, "tolerance": "fp32"}
    constexprs = {name: value for name, value in constants.items() if name in kernel.arg_names}
    signature = {
        name: "constexpr" if name in constexprs else types.get(name, "i32")
        for name in kernel.arg_names
    }
    options = {name: value for name, value in constants.items() if name not in constexprs}
    source = ASTSource(kernel, signature, constexprs=constexprs)
    return triton.compile(source, GPUTarget("cuda", 90, 32), {**options, "enable_fp_fusion": True})


def variants(dtype):
    """(form, k, whether rows start anywhere) of the kernels in a dtype."""
    for k in (256, 32768):
        yield "labels", k, False
        yield "rows", k, False
    if dtype == torch.float64:
        return
    yield "labels", 50257, True
    yield "columns", 32, False
    yield "smoothed", 32768, False
    yield "smoothed and weighted", 32768, False


def main():
    """For the losses named on the command line."""
    for loss in sys.argv[1:]:
        for dtype, kind in DTYPES.items():
            for form, k, peel in variants(dtype):
                print(loss, kind, form, k, flush=True)
                inner = 4096 if form == "columns" else 0
                lanes = 1 if inner else 16 // dtype.itemsize
                smooth = {"smoothed": 1, "smoothed and weighted": 2}.get(form, 0)
                labels = form in ("labels", "columns")
                target = "*i64" if labels else "*fp32" if smooth == 2 else f"*{kind}"
                plan, _ = engine._plan(
                    loss, 1 if labels else 2, 65536, k, inner, dtype, lanes, peel,
                    True, True, 1, 1, smooth,
                )  # fmt: skip
                compile_plan(plan, dtype, target)
    print("done")


if __name__ == "__main__":
    main()
