"""Speed and memory, measured: `python -m bench` (or `make bench`) prints a table and writes bench.json."""
