"""The bytes of texts, as Arrow's buffers have them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def string_buffers(
    strings: pa.StringArray | pa.LargeStringArray | pa.LargeBinaryArray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the UTF-8 bytes of texts, where each of them begins and where the last one ends.

    String i is ``text[offsets[i]:offsets[i + 1]]``; the first offset need not be 0. Nothing is
    copied. What a null has means nothing.
    """
    _, offset_buffer, text_buffer = strings.buffers()
    dtype = np.int32 if strings.type == pa.string() else np.int64
    if offset_buffer is None or len(strings) == 0:
        return np.zeros(0, np.uint8), np.zeros(len(strings) + 1, dtype)
    offsets = np.frombuffer(offset_buffer, dtype)[strings.offset :][: len(strings) + 1]
    text = np.zeros(0, np.uint8) if text_buffer is None else np.frombuffer(text_buffer, np.uint8)
    return text, offsets
