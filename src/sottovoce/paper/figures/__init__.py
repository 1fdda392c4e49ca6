"""One file a figure (or a table); found by being there."""
