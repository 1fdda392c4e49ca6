"""One file an algorithm (or one row of data); found by being there."""
