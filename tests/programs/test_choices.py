"""Multiple choice: options in the question, for every method, and what is refused."""

from __future__ import annotations

import asyncio

import dspy
import pytest
from maps_rag.metrics import choice_accuracy
from maps_rag.programs import MAPS, UserError, VanillaRAG

from tests.scripted import Roles, StubRetriever, prompts, scripted_lm

ASKED = "Which metal melts first?\nA. iron\nB. tin\nAnswer with the letter of one option."
LETTER = Roles(rounds=1, answer={"reasoning": "Tin melts at 232 degrees.", "answer": "B"})


def run(program, **inputs):
    lm = scripted_lm(LETTER)
    with dspy.context(lm=lm):
        return program(question="Which metal melts first?", **inputs), prompts(lm)


@pytest.mark.parametrize("choices", [["iron", "tin"], ("iron", "tin"), {"a": "iron", "B": " tin\n"}])
@pytest.mark.parametrize("method", [MAPS, VanillaRAG])
def test_options_are_rendered_into_every_prompt_and_the_letter_scores(method, choices):
    prediction, sent = run(method(StubRetriever()), choices=choices)
    assert all(ASKED in prompt for prompt in sent)
    assert prediction.trajectory["question"] == ASKED
    example = dspy.Example(choices=["iron", "tin"], choice="B")
    assert choice_accuracy(example, prediction) == 1.0


@pytest.mark.parametrize("choices", [None, [], {}])
def test_no_options_leave_the_question_as_it_is(choices):
    prediction, sent = run(VanillaRAG(StubRetriever()), choices=choices)
    assert prediction.trajectory["question"] == "Which metal melts first?"
    assert "letter" not in "".join(sent)


def test_awaiting_and_streaming_take_options_too():
    lm = scripted_lm(LETTER)
    program = VanillaRAG(StubRetriever())
    inputs = {"question": "Which metal melts first?", "choices": ["iron", "tin"]}
    with dspy.context(lm=lm):
        awaited = asyncio.run(program.acall(**inputs))
        *_, streamed = program.stream(**inputs)
    assert awaited.trajectory["question"] == streamed.trajectory["question"] == ASKED


@pytest.mark.parametrize(
    "choices",
    ["iron, tin", ["iron"], ["iron", ""], ["iron", 3], ["x"] * 27, {"AB": "iron", "C": "tin"}, {"a": "x", "A": "y"}, 7],
)
def test_what_are_no_options_is_refused_with_what_was_given(choices):
    with pytest.raises(UserError, match="choices must be a list of 2 to 26 texts") as error:
        run(VanillaRAG(StubRetriever()), choices=choices)
    assert repr(choices) in str(error.value)
