"""The student: a Llama of one to three thin layers, in plain torch, with a start that already knows how to copy.

Embeddings (shared with the output head) start as the target's, on their leading principal directions: tokens that mean
the same stay neighbours. ``RESERVED`` dimensions stay free; the first layer's first head starts by writing there which
token came before, and the second layer's heads start by looking for an earlier place where the same token came before
and proposing what followed it there (an induction head, Olsson et al. 2022, arXiv 2209.11895). Training is free to
change all of it; without that start, a model this small needs far more text to find it.

Training runs on the tokens that occur in the data (``seen``); all others keep their start, shrunk so that they do not
win by accident.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

HEAD_DIM = 64
RESERVED = 32
THETA = 100_000.0
EPS = 1e-5
UNSEEN_SCALE = 0.25
EMBEDDING_STD = 0.05


@dataclass(frozen=True, slots=True)
class Shape:
    """Width and depth of a student."""

    hidden: int
    layers: int

    @property
    def heads(self) -> int:
        return max(self.hidden // HEAD_DIM, 1)

    @property
    def inner(self) -> int:
        """Width of the feed-forward part."""
        return self.hidden * 8 // 3 // 32 * 32


class Block(nn.Module):
    """One pre-norm Llama layer with biases in its attention (Hugging Face's ``attention_bias``)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        wide = shape.heads * HEAD_DIM
        self.heads = shape.heads
        self.norm_1, self.norm_2 = nn.RMSNorm(shape.hidden, EPS), nn.RMSNorm(shape.hidden, EPS)
        self.q, self.k, self.v = (nn.Linear(shape.hidden, wide) for _ in range(3))
        self.o = nn.Linear(wide, shape.hidden)
        self.gate = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.up = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.hidden, bias=False)
        for layer in (self.q, self.k, self.v, self.o, self.gate, self.up, self.down):
            nn.init.normal_(layer.weight, std=0.5 / math.sqrt(layer.in_features))
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        for layer in (self.o, self.down):
            nn.init.normal_(layer.weight, std=0.002)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        b, t, _ = x.shape
        y = self.norm_1(x)
        q, k, v = (part(y).view(b, t, self.heads, HEAD_DIM).transpose(1, 2) for part in (self.q, self.k, self.v))
        # Batches are padded on the right, so the causal mask is mask enough.
        mixed = functional.scaled_dot_product_attention(turn(q, cos, sin), turn(k, cos, sin), v, is_causal=True)
        x = x + self.o(mixed.transpose(1, 2).reshape(b, t, -1))
        y = self.norm_2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position: dimension i turns together with i + 32."""
    low, high = x.chunk(2, dim=-1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)


class Student(nn.Module):
    """Embeddings of the seen tokens, the layers, and a last norm."""

    def __init__(self, shape: Shape, embedding: Tensor) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Parameter(embedding.clone())
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, EPS)

    def forward(self, ids: Tensor) -> Tensor:
        """States after the last norm, [B, T, hidden], for compact ids."""
        angle = torch.outer(torch.arange(ids.shape[1]).float(), frequencies())
        cos, sin = angle.cos(), angle.sin()
        x = functional.embedding(ids, self.embedding)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.norm(x)


def frequencies() -> Tensor:
    """Radians a position of the 32 rotary pairs."""
    return THETA ** (-torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM)


def project(target: Tensor, seen: Tensor, hidden: int) -> Tensor:
    """The target's embeddings [V, D] on ``hidden - RESERVED`` principal directions of the seen ones: [V, hidden]."""
    kept = hidden - RESERVED
    centred = target.float() - target[seen].float().mean(0)
    _, _, directions = torch.linalg.svd(centred[seen], full_matrices=False)
    small = centred @ directions[:kept].T
    small *= EMBEDDING_STD / small[seen].std()
    unseen = torch.ones(len(target), dtype=torch.bool)
    unseen[seen] = False
    small[unseen] *= UNSEEN_SCALE
    return torch.cat([small, torch.zeros(len(target), RESERVED)], dim=1)


