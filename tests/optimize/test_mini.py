import re

import numpy as np
import pytest
from maps_rag.optimize.mini import load_passages, load_questions, passages_path, questions_path

PASSAGES = {passage.id: passage for passage in load_passages()}
QUESTIONS = load_questions()
BRIDGES = [question for question in QUESTIONS if question.type == "bridge"]
# Where the way from one passage to the next is not the next one's title.
LINKS = {("fletcher-christian", "william-wordsworth"): "Cockermouth"}


def words(text):
    return " ".join(["", *re.findall(r"\w+", text.casefold()), ""])


def subject(passage_id):
    return re.sub(r" \(.*\)$", "", PASSAGES[passage_id].title)


def says(passage_id, answers):
    text = words(f"{PASSAGES[passage_id].title} {PASSAGES[passage_id].text}")
    return any(words(answer) in text for answer in answers)


def share(condition, questions=QUESTIONS):
    return sum(map(condition, questions)) / len(questions)


def test_there_are_enough_passages_and_questions():
    assert len(load_passages()) >= 200
    assert len(QUESTIONS) >= 40


@pytest.mark.parametrize("path", [passages_path(), questions_path()])
def test_files_are_utf_8_with_one_object_a_line(path):
    lines = path.read_bytes().decode("utf-8").split("\n")
    assert lines.pop() == ""
    assert all(line.startswith("{") and line.endswith("}") for line in lines)


def test_passage_ids_are_readable_and_unique():
    ids = [passage.id for passage in load_passages()]
    assert len(set(ids)) == len(ids)
    assert [i for i in ids if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", i)] == []


def test_passages_have_own_titles_and_texts():
    assert len({passage.title for passage in load_passages()}) == len(PASSAGES)
    assert len({passage.text for passage in load_passages()}) == len(PASSAGES)


def test_passages_are_40_to_110_words_long():
    assert [p.id for p in load_passages() if not 40 <= len(p.text.split()) <= 110] == []


def test_passages_are_one_clean_paragraph_each():
    assert [p.id for p in load_passages() if p.text != " ".join(p.text.split()) or not p.text.endswith(".")] == []


def test_question_is_the_only_input():
    assert {tuple(question.inputs().keys()) for question in QUESTIONS} == {("question",)}


def test_question_ids_and_texts_are_unique():
    assert len({question.id for question in QUESTIONS}) == len(QUESTIONS)
    assert len({question.question for question in QUESTIONS}) == len(QUESTIONS)
    assert all(question.question.endswith("?") for question in QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_fields_fit_together(question):
    assert set(question.keys()) == {"id", "question", "answers", "supporting", "type", "hops"}
    assert question.answers
    assert len(set(question.answers)) == len(question.answers)
    assert all(answer == answer.strip() != "" for answer in question.answers)
    assert set(question.supporting) <= PASSAGES.keys()
    assert len(set(question.supporting)) == len(question.supporting) == question.hops
    assert (question.hops == 1) == (question.type == "single")


def test_half_need_two_hops_and_a_quarter_more_or_a_comparison():
    assert {question.type for question in QUESTIONS} == {"single", "bridge", "comparison"}
    assert share(lambda q: q.type == "bridge" and q.hops == 2) >= 0.5
    assert share(lambda q: q.type == "comparison" or q.hops >= 3) >= 0.25


def test_few_questions_can_be_answered_by_yes_or_no():
    assert sum(question.answers[0] in {"yes", "no"} for question in QUESTIONS) <= 3


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q.type != "comparison"], ids=lambda q: q.id)
def test_the_last_needed_passage_alone_holds_the_answer(question):
    assert [i for i in question.supporting if says(i, question.answers)] == question.supporting[-1:]


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q.type == "comparison"], ids=lambda q: q.id)
def test_a_comparison_is_answered_by_a_needed_title_or_yes_or_no(question):
    titles = {PASSAGES[i].title for i in question.supporting}
    assert titles & set(question.answers) or question.answers in (["yes"], ["no"])


@pytest.mark.parametrize("question", BRIDGES, ids=lambda question: question.id)
def test_each_bridge_passage_leads_to_the_next(question):
    for here, there in zip(question.supporting, question.supporting[1:], strict=False):
        link = LINKS.get((here, there), subject(there).split()[-1])
        assert words(link) in words(PASSAGES[here].text)
        assert words(link) in words(f"{PASSAGES[there].title} {PASSAGES[there].text}")


@pytest.mark.parametrize("question", BRIDGES, ids=lambda question: question.id)
def test_a_bridge_question_names_neither_a_later_subject_nor_its_answer(question):
    first = words(subject(question.supporting[0]))
    asked = words(question.question)
    for passage_id in question.supporting[1:]:
        assert words(subject(passage_id)) not in asked
        surname = words(subject(passage_id).split()[-1])
        assert surname not in asked or surname in first
    assert not any(words(answer) in asked for answer in question.answers)


@pytest.fixture(scope="module")
def top_five():
    """The ids of the five nearest passages for each question id, found by the question itself."""
    from maps_rag.programs.retrieval import load_encoder

    encoder = load_encoder("local")
    passages = load_passages()
    vectors = encoder.encode_passages([f"{passage.title}\n{passage.text}" for passage in passages])
    scores = encoder.encode_queries([question.question for question in QUESTIONS]) @ np.asarray(vectors).T
    nearest = np.argsort(-scores, axis=1)[:, :5]
    return {q.id: {passages[i].id for i in row} for q, row in zip(QUESTIONS, nearest, strict=True)}


@pytest.mark.model
def test_one_search_finds_all_needed_passages_for_at_most_70_percent(top_five):
    assert share(lambda q: set(q.supporting) <= top_five[q.id]) <= 0.70


@pytest.mark.model
def test_one_search_finds_a_needed_passage_for_nearly_all(top_five):
    assert share(lambda q: bool(set(q.supporting) & top_five[q.id])) >= 0.95


@pytest.mark.model
def test_single_questions_are_found_by_one_search(top_five):
    assert share(lambda q: q.supporting[0] in top_five[q.id], [q for q in QUESTIONS if q.type == "single"]) >= 0.9
