"""The algorithm `brute_gemm`."""