@torch.no_grad()
def teach_copying(model: Student, generator: torch.Generator) -> None:
    """Set the first layer's first head and the second layer's heads as the module's text says."""
    hidden, kept = model.shape.hidden, model.shape.hidden - RESERVED
    spread = model.embedding[:, :kept].std(0)
    scale = math.sqrt(hidden) / model.embedding.norm(dim=1).mean()
    mix, _ = torch.linalg.qr(torch.randn(kept, RESERVED, generator=generator))
    code = mix.T / (spread * scale)  # token → RESERVED numbers of unit variance that tell it from others
    first = model.blocks[0]
    turns, strength = frequencies()[:12], 8.0
    for layer in (first.q, first.k, first.v):
        layer.weight[:HEAD_DIM] = 0.0
    first.q.bias[:12] = strength
    first.k.bias[:12], first.k.bias[32:44] = strength * turns.cos(), strength * turns.sin()
    first.v.weight[:RESERVED, :kept] = code
    first.o.weight[kept:, :RESERVED] = torch.eye(RESERVED) * EMBEDDING_STD * 1.5
    if model.shape.layers < 2:
        return
    second = model.blocks[1]
    slow = torch.cat([torch.arange(16, 32), torch.arange(48, 64)])  # pairs that hardly turn within a short text
    for head in range(model.shape.heads):
        rows, start = head * HEAD_DIM + slow, head * HEAD_DIM
        left, right = head * HEAD_DIM, min((head + 1) * HEAD_DIM, kept)
        if right <= left:
            break
        here = slice(start, start + HEAD_DIM)
        for layer in (second.q, second.k, second.v):
            layer.weight[here] = 0.0
        second.q.weight[rows, :kept] = 3.0 * code
        second.k.weight[rows, kept:] = torch.eye(RESERVED) / (EMBEDDING_STD * 1.5 * scale)
        second.v.weight[start : start + right - left, left:right] = torch.eye(right - left)
        second.o.weight[left:right, start : start + right - left] = torch.eye(right - left) * 2.0 / scale


class HeadLoss(torch.autograd.Function):
    """Cross-entropy of soft targets against states @ head.T, in pieces that fit the cache; gradients made on the way."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, head: Tensor, index: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """``index``/``weight`` [N, K]: compact ids and their shares (each row sums to 1) → (mean loss, first choices)."""
        grad_states, grad_head, total = torch.empty_like(states), torch.zeros_like(head), states.new_zeros(())
        choices = torch.empty(len(states), dtype=torch.long)
        for piece in torch.arange(len(states)).split(512):
            s = slice(int(piece[0]), int(piece[-1]) + 1)
            logits = states[s] @ head.T
            high, choices[s] = logits.max(1)
            picked = (logits.gather(1, index[s]) * weight[s]).sum()
            logits.sub_(high[:, None]).exp_()
            sums = logits.sum(1, keepdim=True)
            total += sums.log().sum() + high.sum() - picked
            logits.div_(sums).scatter_add_(1, index[s], -weight[s])
            torch.mm(logits, head, out=grad_states[s])
            grad_head.addmm_(logits.T, states[s])
        ctx.save_for_backward(grad_states.div_(len(states)), grad_head.div_(len(states)))
        ctx.mark_non_differentiable(choices)
        return total / len(states), choices

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, Tensor, None, None]:
        states, head = ctx.saved_tensors
        return states * grad, head * grad, None, None


def export(model: Student, start: Tensor, seen: Tensor, target: dict[str, Any], folder: Path) -> int:
    """Write ``config.json`` and ``model.safetensors`` (bfloat16) for vLLM; the number of parameters."""
    shape = model.shape
    whole = start.clone()
    whole[seen] = model.embedding.detach()
    tensors = {"model.embed_tokens.weight": whole, "model.norm.weight": model.norm.weight.detach()}
    names = {
        "self_attn.q_proj": "q", "self_attn.k_proj": "k", "self_attn.v_proj": "v", "self_attn.o_proj": "o",
        "mlp.gate_proj": "gate", "mlp.up_proj": "up", "mlp.down_proj": "down",
        "input_layernorm": "norm_1", "post_attention_layernorm": "norm_2",
    }  # fmt: skip
    for i, block in enumerate(model.blocks):
        for theirs, ours in names.items():
            for kind, tensor in getattr(block, ours).named_parameters():
                tensors[f"model.layers.{i}.{theirs}.{kind}"] = tensor.detach()
    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: t.to(torch.bfloat16).contiguous() for name, t in tensors.items()},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16",
        "vocab_size": target["vocab_size"], "hidden_size": shape.hidden, "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads, "num_key_value_heads": shape.heads,
        "head_dim": HEAD_DIM, "hidden_act": "silu", "max_position_embeddings": target["max_position_embeddings"],
        "rms_norm_eps": EPS, "rope_parameters": {"rope_theta": THETA, "rope_type": "default"},
        "attention_bias": True, "mlp_bias": False, "tie_word_embeddings": True, "use_cache": True,
        "bos_token_id": target["bos_token_id"], "eos_token_id": target["eos_token_id"],
        "pad_token_id": target["pad_token_id"],
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    return sum(t.numel() for t in tensors.values())
