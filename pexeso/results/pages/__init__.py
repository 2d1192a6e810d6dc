"""Results and explanations as one self-contained HTML page."""
