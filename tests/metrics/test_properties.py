import string

import pytest
from dspy.evaluate.metrics import EM, F1, HotPotF1
from hypothesis import assume, example, given
from hypothesis import strategies as st
from maps_rag.metrics import (
    answer_tokens,
    choice_letter,
    cover_em,
    cover_em_capped,
    cover_em_response,
    cover_em_substring,
    exact_match,
    f1,
)
from maps_rag.metrics.normalize import canonical, normalize, tokens, visible

ASCII = "".join(char for char in string.printable if char not in "\x0b\x0c")
WORDS = st.sampled_from(
    [
        "Paris",
        "new",
        "york",
        "the",
        "A",
        "an",
        "no",
        "Yes",
        "not",
        "10",
        "2010",
        "us",
        "Russian",
        "O'Brien",
        "-",
        "\u2014",
    ]
)
PHRASES = st.lists(WORDS, max_size=6).map(" ".join)
TEXTS = st.one_of(PHRASES, st.text(max_size=30))


def scored(metric, gold, answer):
    golds = [gold] if isinstance(gold, str) else gold
    return metric({"answers": golds}, {"answer": answer})


@given(TEXTS)
@example("A")
@example("---")
@example("no")
def test_gold_covers_itself(gold):
    assume(canonical(gold))
    for metric in (cover_em, cover_em_substring, cover_em_response, exact_match, f1):
        assert scored(metric, gold, gold) == 1.0


@given(PHRASES, PHRASES, PHRASES)
def test_gold_is_covered_between_other_words_unless_a_guard_applies(gold, before, after):
    assume(tokens(gold) not in ([], ["yes"], ["no"]))
    assert scored(cover_em, gold, f"{before} {gold} {after}") == 1.0


@given(st.lists(TEXTS, min_size=1, max_size=3), TEXTS)
def test_exact_match_implies_cover_implies_substring_and_response(golds, answer):
    exact, cover = scored(exact_match, golds, answer), scored(cover_em, golds, answer)
    assert exact <= cover <= scored(cover_em_substring, golds, answer)
    assert cover <= scored(cover_em_response, golds, answer)


@given(PHRASES, PHRASES, PHRASES)
def test_cover_implies_cover_of_the_response(gold, answer, reasoning):
    response = cover_em_response({"answer": gold}, {"answer": answer, "reasoning": reasoning})
    assert scored(cover_em, gold, answer) <= response


@given(st.lists(TEXTS, min_size=1, max_size=3), st.lists(WORDS, max_size=80).map(" ".join))
def test_capped_is_at_most_uncapped_for_golds_without_a_guard(golds, answer):
    assume(all(tokens(gold) not in ([], ["yes"], ["no"]) for gold in golds))
    assert scored(cover_em_capped, golds, answer) <= scored(cover_em, golds, answer)


@given(TEXTS, TEXTS)
def test_capped_equals_uncapped_for_short_answers(gold, answer):
    assume(len(answer.split()) <= 32 and len(tokens(answer)) <= 32)
    assert scored(cover_em_capped, gold, answer) == scored(cover_em, gold, answer)


@given(TEXTS, TEXTS)
def test_f1_is_symmetric_and_in_the_unit_interval(left, right):
    assert 0.0 <= scored(f1, left, right) <= 1.0
    assert scored(f1, left, right) == scored(f1, right, left)


@given(TEXTS, TEXTS)
def test_exact_match_implies_full_f1(gold, answer):
    assert scored(exact_match, gold, answer) <= scored(f1, gold, answer)


@pytest.mark.parametrize("metric", [cover_em, cover_em_substring, exact_match, f1])
@given(gold=PHRASES, answer=PHRASES)
def test_case_articles_and_punctuation_do_not_count(metric, gold, answer):
    assume(tokens(gold))
    score = scored(metric, gold, answer)
    assert scored(metric, gold, answer.swapcase()) == score
    assert scored(metric, gold.swapcase(), answer) == score
    assert scored(metric, gold, f"The {answer}?!") == score
    assert scored(metric, f"An '{gold}'.", answer) == score


@given(st.sampled_from(["", " ", "A", "the", "The A", "?", "--", "\u2014", "\u201c\u201d"]), TEXTS)
def test_empty_gold_is_true_only_of_its_own_text(gold, answer):
    expected = float(canonical(gold) != "" and canonical(gold) == canonical(visible(answer)))
    for metric in (cover_em, cover_em_substring, cover_em_response, exact_match, f1):
        assert scored(metric, gold, answer) == expected


@given(TEXTS)
def test_normalising_twice_changes_nothing(text):
    assert normalize(normalize(text)) == normalize(text)


@given(st.text(alphabet=ASCII, max_size=30), st.lists(st.text(alphabet=ASCII, max_size=20), min_size=1, max_size=3))
@example("the Eiffel Tower", ["Eiffel tower!"])
@example("yes it is", ["yes"])
def test_agrees_with_dspy_on_ascii(answer, golds):
    assume(all(tokens(gold) for gold in golds) and visible(answer) == answer.strip())
    assume("noanswer" not in normalize(answer))
    assert scored(exact_match, golds, answer) == EM(answer, golds)
    assert scored(f1, golds, answer) == pytest.approx(HotPotF1(answer, golds))


@given(PHRASES, st.lists(PHRASES, min_size=1, max_size=3))
def test_f1_agrees_with_dspy_where_no_side_is_yes_or_no(answer, golds):
    assume(all(tokens(text) not in ([], ["yes"], ["no"]) for text in [answer, *golds]))
    ascii_golds = [gold.replace("\u2014", "-") for gold in golds]
    assert scored(f1, golds, answer) == pytest.approx(F1(answer.replace("\u2014", "-"), ascii_golds))


@given(TEXTS)
def test_answer_tokens_count_words(text):
    assert scored(answer_tokens, "x", text) == len(visible(text).split())


@given(st.text(max_size=60), st.lists(st.text(max_size=10), min_size=1, max_size=5))
def test_choice_letter_is_an_option_or_none(answer, choices):
    assert choice_letter(answer, choices) in {None, *string.ascii_uppercase[: len(choices)]}


@given(st.integers(0, 3), st.sampled_from(["{}", "({})", "Answer: {}", "The answer is {}.", "{}) it is so", "[{}]"]))
def test_declared_letter_is_read_in_every_form(index, form):
    letter = "ABCD"[index]
    assert choice_letter(form.format(letter), ["one", "two", "three", "four"]) == letter
