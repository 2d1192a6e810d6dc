"""The kernels, one a module, and the choice among them."""
