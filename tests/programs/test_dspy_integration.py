"""Programs inside DSPy: evaluation, contexts, copies, other predictors and models per role."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from maps_rag.programs import MAPS, UserError, VanillaRAG

from tests.scripted import Roles, StubRetriever, prompts, role_of, scripted_lm


class AskedFor(dspy.Module):
    """A user's own module around MAPS."""

    def __init__(self, retriever):
        super().__init__()
        self.search = MAPS(retriever, directions=2, max_rounds=2)
        self.shorten = dspy.Predict("long -> short")

    def forward(self, question):
        found = self.search(question=question)
        return dspy.Prediction(answer=found.answer, rounds=found.rounds)


def dataset(size):
    return [dspy.Example(question=f"question {i}", answer="the answer").with_inputs("question") for i in range(size)]


def exact(example, prediction, trace=None):
    return prediction.answer == example.answer


def test_evaluate_with_threads_scores_every_question():
    lm = scripted_lm(Roles(rounds=2))
    with dspy.context(lm=lm):
        evaluate = dspy.Evaluate(devset=dataset(24), metric=exact, num_threads=8, display_progress=False)
        result = evaluate(MAPS(StubRetriever(), directions=2))
    assert result.score == 100.0
    assert [prediction.usage["calls"] for _, prediction, _ in result.results] == [8] * 24
    assert sum(prediction.usage["requests"] for _, prediction, _ in result.results) == len(prompts(lm))


def test_a_program_works_inside_a_users_module():
    program = AskedFor(StubRetriever())
    with dspy.context(lm=scripted_lm(Roles())):
        assert program(question="Q?").answer == "the answer"
    names = [name for name, _ in program.named_predictors()]
    assert names == ["search.propose", "search.write", "search.refine", "search.answer", "shorten"]
    assert copy.deepcopy(program).search.retriever is program.search.retriever


def test_the_lm_of_the_context_is_used():
    outer, inner = scripted_lm(Roles()), scripted_lm(Roles())
    program = VanillaRAG(StubRetriever())
    with dspy.context(lm=outer):
        with dspy.context(lm=inner):
            program(question="Q?")
        assert (len(prompts(outer)), len(prompts(inner))) == (0, 1)


def test_each_role_may_have_its_own_lm():
    planner, rest = scripted_lm(Roles()), scripted_lm(Roles())
    program = MAPS(StubRetriever(), directions=2)
    program.propose.lm = planner
    with dspy.context(lm=rest):
        prediction = program(question="Q?")
    assert [role_of(prompt) for prompt in prompts(planner)] == ["propose", "propose"]
    assert [role_of(prompt) for prompt in prompts(rest)] == ["write", "refine", "answer"]
    assert prediction.usage["requests"] == 5


def test_set_lm_sets_every_role_and_needs_no_configured_lm():
    lm = scripted_lm(Roles())
    program = MAPS(StubRetriever(), directions=2)
    program.set_lm(lm)
    with dspy.context(lm=None):
        assert program(question="Q?").answer == "the answer"
    assert program.get_lm() is lm
    assert len(prompts(lm)) == 5


@pytest.mark.parametrize("role", ["propose", "write", "refine"])
def test_a_role_may_be_a_chain_of_thought(role):
    def reply(system, user):
        fields = usual(system, user)
        return {"reasoning": f"thoughts of {role_of(system)}", **fields} if "`reasoning`" in system else fields

    usual = Roles()
    lm = scripted_lm(reply)
    program = MAPS(StubRetriever(), directions=2)
    setattr(program, role, dspy.ChainOfThought(getattr(program, role).signature))
    with dspy.context(lm=lm, trace=[]):
        prediction = program(question="Q?")
        traced = [predictor for predictor, _, _ in dspy.settings.trace]
    assert (prediction.answer, prediction.failures) == ("the answer", {})
    assert role in {call["role"] for call in prediction.trajectory["calls"]}
    assert getattr(program, role).predict in traced
    thoughtful = [prompt for prompt in prompts(lm) if role_of(prompt) == role]
    assert all("`reasoning`" in prompt for prompt in thoughtful)


def test_a_chain_of_thought_keeps_the_bound_on_directions():
    lm = scripted_lm(
        Roles(propose={"reasoning": "r", "known": [], "missing": "", "sufficient": True, "directions": []})
    )
    program = MAPS(StubRetriever(), directions=2)
    program.propose = dspy.ChainOfThought(program.propose.signature)
    with dspy.context(lm=lm):
        program(question="Q?")
    assert "maximum length: 2" in prompts(lm)[0]


def test_copies_share_retriever_and_lms_and_own_their_demos():
    lm = scripted_lm(Roles())
    program = MAPS(StubRetriever(), directions=2)
    program.set_lm(lm)
    program.answer.demos = [{"question": "q", "answer": "a"}]
    for twin in (program.deepcopy(), copy.deepcopy(program), program.reset_copy()):
        assert twin.retriever is program.retriever
        assert twin.config == program.config
        assert [name for name, _ in twin.named_predictors()] == [name for name, _ in program.named_predictors()]
        assert twin.answer is not program.answer
    twin = program.deepcopy()
    assert {id(predictor.lm) for predictor in twin.predictors()} == {id(lm)}
    twin.answer.demos.append({"question": "r", "answer": "b"})
    twin.answer.signature = twin.answer.signature.with_instructions("Other words.")
    assert len(program.answer.demos) == 1
    assert program.answer.signature.instructions != "Other words."
    with dspy.context(lm=None):
        assert twin(question="Q?").answer == "the answer"


