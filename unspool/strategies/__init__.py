"""Strategies: slots in, edits out. They know no tensors."""
from unspool.strategies.beam import Beam
from unspool.strategies.force import Force
from unspool.strategies.sample import Sample

__all__ = ["Beam", "Force", "Sample"]
