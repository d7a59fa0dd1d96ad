"""What specdemo says of a run, in English: each sentence once, by key, with its places.

``assets/i18n/sentences/zh.json`` has the same keys and places in Chinese (tested). Keys that begin with "part_" are
parts of sentences and are never said alone.
"""

from __future__ import annotations

from specdemo.core.wording_engines import OF_ENGINES
from specdemo.core.wording_store import OF_STORE
from specdemo.core.wording_wire import OF_CONNECTIONS

PART = "part_"

_PARTS = {
    "part_standard": "standard",
    "part_speculative": "speculative",
    "part_both": "{first} and {second}",
    "part_unknown": "unknown",
    "part_token": "1 token",
    "part_tokens": "{count} tokens",
    "part_text": "part of the text",
    "part_end": ".",
    "part_quote": ': "{quote}".',
}

_NOTES = {
    "coalesced": "{tokens} tokens came in {chunks} chunks: several engine steps were merged, so steps are not counted.",
    "clumped": "{tiny} of {gaps} chunks arrived together with the one before: something on the way buffers the "
    "stream, so first-token time and gaps are unreliable.",
    "gathered": "Something between the engine and this app gathers its output: about {chunks} chunks arrive at "
    "once, every {seconds} s; times to first token and gaps are not the engine's.",
    "clumped_here": "{tiny} of {gaps} chunks were read together with the one before: this app was too busy to read "
    "them as they came, so first-token time and gaps are unreliable.",
    "gathered_here": "This app was too busy to read the stream as it came: about {chunks} chunks were read at once, "
    "every {seconds} s; times to first token and gaps are not the engine's. Run fewer things at once.",
    "held_back": "Something between the engine and this app holds its output back: {chunks} of {total} chunks arrived "
    "at once, after {seconds} s; times to first token and gaps are not the engine's.",
    "held_back_here": "This app was too busy to read the stream as it came: {chunks} of {total} chunks were read at "
    "once, after {seconds} s; times to first token and gaps are not the engine's. Run fewer things at once.",
    "overloaded": "This app was too busy at times ({late} of {ticks} checks came over 5 ms late), so some "
    "arrival times may be off by that much; run fewer things at once.",
    "retried": "The kept connection had been closed by the engine; the request was sent once more on a new one.",
    "by_chunks": "The server sends neither token ids nor usage: tokens are estimated by chunks.",
    "by_usage": "The server sends no token ids: tokens are counted by its own usage numbers.",
    "no_ids": "The engine sends no token ids, so tokens are counted from its usage and compared as text.",
    "ids_lost": "Some chunks had text but no token ids, so the ids are incomplete.",
    "no_usage": "The server sent no usage numbers, so the token count could not be cross-checked.",
    "no_usage_sent": "The engine sent no usage, so its own token count is unknown.",
    "not_streamed": "The engine answered in one piece instead of a stream, so there are no times between tokens.",
    "no_finish_reason": "The engine ended the stream without saying why it stopped.",
    "token_ids_lost": "The server reported {reported} tokens and {received} token ids arrived.",
    "surplus_ids": "{received} token ids arrived and the server counts {reported}: {surplus} are surplus.",
    "metrics_mismatch": "The engine's numbers do not add up: {problems}.",
    "part_accepted_of": "{accepted} accepted of {drafted} drafted",
    "part_accepted_seen": "{accepted} drafts accepted but only {seen} seen in the stream",
    "part_steps_seen": "{steps} drafting steps but {seen} decode steps in the stream",
    "part_histogram_steps": "the histogram counts {counted} steps, not {steps}",
    "part_histogram_sum": "the histogram does not add up to the accepted tokens",
    "part_accepted_sum": "the accepted tokens per step do not add up",
    "part_drafted_sum": "the drafted tokens per step do not add up",
    "part_accepted_more": "a step accepted more than it drafted",
    "whole_server": "Acceptance is that of the whole server during this run, by its counters, not of this "
    "request alone.",
    "counters_reset": "The engine's counters restarted during the run, so they say nothing.",
    "other_traffic": "The engine generated {tokens} tokens for others meanwhile, so this run had it not alone.",
    "cold_start": "First token after {own:.1f} s against {other:.1f} s: this side may have had a cold start.",
    "implausible": "The speedup of {speedup:.2f}x is above the {most:.2f} tokens per step, the most that "
    "speculation can give: the standard run was disturbed, so measure again on a quiet machine.",
    "warmup": "Warm-up, left out of every number: {requests} requests of up to {tokens} tokens.",
    "no_chat_template": "The model of the {side} engine has no chat template, so it cannot answer a chat. Send "
    'the prompt as plain text to both engines instead (the page\'s switch "Plain completion", or --plain).',
    "length_capped": "The prompt has {used} tokens and an engine takes {limit} in all, so the output ends after "
    "{room} tokens instead of {wanted}.",
}

