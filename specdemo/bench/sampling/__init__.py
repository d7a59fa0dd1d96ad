"""Is sampling at temperature > 0 still the model's own distribution, with speculation on?

settings    what is tested: temperature, top_k, top_p; seeds far enough apart
processed   the distribution a token must come from, out of the standard engine's scores
drafts      n-gram drafts recomputed from the ids, for the leak test
scoring     primary test: every sampled token scored against the distribution it should have come from
tree        fallback without scores: permutation test over the tree of shared prefixes
duplicates  repeated sequences betray shared seeds
verdict     effects and corrected p-values → consistent, differs, or not enough data
"""
