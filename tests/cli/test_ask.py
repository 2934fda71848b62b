"""Asking a question over an index."""

import json

import pytest
from maps_rag.cli.defaults import LOCAL_KNOBS, choose_knobs
from maps_rag.programs import MAPS

from tests.scripted import Roles

FIELDS = {"answer", "citations", "knowledge", "passages", "usage", "trajectory", "rounds", "stop_reason", "failures"}


class Selecting(Roles):
    """Replies of a model that picks passages."""

    def usual(self, role, user):
        known = user.count("Sentence one of")
        if role == "refine":
            return {"selected": [1], "new_state": "one fact"}
        if role == "propose":
            return super().usual(role, user) | {"known": ["a name"], "sufficient": known >= self.rounds}
        return super().usual(role, user)


def ask(index, *more):
    return "ask", "who was first?", "--index", index, *more


def test_every_round_is_shown_with_its_steps_in_order(run, index, model):
    model(Roles(rounds=2))
    result = run(*ask(index, "--lm", "some/model", "--passages", 2))
    assert result.exit_code == 0
    shown = result.stdout
    places = [
        shown.index(text)
        for text in (
            "Round 1",
            "missing 0",
            "direction 0 0",
            "direction 0 1",
            "query 0 0",
            "Title ",
            "query 0 1",
            "fact number 0",
            "Round 2",
            "missing 1",
            "query 1 0",
            "fact number 1",
            "Enough is known",
            "the answer",
            "2: nothing was missing any more",
            "8 model calls, 4 searches",
        )
    ]
    assert places == sorted(places)
    assert "Round 3" not in shown
    assert result.stderr == ""
    assert "\x1b" not in result.output


def test_selected_knowledge_is_shown_with_its_passage_and_cited(run, index, model):
    model(Selecting(rounds=1))
    result = run(*ask(index))
    learned = next(line for line in result.stdout.splitlines() if "learned" in line)
    cited = next(line for line in result.stdout.splitlines() if "sources" in line)
    passage = learned.split("[")[1].rstrip("]")
    assert passage in {f"p{number}" for number in range(12)}
    assert f"Title {passage[1:]}: Sentence one of {passage[1:]}. Sentence two of {passage[1:]}. [{passage}]" in learned
    assert f"Title {passage[1:]} [{passage}]" in cited


def test_json_is_one_object_and_alone_on_standard_output(run, index, model):
    model(Selecting(rounds=1))
    result = run(*ask(index, "--json"))
    assert result.exit_code == 0
    content = json.loads(result.stdout)
    assert set(content) >= FIELDS
    assert content["question"] == "who was first?"
    assert content["answer"] == "the answer"
    assert content["usage"]["calls"] == 5
    assert len(content["trajectory"]["rounds"]) == 1
    assert content["citations"][0]["id"].startswith("p")
    assert "Round 1" in result.stderr


def test_a_question_that_needs_no_search_is_answered_at_once(run, index, model):
    model(Roles(rounds=0))
    result = run(*ask(index), "--min-rounds", 0)
    assert "Round 1" not in result.stdout
    assert "0: nothing was missing any more" in result.stdout


def test_min_rounds_are_run_and_shown_as_rounds(run, index, model):
    model(Roles(rounds=0))
    result = run(*ask(index, "--min-rounds", 1, "--refine", "distil"))
    assert "Round 1" in result.stdout
    assert "fact number 0" in result.stdout
    assert "1: nothing was missing any more" in result.stdout


def test_a_plan_that_cannot_be_read_is_shown_as_a_failure(run, index, model):
    model(Roles(rounds=1, propose=["no plan at all"] * 2))
    result = run(*ask(index, "--refine", "distil"))
    assert result.exit_code == 0
    assert next(line for line in result.stdout.splitlines() if "directions" in line).endswith("who was first?")
    assert "propose: reply unparseable (1x)" in result.stdout


