"""The algorithm `faiss_pq`."""
