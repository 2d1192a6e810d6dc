"""Where the tables of a lake come from: files of a folder or another storage, and Spark tables; listed and compared in tasks."""
