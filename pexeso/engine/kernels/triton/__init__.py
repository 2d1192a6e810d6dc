"""The kernel for CUDA: programs compiled by Triton."""
