"""Sets are found by name or file, sampled by seed, and hashed; what cannot be had is said."""

import json
import logging
import os
import random
from pathlib import Path

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maps_rag.optimize import mini
from maps_rag.optimize.data import DATA_SETS, data_hash, load_questions
from maps_rag.programs.errors import UserError

from tests.optimize.data_rows import (
    flashrag,
    gpqa,
    hotpot,
    hotpot_columns,
    musique,
    ours,
    popqa,
    two_wiki,
    write_lines,
    write_table,
)

REAL = Path(os.environ.get("MAPS_RAG_DATA") or "no data")
needs_data = pytest.mark.skipif(not REAL.is_dir(), reason="MAPS_RAG_DATA names no folder of real data")


def ids(examples):
    return [example.id for example in examples]


def failure(*args, **more):
    with pytest.raises(UserError) as caught:
        load_questions(*args, **more)
    return str(caught.value)


@pytest.fixture
def hub(monkeypatch):
    """A hub that holds what a test puts into it, and notes what it is asked for."""
    import datasets

    rows, asked = {}, []

    def load_dataset(name, config=None, split=None):
        asked.append((name, config, split))
        found = rows[name]
        if isinstance(found, Exception):
            raise found
        return datasets.Dataset.from_list(found)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return rows, asked


REAL_FILES = {
    "2wikimultihopqa_official.jsonl": ("2wikimultihopqa", 20),
    "hotpotqa_hub_columns.json": ("hotpotqa", 10),
    "hotpotqa_official.jsonl": ("hotpotqa", 10),
    "musique_official.jsonl": ("musique", 10),
    "nq_flashrag.jsonl": ("nq", 20),
    "nq_open_official.jsonl": ("nq", 60),
    "popqa_flashrag.jsonl": ("popqa", 20),
    "searcho1_2wikimultihopqa.json": ("2wikimultihopqa", 20),
}


@needs_data
@pytest.mark.parametrize("name", REAL_FILES)
def test_every_real_layout_loads(name):
    questions = load_questions(REAL / "raw" / name)
    assert (questions[0].dataset, len(questions)) == REAL_FILES[name]
    assert all(question.question and question.answers and question.id for question in questions)
    if "official" in name and not name.startswith("nq"):
        assert all(len(question.supporting) >= 2 for question in questions)


@needs_data
def test_no_real_layout_is_left_out():
    assert {path.name for path in (REAL / "raw").iterdir()} - {"wiki18_slice.jsonl"} == set(REAL_FILES)


@needs_data
@pytest.mark.parametrize("name", ["2wikimultihopqa", "hotpotqa", "musique"])
def test_the_official_layout_gives_the_gold_of_our_layout(name):
    ready = {question.id: question for path in REAL.glob(f"{name}_*.jsonl") for question in load_questions(path)}
    official = [
        question for question in load_questions(REAL / "raw" / f"{name}_official.jsonl") if question.id in ready
    ]
    assert len(official) >= 5
    for question in official:
        same = ready[question.id]
        assert titles(question) == titles(same)
        assert [flat(gold["text"]) for gold in question.supporting] == [flat(gold["text"]) for gold in same.supporting]
        assert (question.answers, question.hops) == (same.answers, same.hops)


def titles(question):
    return [gold["title"] for gold in question.supporting]


def flat(text):
    return " ".join(text.split())


OFFICIAL = {
    "nq": {"question": "who is it", "answer": ["Ada"]},
    "popqa": popqa(),
    "hotpotqa": hotpot_columns(),
    "2wikimultihopqa": two_wiki(),
    "musique": musique(),
    "gpqa_diamond": gpqa(),
    "triviaqa": flashrag(),
    "bamboogle": flashrag(),
}


def test_every_set_of_the_registry_is_tested():
    assert set(DATA_SETS) == {*OFFICIAL, "mini"}


@pytest.mark.parametrize("name", OFFICIAL)
def test_a_set_is_fetched_from_the_hub_by_its_name(hub, name):
    rows, asked = hub
    known = DATA_SETS[name]
    # What makes both of 2WikiMultihopQA's nested fields columns of one type, as Parquet has them.
    columns = {"context": hotpot_columns()["context"], "supporting_facts": hotpot_columns()["supporting_facts"]}
    rows[known.hub] = [OFFICIAL[name] | (columns if name == "2wikimultihopqa" else {})]
    (question,) = load_questions(name)
    assert asked == [(known.hub, known.config, known.split)]
    assert question.dataset == name
    assert question.answers


@pytest.mark.parametrize(("wanted", "asked_for"), [("dev", "validation"), ("train", "train"), (None, "validation")])
def test_a_split_has_both_of_its_names(hub, wanted, asked_for):
    rows, asked = hub
    rows[DATA_SETS["musique"].hub] = [musique()]
    load_questions("MuSiQue", split=wanted)
    assert asked[0][2] == asked_for


def test_an_alias_and_a_hub_id_name_a_set(hub):
    rows, _ = hub
    rows[DATA_SETS["2wikimultihopqa"].hub] = [hotpot_columns(evidences="[]")]
    rows[DATA_SETS["popqa"].hub] = [popqa()]
    assert load_questions("2wiki")[0].dataset == "2wikimultihopqa"
    assert load_questions("akariasai/PopQA")[0].dataset == "popqa"


