"""Tables whose rows other tables hold: lakes to find them in, and the truth by full comparison."""
