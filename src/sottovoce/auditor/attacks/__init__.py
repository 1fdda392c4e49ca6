"""One file an attack; found by being there."""