def test_a_broken_row_of_the_hub_is_named(hub):
    rows, _ = hub
    rows["akariasai/PopQA"] = [popqa(), popqa(8, possible_answers="[]")]
    assert failure("popqa").startswith("akariasai/PopQA, test, row 2: the field 'possible_answers'")


def test_an_unknown_split_lists_the_splits():
    assert failure("popqa", split="train") == "popqa has no split 'train' with answers; it has test"


def test_an_unknown_set_lists_the_names():
    message = failure("hotpotq")
    assert all(name in message for name in DATA_SETS)
    assert "'hotpotq'" in message


@pytest.mark.parametrize(
    "name", ["x" * 5000, "~nobody-of-that-name/x", "", "a\0b"], ids=["long", "user", "empty", "null"]
)
def test_what_cannot_be_the_name_of_a_file_is_no_data_set(name):
    assert "no data set and no file" in failure(name) or "a folder" in failure(name)


@pytest.mark.parametrize("name", ["nq", "gpqa"])
def test_without_the_hub_the_error_says_how_to_give_a_file(monkeypatch, name):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    message = failure(name)
    assert "the hub cannot be reached" in message
    assert "=FILE" in message
    assert "\n" not in message


def test_a_cause_further_down_tells_that_the_hub_cannot_be_reached(hub):
    rows, _ = hub
    rows["akariasai/PopQA"] = error = RuntimeError("it failed\nat length")
    error.__cause__ = TimeoutError("no reply")
    assert "the hub cannot be reached (it failed)" in failure("popqa")


def test_another_failure_of_the_hub_says_what_it_is(hub):
    rows, _ = hub
    rows["akariasai/PopQA"] = ValueError("no such config")
    message = failure("popqa")
    assert "cannot be reached" not in message
    assert "akariasai/PopQA cannot be loaded from the hub (no such config)" in message


def test_a_gated_set_says_how_to_get_in(hub):
    rows, _ = hub
    rows["Idavidrein/gpqa"] = ValueError("you must be authenticated")
    message = failure("gpqa")
    assert "gated: accept its terms" in message
    assert "gpqa_diamond=FILE" in message


def test_the_packages_own_set_has_a_name():
    questions = load_questions("mini")
    assert ids(questions) == ids(mini.load_questions())
    assert {question.dataset for question in questions} == {"mini"}
    assert questions[0].supporting == mini.load_questions()[0].supporting


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        ("hotpot_dev_distractor_v1.json", [hotpot()], "hotpotqa"),
        ("dev.json", [two_wiki()], "2wikimultihopqa"),
        ("musique_ans_v1.0_dev.jsonl", [musique()], "musique"),
        ("test.tsv", [popqa()], "popqa"),
        ("gpqa_diamond.csv", [gpqa()], "gpqa_diamond"),
        ("NQ-open.dev.jsonl", [{"question": "who", "answer": ["Ada"]}], "nq"),
        ("my_own.jsonl", [ours()], "my_own"),
    ],
)
def test_an_official_file_tells_its_set(tmp_path, name, rows, expected):
    path = tmp_path / name
    if path.suffix in (".csv", ".tsv"):
        write_table(path, rows, "\t" if path.suffix == ".tsv" else ",")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        write_lines(path, rows)
    assert load_questions(str(path))[0].dataset == expected


def test_a_file_of_flashrag_tells_its_set_by_its_folder(tmp_path):
    (tmp_path / "triviaqa").mkdir()
    path = write_lines(tmp_path / "triviaqa" / "test.jsonl", [flashrag()])
    assert load_questions(path)[0].dataset == "triviaqa"


def test_a_name_before_a_file_says_what_it_holds(tmp_path):
    path = write_lines(tmp_path / "x.jsonl", [flashrag()])
    assert load_questions(f"bamboogle={path}")[0].dataset == "bamboogle"


def test_a_parquet_file_of_2wiki_may_hold_json_in_strings(tmp_path):
    import pyarrow
    from pyarrow import parquet

    nested = ("context", "supporting_facts", "evidences")
    row = {name: json.dumps(value) if name in nested else value for name, value in two_wiki().items()}
    parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "dev.parquet")
    (question,) = load_questions(tmp_path / "dev.parquet")
    assert (question.dataset, titles(question)) == ("2wikimultihopqa", ["A", "C"])


def test_gpqa_is_an_input_with_its_choices_and_answered_by_a_letter(tmp_path):
    (question,) = load_questions(write_table(tmp_path / "gpqa_diamond.csv", [gpqa()]))
    assert set(question.inputs().keys()) == {"question", "choices"}
    assert question.choices["ABCD".index(question.answers[0])] == "one"
    assert question.question == "How many?"


def test_an_open_question_is_the_only_input(tmp_path):
    (question,) = load_questions(write_lines(tmp_path / "x.jsonl", [ours(supporting=["p"], hops=1)]))
    assert set(question.inputs().keys()) == {"question"}