_CHECKS = {
    "engines_silent": "The {silent} engine did not say how it is set up.",
    "prompt_unknown": "Prompt token ids could not be compared before the run.",
    "prompt_same": "Both engines read the same {count} prompt tokens.",
    "prompt_other": "The engines do not read the prompt alike: {left} and {right} prompt tokens.",
    "prompt_other_ids": "The engines do not read the prompt alike: {left} and {right} prompt tokens with "
    "different ids.",
    "prompt_sizes": "The engines did not see the same prompt: {left} and {right} prompt tokens.",
    "prompt_parts": "The engines did not see the same prompt: {left} and {right} prompt tokens, different from "
    "prompt token {position} on.",
    "sampling_sent": "Sent in full to both: {fields}.",
    "model_same": "Both serve {model}.",
    "model_called": "Both serve a model called {model}, from different places; are the weights the same?",
    "model_other": "The engines serve different models: {left} and {right}.",
    "part_dtype": "number format",
    "part_max_model_len": "length limit",
    "part_version": "engine version",
    "setting_same": "Same {words}: {value}.",
    "setting_other": "Different {words}: standard {left}, speculative {right}.",
    "setting_one": "Setting {name} ({value}) is given to the {side} engine only.",
    "device_unknown": "Whether both engines share a device is unknown, so the race is for show.",
    "device_separate": "The engines run on separate devices.",
    "device_shared": "Both engines run on one device and slow each other: the race is for show.",
    "device_in_turn": "Both engines run on one device, one at a time.",
    "standard_speculates": "The standard engine speculates too, so there is no reference.",
    "lossy": "Lossy mode on ({mode}): its output is not meant to equal the standard engine's.",
    "not_speculating": "The speculative engine does not speculate: nothing is tested.",
    "speculating_unknown": "Whether the speculative engine really speculates is unknown.",
    "drafts": "The speculative engine drafts.",
    "drafts_with": "The speculative engine drafts with {method}.",
    "drafts_up_to": "The speculative engine drafts, up to {count} tokens a step.",
    "drafts_with_up_to": "The speculative engine drafts with {method}, up to {count} tokens a step.",
    "min_p_refused": "vLLM refuses min_p together with speculation: expect an error from the speculative engine.",
    "cpu_repaired": "Sampling with drafts is repaired on this CPU engine.",
    "cpu_sampling": "On a CPU, vLLM draws drafted tokens with undefined settings above temperature 0, and top_k "
    "can end the engine; use temperature 0.",
    "cpu_sampling_unknown": "Should this engine run on a CPU, vLLM draws drafted tokens with undefined settings "
    "above temperature 0, and top_k can end the engine; use temperature 0.",
    "warm_cache": "Prompt tokens came from a warm prefix cache (standard and speculative: {counts}).",
    "warm_cache_uneven": "Prompt tokens came from a warm prefix cache (standard and speculative: {counts}); "
    "first-token times are not comparable.",
}

