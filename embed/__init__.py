"""Stage 1: distinct values become unit vectors.

Importing this package loads neither torch, fastText nor Spark; they come with the first model that
needs them.
"""

from embed.protocol import Embedder
from embed.registry import MODEL_FORMS, create_embedder, load_embedder, needs_corpus

__all__ = ["MODEL_FORMS", "Embedder", "create_embedder", "load_embedder", "needs_corpus"]
