"""Where the table is in a delimited text: what stands above it, its header, what stands below."""
