"""The near-tie tolerance by number format."""

from __future__ import annotations

import pytest

from specdemo.core.tolerance import tolerance


@pytest.mark.parametrize(
    ("dtype", "quantization", "nats", "words"),
    [
        ("float32", None, 1e-3, "default for float32"),
        ("torch.float16", "none", 0.06, "default for float16"),
        ("half", "", 0.06, "default for float16"),
        ("BF16", None, 0.25, "default for bfloat16"),
        ("float16", "awq", 0.25, "quantised weights (awq)"),
        (None, "fp8", 0.25, "quantised weights (fp8)"),
        (None, None, 0.25, "do not tell their number format"),
        ("auto", None, 0.25, "do not tell their number format"),
    ],
)
def test_tolerance_states_its_source(dtype: str | None, quantization: str | None, nats: float, words: str) -> None:
    """Each format has its default; what was not measured says whose value it borrows."""
    found = tolerance(dtype, quantization)
    assert found.nats == nats
    assert words in found.source
