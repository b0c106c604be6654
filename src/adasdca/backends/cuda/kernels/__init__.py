"""Rows in the memory of a CUDA device, and the kernels that pass over them: all of this needs CuPy.

No sum is left to the order in which threads arrive: a run repeats bit for bit on the same device.
"""
