"""Rules: rows of logits in, rows out. Each is a value, and they stack in any order."""
from unspool.rules.cut import greedy, min_p, top_k, top_p
from unspool.rules.rule import KINDS, RuleValue, columns, rule
from unspool.rules.scale import temperature

__all__ = ["KINDS", "RuleValue", "columns", "greedy", "min_p", "rule", "temperature", "top_k",
           "top_p"]
