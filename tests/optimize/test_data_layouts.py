"""A row of each layout becomes the question that it is; a broken one names its place and its field."""

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maps_rag.metrics import choice_accuracy
from maps_rag.metrics.fields import gold_answers
from maps_rag.optimize.data.fields import Row
from maps_rag.optimize.data.layouts import LAYOUTS, layout_of, read
from maps_rag.programs.errors import UserError

from tests.optimize.data_rows import flashrag, gpqa, hotpot, hotpot_columns, musique, ours, popqa, two_wiki


def question(values, given=None):
    row = Row(values, "f, line 3")
    return read(row, layout_of(row), given)


def failure(values, first=None, given=None):
    layout = layout_of(Row(first or values, "f, line 1"))
    with pytest.raises(UserError) as caught:
        read(Row(values, "f, line 3"), layout, given)
    message = str(caught.value)
    assert message.startswith("f, line 3")
    return message


def titles(fields):
    return [passage["title"] for passage in fields["supporting"]]


GOLD = [{"title": "A", "text": "A is old. It is red."}, {"title": "C", "text": "C is far. C is cold."}]


@pytest.mark.parametrize(
    "row",
    [
        hotpot(),
        hotpot_columns(),
        hotpot(context=json.dumps(hotpot()["context"]), supporting_facts=json.dumps(hotpot()["supporting_facts"])),
        hotpot(context=[{"title": key, "sentences": value} for key, value in hotpot()["context"]]),
    ],
    ids=["official", "hub columns", "JSON strings", "objects"],
)
def test_hotpotqa_keeps_its_gold_paragraphs_in_the_order_of_the_context(row):
    fields = question(row)
    assert fields["supporting"] == GOLD
    assert (fields["id"], fields["answers"], fields["dataset"]) == ("h1", ["yes"], "hotpotqa")
    assert (fields["type"], fields["hops"]) == ("bridge", 2)


def test_2wiki_joins_sentences_with_a_space():
    fields = question(two_wiki())
    assert fields["supporting"] == GOLD
    assert (fields["dataset"], fields["type"], fields["hops"]) == ("2wikimultihopqa", "compositional", 2)


def test_a_named_set_decides_how_sentences_are_joined():
    row = hotpot()
    del row["level"]
    assert question(row, "hotpotqa")["supporting"] == GOLD
    assert question(row)["supporting"] != GOLD


@pytest.mark.parametrize("context", [None, [], [["A", ["A is old.", " It is red."]]], [["C", []]]])
def test_a_row_that_lacks_gold_paragraphs_names_their_titles_instead(context):
    fields = question(two_wiki(context=context))
    assert fields["supporting"] == []
    assert "C" in fields["supporting_titles"]
    assert fields["answers"] == ["yes"]


def test_of_two_paragraphs_with_one_title_the_one_that_has_the_sentence_is_gold():
    context = [["C", ["Another C."]], *two_wiki()["context"]]
    assert question(two_wiki(context=context, supporting_facts=[["C", 1]]))["supporting"] == [GOLD[1]]


def test_a_sentence_number_beyond_the_paragraph_still_names_the_paragraph():
    assert titles(question(hotpot(supporting_facts=[["B", 9]]))) == ["B"]


def test_musique_has_aliases_gold_paragraphs_and_its_shape_of_chain():
    fields = question(musique())
    assert fields["answers"] == ["Dee", "Dee D"]
    assert fields["supporting"] == [{"title": key, "text": f"About {key}."} for key in ("A", "C", "D")]
    assert (fields["type"], fields["hops"]) == ("3hop1", 3)
    assert question(musique("other"))["type"] == "3hop"


def test_questions_of_musique_that_cannot_be_answered_are_none():
    assert question(musique(answerable=False, answer="")) is None


def test_popqa_reads_the_answers_out_of_json():
    fields = question(popqa())
    assert (fields["id"], fields["answers"], fields["type"]) == ("7", ["poet", "a poet"], "occupation")
    assert fields["supporting_titles"] == ["Ada (poet)"]


