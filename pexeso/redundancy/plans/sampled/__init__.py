"""R2D2 as published: bounds from Parquet footers, then some rows of each table looked up."""
