"""MAPS that selects passages instead of distilling them."""

from __future__ import annotations

from dataclasses import replace

import dspy
import pytest
from maps_rag.programs import MAPS

from tests.scripted import StubRetriever, prompts, role_of, scripted_lm


def selecting(selected, queries=("q",)):
    """Replies of a model that picks passages and finds that it knows enough once it has any."""

    def reply(system, user):
        match role_of(system):
            case "propose":
                return {"known": [], "missing": "m", "sufficient": "Sentence" in user, "directions": list(queries)}
            case "write":
                return {"queries": list(queries)}
            case "refine":
                return {"selected": selected}
        return {"reasoning": "r", "answer": "a"}

    return reply


def test_selecting_copies_first_sentences_verbatim_with_their_passage_id():
    lm = scripted_lm(selecting([2, 2, 99, 0]))
    retriever = StubRetriever("Sentence one. Sentence two. Sentence three. Sentence four. Sentence five.")
    with dspy.context(lm=lm):
        prediction = MAPS(retriever, refine="select", passages=2, max_rounds=2)(question="Q?")
    text = "Title q 1: Sentence one. Sentence two. Sentence three. Sentence four."
    assert prediction.knowledge == [text]
    assert prediction.trajectory["rounds"][0]["knowledge"] == [{"text": text, "passage_id": "q/1"}]
    assert prediction.citations == [{"id": "q/1", "title": "Title q 1"}]


def test_what_was_selected_is_not_offered_again_even_where_another_query_finds_it():
    class Growing(StubRetriever):
        """The same passages each time, with scores that depend on the query."""

        def search(self, queries, k):
            self.asked = getattr(self, "asked", 0) + 1
            found = StubRetriever("Other text.").search(["q"] * len(queries), k)
            return [[replace(passage, score=passage.score / self.asked) for passage in each] for each in found]

    lm = scripted_lm(selecting([1]))
    with dspy.context(lm=lm):
        prediction = MAPS(Growing(), refine="select", passages=3, max_rounds=2)(question="Q?")
    refine = [prompt for prompt in prompts(lm) if "[1] Title" in prompt]
    assert [[f"Title q {n}: Other" in prompt.split("[1]")[1] for n in range(3)] for prompt in refine] == [
        [True, True, True],
        [False, True, True],
    ]
    assert [source["id"] for source in prediction.citations] == ["q/0", "q/1"]


@pytest.mark.parametrize(
    ("searches", "passages", "least", "most"), [(1, 3, 1, 3), (3, 3, 3, 4), (3, 1, 3, 3), (1, 1, 1, 1), (2, 0, 0, 0)]
)
def test_at_least_one_passage_a_sub_query_is_to_be_selected(searches, passages, least, most):
    queries = [f"q{number}" for number in range(searches)]
    steps = MAPS(StubRetriever(), refine="select").steps("Q?")
    next(steps)
    steps.send(dspy.Prediction(known=[], missing="m", sufficient=False, directions=queries))
    search = steps.send(dspy.Prediction(queries=queries))
    refine = steps.send(StubRetriever("Sentence.").search(search.queries, passages) if passages else [[]] * searches)
    assert refine.bounds == ("selected", least, most)
