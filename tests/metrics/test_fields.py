import dspy
import pytest
from maps_rag.metrics import choice_accuracy, cover_em, cover_em_response, exact_match
from maps_rag.programs.errors import UserError


@pytest.mark.parametrize(
    "gold",
    [
        dspy.Example(question="q", answer="Rome"),
        dspy.Example(question="q", answer=["Oslo", "Rome"]),
        dspy.Example(question="q", answers=["Oslo", "Rome"]),
        dspy.Example(question="q", answers=("Rome",), answer="Oslo"),
        dspy.Example(question="q", answers=None, answer="Rome"),
        dspy.Example(question="q", answers=["Rome"], choices=None),
        dspy.Example(question="q", answers=["Rome"], choices=[]),
        {"question": "q", "answers": ["Rome"]},
    ],
)
def test_gold_may_be_given_as(gold):
    assert cover_em(gold, dspy.Prediction(answer="Rome")) == 1.0
    assert cover_em(gold, {"answer": "Rome"}) == 1.0
    assert cover_em(gold, dspy.Prediction(answer="Bern")) == 0.0


@pytest.mark.parametrize(
    ("gold", "words"),
    [
        (dspy.Example(question="q", label="Rome"), ["answers", "question, label"]),
        (dspy.Example(question="q", answers="Rome"), ["list of strings", "'Rome'"]),
        (dspy.Example(question="q", answers=[]), ["empty list", "question, answers"]),
        (dspy.Example(question="q", answers=[None]), ["[None]"]),
        (dspy.Example(question="q", answer=7), ["'answer'", "7"]),
        (dspy.Example(), ["its fields are: none"]),
        ("Rome", ["str"]),
        (None, ["NoneType"]),
    ],
)
def test_unusable_gold_is_an_error_that_names_the_fields(gold, words):
    with pytest.raises(UserError) as caught:
        cover_em(gold, dspy.Prediction(answer="Rome"))
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "prediction", [None, dspy.Prediction(), {}, dspy.Prediction(answer=None), dspy.Prediction(answer="")]
)
@pytest.mark.parametrize("metric", [cover_em, cover_em_response, exact_match])
def test_missing_answer_scores_zero(metric, prediction):
    assert metric(dspy.Example(answers=["Rome", "no", "A", ""]), prediction) == 0.0


@pytest.mark.parametrize(
    ("prediction", "words"),
    [
        (dspy.Prediction(output="Rome", rounds=2), ["'answer'", "output, rounds"]),
        (dspy.Prediction(answer=["Rome"]), ["'answer'", "list"]),
        ("Rome", ["str"]),
    ],
)
def test_prediction_without_a_usable_answer_is_an_error(prediction, words):
    with pytest.raises(UserError) as caught:
        cover_em(dspy.Example(answer="Rome"), prediction)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize(("value", "wanted"), [(True, "yes"), (False, "no"), (1969, "1969"), (2.5, "2.5")])
def test_typed_answers_are_read_as_text(value, wanted):
    assert exact_match(dspy.Example(answer=wanted), dspy.Prediction(answer=value)) == 1.0


@pytest.mark.parametrize(
    "gold",
    [
        dspy.Example(choices=["x", "y"], answer="B"),
        dspy.Example(choices=["x", "y"], answer="(b)"),
        dspy.Example(choices=["x", "y"], answers=["B"]),
        dspy.Example(choices=["x", "y"], answer="Y"),
        dspy.Example(choices=["x", "y"], answers=["B", "y"]),
        dspy.Example(choices=["x", "y"], answer="ignored", choice="B"),
        dspy.Example(choices={"A": "x", "b": "y"}, answer="B"),
    ],
)
def test_right_choice_may_be_given_as(gold):
    assert choice_accuracy(gold, dspy.Prediction(answer="B")) == 1.0
    assert choice_accuracy(gold, dspy.Prediction(answer="A")) == 0.0


@pytest.mark.parametrize(
    "fields",
    [
        {"answer": "B"},
        {"choices": ["x", "y"]},
        {"choices": ["x", "y"], "answer": "C"},
        {"choices": ["x", "y"], "answers": ["A", "B"]},
        {"choices": ["same", "same"], "answer": "same"},
        {"choices": ["x", "y"], "choice": 1},
        {"choices": "xy", "answer": "A"},
        {"choices": ["x", 2], "answer": "A"},
        {"choices": {"text": ["x"], "label": ["A"]}, "answer": "A"},
        {"choices": ["x"] * 27, "answer": "A"},
    ],
)
def test_unusable_choice_gold_is_an_error(fields):
    with pytest.raises(UserError):
        choice_accuracy(dspy.Example(**fields), dspy.Prediction(answer="A"))
