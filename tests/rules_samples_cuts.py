"""Values worth trying of the rules that truncate or reshape, weak to strong, and those that change
nothing. Mirostat has no such value: it is there or not."""
from unspool.rules import (
    adaptive_p,
    dynamic_temperature,
    epsilon_cutoff,
    eta_cutoff,
    mirostat_1,
    mirostat_2,
    smoothing,
    tfs_z,
    top_a,
    top_h,
    top_n_sigma,
    typical_p,
    xtc,
)

SAMPLES = {
    "typical_p": (typical_p(0.99), typical_p(0.9, 1), typical_p(0.5), typical_p(0.2, 1),
                  typical_p(0.0)),
    "epsilon_cutoff": (epsilon_cutoff(1e-5), epsilon_cutoff(9e-4), epsilon_cutoff(0.02),
                       epsilon_cutoff(0.9)),
    "eta_cutoff": (eta_cutoff(1e-5), eta_cutoff(4e-3), eta_cutoff(0.1), eta_cutoff(0.9)),
    "top_h": (top_h(1.0), top_h(0.9), top_h(0.4), top_h(0.01)),
    "top_n_sigma": (top_n_sigma(6.0), top_n_sigma(2.0), top_n_sigma(1.0), top_n_sigma(0.1)),
    "top_a": (top_a(1e-3), top_a(0.1), top_a(0.5), top_a(1.0)),
    "tfs_z": (tfs_z(0.999), tfs_z(0.95), tfs_z(0.5), tfs_z(0.0)),
    "smoothing": (smoothing(0.05), smoothing(0.3), smoothing(0.2, 2.5), smoothing(2.0, 3.0)),
    "dynamic_temperature": (dynamic_temperature(0.9, 1.1), dynamic_temperature(0.5, 1.5, 2.0),
                            dynamic_temperature(2.0, 0.5), dynamic_temperature(0.2, 3.0, 0.5)),
    "xtc": (xtc(0.5, 0.05), xtc(1.0, 0.3), xtc(1.0, 0.05, data=(3, 7)), xtc(1.0, 0.02)),
    "adaptive_p": (adaptive_p(0.9, 0.5), adaptive_p(0.5, 0.99), adaptive_p(0.1, 0.9)),
    "mirostat_1": (mirostat_1(8.0, 0.1), mirostat_1(3.0, 1.0), mirostat_1(0.5, 0.5)),
    "mirostat_2": (mirostat_2(8.0, 0.1), mirostat_2(3.0, 1.0), mirostat_2(0.5, 0.5)),
}
NEUTRAL = {
    "typical_p": typical_p(1.0),
    "epsilon_cutoff": epsilon_cutoff(0.0),
    "eta_cutoff": eta_cutoff(0.0),
    "top_h": top_h(0.0),
    "top_n_sigma": top_n_sigma(0.0),
    "top_a": top_a(0.0),
    "tfs_z": tfs_z(1.0),
    "smoothing": smoothing(0.0),
    "dynamic_temperature": dynamic_temperature(1.0, 1.0),
    "xtc": xtc(0.0, 0.1),
    "adaptive_p": adaptive_p(-1.0, 0.9),
}
