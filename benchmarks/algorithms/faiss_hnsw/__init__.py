"""The algorithm `faiss_hnsw`."""
