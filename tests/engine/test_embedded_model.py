"""The converted embedded model, read with the engine environment's own libraries."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from specdemo.engines.embedded import cache
from specdemo.engines.environment import find_engine_python
from specdemo.engines.models import ensure_embedded_model

TRACES = Path(__file__).resolve().parents[1] / "traces"

# Counts the chat-template tokens of each prompt on stdin, and tells the end-of-text ids that vLLM will use.
COUNT = """
import json, sys
from transformers import AutoTokenizer, GenerationConfig
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
def count(prompt):
    messages = [{"role": "user", "content": prompt}]
    return len(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"])
print(json.dumps({"counts": [count(prompt) for prompt in json.load(sys.stdin)], "eos": tokenizer.eos_token,
                  "generation_eos": GenerationConfig.from_pretrained(sys.argv[1]).eos_token_id}))
"""


@pytest.fixture(scope="module")
def engine_python() -> Path:
    python = find_engine_python()
    if python is None:
        pytest.skip("no engine environment")
    return python


def test_prompts_are_tokenised_as_recorded(engine_python: Path) -> None:
    """Tokenizer and chat template give every recorded prompt the number of tokens that vLLM counted for it."""
    folder = ensure_embedded_model(engine_python=engine_python)
    assert cache.check(folder).whole
    traces = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(TRACES.glob("std-*.json"))]
    assert traces
    done = subprocess.run(
        [str(engine_python), "-c", COUNT, str(folder)],
        input=json.dumps([trace["prompt"] for trace in traces]),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["counts"] == [trace["final"]["usage"]["prompt_tokens"] for trace in traces]
    assert (answer["eos"], answer["generation_eos"]) == ("<|im_end|>", 2)
