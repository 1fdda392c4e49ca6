"""The players for many nodes at once: eager in NumPy, compiled by JAX, one thread a node."""
