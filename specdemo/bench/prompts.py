"""A prompt of a benchmark: what is asked, which workload it belongs to, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specdemo.core.prompt import Message, Prompt, Sampling


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """One prompt: chat ``messages``, plain ``text`` or ``token_ids`` (exactly one is set).

    ``id`` is unique inside a plan. ``max_tokens`` is its own budget (shipped workloads have one), None takes the
    plan's. ``line`` is the row of the user's file, counted from 1; ``turns_left_out`` counts later turns not sent.
    """

    id: str
    workload: str
    messages: tuple[Message, ...] = ()
    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    language: str | None = None
    max_tokens: int | None = None
    line: int | None = None
    turns_left_out: int = 0

    @property
    def shown(self) -> str:
        """The text that a person recognises it by: the last user turn, the text, or the number of ids."""
        if self.messages:
            return next((m.content for m in reversed(self.messages) if m.role == "user"), "")
        return self.text if self.text is not None else f"{len(self.token_ids or ())} token ids"

    def ask(self, sampling: Sampling, *, logprobs: int | None = None) -> Prompt:
        """The request for both engines with the run's ``sampling`` (a row's own settings never win)."""
        return Prompt(self.messages, self.text, self.token_ids, sampling, logprobs)

    def within(self, sampling: Sampling) -> Sampling:
        """``sampling`` with this prompt's own token budget, where it has one that is smaller."""
        if self.max_tokens is None or self.max_tokens >= sampling.max_tokens:
            return sampling
        return replace(sampling, max_tokens=self.max_tokens)
