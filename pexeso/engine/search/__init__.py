"""Search over one partition: candidates, verification, products, pairs."""
