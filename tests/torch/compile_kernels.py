"""Compile kernels for an H100, which needs no GPU; prints a line for each before and after.

    python tests/torch/compile_kernels.py logistic sparsemax --all

A line ends with the registers of a thread and the bytes that it spills, where Triton brings a tool
that tells.
"""

import argparse
import itertools
import subprocess
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from fitzpatrick.engines.triton import entry_launch, link_launch
from fitzpatrick.engines.triton.plan import Problem, plan_for
from fitzpatrick.engines.triton.specs import SPECS

KINDS = {
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float64: "fp64",
}
TIGHTNESSES = (0.0, 0.5, 1.0, 2.0)


def problem(omega, tightness, target, k, dtype, inner=0, peel=False):
    """The problem of aligned rows, as a training step has it."""
    has_labels = target == "labels"
    return Problem(
        omega=omega,
        mode=SPECS[omega].mode(tightness, has_labels),
        target=target,
        k=k,
        inner=inner,
        dtype=dtype,
        lanes=1 if inner or (k % 8 and not peel) else 16 // dtype.itemsize,
        peel=peel,
        with_value=True,
        with_gradient=True,
        scale="counted" if has_labels else "shared",
        parts=32 if has_labels else 1,
    )


def compile_problem(given):
    """What a launch would compile."""
    kind, working = KINDS[given.dtype], "*fp64" if given.dtype == torch.float64 else "*fp32"
    target = {"labels": "*i64", "rows": f"*{kind}"}.get(given.target, working)
    types = {"target": target, "labels": "*i64"}
    types |= {"scale": "*i32" if given.scale == "counted" else working}
    even = given.k % (16 * given.lanes) == 0
    return compile_plan(plan_for(given), given.dtype, types, even)


def compile_plan(plan, dtype, types, even):
    """The kernel of a plan, for tensors of a dtype but for those that are said."""
    kernel, kind = plan.kernel, KINDS[dtype]
    working = "*fp64" if dtype == torch.float64 else "*fp32"
    names = ("theta", "gradient", "out", "p", "upstream", "target", "weight", "pos_weight")
    types = dict.fromkeys(names, f"*{kind}") | {"mask": "*u8", "alpha": "*fp64"} | types
    types |= dict.fromkeys(("value", "mix", "by_alpha"), working)
    types |= {"tolerance": "fp32", "tightness": "fp64", "beta": "fp64"}
    signature = {name: types.get(name, "i32") for name in kernel.arg_names}
    signature["o"] = "constexpr"
    # tensors and even widths are multiples of 16 in a launch
    aligned = [name for name in kernel.arg_names if signature[name].startswith("*")]
    if even:
        aligned += ["n", "groups", "theta_groups", "target_groups"]
    places = [i for i, name in enumerate(kernel.arg_names) if name in aligned]
    attributes = {(i,): [["tt.divisibility", 16]] for i in places}
    source = ASTSource(kernel, signature, {"o": plan.constants["o"]}, attributes)
    options = {name: value for name, value in plan.constants.items() if name != "o"}
    return triton.compile(source, GPUTarget("cuda", 90, 32), {**options, "enable_fp_fusion": True})


