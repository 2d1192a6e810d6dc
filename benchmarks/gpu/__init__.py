"""The benchmark for a machine with a GPU, ``python -m benchmarks gpu``.

It checks the answers, then measures.

Needs torch, triton, numpy, pyarrow and click, and nothing else of what the other benchmarks need.
See the section "On a GPU" in benchmarks/README.md.
"""
