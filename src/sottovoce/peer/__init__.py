"""One node as a process: protocol (no I/O), store (disk), link (Zenoh; memory for tests), identity."""
