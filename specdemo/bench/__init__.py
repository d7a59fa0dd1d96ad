"""From one prompt to evidence: datasets → plan → samples → summary → gate and report (pure but for file readers).

workloads, datasets, dataset_rows   prompts: shipped ones and a user's own files, with every refused line explained
plan, schedule                      what to run, and in which order (ABBA quads, levels at random, warm-up, salts)
sample                              one request on one engine, as a line of JSON
distributions, statistics           t and exact binomial intervals, verdict words, percentiles
identity, acceptance, summary       samples → results per level, per workload and for the suite
sampling/                           is temperature > 0 still the model's own distribution?
gate, report/                       yes or no for CI; what a stakeholder reads and signs
"""
