"""What every search returns, and how it is shown."""
