"""The algorithm `faiss_flat`."""
