"""The paper again: a file a figure in figures/, a file a topic in claims/, found by being there; `sv.reproduce` makes them all."""
