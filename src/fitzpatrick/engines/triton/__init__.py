"""The Triton engine: losses and gradients of PyTorch tensors on a GPU, in one kernel each.

Importing this package loads neither torch nor triton:

- ``specs``: which regularizers have kernels, and the numbers that tell the kernels apart
- ``scale``, ``targets``: the arguments of an engine, which need torch alone
- ``launch``: the engine's functions; ``plan``: the kernel, grid and block sizes for a problem
- ``labels``, ``proportions``: the kernels; ``weights``: row weights and the scaling of rows
- ``formulas``, ``root``, ``tiles``, ``math``: what the kernels are made of
"""
