"""Compile kernels for an H100, which needs no GPU; prints a line for each, and the end.

    python tests/torch/compile_kernels.py logistic sparsemax --all

Machine code takes seconds a kernel. Without ``--all`` one of each becomes machine code, and the
others are translated to Triton's intermediate language, which checks types and shapes. A line ends
with the registers of a thread and the bytes that it spills, where Triton brings a tool that tells.
"""

import argparse
import itertools
import subprocess
import tempfile
from pathlib import Path

import torch
import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

from fitzpatrick.engines.triton import (
    attention,
    attention_launch,
    entry_launch,
    isotonic,
    link_launch,
    probabilities,
)
from fitzpatrick.engines.triton.attention_call import Numbers, Tensors
from fitzpatrick.engines.triton.plan import Problem, plan_for
from fitzpatrick.engines.triton.specs import SPECS

KINDS = {
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float64: "fp64",
}
TIGHTNESSES = (0.0, 0.5, 1.0, 2.0)
H100 = GPUTarget("cuda", 90, 32)


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
        scale={"labels": "counted", "lists": "each"}.get(target, "shared"),
        parts=32 if has_labels else 1,
        listed=128 if target == "lists" else 0,
    )


def source_of(given):
    """What a launch would compile, and with which options."""
    kind, working = KINDS[given.dtype], "*fp64" if given.dtype == torch.float64 else "*fp32"
    types = {"target": {"labels": "*i64", "rows": f"*{kind}"}.get(given.target, working)}
    types |= {"lists": working, "bits": f"*{kind}"}
    types |= {"labels": "*i64", "scale": "*i32" if given.scale == "counted" else working}
    return source_of_plan(plan_for(given), given.dtype, types, given.k % (16 * given.lanes) == 0)


def source_of_plan(plan, dtype, types, is_even):
    """The types of arguments for tensors of a dtype, but for those that are given."""
    kernel, kind = plan.kernel, KINDS[dtype]
    working = "*fp64" if dtype == torch.float64 else "*fp32"
    names = ("theta", "gradient", "out", "p", "upstream", "target", "weight", "pos_weight")
    types = dict.fromkeys(names, f"*{kind}") | {"mask": "*u8", "alpha": "*fp64"} | types
    types |= dict.fromkeys(("value", "mix", "by_alpha", "factors", "by_factor", "numbers"), working)
    types |= {"tolerance": "fp32", "tightness": "fp64", "beta": "fp64", "cap": "fp64"}
    signature = {name: types.get(name, "i32") for name in kernel.arg_names}
    signature["o"] = "constexpr"
    # tensors and even widths are multiples of 16 in a launch
    aligned = [name for name in kernel.arg_names if signature[name].startswith("*")]
    if is_even:
        aligned += ["n", "groups", "theta_groups", "out_groups", "target_groups"]
    places = [i for i, name in enumerate(kernel.arg_names) if name in aligned]
    attributes = {(i,): [["tt.divisibility", 16]] for i in places}
    source = ASTSource(kernel, signature, {"o": plan.constants["o"]}, attributes)
    options = {name: value for name, value in plan.constants.items() if name != "o"}
    return source, {**options, "enable_fp_fusion": True}


def translate(source, options):
    """The kernel in Triton's intermediate language, as ``triton.compile`` begins."""
    backend = make_backend(H100)
    options = backend.parse_options({**options, **source.parse_options()})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    functions = backend.get_codegen_implementation(options)
    module = source.make_ir(H100, options, functions, backend.get_module_map(), context)
    assert module.verify()


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


