"""The name, formula and meaning of every number, once for page, command line, report and docs/metrics.md.

Symbols: t_i arrival of chunk i since the request was sent, b_i its tokens, over the E chunks with tokens, N = sum b_i;
S drafting steps, D drafted and A accepted draft tokens, a_s and d_s the same of one step, k the draft length.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """One number. ``formula`` is plain text; ``unit`` is "" for counts and ratios; ``source``: where it comes from.

    ``short`` and ``words``: name and formula where there is room for a few words only, as in a terminal.
    Both are "" for a number that is not shown in so small a place.
    """

    label: str
    formula: str
    plain: str
    unit: str = ""
    source: str = "the stream"
    short: str = ""
    words: str = ""


GLOSSARY: dict[str, Term] = {
    "prompt_tokens": Term(
        "Prompt tokens", "usage.prompt_tokens, else the echoed ids",
        "How many tokens the engine read.", source="the server",
        short="prompt tokens", words="as the engine counts them",
    ),
    "output_tokens": Term(
        "Output tokens", "N = sum b_i (ids), else usage.completion_tokens, else chunks with text (approximate)",
        "How many tokens were written; counted by token ids, never by chunks or by re-tokenising.",
        short="output tokens", words="ids delivered",
    ),
    "ttft_s": Term(
        "Time to first token", "t_1, the first chunk that holds a token",
        "How long until the first word; the empty role chunk of a chat does not count.", "s",
        short="TTFT", words="first token − request",
    ),
    "ttft_role_s": Term(
        "Time to first chunk", "time of the first chunk of any kind",
        "What vLLM 0.32's benchmark calls TTFT for chats.", "s",
    ),
    "tpot_s": Term(
        "Time per output token", "(E2EL - TTFT) / (N - 1)",
        "Seconds for each token after the first; undefined for one token.", "s",
        short="TPOT", words="(E2EL − TTFT) / (output tokens − 1)",
    ),
    "e2el_s": Term(
        "End-to-end latency", "time of the last chunk that has choices",
        "How long the whole answer took.", "s",
        short="E2EL", words="last token − request",
    ),
    "chunk_gap_s": Term(
        "Chunk gap (vLLM's ITL)", "(t_E - t_1) / (E - 1)",
        "Mean pause between chunks. A chunk is a step, not a token: never compare the two sides by it.", "s",
    ),
    "longest_stall_s": Term(
        "Longest stall", "max (t_i - t_(i-1))", "The longest pause after the first token.", "s",
        short="longest stall", words="largest gap between chunks",
    ),
    "decode_tokens_per_s": Term(
        "Decode speed", "(N - b_1) / (t_E - t_1)",
        "Tokens a second once the answer has begun; the first chunk's tokens only start the clock.", "tokens/s",
        short="decode tokens/s", words="tokens after the first chunk / (last − first token)",
    ),
    "tokens_per_s": Term(
        "End-to-end speed", "N / E2EL", "Tokens a second with the wait for the first one included.", "tokens/s",
        short="tokens/s", words="output tokens / E2EL",
    ),
    "live_tokens_per_s": Term(
        "Speed now", "forgotten tokens / forgotten time, time constant 1 s; nothing before 1 s",
        "Tokens a second over about the last second; falls during a stall and cannot spike.", "tokens/s",
    ),
    "steps": Term(
        "Engine steps", "E (prefill and decode steps), one chunk each",
        "Forward passes of the target model that delivered tokens.",
        short="steps", words="engine steps, drafting or not",
    ),
    "tokens_per_step": Term(
        "Tokens per step", "(N - b_1) / (E - 1)",
        "Tokens a decode step delivers on average, drafting or not: this is what drives the speedup.",
        short="tokens per step", words="tokens after the first chunk / (steps − 1)",
    ),
    "drafting_steps": Term(
        "Drafting steps", "S", "Decode steps that had a draft to check.", source="the engine, per request",
        short="drafting steps", words="steps with a draft",
    ),
    "non_drafting_steps": Term(
        "Steps without a draft", "E - 1 - S", "Decode steps in which nothing was drafted.",
        source="the stream and the engine",
    ),
    "cached_tokens": Term(
        "Cached prompt tokens", "usage.prompt_tokens_details.cached_tokens",
        "Prompt tokens served from a warm prefix cache; they flatter the first-token time.", source="the server",
    ),
    "acceptance.rate": Term(
        "Acceptance rate", "A / D",
        "Share of drafted tokens that the target accepted. Drafts behind a rejection count as not accepted.",
        source="the engine, per request; else its counters (whole engine)",
        short="acceptance rate", words="accepted / drafted tokens",
    ),
    "acceptance.drafted": Term(
        "Drafted tokens", "D", "How many tokens were proposed.",
        source="the engine, per request; else its counters (whole engine)",
        short="drafted", words="tokens proposed",
    ),
    "acceptance.accepted": Term(
        "Accepted tokens", "A", "How many drafted tokens the target accepted.",
        source="the engine, per request; else its counters (whole engine)",
        short="accepted", words="drafted tokens that were taken",
    ),
    "acceptance.mean_length": Term(
        "Mean acceptance length", "1 + A / S",
        "Tokens per drafting step, the target's own (bonus) token included. Not the speedup: steps without a draft "
        "are left out.",
        source="the engine, per request; else its counters (whole engine)",
        short="acceptance length", words="1 + accepted / drafting steps",
    ),
    "acceptance.per_position": Term(
        "Acceptance by position", "#{a_s >= j} / S",
        "Share of all drafting steps that accepted at least j tokens (vLLM's definition).",
        source="the engine, per request; else its counters (whole engine)",
        short="by position", words="share of drafting steps that took so many",
    ),
    "acceptance.per_position_conditional": Term(
        "Acceptance by position, once reached", "#{a_s >= j} / #{a_s >= j-1 and d_s >= j}",
        "Chance that the j-th drafted token is accepted when all before it were.",
        source="the engine, per request and step",
    ),
    "acceptance.histogram": Term(
        "Accepted per step", "h_j = #{a_s = j}", "How many drafting steps accepted exactly j tokens.",
        source="the engine, per request",
    ),
    "acceptance.delivered": Term(
        "Accepted and delivered", "N - E + [A > N - E]",
        "Accepted drafts that reached the text; a stop or the length limit may cut off the last ones.",
    ),
    "acceptance.range": Term(
        "Acceptance so far", "[ A_live / (k (E-1)), A_live / (k #{b_i > 1}) ], A_live = sum (b_i - 1)",
        "While the stream runs, refused drafts are invisible: the rate lies in this range.",
    ),
    "speedup.decode": Term(
        "Speedup", "decode speed, speculative / standard",
        "How many times less time a token takes; below 1 the speculative engine is slower.", "x", "both streams",
    ),
    "speedup.e2e": Term(
        "End-to-end speedup", "E2EL standard / E2EL speculative, only for outputs of equal length",
        "How many times sooner the whole answer is there.", "x", "both streams",
    ),
    "speedup.ttft": Term(
        "First-token speedup", "TTFT standard / TTFT speculative",
        "How many times sooner the first token is there.", "x", "both streams",
    ),
    "verdict.gap_nats": Term(
        "Gap at the split", "log p(standard's token) - log p(speculative's token)",
        "How close the two candidates were, asked of the standard engine.", "nats", "the standard engine",
    ),
    "verdict.tolerance_nats": Term(
        "Near-tie tolerance", "float32 0.001, float16 0.06, bfloat16 and quantised 0.25",
        "Gaps below it can come from rounding alone.", "nats", "docs/metrics.md",
    ),
    "theory.a": Term(
        "Chance a", "A / (A + #{a_s < d_s})",
        "Chance that one drafted token is accepted, by maximum likelihood.", source="the engine, per request and step",
    ),
    "theory.c": Term(
        "Draft cost c", "(rv - 1) / k, rv = median gap of drafting steps / median gap of the standard engine",
        "Cost of one drafted token in standard steps, wider checking included.", source="both streams",
    ),
    "theory.expected_tokens_per_step": Term(
        "Expected tokens per drafting step", "(1 - a^(k+1)) / (1 - a)",
        "Leviathan et al. 2023, if every draft has the same chance a.", source="arXiv 2211.17192",
    ),
    "theory.textbook_speedup": Term(
        "Textbook speedup", "(1 - a^(k+1)) / ((1 - a) (k c + 1))",
        "Leviathan et al. 2023, if every step has a draft.", "x", "arXiv 2211.17192",
    ),
    "theory.corrected_speedup": Term(
        "Corrected speedup", "tokens per step / ((1 - q) r0 + q rv), q = S / (E - 1)",
        "The same with the real share q of drafting steps and the real cost r0 of the others.", "x", "both streams",
    ),
    "theory.coverage": Term(
        "Draft coverage q", "S / (E - 1)", "Share of decode steps that had a draft to check.",
        source="the stream and the engine",
    ),
}  # fmt: skip
"""By the name that carries the number in the JSON contract, nested names with a dot."""
