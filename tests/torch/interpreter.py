"""Triton's interpreter, without what takes it most of its time."""

import os
from importlib.util import find_spec


def patch_language_once():
    """Patch Triton's language once for each module of device functions.

    The interpreter patches it again whenever a kernel calls one, which takes a millisecond. A
    kernel has patched what it shares with the functions of its package; the functions of Triton's
    own modules see another one, which stays patched.
    """
    if find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1":
        return
    import triton.language as tl
    from triton.runtime import interpreter

    patched = set()

    def call(self, *args, **options):
        names = self.fn.__globals__
        if names.get("tl") is not tl and id(names) not in patched:
            interpreter._patch_lang(self.fn)
            patched.add(id(names))
        return self.rewrite()(*args, **options)

    interpreter.InterpretedFunction.__call__ = call
