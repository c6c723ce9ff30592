"""The same rows compiled by Numba, where that is installed: one call without the GIL per block."""