@settings(max_examples=50)
@given(record=st.text(min_size=1, max_size=20, alphabet=string.ascii_letters + string.digits))
def test_gpqa_is_put_in_an_order_that_only_the_record_decides(record):
    fields = question(gpqa(record))
    assert sorted(fields["choices"]) == ["four", "one", "three", "two"]
    assert fields["choices"]["ABCD".index(fields["answers"][0])] == "one"
    assert question(gpqa(record, Question="Another?"))["choices"] == fields["choices"]
    assert choice_accuracy(fields, {"answer": fields["answers"][0]}) == 1.0


def test_the_right_option_of_gpqa_takes_every_letter():
    letters = [question(gpqa(f"rec{at}"))["answers"][0] for at in range(400)]
    assert all(70 <= letters.count(letter) <= 130 for letter in "ABCD")


def test_the_order_of_gpqa_does_not_change_between_releases():
    # Worked out with sha256sum: the digests of "recA\n0" to "recA\n3" sort as options 0, 1, 3, 2.
    assert question(gpqa("recA"))["choices"] == ["one", "two", "four", "three"]


def test_flashrag_is_read_with_each_kind_of_metadata():
    assert question(flashrag()) == {"id": "test_1", "question": "Who is it?", "answers": ["Ada", "Ada L."]}
    two_hop = hotpot_columns()
    facts = {key: two_hop[key] for key in ("supporting_facts", "context", "type", "level")}
    assert question(flashrag(metadata=facts))["supporting"] == GOLD
    wiki = {"title": ["A", "C"], "content": [["A is old.", "It is red."], ["C is far.", "C is cold."]]}
    metadata = {"type": "comparison", "supporting_facts": facts["supporting_facts"], "context": wiki}
    fields = question(flashrag(metadata=metadata))
    assert (fields["supporting"], fields["dataset"], fields["type"]) == (GOLD, "2wikimultihopqa", "comparison")
    steps = [{"support_paragraph": {"title": key, "paragraph_text": f"About {key}."}} for key in "DA"]
    fields = question(flashrag(metadata={"question_decomposition": steps, "answerable": True}))
    assert (titles(fields), fields["hops"], fields["dataset"]) == (["D", "A"], 2, "musique")
    assert question(flashrag(metadata=popqa()))["dataset"] == "popqa"
    assert question(flashrag(metadata={"question_decomposition": steps, "answerable": False})) is None


def test_search_o1_and_bamboogle_write_the_question_with_a_capital():
    assert question({"id": 4, "Question": "Who?", "answer": ["Ada"]})["id"] == "4"
    assert question({"Question": "Who?", "Answer": "Ada"})["answers"] == ["Ada"]


def test_our_layout_keeps_what_it_is_given():
    given = ours(supporting=["p1", {"title": "A", "text": "x"}], type="bridge", hops=2, dataset="mine")
    assert question(given) == given


def test_popqa_in_our_layout_counts_the_page_of_the_subject_only():
    pages = [{"title": key, "text": "x"} for key in ("Ada", "Poet")]
    assert titles(question(ours(dataset="popqa", supporting=pages))) == ["Ada"]
    assert titles(question(ours(supporting=pages), "popqa")) == ["Ada"]


@pytest.mark.parametrize("answer", ["B", "two"])
def test_choices_in_our_layout_are_answered_by_a_letter(answer):
    fields = question(ours(choices=["one", "two"], answers=[answer]))
    assert (fields["choices"], fields["answers"]) == (["one", "two"], ["B"])


def test_blank_and_repeated_answers_are_dropped():
    assert question(ours(answers=["Ada", "", " Ada ", "A"]))["answers"] == ["Ada", "A"]