_VERDICTS = {
    "not_comparable": "Not comparable: {why}",
    "random": "At temperature {temperature:g} both engines draw at random, so equal tokens are not to be "
    "expected; compare distributions over many draws instead.",
    "unfinished_text": "Cannot decide: {said}.",
    "unfinished_parted": "Cannot decide: {said}; the outputs part at output token {position}.",
    "unfinished_match": "Cannot decide: {said}; the first {count} tokens match.",
    "part_waiting": "the {side} stream has not started{after}",
    "part_running": "the {side} stream is still writing{after}",
    "part_cancelled": "the {side} stream was stopped{after}",
    "part_failed": "the {side} stream failed{after}",
    "part_interrupted": "the {side} stream was interrupted{after}",
    "part_after": " after {count} tokens",
    "by_text": "A server sent no token ids: texts were compared, and no token position is claimed.",
    "so_by_text": "So texts were compared, and no token position is claimed.",
    "delivered_less": "The {side} server reported {reported} tokens and delivered {received}.",
    "finish_reasons": "Finish reasons differ: standard {left}, speculative {right}.",
    "empty_test_tokens": "Nothing was tested: no drafts were proposed (nothing to look up). All {count} tokens "
    "are equal.",
    "empty_test_characters": "Nothing was tested: no drafts were proposed (nothing to look up). All {count} "
    "characters are equal.",
    "drafts_unknown": "The engine does not tell whether drafts were proposed, so the test may be empty.",
    "limit_tokens": "All {count} tokens are equal, up to the length limit.",
    "limit_characters": "All {count} characters are equal, up to the length limit.",
    "equal_tokens": "All {count} tokens are equal.",
    "equal_characters": "All {count} characters are equal.",
    "both_empty": "Nothing was tested: neither output holds a token or text that could be compared (tool calls are "
    "not read).",
    "unseen": "Cannot decide: a server counted more tokens than arrived; the first {equal} tokens match.",
    "shorter": "Cannot decide: the {side} output is shorter ({count} of {other} tokens); the first {equal} "
    "tokens match.",
    "shorter_text": "Cannot decide: one text is shorter; the first {equal} characters match.",
    "texts_differ": "The texts differ from character {position} on; how close the choice was is unknown without ids.",
    "no_drafts_no_cause": "No drafts were proposed, so speculation cannot be the cause.",
    "same_text": "Same text, different tokens.",
    "same_tokens": "Same tokens, different texts.",
    "split": "First difference at output token {position}: standard {ours}, speculative engine {theirs}. {why}",
    "split_control": "First difference at output token {position}: standard {ours}, second standard run "
    "{theirs}. {why}",
    "part_ended": "ended",
    "part_quoted": "“{text}”",
    "part_no_text": "token {id} (no text)",
    "gap_at_least": "Real difference: the standard engine rates it at least {nats:.3g} nats lower, outside its "
    "best {listed}; the tolerance is {limit:g} nats ({source}).",
    "gap_unknown": "The gap is unknown, so a near tie cannot be told from a real difference.",
    "gap_flipped": "Near tie: asked again, the standard engine itself prefers the other token (by {nats:.3g} nats).",
    "gap_flipped_far": "Asked again, the standard engine prefers the other token by {nats:.3g} nats, far above "
    "the tolerance of {limit:g} nats ({source}): its own streamed choice is in doubt.",
    "gap_tie": "Near tie: the two are {nats:.3g} nats apart, within the tolerance of {limit:g} nats ({source}).",
    "gap_not_top": "The two are {nats:.3g} nats apart, but the token is not among the standard engine's best two.",
    "gap_suspicious": "Suspicious: the two are {nats:.3g} nats apart, just above the tolerance of {limit:g} "
    "nats ({source}).",
    "gap_real": "Real difference: the two are {nats:.3g} nats apart; the tolerance is {limit:g} nats ({source}).",
    "part_default": "default for {name}",
    "part_quantised": "quantised weights ({name}): no measurement of their own, so that of bfloat16",
    "part_dtype_unknown": "the engines do not tell their number format, so that of bfloat16",
    "recheck": "Re-check: {share:.1%} of the {count} tokens in the speculative text are the standard engine's "
    "own first choice.",
    "recheck_gap": "Re-check: {share:.1%} of the {count} tokens in the speculative text are the standard "
    "engine's own first choice; the largest gap is {nats:.3g} nats.",
    "stop_id": "The {side} engine also sent the id of the stop token itself; it has no text.",
    "surplus_after_stop": "The {side} engine sent {count} surplus token ids after the stop, without text.",
    "surplus_over_limit": "The {side} engine sent {count} surplus token ids beyond the limit of {limit}.",
    "split_no_ids": "The engine tells no prompt token ids, so the split could not be looked at.",
    "split_failed": "The split could not be looked at: {why}",
    "recheck_no_ids": "The re-check needs token ids of prompt and output, and an engine sent none.",
    "recheck_failed": "The re-check failed: {why}",
    "recheck_empty": "The re-check failed: the engine scored no position.",
}

