import dspy
import pytest
from maps_rag.metrics import (
    METRIC_VERSION,
    CoverEM,
    answer_tokens,
    cover_em,
    cover_em_capped,
    cover_em_response,
    cover_em_substring,
    exact_match,
    f1,
)
from maps_rag.programs.errors import UserError


def gold(*answers, **fields):
    return dspy.Example(answers=list(answers), **fields)


def said(answer, **fields):
    return dspy.Prediction(answer=answer, **fields)


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("Paris", "Paris"),
        ("Paris", "It is in Paris, the capital of France."),
        ("The Beatles", "beatles"),
        ("Beatles", "It was The Beatles!"),
        ("O'Brien", "O\u2019Brien"),
        ("1914-1918", "1914\u20131918"),
        ("Stra\u00dfe", "STRASSE"),
        ("U.S.", "the US"),
        ("Lord of the Rings", "Lord of Rings"),
        ("yes", "Yes, both are American."),
        ("no", "No."),
        ("yes", "Yes, yes"),
        ("A", "a"),
        ("A", " A "),
        ("---", "\u2014--"),
        ("*", "*"),
    ],
)
def test_covers(wanted, answer):
    assert cover_em(gold(wanted), said(answer)) == 1.0


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("no", "I do not know"),
        ("no", "Norwegian"),
        ("us", "Russian"),
        ("10", "2010"),
        ("1", "12"),
    ],
)
def test_token_match_refuses_what_only_characters_share(wanted, answer):
    assert cover_em(gold(wanted), said(answer)) == 0.0
    assert cover_em_response(gold(wanted), said(answer)) == 0.0
    assert cover_em_substring(gold(wanted), said(answer)) == 1.0


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("New York", "York New"),
        ("New York", "New, and then York"),
        ("Paris", "London"),
        ("Paris", ""),
        ("yes", "no"),
        ("no", "yes"),
        ("yes", "Yes and no"),
        ("no", "Yes, no doubt"),
        ("yes", "Both are American."),
        ("yes", "eyes"),
        ("Beyonce", "Beyonc\u00e9"),
        ("Spider Man", "Spider-Man"),
        ("12 May 1990", "May 12, 1990"),
        ("two", "2"),
    ],
)
def test_does_not_cover(wanted, answer):
    assert cover_em(gold(wanted), said(answer)) == 0.0


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("Paris", "Paris or London"),
        ("Paris", "not Paris"),
        ("Alpha Road", "Which came first, Alpha Road or Beta Street? Beta Street"),
    ],
)
def test_hedge_negation_and_echo_are_covered_by_definition_but_not_exact(wanted, answer):
    assert cover_em(gold(wanted), said(answer)) == 1.0
    assert exact_match(gold(wanted), said(answer)) == 0.0
    assert f1(gold(wanted), said(answer)) < 1.0


@pytest.mark.parametrize("metric", [cover_em, cover_em_substring, cover_em_response, cover_em_capped, exact_match, f1])
@pytest.mark.parametrize("wanted", ["A", "The A", "---", "", "  ", "!"])
@pytest.mark.parametrize("answer", ["Paris", "", "the", "?", "an apple", "A Paris"])
def test_gold_that_normalises_to_nothing_is_never_true_by_itself(metric, wanted, answer):
    assert metric(gold(wanted), said(answer)) == 0.0


def test_any_gold_counts():
    prediction = said("Mark Twain")
    assert cover_em(gold("Samuel Clemens", "Twain"), prediction) == 1.0
    assert exact_match(gold("Samuel Clemens", "Twain"), prediction) == 0.0
    assert f1(gold("Samuel Clemens", "Twain"), prediction) == pytest.approx(2 / 3)


def test_think_block_is_not_part_of_the_answer():
    prediction = said("<think>Paris? No, London.</think> Rome")
    assert cover_em(gold("Paris"), prediction) == 0.0
    assert cover_em_response(gold("London"), prediction) == 0.0
    assert exact_match(gold("Rome"), prediction) == 1.0
    assert answer_tokens(gold("Rome"), prediction) == 1.0


def test_response_metric_reads_reasoning_and_answer():
    prediction = said("Rome", reasoning="<think>Oslo</think>Not Paris, so it must be elsewhere.")
    assert cover_em_response(gold("Paris"), prediction) == 1.0
    assert cover_em_response(gold("Rome"), prediction) == 1.0
    assert cover_em_response(gold("Oslo"), prediction) == 0.0
    assert cover_em(gold("Paris"), prediction) == 0.0