BROKEN = [
    (hotpot, "question", None),
    (hotpot, "answer", " "),
    (hotpot, "_id", 1.5),
    (hotpot, "supporting_facts", [["A"]]),
    (hotpot, "supporting_facts", [["A", "0"]]),
    (hotpot, "supporting_facts", "not JSON"),
    (hotpot, "context", 3),
    (hotpot, "context", [["A", [1]]]),
    (hotpot_columns, "context", {"title": ["A"], "sentences": []}),
    (two_wiki, "answer", []),
    (musique, "answer", 3),
    (musique, "paragraphs", {"title": "A"}),
    (musique, "paragraphs", ["A"]),
    (hotpot, "context", {"title": ["A"], "sentences": "A is old."}),
    (musique, "answer_aliases", [2]),
    (popqa, "possible_answers", "poet"),
    (popqa, "possible_answers", "[]"),
    (gpqa, "Record ID", None),
    (gpqa, "Incorrect Answer 3", ""),
    (gpqa, "Question", "\n"),
    (flashrag, "golden_answers", None),
    (flashrag, "golden_answers", {"a": 1}),
    (flashrag, "question", ["x"]),
    (ours, "id", True),
    (ours, "id", ""),
    (ours, "answers", [None]),
    (ours, "question", "\ud800"),
    (ours, "supporting", [{"title": "A"}]),
    (ours, "supporting", 3),
    (ours, "hops", "2"),
    (ours, "hops", 0),
    (ours, "type", 3),
    (ours, "choices", ["one"]),
    (ours, "choices", ["one", ""]),
]


@pytest.mark.parametrize(("make", "field", "value"), BROKEN)
def test_a_broken_field_is_named_with_its_place(make, field, value):
    assert f"field {field!r}" in failure(make(**{field: value}))


@pytest.mark.parametrize("make", [hotpot, two_wiki, musique, popqa, gpqa, flashrag, ours])
def test_a_field_that_only_a_later_row_lacks_is_named(make):
    first = make()
    for mark in layout_of(Row(first, "f, line 1")).marks:
        row = {name: value for name, value in first.items() if name != mark}
        assert f"the field {mark!r} is missing" in failure(row, first)


def test_broken_paragraphs_name_the_paragraph():
    paragraphs = musique()["paragraphs"]
    del paragraphs[2]["paragraph_text"]
    message = failure(musique(paragraphs=paragraphs))
    assert message == "f, line 3, field 'paragraphs', item 3: the field 'paragraph_text' is missing"


def test_an_answer_that_is_none_of_the_choices_is_broken():
    assert "the field 'answers'" in failure(ours(choices=["one", "two"], answers=["C"]))


def test_a_first_row_that_lacks_the_gold_of_the_others_is_found_out():
    assert "the field 'paragraphs'" in failure(musique(), {"id": "1", "question": "Who?", "answer": "Ada"})


def test_a_row_in_no_layout_names_its_fields_and_the_layouts():
    with pytest.raises(UserError) as caught:
        layout_of(Row({"id": 1, "contents": "x"}, "f, line 1"))
    message = str(caught.value)
    assert message.startswith("f, line 1: its fields (id, contents) fit no known layout")
    assert all(layout.name in message for layout in LAYOUTS)


@pytest.mark.parametrize("row", [3, None, ["a"], "text"])
def test_a_row_that_is_no_object_is_refused(row):
    with pytest.raises(UserError, match="f, line 3: a row must be an object"):
        Row(row, "f, line 3")


@pytest.mark.parametrize("field", ["Question", "Correct Answer", "Incorrect Answer 2"])
def test_no_error_about_gpqa_quotes_its_text(field):
    message = failure(gpqa(**{field: ["secret"]}))
    assert "secret" not in message
    assert "three" not in message


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=4) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["title", "text", "a"]), inner),
    max_leaves=6,
)


@settings(max_examples=50)
@given(
    make=st.sampled_from([hotpot, hotpot_columns, two_wiki, musique, popqa, gpqa, flashrag, ours]),
    data=st.data(),
    value=ANYTHING,
)
def test_whatever_a_field_holds_the_row_is_a_question_or_an_error_of_the_user(make, data, value):
    row = make(supporting=[], choices=None, metadata=None) if make in (ours, flashrag) else make()
    field = data.draw(st.sampled_from(sorted(row)))
    layout = layout_of(Row(make(), "f, line 1"))
    refused = None
    try:
        fields = read(Row({**row, field: value}, "f, line 3"), layout, None)
    except UserError as error:
        refused, fields = str(error), None
    assert refused is None or refused.startswith("f, line 3")
    if fields is not None:
        assert fields["question"].strip()
        assert all(answer.strip() for answer in gold_answers(fields))
        json.dumps(fields).encode()
