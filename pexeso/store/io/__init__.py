"""Where files are: local paths, URLs, and the filesystems that fsspec and pyarrow reach."""
