"""How well joinable columns are found: precision, recall and what only meaning finds, on lakes whose truth is known."""
