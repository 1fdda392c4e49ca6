"""One file a mechanism; found by being there."""