def test_a_copy_of_a_program_with_an_uncopyable_retriever_is_quiet_and_whole(caplog):
    class Locked(StubRetriever):
        def __deepcopy__(self, memo):
            raise TypeError("cannot pickle this")

    program = MAPS(Locked(), directions=2)
    twin = program.deepcopy()
    assert twin.retriever is program.retriever
    assert caplog.records == []


def test_demos_of_a_role_are_shown_to_it_and_to_no_other():
    lm = scripted_lm(Roles())
    program = MAPS(StubRetriever(), directions=2)
    program.write.demos = [
        dspy.Example(
            question="q", knowledge=[], reasoning_state="", directions=["DEMO direction"], queries=["DEMO query"]
        )
    ]
    with dspy.context(lm=lm):
        program(question="Q?")
    assert [role_of(prompt) for prompt in prompts(lm) if "DEMO" in prompt] == ["write"]


@pytest.mark.parametrize("refine", ["distil", "select"])
@pytest.mark.parametrize("list_directions", [True, False])
@pytest.mark.parametrize("disentangle", [True, False])
def test_shipped_demos_fit_the_roles_under_every_switch(refine, list_directions, disentangle):
    knobs = {"refine": refine, "list_directions": list_directions, "disentangle": disentangle}
    program = MAPS(StubRetriever(), directions=2, max_rounds=1, **knobs)
    shown = program.shipped_demos
    assert set(shown) == {name for name, _ in program.named_predictors()}
    for name, predictor in program.named_predictors():
        assert shown[name]
        for demo in shown[name]:
            assert set(demo) == set(predictor.signature.fields)


def test_shipped_demos_are_used_when_asked_for_and_compiled_ones_come_first():
    lm = scripted_lm(Roles())
    program = MAPS(StubRetriever(), directions=2, demos=True)
    program.answer.demos = [dspy.Example(question="q", knowledge=[], reasoning_state="", reasoning="", answer="MINE")]
    with dspy.context(lm=lm):
        program(question="Q?")
    by_role = {role_of(prompt): prompt for prompt in prompts(lm)}
    assert "The Salt Orchard" in by_role["propose"]
    assert "MINE" in by_role["answer"]
    assert "The Salt Orchard" not in by_role["answer"]


def test_shipped_demos_are_off_for_other_than_local_models():
    lm = scripted_lm(Roles())
    with dspy.context(lm=lm):
        MAPS(StubRetriever(), directions=2)(question="Q?")
    assert not any("The Salt Orchard" in prompt for prompt in prompts(lm))


def test_a_callable_or_the_configured_rm_serves_as_retriever():
    def find(query, k):
        return [f"Title of {query} | text {i}" for i in range(k)]

    with dspy.context(lm=scripted_lm(Roles()), rm=find):
        given = VanillaRAG(find, passages=2)(question="Q?")
        configured = VanillaRAG(passages=2)(question="Q?")
    assert [passage["text"] for passage in given.passages] == ["text 0", "text 1"]
    assert configured.passages == given.passages


def test_without_any_retriever_the_error_says_how_to_give_one():
    with dspy.context(lm=scripted_lm(Roles()), rm=None), pytest.raises(UserError, match="configure\\(rm="):
        VanillaRAG()(question="Q?")


def test_predictions_of_many_threads_do_not_mix():
    lm = scripted_lm(Roles(rounds=1, answer=lambda user: {"reasoning": "", "answer": user.split("]]\n")[1].split()[1]}))
    program = MAPS(StubRetriever(), directions=2)

    def ask(i):
        with dspy.context(lm=lm):
            return program(question=f"question {i}").answer

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, range(64))) == [str(i) for i in range(64)]


def test_the_batch_method_of_dspy_modules_works():
    with dspy.context(lm=scripted_lm(Roles())):
        answers = MAPS(StubRetriever(), directions=2).batch(dataset(6), num_threads=3, disable_progress_bar=True)
    assert [prediction.answer for prediction in answers] == ["the answer"] * 6


def test_no_two_roles_have_equal_signatures():
    """GEPA tells the traces of predictors apart by their signatures."""
    for knobs in ({}, {"list_directions": False}, {"disentangle": False}, {"refine": "select"}):
        signatures = [predictor.signature for predictor in MAPS(StubRetriever(), **knobs).predictors()]
        for i, one in enumerate(signatures):
            assert not any(one.equals(other) for other in signatures[i + 1 :])


def test_the_source_of_a_method_can_be_read_by_proposers():
    import inspect

    assert "yield Search" in inspect.getsource(MAPS)


def test_a_retriever_is_no_predictor_of_the_program():
    assert [name for name, _ in MAPS(StubRetriever()).named_predictors()] == ["propose", "write", "refine", "answer"]
