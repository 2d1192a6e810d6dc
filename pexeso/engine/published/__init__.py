"""The published grid and its cost model (PEXESO, ICDE 2021)."""
