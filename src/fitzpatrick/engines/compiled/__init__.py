"""Rows compiled by Numba: one call per block, without the GIL."""
