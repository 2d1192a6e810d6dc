"""Sources of the tables of a lake: files of a folder or other storage, and Spark tables.

Tables are listed and compared in tasks.
"""
