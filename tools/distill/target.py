"""The target in plain torch, batched, with a key-value cache: the cheapest way to many answers on a busy CPU.

vLLM would do as well; its processes wait for one another by spinning, which costs too much beside other work.
Weights are float32, as in the served engine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional


class Cache:
    """Keys and values of a batch: [layers][B, kv heads, length, head size].

    ``shared`` places come first, equal in all rows; then ``pad`` [B] places of padding; then each row's own.
    """

    def __init__(self, config: dict[str, Any], pad: Tensor, length: int, shared: int = 0) -> None:
        shape = (len(pad), config["num_key_value_heads"], length, config["head_dim"])
        self.k = [torch.zeros(shape) for _ in range(config["num_hidden_layers"])]
        self.v = [torch.zeros(shape) for _ in range(config["num_hidden_layers"])]
        self.pad, self.shared = pad, shared

    def share(self, other: Cache) -> None:
        """The first places of ``other``'s only row, in all rows of this one."""
        for mine, theirs in ((self.k, other.k), (self.v, other.v)):
            for here, there in zip(mine, theirs, strict=True):
                here[:, :, : self.shared] = there[:, :, : self.shared]

    def rows(self, index: Tensor) -> None:
        """Keep these rows only."""
        for part in (self.k, self.v):
            for i, tensor in enumerate(part):
                part[i] = tensor[index]
        self.pad = self.pad[index]


class Target:
    """A Llama model folder, for batched decoding."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text("utf-8"))
        w = {name: t.float() for name, t in load_file(folder / "model.safetensors").items()}
        self.embedding = w["model.embed_tokens.weight"]
        self.norm = w["model.norm.weight"]
        self.layers = []
        for i in range(self.config["num_hidden_layers"]):
            p = f"model.layers.{i}."
            self.layers.append({
                "qkv": torch.cat([w[f"{p}self_attn.{n}_proj.weight"] for n in "qkv"]),
                "o": w[f"{p}self_attn.o_proj.weight"],
                "in": torch.cat([w[f"{p}mlp.{n}_proj.weight"] for n in ("gate", "up")]),
                "down": w[f"{p}mlp.down_proj.weight"],
                "norm_1": w[f"{p}input_layernorm.weight"],
                "norm_2": w[f"{p}post_attention_layernorm.weight"],
            })  # fmt: skip
        size = self.config["head_dim"]
        self.turns = self.config["rope_parameters"]["rope_theta"] ** (-torch.arange(0, size, 2).float() / size)

    @torch.inference_mode()
    def step(self, ids: Tensor, start: int, cache: Cache, rows: slice = slice(None)) -> Tensor:
        """Logits [B, V] after the last of ``ids`` [B, T], which stand at cache places ``start``…; ``rows`` of the cache."""
        c, (b, t) = self.config, ids.shape
        heads, groups, size = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        end, pad, first = start + t, cache.pad[rows][:, None, None], cache.shared
        keys, here = torch.arange(end), torch.arange(start, end)[:, None]
        turned = torch.where(here < first, here, (here - pad).clamp(min=0))  # [B, T, 1]
        angle = (turned * self.turns).float()[:, None]
        cos, sin = angle.cos(), angle.sin()
        seen = ((keys < first) | (keys >= first + pad)) & (keys <= here)
        mask = seen | (keys == here)  # a padded place may look at itself, or its softmax would have nothing to sum
        mask = mask[:, None]
        x = functional.embedding(ids, self.embedding)
        for layer, all_k, all_v in zip(self.layers, cache.k, cache.v, strict=True):
            y = functional.rms_norm(x, (x.shape[-1],), layer["norm_1"], c["rms_norm_eps"])
            qkv = functional.linear(y, layer["qkv"]).view(b, t, heads + 2 * groups, size).transpose(1, 2)
            q, k, v = qkv.split([heads, groups, groups], dim=1)
            q, k = _turn(q, cos, sin), _turn(k, cos, sin)
            all_k[rows, :, start:end], all_v[rows, :, start:end] = k, v
            k, v = all_k[rows, :, :end], all_v[rows, :, :end]
            if t == 1:  # the query heads of a group as if they were places: nothing is repeated in memory
                mixed = functional.scaled_dot_product_attention(q.view(b, groups, -1, size), k, v, attn_mask=mask)
                mixed = mixed.reshape(b, 1, -1)
            else:
                k, v = (part.repeat_interleave(heads // groups, dim=1) for part in (k, v))
                mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
                mixed = mixed.transpose(1, 2).reshape(b, t, -1)
            x = x + functional.linear(mixed, layer["o"])
            y = functional.rms_norm(x, (x.shape[-1],), layer["norm_2"], c["rms_norm_eps"])
            gate, up = functional.linear(y, layer["in"]).chunk(2, dim=-1)
            x = x + functional.linear(functional.silu(gate) * up, layer["down"])
        last = functional.rms_norm(x[:, -1], (x.shape[-1],), self.norm, c["rms_norm_eps"])
        return functional.linear(last, self.embedding)


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    low, high = x.chunk(2, dim=-1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)
