"""What is asked of both engines."""

from __future__ import annotations

from specdemo.core.prompt import Message, Prompt, Sampling, chat


def test_chat_has_its_turns_in_order() -> None:
    """A system message comes first and is left out when empty."""
    assert chat("hi").messages == (Message("user", "hi"),)
    assert chat("hi", system="be brief").messages == (Message("system", "be brief"), Message("user", "hi"))
    assert chat("hi").is_chat
    assert not Prompt(text="x").is_chat


def test_greedy_is_exactly_zero() -> None:
    """A small temperature is not greedy: servers raise it to a sampling one."""
    assert chat("hi").greedy
    assert not chat("hi", sampling=Sampling(temperature=1e-9)).greedy
