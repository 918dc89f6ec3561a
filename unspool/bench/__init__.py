"""Measures this engine and others on the same file in one run: speed, loading, caches, memory.

Every engine has a process of its own, and only one of them works at a time. This process computes
nothing and imports no engine.
"""