def test_response_field_replaces_reasoning():
    prediction = said("Rome", reasoning="Paris", response="In Rome.")
    assert cover_em_response(gold("Paris"), prediction) == 0.0
    assert cover_em_response(gold("Rome"), prediction) == 1.0


def test_prediction_of_a_response_alone_is_scored_on_it():
    prediction = dspy.Prediction(response="Yes, it is.")
    assert cover_em_response(gold("yes"), prediction) == 1.0
    assert cover_em_response(gold("no"), prediction) == 0.0


def test_guards_of_the_response_metric_read_the_answer():
    prediction = said("yes", reasoning="There is no doubt.")
    assert cover_em_response(gold("yes"), prediction) == 1.0
    assert cover_em_response(gold("no"), prediction) == 0.0
    assert cover_em_response(gold("A"), said("A", reasoning="Some text.")) == 1.0


def test_capped_metric_reads_32_words():
    filler = " ".join(["word"] * 31)
    assert cover_em_capped(gold("Paris"), said(f"{filler} Paris")) == 1.0
    assert cover_em_capped(gold("Paris"), said(f"{filler} more Paris")) == 0.0
    assert cover_em(gold("Paris"), said(f"{filler} more Paris")) == 1.0
    assert cover_em_capped(gold("New York"), said(f"{filler} New York")) == 0.0


def test_cap_counts_the_tokens_that_one_word_parts_into():
    metric = CoverEM(max_tokens=2, punctuation_to_space=True)
    assert metric(gold("Oslo"), said("Paris/Oslo/Rome")) == 1.0
    assert metric(gold("Rome"), said("Paris/Oslo/Rome")) == 0.0


@pytest.mark.parametrize(
    ("wanted", "answer", "expected"),
    [
        ("Eiffel Tower", "the Eiffel Tower", 1.0),
        ("Eiffel Tower", "Eiffel Tower in Paris", 2 * (2 / 4) * 1 / (2 / 4 + 1)),
        ("new new york", "new york", 2 * 1 * (2 / 3) / (1 + 2 / 3)),
        ("Paris", "London", 0.0),
        ("Paris", "", 0.0),
        ("yes", "yes", 1.0),
        ("yes", "yes it is", 0.0),
        ("yes it is", "yes", 0.0),
        ("A", "a", 1.0),
    ],
)
def test_f1_by_hand(wanted, answer, expected):
    assert f1(gold(wanted), said(answer)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "count"),
    [("The Eiffel Tower.", 3), ("", 0), (None, 0), ("<think>a b c</think> Rome", 1), ("a  b\nc", 3)],
)
def test_answer_tokens_are_visible_words(answer, count):
    assert answer_tokens(gold("x"), said(answer)) == count


def test_configured_variants_cover_more():
    assert CoverEM(strip_diacritics=True)(gold("Beyonce"), said("Beyonc\u00e9")) == 1.0
    assert CoverEM(strip_diacritics=True)(gold("Beyonc\u00e9"), said("Beyonce")) == 1.0
    assert CoverEM(punctuation_to_space=True)(gold("Spider Man"), said("Spider-Man")) == 1.0


def test_variants_have_names_and_a_header():
    assert CoverEM().__name__ == "cover_em"
    assert CoverEM(max_tokens=32).__name__ == "cover_em_first_32"
    variant = CoverEM(match="substring", on="response", strip_diacritics=True)
    assert variant.__name__ == "cover_em_substring_response_strip_diacritics"
    assert variant.describe() == {
        "name": variant.__name__,
        "version": METRIC_VERSION,
        "on": "response",
        "match": "substring",
        "max_tokens": None,
        "strip_diacritics": True,
        "punctuation_to_space": False,
    }


@pytest.mark.parametrize("options", [{"on": "passages"}, {"match": "fuzzy"}, {"max_tokens": 0}])
def test_variant_refuses_unknown_options(options):
    with pytest.raises(UserError, match=str(next(iter(options.values())))):
        CoverEM(**options)


@pytest.mark.parametrize("metric", [cover_em, cover_em_substring, cover_em_response, cover_em_capped, exact_match, f1])
def test_choice_gold_is_scored_by_letter_whatever_the_metric(metric):
    question = gold("B", choices=["an atom", "a molecule", "a cell", "an organ"])
    assert metric(question, said("(B) a molecule", reasoning="(A) is wrong.")) == 1.0
    assert metric(question, said("a molecule")) == 1.0
    assert metric(question, said("A", reasoning="B")) == 0.0
    assert metric(question, said("A or B")) == 0.0
