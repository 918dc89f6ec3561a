"""When to end: each stop is a fold over the written tokens. See `core/sockets.py`, `Stop`."""
