"""specdemo: one prompt, two vLLM engines, standard and speculative, side by side, measured and checked."""

__version__ = "0.1.0"