def usage(compiled):
    """Registers a thread and bytes that it spills."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    if not tool.exists():
        return ""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        command = [str(tool), "--dump-resource-usage", file.name]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    found = dict(item.split(":", 1) for item in lines if item.startswith(("REG:", "STACK:")))
    return f"{found['REG']} registers, {found['STACK']} bytes spilled"


def few(omega):
    """Every mode, and every form of rows and targets, once."""
    single, half, double = torch.float32, torch.bfloat16, torch.float64
    if not SPECS[omega].takes_rows:
        for c, dtype in itertools.product((0.0, 0.5), (single, half, double)):
            yield problem(omega, c, "labels", 1000, dtype)
        return
    modes = {SPECS[omega].mode(c, False): c for c in TIGHTNESSES}
    for c in modes.values():
        yield problem(omega, c, "rows", 32768, half)
        yield problem(omega, c, "rows", 256, single)
    for c in {SPECS[omega].mode(c, True): c for c in TIGHTNESSES}.values():
        yield problem(omega, c, "labels", 256, single)
    yield problem(omega, 0.5, "labels", 32768, half)
    yield problem(omega, 0.5, "labels", 50257, single, peel=True)
    yield problem(omega, 0.5, "labels", 32, single, inner=4096)
    yield problem(omega, 0.5, "labels", 300, double)
    yield problem(omega, 0.5, "rows", 300, double)
    yield problem(omega, 2.0, "rows", 1000, double)
    yield problem(omega, 0.5, "smoothed", 32768, half)
    yield problem(omega, 0.5, "weighted", 32768, single)


def everything(omega):
    """All modes in all dtypes and forms."""
    for dtype, c in itertools.product(KINDS, TIGHTNESSES):
        for k, target in itertools.product((256, 1000, 1024, 32768, 50257), ("labels", "rows")):
            yield problem(omega, c, target, k, dtype)
        if dtype != torch.float64:
            yield problem(omega, c, "labels", 50257, dtype, peel=True)
            yield problem(omega, c, "labels", 32, dtype, inner=4096)
            for k, target in itertools.product((256, 32768), ("smoothed", "weighted")):
                yield problem(omega, c, target, k, dtype)


def links(everything):
    """(name, plan, dtype) of links and their backward pass."""
    shapes = [(64, 0), (1024, 0), (32768, 0), (32, 4096)]
    dtypes = [torch.float32, torch.bfloat16, torch.float64]
    for i, ((k, inner), dtype, power) in enumerate(itertools.product(shapes, dtypes, (0, 1, 2))):
        if not everything and i % 5:
            continue
        lanes = 1 if inner else 16 // dtype.itemsize
        for masked, backward in ((False, False), (True, False), (False, True)):
            careful = power == 0 and dtype == torch.float32
            rows = link_launch._Rows(
                power, k, inner, dtype, lanes, careful, masked, backward and power == 0, backward
            )
            what = "backward" if backward else "masked" if masked else "forward"
            name = f"link {power} {k} {inner} {KINDS[dtype]} {what}"
            yield name, link_launch._plan_for(rows), dtype


def entries(everything):
    """(name, plan, dtype) of entry-wise losses."""
    for i, (kernel, mode, dtype) in enumerate(
        itertools.product(
            ("clipped:-inf:inf", "clipped:0.0:1.0", "sigmoid", "poisson"),
            ("zero", "one", "other"),
            (torch.float32, torch.bfloat16, torch.float64),
        )
    ):
        if not everything and i % 4:
            continue
        call = entry_launch.EntryCall(kernel, 0.0, dtype != torch.float64)
        plan = entry_launch._plan_for(call, mode, dtype, True, kernel == "sigmoid")
        yield f"{kernel} {mode} {KINDS[dtype]}", plan, dtype


def list_nothing(_):
    return ()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("omega", nargs="+", choices=[*SPECS, "links", "entries"])
    parser.add_argument("--all", action="store_true", help="all modes, dtypes and forms")
    arguments = parser.parse_args()
    for omega in arguments.omega:
        for name, plan, dtype in {"links": links, "entries": entries}.get(omega, list_nothing)(
            arguments.all
        ):
            print(name, end=" ", flush=True)
            print(usage(compile_plan(plan, dtype, {}, "columns" not in name)), flush=True)
        if omega not in SPECS:
            continue
        for given in dict.fromkeys((everything if arguments.all else few)(omega)):
            form = f"columns of {given.inner}" if given.inner else "peel" if given.peel else ""
            kind = KINDS[given.dtype]
            print(omega, given.mode, given.target, given.k, kind, form, end=" ", flush=True)
            print(usage(compile_problem(given)), flush=True)
    print("done")


if __name__ == "__main__":
    main()
