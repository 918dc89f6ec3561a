"""Constraints: which tokens may come next, as a fold. They know no rows and no models."""
from unspool.constraints.choice import Choice, choice
from unspool.constraints.vocabulary import Vocabulary

__all__ = ["Choice", "Vocabulary", "choice"]