_NUMBERS = {
    "no_token": "No token has arrived.",
    "one_token": "One token has no time per token.",
    "one_chunk": "All tokens came in one chunk, so no rate can be told.",
    "at_once": "All chunks came at once, so no rate can be told.",
    "odd_times": "The arrival times of this run contradict each other or are not real times, so this cannot be told.",
    "odd_count": "A count that the server or the file gives cannot be right, so this cannot be told.",
    "steps_merged": "The server merged several engine steps into one chunk.",
    "steps_no_ids": "The server sends no token ids, so steps cannot be counted.",
    "no_step": "No decode step was seen.",
    "one_assumed": "The server sends no ids: one token is assumed in the first chunk.",
    "not_finished": "The request did not finish.",
    "still_runs": "The request still runs.",
    "no_drafting": "The {side} engine does not draft.",
    "no_numbers": "The engine reported neither per-request numbers nor counters.",
    "no_drafts": "No drafts were proposed, so there is no acceptance to report.",
    "counters_restarted": "The engine's counters restarted during the run.",
    "no_counters": "The engine has no speculation counters.",
    "exact_later": "Exact acceptance comes with the engine's last chunk.",
    "both_finish": "Both sides must finish before they can be compared.",
    "no_decode_rate": "A side has no decode rate (too few tokens, or all in one chunk).",
    "side_no_token": "A side delivered no token.",
    "other_lengths": "The outputs differ in length ({left} and {right} tokens).",
    "no_e2e": "A side has no end-to-end time.",
    "basis_unknown": "Time per output token; a side's token count is unknown.",
    "basis_lengths": "Time per output token over different texts of {left} and {right} tokens.",
    "basis_texts": "Time per output token over different texts of equal length ({count} tokens).",
    "basis_each": "Time per output token over {count} tokens a side.",
    "basis_same": "Time per output token over the same {count} tokens.",
    "needs_steps": "The prediction needs the engine's numbers per step.",
    "no_drafts_proposed": "No drafts were proposed.",
    "k_unknown": "The draft length is unknown.",
    "cause_unknown": "Too little is known of this run to explain the difference.",
    "as_predicted": "As predicted: measured {measured:.2f}x, textbook {textbook:.2f}x.",
    "measured_against": "Measured {measured:.2f}x against {textbook:.2f}x in the textbook, mainly because {cause}",
    "part_uneven": "acceptance is uneven: {length:.2f} tokens per drafting step where {expected:.2f} were "
    "expected{test}.",
    "part_rejected": " (one fixed acceptance chance is rejected for this run)",
    "part_coverage": "only {coverage:.0%} of the decode steps had a draft to check, so a step gave "
    "{per_step:.2f} tokens and not {length:.2f}.",
    "part_cost": "steps without a draft cost {undrafted:.2f} standard steps, and steps with one {drafted:.2f}.",
    "part_rest": "single steps varied: step counts and median step times explain {corrected:.2f}x, the rest is "
    "noise or stalls.",
}

ENGLISH: dict[str, str] = {
    **_PARTS,
    **_NOTES,
    **_CHECKS,
    **_VERDICTS,
    **_NUMBERS,
    **OF_ENGINES,
    **OF_STORE,
    **OF_CONNECTIONS,
}
