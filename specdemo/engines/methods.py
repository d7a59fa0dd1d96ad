"""What vLLM's ``speculative_config`` knows: methods, keys, and modes; tables after vLLM 0.32 and 0.33.

Read from ``vllm/config/speculative.py`` of both versions and tried on 0.32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Method:
    """What vLLM asks of one method: whether it needs ``model`` and ``num_speculative_tokens``, and where it exists."""

    needs_model: bool = False
    needs_k: bool = True
    until: tuple[int, int] | None = None  # first version without it
    device: str | None = None  # the only device it runs on


METHODS: Mapping[str, Method] = MappingProxyType({
    "ngram": Method(),
    "ngram_gpu": Method(device="cuda"),
    "suffix": Method(needs_k=False),
    "draft_model": Method(needs_model=True),
    "eagle": Method(needs_model=True),
    "eagle3": Method(needs_model=True),
    "mtp": Method(needs_k=False),
    "dflash": Method(needs_model=True),
    "dspark": Method(needs_k=False, device="cuda"),
    "medusa": Method(needs_model=True, until=(0, 33)),
    "mlp_speculator": Method(needs_model=True, needs_k=False, until=(0, 33), device="cuda"),
})  # fmt: skip

REFUSED_METHODS: Mapping[str, str] = MappingProxyType({
    "custom_class": "it loads Python code by name; start that engine yourself and attach it by its URL",
    "extract_hidden_states": "it proposes no tokens, so there is nothing to compare",
})  # fmt: skip

INT, NUM, STR, BOOL, LIST = "a whole number", "a number", "text", "true or false", "a list"
"""Forms of a key's value, in the words of the error message."""

KEYS: Mapping[str, str] = MappingProxyType({
    "method": STR, "model": STR, "num_speculative_tokens": INT, "draft_tensor_parallel_size": INT,
    "quantization": STR, "moe_backend": STR, "attention_backend": STR, "kv_cache_dtype": STR,
    "max_model_len": INT, "revision": STR, "enforce_eager": BOOL, "disable_padded_drafter_batch": BOOL,
    "disable_eagle_block_drop": BOOL, "use_local_argmax_reduction": BOOL, "use_heterogeneous_vocab": BOOL,
    "index_share_for_mtp_iteration": BOOL, "prompt_lookup_min": INT, "prompt_lookup_max": INT,
    "parallel_drafting": BOOL, "num_speculative_tokens_per_batch_size": LIST,
    "suffix_decoding_max_tree_depth": INT, "suffix_decoding_max_cached_requests": INT,
    "suffix_decoding_max_spec_factor": NUM, "suffix_decoding_min_token_prob": NUM,
    "rejection_sample_method": STR, "draft_sample_method": STR, "synthetic_acceptance_rates": LIST,
    "synthetic_acceptance_length": NUM, "enable_adaptive_verification": BOOL, "dspark_draft_topk": INT,
    "fly_window_size": INT, "fly_entropy_threshold": NUM, "fly_entropy_top_k": INT,
    "draft_lm_head_quantization": STR, "disable_lookahead_block_hashes": BOOL, "xpress_topc": INT,
})  # fmt: skip

ONLY_FROM: Mapping[str, tuple[int, int]] = MappingProxyType(
    dict.fromkeys(
        ("fly_window_size", "fly_entropy_threshold", "fly_entropy_top_k", "draft_lm_head_quantization",
         "disable_lookahead_block_hashes", "xpress_topc"), (0, 33))
)  # fmt: skip
"""Keys that an older vLLM rejects as unknown."""

REJECTION = ("standard", "block", "synthetic", "fly")
LOSSY: Mapping[str, str] = MappingProxyType({
    "synthetic": "it accepts draft tokens at random, so the text is not the target model's",
    "fly": "it accepts tokens that the target model would not have chosen",
})  # fmt: skip
