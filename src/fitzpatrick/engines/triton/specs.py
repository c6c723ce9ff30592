"""Which regularizers have Triton kernels, and what tells their kernels apart."""

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelSpec:
    r"""The kernels of one regularizer, for every tightness c.

    With s = θ − τ, entries without a target are :math:`e^s` for the logistic loss, and
    :math:`(s_+ / w)^{power}` with the width w = power + c otherwise, where ``power`` is 0 if it
    depends on α.

    One kernel serves every tightness. It has variants only where a formula simplifies or a cheaper
    one exists: the modes "zero" (c = 0), "one" (c = 1) and "beyond" (c > 1) of those listed here,
    and "other" for the rest.
    """

    name: str
    power: int
    label_modes: tuple[str, ...]
    row_modes: tuple[str, ...]
    takes_rows: bool = True
    takes_columns: bool = True

    def mode(self, tightness: float, has_labels: bool) -> str:
        """The variant of the kernel for a tightness."""
        mode = {0.0: "zero", 1.0: "one"}.get(tightness, "other" if tightness < 1 else "beyond")
        return mode if mode in (self.label_modes if has_labels else self.row_modes) else "other"


SPECS = {
    spec.name: spec
    for spec in (
        KernelSpec("logistic", 0, ("zero", "one"), ("zero", "one", "beyond")),
        KernelSpec("sparsemax", 1, (), ("zero",)),
        KernelSpec("entmax15", 2, (), ("zero", "one")),
        KernelSpec("tsallis", 0, ("zero",), (), takes_rows=False, takes_columns=False),
    )
}


# The kernel of the logistic probabilities is for tightnesses up to this; c/ω would overflow.
MAX_PROPER_TIGHTNESS = 64.0


def parse_kernel(kernel: str) -> tuple[KernelSpec, float]:
    """The spec of a kernel of the table, and its parameter α, or 0 if it has none."""
    name, _, alpha = kernel.partition(":")
    return SPECS[name], float(alpha or 0)
