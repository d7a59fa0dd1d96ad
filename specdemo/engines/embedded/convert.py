"""GGUF file → a model folder that vLLM can load. Run by the engine environment's own Python:

    <engine python> convert.py FILE.gguf FOLDER

It imports nothing of specdemo, because specdemo is not installed there. FOLDER must exist and be empty; afterwards it
holds bfloat16 safetensors, config, generation config, tokenizer and chat template. The last line on stdout is a JSON
object: ``{"ok": true, "eos_token": …, "self_check": [ids]}`` or ``{"ok": false, "reason": …, "message": …}``.
bfloat16 was compared with float32 on the recorded prompts: the same greedy output, token for token, at half the size.
"""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any

SELF_CHECK_MESSAGE = "List the days of the week, then list them again three times."
SERVED_CONTEXT = 8192


def convert(gguf: Path, folder: Path) -> dict[str, Any]:
    """Do the work; raises OSError, ImportError or ValueError."""
    # Slow to import (5 s), and absent from the application's environment: only this function needs them.
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, GgufConfig

    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    tokenizer.model_max_length = SERVED_CONTEXT
    model = AutoModelForCausalLM.from_pretrained(
        **source, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    if getattr(model.config, "quantization_config", None) is not None:
        raise ValueError("transformers kept the weights quantised")
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    start = tokenizer.convert_tokens_to_ids("<|im_start|>")
    if tokenizer.eos_token_id != end or model.config.eos_token_id != end or not tokenizer.chat_template:
        raise ValueError("the file's tokenizer is not the one of SmolLM2-135M-Instruct")
    # Otherwise the config keeps the GGUF's long internal name, which vLLM would show.
    model.config._name_or_path = "SmolLM2-135M-Instruct"  # noqa: SLF001 - there is no public setter
    model.generation_config = GenerationConfig(bos_token_id=start, eos_token_id=end, pad_token_id=end)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    reread = AutoTokenizer.from_pretrained(str(folder))
    ids = reread.apply_chat_template(
        [{"role": "user", "content": SELF_CHECK_MESSAGE}], add_generation_prompt=True, return_dict=True
    )["input_ids"]
    return {"ok": True, "eos_token": reread.eos_token, "self_check": list(ids)}


def explain(error: BaseException) -> dict[str, Any]:
    """Any failure as the JSON object that the caller reads."""
    text = " ".join(str(error).split())[:500]
    if isinstance(error, ImportError):
        return {"ok": False, "reason": "missing-package", "message": text}
    # safetensors raises an error of its own for a full disk; only its text tells.
    if (isinstance(error, OSError) and error.errno == errno.ENOSPC) or "No space left" in text:
        return {"ok": False, "reason": "disk-full", "message": text}
    return {"ok": False, "reason": "failed", "message": f"{type(error).__name__}: {text}"}


def main(arguments: list[str]) -> int:
    """Two arguments, one JSON line, exit code 0 or 1."""
    gguf, folder = (Path(argument) for argument in arguments)
    try:
        answer = convert(gguf, folder)
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets one JSON line instead of a traceback
        answer = explain(error)
    print(json.dumps(answer), flush=True)  # noqa: T201 - stdout is this program's interface
    return 0 if answer["ok"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