def problems_of(omega):
    """Every mode, and every form of rows and targets, once."""
    single, half, double = torch.float32, torch.bfloat16, torch.float64
    if not SPECS[omega].takes_rows:
        for c, dtype in itertools.product((0.0, 0.5), (single, half, double)):
            yield problem(omega, c, "labels", 1000, dtype)
        return
    for c in {SPECS[omega].mode(c, False): c for c in TIGHTNESSES}.values():
        yield problem(omega, c, "rows", 32768, half)
        yield problem(omega, c, "rows", 256, single)
        yield problem(omega, c, "lists", 1000, single)
    for c in {SPECS[omega].mode(c, True): c for c in TIGHTNESSES}.values():
        yield problem(omega, c, "labels", 256, single)
    yield problem(omega, 0.5, "labels", 32768, half)
    yield problem(omega, 0.5, "labels", 50257, single, peel=True)
    yield problem(omega, 0.5, "labels", 32, single, inner=4096)
    yield problem(omega, 0.5, "labels", 300, double)
    yield problem(omega, 0.5, "rows", 300, double)
    yield problem(omega, 2.0, "rows", 1000, double)
    yield problem(omega, 2.0, "lists", 1000, double)
    yield problem(omega, 0.5, "smoothed", 32768, half)
    yield problem(omega, 0.5, "weighted", 32768, single)


def describe(given):
    form = f"columns of {given.inner}" if given.inner else "peel" if given.peel else ""
    return f"{given.omega} {given.mode} {given.target} {given.k} {KINDS[given.dtype]} {form}"


def links():
    """(name, plan, dtype) of links and their backward pass."""
    shapes = [(1024, 0), (64, 0), (32768, 0), (32, 4096)]
    dtypes = [torch.float32, torch.bfloat16, torch.float64]
    for (k, inner), dtype, power in itertools.product(shapes, dtypes, (0, 1, 2)):
        lanes = 1 if inner else 16 // dtype.itemsize
        for masked, backward in ((False, False), (True, False), (False, True)):
            plan = link_launch.plan_links(
                k,
                inner,
                dtype,
                is_gradient=backward,
                power=power,
                lanes=lanes,
                careful=power == 0 and dtype == torch.float32,
                masked=masked,
                with_alpha=backward and power == 0,
            )
            what = "backward" if backward else "masked" if masked else "forward"
            name = f"link {power} {k} {inner} {KINDS[dtype]} {what}"
            yield name, plan, dtype


def entries():
    """(name, plan, dtype) of entry-wise losses."""
    for kernel, mode, dtype in itertools.product(
        ("sigmoid", "poisson", "clipped:-inf:inf", "clipped:0.0:1.0"),
        ("other", "zero", "one"),
        (torch.float32, torch.bfloat16, torch.float64),
    ):
        plan = entry_launch.plan_entries(
            kernel,
            dtype,
            mode=mode,
            weighted=True,
            pos_weighted=kernel == "sigmoid",
            with_value=True,
            with_gradient=True,
            summed=dtype != torch.float64,
        )
        yield f"{kernel} {mode} {KINDS[dtype]}", plan, dtype


def class_probabilities():
    """(name, plan, dtype) of class probabilities."""
    for k, dtype in itertools.product((10, 1000, 32768, 131072), KINDS):
        plan = probabilities.plan_probabilities(k, dtype)
        yield f"probabilities {k} {KINDS[dtype]}", plan, dtype


def source_of_constants(kernel, types, constants):
    """A kernel without a plan; what has no type is an integer."""
    signature = {name: types.get(name, "i32") for name in kernel.arg_names}
    signature |= dict.fromkeys(constants, "constexpr")
    places = [i for i, name in enumerate(kernel.arg_names) if signature[name].startswith("*")]
    aligned = {(i,): [["tt.divisibility", 16]] for i in places}
    source = ASTSource(kernel, signature, constants, aligned)
    return source, {"enable_fp_fusion": True}


