"""The Triton engine: losses and gradients of PyTorch tensors on a GPU, in one kernel each.

Importing this package loads neither torch nor triton:

- ``specs``: which regularizers have kernels, and the numbers that tell the kernels apart
- ``launch``, ``link_launch``, ``entry_launch``, ``attention_launch``: functions of tensors;
  ``plan``: the kernel and block sizes for a problem; ``bound``: losses at fixed targets
- ``labels``, ``lists``, ``proportions``, ``tsallis``, ``entries``, ``links``, ``probabilities``,
  ``isotonic``, ``attention``: the kernels
- ``formulas``, ``passes``, ``root``, ``tiles``, ``transform``, ``weights``, ``math``: their parts
"""
