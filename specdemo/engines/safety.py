"""Which requests an engine must not get, and why: pure functions, asked before anything is sent.

vLLM's CPU kernels (0.32, and 0.33 by reading) leave temperature, top_k and top_p of draft positions uninitialised:
drafts are wrongly rejected, seeds do not repeat, and top_k or top_p can end the engine. ``plugin/`` repairs that for
the versions it was tested on. Elsewhere such a request is refused with a reason instead of killing the engine.

And on any CPU engine, speculating or not, a seed at a temperature above 0 ends it when the prompt is prefilled in
parts, which depends on what else runs at that moment: so without the repair a seed is refused as well.
"""

from __future__ import annotations

from specdemo.core.engine import EngineSpec
from specdemo.core.prompt import Sampling

REPAIR_SWITCH = "SPECDEMO_CPU_SAMPLING_REPAIR"
"""Environment variable of the child: "1" asks the plugin to act, anything else leaves vLLM as it is."""

REPAIR_SETTING = "cpu_sampling_repair"
"""The name of the repair among EngineFacts.settings: "on" once the engine has said that it is applied."""

REPAIRED_VERSIONS = ("0.32.0",)
"""vLLM versions that the repair was tested on (real engine, tests/engine/test_sampling_repair.py)."""


def wants_repair(spec: EngineSpec) -> bool:
    """Whether this engine is started with the plugin: on the CPU, not switched off in ``environment``."""
    if spec.device != "cpu":
        return False
    return dict(spec.environment).get(REPAIR_SWITCH, "1") == "1"


def base_version(version: str | None) -> str:
    """``0.32.0+cpu`` → ``0.32.0``."""
    return (version or "").split("+", 1)[0]


def repaired(spec: EngineSpec, version: str | None) -> bool:
    """Whether sampling at temperature > 0 is right on this engine although it runs on the CPU."""
    return wants_repair(spec) and base_version(version) in REPAIRED_VERSIONS


def refusal(
    sampling: Sampling, *, speculating: bool, device: str | None, repaired: bool = False, version: str | None = None
) -> str | None:
    """One sentence why an engine must not get this request, None if it may.

    ``device`` None (an attached engine that does not say) counts as a CPU when the version ends in ``+cpu``.
    """
    if sampling.greedy:
        return None
    if speculating and sampling.min_p > 0:
        return "vLLM does not support min_p above 0 with speculation at a temperature above 0; set min_p to 0."
    on_cpu = device.startswith("cpu") if device is not None else "+cpu" in (version or "")
    if not on_cpu or repaired:
        return None
    if speculating:
        return (
            "On the CPU, this vLLM samples wrongly with speculation at a temperature above 0 and can crash; "
            "use temperature 0, or an engine started with specdemo's repair (vLLM "
            f"{', '.join(REPAIRED_VERSIONS)})."
        )
    if sampling.seed is not None:
        return (
            "On the CPU, this vLLM can crash on a seed at a temperature above 0 when a prompt is read in parts; "
            "use no seed or temperature 0, or an engine started with specdemo's repair (vLLM "
            f"{', '.join(REPAIRED_VERSIONS)})."
        )
    return None


def refusal_for_spec(spec: EngineSpec, sampling: Sampling, *, version: str | None) -> str | None:
    """:func:`refusal` for a managed engine."""
    return refusal(
        sampling,
        speculating=spec.speculation is not None,
        device=spec.device,
        repaired=repaired(spec, version),
        version=version,
    )