def attentions():
    """(name, source and options) of the kernels of attention, with masks and without."""
    kernels = {
        attention.attention_forward: "forward",
        attention.attention_query_gradient: "by_query",
        attention.attention_key_gradient: "by_key",
    }
    number, seen, added = (torch.empty(1, 1, 1, 1, 2, dtype=x) for x in (None, torch.bool, None))
    forms = [
        (torch.bfloat16, 64, {}, "*fp32"),
        (torch.bfloat16, 128, {"mask": added, "scale": number}, "*fp32"),
        (torch.float16, 256, {"slopes": number}, "*fp32"),
        (torch.float32, 64, {"mask": seen, "slopes": number, "scale": number}, "*u8"),
        (torch.float32, 128, {}, "*fp32"),
    ]
    for kernel, alpha, (dtype, width, bias, mask) in itertools.product(kernels, (1.5, 2.0), forms):
        rows = torch.empty(1, 1, 1, 1, width, dtype=dtype, device="meta")
        t = Tensors(rows, rows[0], rows[0], **bias)
        launch = getattr(attention_launch.plan_for(t), kernels[kernel])
        options = attention_launch.options_of(t, Numbers(1.0, 0.0, alpha), launch.stages)
        types = dict.fromkeys(("scale", "tolerance"), "fp32")
        types |= {"marks": "*i8", "words": "*i32", "live": "*i32", "taken": "*i32"}
        types["noted"] = "*fp32"
        types |= {"mask": mask, "mask_starts": "*i64" if "mask" in bias else "*fp32"}
        types |= dict.fromkeys(
            ("taus", "origins", "means", "slopes", "scales", "by_scale"), "*fp32"
        )
        types |= dict.fromkeys(("starts", "ends", "levels"), "*i32")
        tensors = ("query", "key", "value", "upstream", "out", "by_query", "by_key", "by_value")
        types |= dict.fromkeys(tensors, f"*{KINDS[dtype]}")
        source, _ = source_of_constants(kernel, types, {"o": options})
        name = f"{kernel.__name__} {alpha} {KINDS[dtype]} {width} {' '.join(bias)}"
        yield name, (source, launch.options)


def isotonic_regressions():
    """(name, source and options) of the kernels of isotonic regression."""
    types = {"starts": "*i8", "tops": "*fp64", "bottoms": "*fp64", "begins": "*i32"}
    for plan in (isotonic._POOL, isotonic._POOL_WEIGHTED, isotonic._MEAN):
        constants = {name: x for name, x in plan.constants.items() if name != "num_warps"}
        for kind in ("fp32", "fp64"):
            numbers = types | dict.fromkeys(("x", "u", "out", "log_weights"), f"*{kind}")
            source, options = source_of_constants(plan.kernel, numbers, constants)
            yield f"{plan.kernel.__name__} {kind}", (source, options | {"num_warps": 1})


PLANS = {"links": links, "entries": entries, "probabilities": class_probabilities}
OTHERS = {"attention": attentions, "isotonic": isotonic_regressions}


def problems(omega, every):
    """(name, source and options, whether to compile it and not only to translate it)."""
    if omega in OTHERS:
        found = list(OTHERS[omega]())
    elif omega in PLANS:
        found = [(name, source_of_plan(p, dtype, {}, True)) for name, p, dtype in PLANS[omega]()]
    else:
        found = [(describe(given), source_of(given)) for given in dict.fromkeys(problems_of(omega))]
    # without --all a fifth of large products of cases is translated, and the one in the middle
    # becomes machine code
    found = found if every or omega in SPECS else found[:: 5 if len(found) > 9 else 1]
    for i, (name, source) in enumerate(found):
        yield name, source, every or i == len(found) // 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("omega", nargs="+", choices=[*SPECS, *PLANS, *OTHERS])
    parser.add_argument("--all", action="store_true", help="all modes, dtypes and forms")
    arguments = parser.parse_args()
    for omega in arguments.omega:
        for name, (source, options), is_compiled in problems(omega, arguments.all):
            print(name, end=" ", flush=True)
            if is_compiled:
                print(usage(triton.compile(source, H100, options)), flush=True)
            else:
                translate(source, options)
                print("translated", flush=True)
        print("done", flush=True)


if __name__ == "__main__":
    main()
