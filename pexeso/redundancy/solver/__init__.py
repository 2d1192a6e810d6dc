"""How plans of least cost are found."""
