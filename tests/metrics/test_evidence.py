"""What was found, and where the answer was lost, on trajectories written by hand and by programs."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maps_rag.metrics import GoldPassages, evidence
from maps_rag.programs import MAPS, Direct, VanillaRAG

from tests.metrics.records import call, passage, round_, trajectory
from tests.scripted import Roles, StubRetriever, scripted_lm

LOVELACE = (
    "Ada Lovelace was an English mathematician and writer, known for her work on the Analytical Engine of "
    "Charles Babbage. She was the only legitimate child of the poet Lord Byron."
)


def fact(text, source=None):
    return {"text": text, "passage_id": source}


def test_gold_passages_count_by_the_end_of_each_round():
    rounds = [round_(1, {"q1": ["a", "x"], "q2": ["x", "y"]}), round_(2, {"q3": ["z"]}), round_(3, {"q4": ["b", "a"]})]
    found = evidence(trajectory(rounds), ["a", "b", "c", "a"], ["Rome"])
    assert found["gold_share_by_round"] == [pytest.approx(1 / 3), pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert found["gold_share"] == pytest.approx(2 / 3)
    assert found["all_gold"] is False


def test_all_gold_needs_every_passage():
    found = evidence(trajectory([round_(1, {"q": ["b", "a"]})]), ["a", "b"], ["Rome"])
    assert (found["gold_share"], found["all_gold"], found["gold_share_by_round"]) == (1.0, True, [1.0])


def test_without_gold_passages_there_is_no_share_of_them():
    found = evidence(trajectory([round_(1, {"q": ["a"]})]), [], ["Rome"])
    assert (found["gold_share"], found["all_gold"], found["gold_share_by_round"]) == (None, None, None)


def test_new_passages_are_those_that_no_earlier_sub_query_found():
    rounds = [round_(1, {"q1": ["a", "b"], "q2": ["b", "c"]}), round_(2, {"q3": ["a", "c"], "q4": ["a", "d"]})]
    assert evidence(trajectory(rounds), [], ["Rome"])["new_passages_per_direction"] == 4 / 4


def test_a_sub_query_repeats_one_that_differs_in_case_punctuation_or_articles():
    rounds = [
        round_(1, {"Who wrote the book?": [], "who wrote a book": []}),
        round_(2, {"WHO WROTE BOOK": [], "Who read the book?": [], "?": [], "!": []}),
    ]
    assert evidence(trajectory(rounds), [], ["Rome"])["duplicate_sub_queries"] == 2


def test_a_method_that_searched_nothing_found_nothing():
    found = evidence(trajectory(answer="Rome"), ["a"], ["Rome"])
    assert found == {
        "gold_share": 0.0,
        "all_gold": False,
        "gold_share_by_round": [],
        "new_passages_per_direction": None,
        "duplicate_sub_queries": 0,
        "answer_in_passages": False,
        "answer_in_knowledge": None,
        "answer_in_state": None,
        "answer_given": True,
    }


def lost(found):
    return [found[f"answer_{name}"] for name in ("in_passages", "in_knowledge", "in_state", "given")]


def path(text="", knowledge="", state="", answer="", **more):
    held = [fact(knowledge)] if knowledge else []
    one = round_(1, {"q": ["a"]}, [passage("a", text)], knowledge=held, reasoning_state=state)
    return trajectory([one], answer=answer, **more)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (
            {"text": "It is Paris.", "knowledge": "Rome.", "state": "Rome?", "answer": "Rome"},
            [True, False, False, False],
        ),
        ({"text": "It is Paris.", "knowledge": "Paris.", "state": "x", "answer": "Rome"}, [True, True, False, False]),
        ({"text": "It is Rome.", "knowledge": "x", "state": "now Paris", "answer": "x"}, [False, False, True, False]),
        ({"text": "x", "answer": "The answer is Paris."}, [False, None, None, True]),
    ],
)
def test_the_answer_is_followed_from_the_passages_to_the_answer(held, expected):
    assert lost(evidence(path(**held), [], ["Lutetia", "paris"])) == expected


def test_the_answer_may_stand_in_the_title_of_a_passage():
    one = round_(1, {"q": ["a"]}, [passage("a", "She wrote notes.", "Ada Lovelace")])
    assert evidence(trajectory([one]), [], ["Ada Lovelace"])["answer_in_passages"] is True


@pytest.mark.parametrize(
    ("gold", "text"), [("us", "a Russian writer"), ("10", "born in 2010"), ("Ada King", "King Ada"), ("art", "Bart")]
)
def test_an_answer_is_tokens_not_characters(gold, text):
    assert lost(evidence(path(text, text, text, text), [], [gold])) == [False] * 4


def test_yes_and_no_cannot_be_looked_for_in_texts():
    found = evidence(path("no", "no", "no", "No."), [], ["no"])
    assert lost(found) == [None, None, None, True]


def test_an_answer_of_punctuation_alone_cannot_be_looked_for_in_texts():
    assert lost(evidence(path("the", "the", "the", "The"), [], ["The"])) == [None, None, None, True]
    assert lost(evidence(path("Paris", answer="Paris"), [], [])) == [None] * 4


def test_only_the_last_state_counts_and_a_round_cut_short_has_none():
    rounds = [
        round_(1, {"q": []}, reasoning_state="Paris"),
        round_(2, {"r": []}, reasoning_state="Rome"),
        round_(3, {"s": ["a"]}, [], complete=False),
    ]
    assert evidence(trajectory(rounds), [], ["Paris"])["answer_in_state"] is False
    assert evidence(trajectory(rounds), [], ["Rome"])["answer_in_state"] is True


def test_a_refining_method_that_kept_nothing_has_knowledge_without_the_answer():
    kept = evidence(path("Paris", calls=[call("refine", 1)]), [], ["Paris"])
    assert (kept["answer_in_passages"], kept["answer_in_knowledge"]) == (True, False)
    unkept = evidence(path("Paris", calls=[call("answer", 1)]), [], ["Paris"])
    assert (unkept["answer_in_passages"], unkept["answer_in_knowledge"]) == (True, None)


def gold(text=LOVELACE, title="Ada Lovelace", **more):
    return {"title": title, "text": text, **more}


def test_a_gold_passage_is_known_by_its_text_where_corpora_differ():
    golds = GoldPassages([gold()])
    assert passage("7", LOVELACE, "ada lovelace") in golds
    assert passage("7", LOVELACE[:90] + " ...", "Ada Lovelace") in golds
    assert passage("7", "Earlier words. " + LOVELACE.replace("English", "British"), "Ada Lovelace") in golds
    assert passage("7", LOVELACE) in golds


def test_another_passage_of_an_article_or_the_same_words_elsewhere_are_not_gold():
    golds = GoldPassages([gold()])
    later = (
        "Her notes were published in 1843, and she was a friend of the scientist Mary Somerville in the years before."
    )
    assert passage("7", later, "Ada Lovelace") not in golds
    assert passage("7", LOVELACE, "Lord Byron") not in golds
    assert passage("7", "", "") not in golds


def test_a_gold_title_without_a_text_is_met_by_its_article():
    assert passage("7", "", "Ada Lovelace") in GoldPassages([gold(text="")])
    assert passage("7", "any text", "Ada Lovelace") in GoldPassages([gold(text="")])


def test_an_id_is_enough_and_texts_are_counted_once():
    golds = GoldPassages([gold(id="7"), gold(id="7"), "8", 9])
    assert len(golds) == 3
    assert golds.matches(passage("7", "other", "words")) == {0}
    assert golds.matches(passage("9")) == {2}
    assert golds.matches(passage("10")) == set()


def test_gold_texts_count_by_round():
    other = gold("Byron was a poet and a peer.", "Lord Byron")
    rounds = [
        round_(1, {"q": ["1"]}, [passage("1", LOVELACE, "Ada Lovelace")]),
        round_(2, {"r": ["2"]}, [passage("2", "Byron was a poet and a peer.", "Lord Byron")]),
    ]
    assert evidence(trajectory(rounds), [gold(), other], ["x"])["gold_share_by_round"] == [0.5, 1.0]


def asked(program, lm):
    program.set_lm(lm)
    return program(question="Who?").trajectory


def test_the_trajectories_of_programs_are_read():
    retriever = StubRetriever("the answer stands in {query}")
    maps = asked(MAPS(retriever, directions=2, passages=2), scripted_lm(Roles(rounds=2)))
    found = evidence(maps, ["query 0 0/1", "query 1 1/0"], ["the answer"])
    assert (found["gold_share_by_round"], found["all_gold"]) == ([0.5, 1.0], True)
    assert (found["new_passages_per_direction"], found["duplicate_sub_queries"]) == (2.0, 0)
    assert lost(found) == [True, False, False, True]
    reply = {"reasoning": "r", "answer": "the answer"}
    vanilla = evidence(asked(VanillaRAG(retriever, passages=2), scripted_lm(lambda *_: reply)), ["Who?/0"], ["answer"])
    assert (vanilla["gold_share_by_round"], lost(vanilla)) == ([1.0], [True, None, None, True])
    direct = evidence(asked(Direct(), scripted_lm(lambda *_: reply)), ["Who?/0"], ["nobody"])
    assert (direct["gold_share"], lost(direct)) == (0.0, [False, None, None, False])


IDS = st.lists(st.sampled_from("abcdef"), max_size=4, unique=True)
ROUNDS = st.lists(st.dictionaries(st.sampled_from(["q", "the q", "r", "s"]), IDS, max_size=3), max_size=4)


@given(ROUNDS, st.sets(st.sampled_from("abcxyz"), min_size=1))
@settings(max_examples=50)
def test_shares_of_gold_grow_to_the_last_and_are_plain_data(rounds, golds):
    record = trajectory([round_(index, found) for index, found in enumerate(rounds, 1)])
    found = evidence(record, sorted(golds), ["Rome"])
    shares = found["gold_share_by_round"]
    everything = {name for item in rounds for ids in item.values() for name in ids}
    assert shares == sorted(shares)
    assert found["gold_share"] == len(golds & everything) / len(golds) == (shares[-1] if shares else 0.0)
    assert found["all_gold"] == (golds <= everything)
    assert json.loads(json.dumps(found)) == found
