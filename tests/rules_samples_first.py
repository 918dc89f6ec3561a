"""Values worth trying of the rules that came first, weak to strong, and those that change nothing.
"""
from unspool.rules import greedy, min_p, repetition_penalty, temperature, top_k, top_p
from unspool.rules.rows import EVERYTHING, GENERATED

SAMPLES = {
    "greedy": (greedy(),),
    "temperature": (temperature(3.0), temperature(1.4), temperature(0.7), temperature(0.1)),
    "top_k": (top_k(2000), top_k(200), top_k(40), top_k(5), top_k(5, 1), top_k(1)),
    "top_p": (top_p(0.9999), top_p(0.95), top_p(0.6), top_p(0.0)),
    "min_p": (min_p(1e-4), min_p(0.02), min_p(0.1), min_p(1.0)),
    "repetition_penalty": (
        repetition_penalty(1.1), repetition_penalty(1.3, GENERATED),
        repetition_penalty(1.3, EVERYTHING, 3), repetition_penalty(0.7), repetition_penalty(4.0)),
}
NEUTRAL = {
    "temperature": temperature(1.0),
    "top_k": top_k(0),
    "top_p": top_p(1.0),
    "min_p": min_p(0.0),
    "repetition_penalty": repetition_penalty(1.0),
}