@pytest.mark.parametrize(
    ("lm", "api_base", "here"),
    [
        ("local", None, True),
        ("local-small", None, True),
        ("weights/my.gguf", None, True),
        ("local", "http://host/v1", False),
        ("openai/gpt-4o-mini", None, False),
    ],
)
def test_only_models_of_this_process_get_knobs_of_their_own(lm, api_base, here):
    plain = MAPS().config
    chosen = MAPS(**choose_knobs(lm, api_base, directions=None, passages=None)).config
    assert (chosen == plain) is not here
    assert choose_knobs(lm, api_base) == (LOCAL_KNOBS if here else {})


def test_given_knobs_reach_the_program(run, index, model):
    model()
    result = run(
        *ask(
            index,
            "--directions",
            2,
            "--passages",
            4,
            "--max-rounds",
            5,
            "--min-rounds",
            1,
            "--refine",
            "distil",
            "--json",
        )
    )
    config = json.loads(result.stdout)["trajectory"]["config"]
    given = {"directions": 2, "passages": 4, "max_rounds": 5, "min_rounds": 1, "refine": "distil"}
    assert given.items() <= config.items()


def test_the_key_of_a_server_comes_from_the_environment(run, index, model, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    opened = model()
    run(*ask(index, "--lm", "m", "--api-base", "http://host/v1"))
    run(*ask(index, "--lm", "m/m"))
    assert opened == [("m", "http://host/v1", {"api_key": "a-key"}), ("m/m", None, {})]


def test_control_characters_of_a_corpus_do_not_reach_the_terminal(run, index, model):
    model(Roles(rounds=1, write={"queries": ["red \x1b[31m alert", "bell \x07"]}))
    result = run(*ask(index))
    assert "red  [31m alert" in result.stdout
    assert not set("\x1b\x07") & set(result.output)


def test_brackets_are_text(run, index, model):
    model(Roles(rounds=1, answer={"reasoning": "", "answer": "[bold]x[/bold] :smile:"}))
    assert "[bold]x[/bold] :smile:" in run(*ask(index)).stdout


@pytest.mark.parametrize("question", ["", "  \n "])
def test_an_empty_question_is_refused_before_anything_is_opened(fails, question):
    assert "question is empty" in fails("ask", question, "--index", "not-there")


def test_a_question_that_is_no_text_is_refused(fails):
    assert "not UTF-8" in fails("ask", "caf\udce9", "--index", "not-there")


@pytest.mark.parametrize("knob", ["directions", "passages", "max-rounds"])
@pytest.mark.parametrize("value", [0, -3])
def test_counts_below_one_are_refused(fails, index, model, knob, value):
    opened = model()
    line = fails(*ask(index, f"--{knob}", value))
    assert knob.replace("-", "_") in line
    assert "at least 1" in line
    assert str(value) in line
    assert opened == []


def test_min_rounds_out_of_range_are_refused(fails, index):
    assert "min_rounds" in fails(*ask(index, "--min-rounds", -1))
    assert "must not exceed" in fails(*ask(index, "--min-rounds", 4, "--max-rounds", 2))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--lm", "no-such-model"], "Unknown model 'no-such-model'"),
        (["--lm", "missing.gguf"], "missing.gguf does not exist"),
        (["--lm", "m", "--api-base", "localhost:8000"], "is no address"),
    ],
)
def test_a_model_that_cannot_be_is_refused(fails, index, options, said):
    assert said in fails(*ask(index, *options))


def test_an_index_of_another_encoder_is_refused(fails, index, monkeypatch):
    from tests.retrieval.stub_encoder import StubEncoder

    monkeypatch.setattr("maps_rag.programs.retrieval.retriever.load_encoder", lambda name: StubEncoder(name, 16))
    line = fails(*ask(index))
    assert "was built with dimension 32, but 16" in line


@pytest.mark.parametrize("reply", ["", "nothing like the schema", "<cut>[[ ## answer ## ]]\nhalf"])
def test_replies_without_an_answer_end_in_a_line_that_says_why(run, index, model, reply):
    model(Roles(rounds=1, answer=reply))
    result = run(*ask(index, "--refine", "distil"))
    assert result.exit_code == 2
    assert "(none)" in result.stdout
    (line,) = result.stderr.splitlines()
    assert "gave no answer (answer: reply " in line
