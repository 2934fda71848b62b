import copy
import inspect
import pickle

import dspy
import pytest
from dspy import lm15
from maps_rag.metrics import (
    CoverEM,
    answer_tokens,
    choice_accuracy,
    cover_em,
    cover_em_capped,
    cover_em_response,
    cover_em_substring,
    exact_match,
    f1,
)

METRICS = [
    cover_em,
    cover_em_capped,
    cover_em_response,
    cover_em_substring,
    exact_match,
    f1,
    answer_tokens,
    CoverEM(strip_diacritics=True),
]
REPLIES = {"capital of France": "It is Paris.", "capital of Norway": "Bergen", "capital of Italy": "Rome"}


class ScriptedEngine:
    def complete(self, request):
        question = request.messages[-1].text or ""
        # The last question is the one asked: demos come before it.
        asked = max(REPLIES, key=question.rfind)
        text = f"[[ ## answer ## ]]\n{REPLIES[asked]}\n\n[[ ## completed ## ]]"
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant(text),
            finish_reason="stop",
            usage=lm15.Usage(10, 5, 15),
        )


@pytest.fixture
def lm():
    with dspy.context(lm=dspy.LM("scripted/m", engine=ScriptedEngine(), cache=False), adapter=dspy.ChatAdapter()):
        yield


@pytest.fixture
def examples():
    rows = [("capital of France", ["Paris"]), ("capital of Norway", ["Oslo"]), ("capital of Italy", ["Rome", "Roma"])]
    return [dspy.Example(question=question, answers=answers).with_inputs("question") for question, answers in rows]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [(cover_em, 66.67), (CoverEM(punctuation_to_space=True), 66.67), (exact_match, 33.33), (f1, 50.0)],
)
def test_scores_in_evaluate(lm, examples, metric, expected):
    evaluate = dspy.Evaluate(devset=examples, metric=metric, num_threads=2, display_progress=False, display_table=3)
    result = evaluate(dspy.Predict("question -> answer"))
    assert result.score == pytest.approx(expected)
    assert all(isinstance(score, float) for _, _, score in result.results)


def test_bootstrap_keeps_only_covered_answers(lm, examples):
    student = dspy.Predict("question -> answer")
    optimizer = dspy.BootstrapFewShot(metric=cover_em, max_bootstrapped_demos=3, max_labeled_demos=0)
    compiled = optimizer.compile(student, trainset=examples)
    assert [demo.question for demo in compiled.demos] == ["capital of France", "capital of Italy"]


def test_bootstrap_takes_a_threshold_for_f1(lm, examples):
    optimizer = dspy.BootstrapFewShot(metric=f1, metric_threshold=0.9, max_bootstrapped_demos=3, max_labeled_demos=0)
    compiled = optimizer.compile(dspy.Predict("question -> answer"), trainset=examples)
    assert [demo.question for demo in compiled.demos] == ["capital of Italy"]


@pytest.mark.parametrize("metric", [*METRICS, choice_accuracy], ids=lambda metric: metric.__name__)
def test_takes_the_arguments_of_every_dspy_optimizer(metric):
    gold = dspy.Example(answer="B", choices=["x", "y"])
    prediction = dspy.Prediction(answer="B")
    assert list(inspect.signature(metric).parameters)[:3] == ["gold", "pred", "trace"]
    assert metric(gold, prediction) == metric(gold, prediction, []) == metric(gold, prediction, [], "answer", []) == 1.0
    assert dspy.GEPA(metric=metric, max_metric_calls=1, reflection_lm=dspy.LM("scripted/m", engine=ScriptedEngine()))


@pytest.mark.parametrize("metric", [*METRICS, choice_accuracy], ids=lambda metric: metric.__name__)
def test_can_be_copied_and_pickled(metric):
    for twin in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        assert twin == metric
        assert twin.__name__ == metric.__name__
