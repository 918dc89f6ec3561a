"""Strategies: slots in, edits out. They know no tensors."""
from unspool.strategies.beam import Beam
from unspool.strategies.beam_sample import BeamSample
from unspool.strategies.best_of import BestOf
from unspool.strategies.contrastive import Contrastive
from unspool.strategies.cot import ChainOfThought
from unspool.strategies.diverse_beam import DiverseBeam
from unspool.strategies.force import Force
from unspool.strategies.gated import Gated
from unspool.strategies.lexical_beam import LexicalBeam
from unspool.strategies.mbr import MBR
from unspool.strategies.sample import Sample
from unspool.strategies.scheduled import Scheduled
from unspool.strategies.self_consistency import SelfConsistency
from unspool.strategies.sibling_beam import SiblingBeam
from unspool.strategies.stochastic_beam import StochasticBeam
from unspool.strategies.story import Story
from unspool.strategies.tree_search import TreeSearch

__all__ = ["Beam", "BeamSample", "BestOf", "ChainOfThought", "Contrastive", "DiverseBeam", "Force",
           "Gated", "LexicalBeam", "MBR", "Sample", "Scheduled", "SelfConsistency", "SiblingBeam",
           "StochasticBeam", "Story", "TreeSearch"]