def test_a_broken_row_of_a_file_names_file_line_and_field(tmp_path):
    path = write_lines(tmp_path / "x.jsonl", [ours(), ours("o2", answers=[])])
    assert failure(path).startswith(f"{path}, line 2: the field 'answers' ")
    array = tmp_path / "x.json"
    array.write_text(json.dumps([hotpot(), hotpot("h2", context=3)], indent=1))
    message = failure(array)
    assert message.startswith(f"{array}, row 2 (line ")
    assert "the field 'context'" in message


def test_a_repeated_id_names_both_places(tmp_path):
    path = write_lines(tmp_path / "x.jsonl", [ours(), ours("o2"), ours()])
    assert failure(path) == f"{path}, line 3: the field 'id' repeats the one of {path}, line 1; ids must differ"


def test_questions_without_an_id_get_one_from_their_text(tmp_path):
    rows = [{"question": text, "answer": "x"} for text in ("who", "what", "who")]
    first = ids(load_questions(write_lines(tmp_path / "a.jsonl", rows)))
    again = ids(load_questions(write_lines(tmp_path / "b.jsonl", [rows[1], rows[0]])))
    assert len(set(first)) == 3
    assert again == [first[1], first[0]]


def test_a_question_text_may_occur_twice(tmp_path):
    assert len(load_questions(write_lines(tmp_path / "x.jsonl", [ours(), ours("o2")]))) == 2


def test_missing_paragraphs_are_said_with_their_number_and_the_first_place(tmp_path, caplog):
    rows = [two_wiki(), two_wiki("w2", context=[]), two_wiki("w3", context=None)]
    path = write_lines(tmp_path / "dev.jsonl", rows)
    questions = load_questions(path)
    assert [len(question.supporting) for question in questions] == [2, 0, 0]
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "2 questions lack the text of a gold passage" in record.getMessage()
    assert f"{path}, line 2, field 'context'" in record.getMessage()


def test_questions_of_musique_full_that_cannot_be_answered_are_left_out(tmp_path):
    path = write_lines(tmp_path / "musique_full.jsonl", [musique(), musique(answerable=False)])
    assert ids(load_questions(path)) == ["3hop1__1_2_3"]


@pytest.mark.parametrize("text", ["", "\n", "[]"])
def test_a_file_without_questions_is_an_error_of_the_user(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    assert failure(path) == f"{path} holds no question that can be scored"


def test_a_folder_and_a_split_of_a_file_are_errors_of_the_user(tmp_path):
    assert "is a folder" in failure(str(tmp_path))
    assert "no data set and no file" in failure(f"nq={tmp_path / 'none.jsonl'}")
    assert "leave split out" in failure(write_lines(tmp_path / "x.jsonl", [ours()]), split="dev")


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": -1}, {"n": True}, {"n": 1.5}, {"seed": "1"}])
def test_a_sample_that_cannot_be_drawn_is_refused(wrong):
    assert repr(next(iter(wrong.values()))) in failure("mini", **wrong)


@settings(max_examples=25)
@given(size=st.integers(1, 30), small=st.integers(1, 30), more=st.integers(0, 30), seed=st.integers(0, 9))
def test_a_sample_is_the_same_in_any_order_of_the_file_and_grows(tmp_path_factory, size, small, more, seed):
    folder = tmp_path_factory.mktemp("sample")
    rows = [ours(f"id {at}") for at in range(size)]
    first = write_lines(folder / "a.jsonl", rows)
    shuffled = write_lines(folder / "b.jsonl", random.Random(seed).sample(rows, size))
    large = ids(load_questions(first, n=small + more, seed=seed))
    assert ids(load_questions(shuffled, n=small, seed=seed)) == large[:small]
    assert len(large) == len(set(large)) == min(size, small + more)


def test_seeds_draw_differently_and_every_question_alike(tmp_path):
    path = write_lines(tmp_path / "x.jsonl", [ours(str(at)) for at in range(20)])
    drawn = [ids(load_questions(path, n=5, seed=seed)) for seed in range(200)]
    assert len({tuple(sample) for sample in drawn}) == 200
    counts = [sum(str(at) in sample for sample in drawn) for at in range(20)]
    assert all(25 <= count <= 75 for count in counts), counts


def test_more_than_there_are_gives_all_and_says_so(caplog):
    assert len(load_questions("mini", n=10_000)) == len(mini.load_questions())
    assert "fewer than the 10000 asked for" in caplog.text


def test_the_hash_changes_with_any_field_and_not_with_the_order():
    questions = load_questions("mini")
    expected = data_hash(questions)
    assert data_hash(reversed(questions)) == expected == data_hash(load_questions("mini"))
    changed = dspy.Example(**{**questions[0].toDict(), "answers": ["other"]})
    assert data_hash([changed, *questions[1:]]) != expected
    assert data_hash(questions[1:]) != expected
    assert data_hash([*questions, questions[0]]) != expected


def test_a_question_that_is_not_plain_data_has_no_hash():
    with pytest.raises(UserError, match="'q1' cannot be hashed"):
        data_hash([dspy.Example(id="q1", question=object())])
