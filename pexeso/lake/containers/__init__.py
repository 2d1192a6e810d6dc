"""Files that hold several tables: archives, books of sheets, databases."""
