"""Thinking goes, the reply stays."""

import pytest
from maps_rag.programs.models import strip_think


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("plain", "plain"),
        ("<think>a</think>b", "b"),
        (" <think>\na\n</think>\n\n b ", "b"),
        ("<THINK>a</THINK>b", "b"),
        ("<thinking>a</thinking>b", "b"),
        ("<think>a</think>b<think>c</think>d", "bd"),
        ("a</think>b", "b"),
        ("<think>a, then nothing more", ""),
        ("b <think>a, then nothing more", "b"),
        ('{"a": "<think>text</think>"}', '{"a": "<think>text</think>"}'),
        ('<think>x</think>{"a": 1}', '{"a": 1}'),
        ("", ""),
    ],
)
def test_thinking_is_stripped(text, reply):
    assert strip_think(text) == reply
