"""Tables set aside in a holding folder, and brought back."""
