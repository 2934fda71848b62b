"""Multiple choice: letters and numbers are all that is written of it."""

from __future__ import annotations

import dspy
import pytest

from tests.optimize.runs import lines, methods, run
from tests.scripted import Roles, scripted_lm

TEXT = "xanthic"  # in the question, every option, what is searched, found, noted and answered
CHOICES = [f"{TEXT} one", f"{TEXT} two", f"{TEXT} three", f"{TEXT} four"]


def question(**fields):
    row = {"id": "g1", "question": f"Which {TEXT} is it?", "answers": ["B"], "choices": CHOICES, "dataset": "gpqa"}
    return dspy.Example(**row | fields).with_inputs("question", "choices")


class Telling(Roles):
    """Replies that carry the text wherever they can."""

    answer = f"The answer is (B) {TEXT} two"

    def usual(self, role, user):
        reply = super().usual(role, user)
        for name, value in reply.items():
            if isinstance(value, str):
                reply[name] = f"{value} {TEXT}"
            elif isinstance(value, list):
                reply[name] = [f"{item} {TEXT}" for item in value]
        return reply | ({"answer": self.answer} if role == "answer" else {})


def written(folder):
    return "".join(path.read_text() for path in folder.iterdir())


def test_no_text_of_a_multiple_choice_question_is_written(tmp_path):
    run(tmp_path / "run", methods=methods("maps", directions=2), questions=[question()], lm=scripted_lm(Telling()))
    (line,) = lines(tmp_path / "run")
    assert (line["answer"], line["gold"], line["evidence"]) == ("B", ["B"], None)
    assert (line["scores"]["choice_accuracy"], line["scores"]["cover_em"]) == (1.0, 1.0)
    (kept,) = lines(tmp_path / "run", "trajectories")
    (round_,) = kept["trajectory"]["rounds"]
    assert [len(search["scores"]) for search in round_["searches"]] == [5, 5]
    assert kept["trajectory"]["usage"]["calls"] == 5
    assert TEXT not in written(tmp_path / "run")


def test_the_same_run_of_an_open_question_is_written_in_full(tmp_path):
    asked = question(choices=None, answers=[f"{TEXT} two"])
    run(tmp_path / "run", methods=methods("maps", directions=2), questions=[asked], lm=scripted_lm(Telling()))
    (kept,) = lines(tmp_path / "run", "trajectories")
    assert TEXT in kept["question"]
    assert TEXT in kept["trajectory"]["rounds"][0]["searches"][0]["query"]


def test_an_answer_without_a_clear_letter_is_no_letter(tmp_path):
    lm = scripted_lm(lambda system, user: {"reasoning": TEXT, "answer": f"{TEXT}, A or B"})
    run(tmp_path / "run", methods=methods("direct"), questions=[question()], lm=lm)
    (line,) = lines(tmp_path / "run")
    assert (line["answer"], line["scores"]["choice_accuracy"]) == ("", 0.0)
    assert TEXT not in written(tmp_path / "run")


@pytest.mark.parametrize("failure", [dspy.LMInvalidRequestError(message=f"refused: {TEXT}"), ValueError(TEXT)])
def test_of_an_error_only_the_kind_is_written(failure, tmp_path):
    lm = scripted_lm(lambda system, user: failure)
    assert run(tmp_path / "run", methods=methods("direct"), questions=[question()], lm=lm).failed == 1
    (line,) = lines(tmp_path / "run")
    assert line["error"].isidentifier()
    assert TEXT not in written(tmp_path / "run")
