"""Two tables joined by learned programs: what is read, learned, shown, saved and written."""
