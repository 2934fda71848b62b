"""The runner: what it asks, what it writes, and how it goes on."""

from __future__ import annotations

import json
import threading

import dspy
import pytest
from maps_rag.metrics.cost import Prices
from maps_rag.optimize.runner.journal import read_journal
from maps_rag.programs import UserError

from tests.optimize.runs import Replies, key, lines, methods, number_in, questions, results, run
from tests.scripted import StubRetriever, prompts, scripted_lm


def failing(*numbers):
    """Replies that raise for some questions."""

    def reply(system, user):
        if number_in(user) in {str(number) for number in numbers}:
            return dspy.LMInvalidRequestError(message="this question is refused")
        return Replies()(system, user)

    return reply


def test_every_question_is_answered_by_every_method_in_turn(tmp_path):
    result = run(tmp_path / "run", 3)
    assert [key(line)[:2] for line in lines(tmp_path / "run")] == [
        (name, f"q{number}") for number in range(3) for name in ("vanilla", "direct")
    ]
    assert (result.finished, result.failed, result.total, result.stopped) == (6, 0, 6, "")
    assert result.scores == {"vanilla": pytest.approx(2 / 3), "direct": pytest.approx(2 / 3)}


def test_a_line_says_what_was_answered_how_well_and_at_what_cost(tmp_path):
    asked = questions(1, dataset="hotpotqa", type="bridge", hops=2, supporting=["p1"])
    run(tmp_path / "run", methods=methods("maps", directions=2), questions=asked)
    (line,) = lines(tmp_path / "run")
    assert {name: line[name] for name in ("method", "dataset", "id", "run", "answer", "gold", "type", "hops")} == {
        "method": "maps",
        "dataset": "hotpotqa",
        "id": "q0",
        "run": 0,
        "answer": "right",
        "gold": ["right"],
        "type": "bridge",
        "hops": 2,
    }
    assert line["scores"] == {
        "cover_em": 1.0,
        "exact_match": 1.0,
        "f1": 1.0,
        "cover_em_substring": 1.0,
        "cover_em_response": 1.0,
        "cover_em_capped": 1.0,
        "answer_tokens": 1.0,
    }
    assert (line["rounds"], line["steps"], line["stop_reason"], line["failures"]) == (1, 2, "sufficient", {})
    assert (line["usage"]["calls"], line["usage"]["retrievals"]) == (5, 2)
    assert set(line["cost"]["by_role"]) == {"propose", "write", "refine", "answer"}
    assert line["evidence"] is not None
    assert line["seconds"] > 0


def test_the_trajectory_lies_beside_the_journal_with_the_question(tmp_path):
    run(tmp_path / "run", questions=questions(1, supporting=["p1"]), methods=methods("maps", directions=2))
    (line,) = lines(tmp_path / "run", "trajectories")
    assert (line["method"], line["id"], line["run"]) == ("maps", "q0", 0)
    assert (line["question"], line["supporting"]) == ("What is number 0?", ["p1"])
    (round_,) = line["trajectory"]["rounds"]
    assert [search["query"] for search in round_["searches"]] == ["query 0 0", "query 0 1"]
    assert round_["passages"][0]["text"].startswith("text about")
    assert "trajectory" not in lines(tmp_path / "run")[0]


def test_the_manifest_says_what_was_run(tmp_path):
    run(tmp_path / "run", 2, seed=7, name="ours", methods=methods("vanilla", passages=4))
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (manifest["format"], manifest["runs"], manifest["metric_version"]) == (1, 1, "cover-em/1")
    assert manifest["lm"]["model"] == "scripted/model"
    assert manifest["index"] is None
    dataset = manifest["dataset"]
    assert (dataset["name"], dataset["n"], dataset["seed"], dataset["ids"]) == ("ours", 2, 7, ["q0", "q1"])
    assert len(dataset["hash"]) == 64
    method = manifest["methods"]["vanilla"]
    assert (method["program"], method["settings"]["passages"], method["trained"]) == ("VanillaRAG", 4, False)
    assert manifest["versions"]["dspy"] == dspy.__version__


def test_neither_keys_nor_addresses_are_recorded(tmp_path):
    lm = scripted_lm(Replies(), max_tokens=77, user="someone")
    lm.kwargs |= {"api_key": "sk-secret", "azure_ad_token": "sk-secret", "api_base": "http://secret"}
    run(tmp_path / "run", 1, lm=lm)
    assert "secret" not in (tmp_path / "run" / "manifest.json").read_text()
    recorded = json.loads((tmp_path / "run" / "manifest.json").read_text())["lm"]
    assert (recorded["max_tokens"], recorded["user"]) == (77, "someone")


def test_going_on_asks_only_what_is_not_answered(tmp_path):
    run(tmp_path / "run", 3)
    (tmp_path / "run" / "journal.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines(tmp_path / "run")[:4])
    )
    lm = scripted_lm(Replies())
    result = run(tmp_path / "run", 3, lm=lm)
    assert len(prompts(lm)) == 2
    assert all("number 2" in prompt for prompt in prompts(lm))
    assert len(lines(tmp_path / "run")) == len(results(tmp_path / "run")) == 6
    assert result.finished == 6
    again = scripted_lm(Replies())
    assert run(tmp_path / "run", 3, lm=again) == result
    assert prompts(again) == []


def test_a_question_that_fails_is_recorded_with_its_reason_and_asked_again(tmp_path):
    result = run(tmp_path / "run", 3, methods=methods("direct"), lm=scripted_lm(failing(1)))
    assert (result.finished, result.failed) == (2, 1)
    failed = next(line for line in lines(tmp_path / "run") if "error" in line)
    assert failed["error"].startswith("LMInvalidRequestError: ")
    assert "this question is refused" in failed["error"]
    assert (failed["id"], failed["usage"]["requests"]) == ("q1", 1)

    lm = scripted_lm(Replies())
    result = run(tmp_path / "run", 3, methods=methods("direct"), lm=lm)
    assert (result.finished, result.failed, len(prompts(lm))) == (3, 0, 1)
    assert results(tmp_path / "run")["direct", "q1", 0][0] == "wrong"


def test_a_question_that_fails_twice_counts_once(tmp_path):
    for _ in range(2):
        result = run(tmp_path / "run", 2, methods=methods("direct"), lm=scripted_lm(failing(0)))
    assert (result.finished, result.failed) == (1, 1)


@pytest.mark.parametrize("kept", [1, 20, -1])
@pytest.mark.parametrize("name", ["journal", "trajectories"])
def test_a_line_that_was_cut_off_is_written_anew(name, kept, tmp_path):
    run(tmp_path / "whole", 2)
    run(tmp_path / "cut", 2)
    path = tmp_path / "cut" / f"{name}.jsonl"
    content = path.read_bytes()
    last = content[:-1].rindex(b"\n") + 1
    path.write_bytes(content[:last] + content[last:][:kept])
    if name == "trajectories":  # written first: what it lacks, the journal lacks as well
        journal = tmp_path / "cut" / "journal.jsonl"
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines(tmp_path / "cut")[:-1]))
    run(tmp_path / "cut", 2)
    assert results(tmp_path / "cut") == results(tmp_path / "whole")
    assert [key(line) for line in lines(tmp_path / "cut", name)] == [
        key(line) for line in lines(tmp_path / "whole", name)
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"methods": methods("vanilla", passages=9)}, "methods.vanilla.settings.passages was 5 and is now 9"),
        ({"methods": methods("direct")}, "methods.vanilla was {"),
        ({"runs": 2, "lm": scripted_lm(Replies(), temperature=0.5)}, "lm.temperature was null and is now 0.5"),
        ({"lm": scripted_lm(Replies(), max_tokens=5)}, "lm.max_tokens was null and is now 5"),
        ({"questions": questions(3)}, "dataset.n was 2 and is now 3"),
        ({"questions": questions(2, hops=2)}, "dataset.hash was "),
        ({"seed": 1}, "dataset.seed was null and is now 1"),
    ],
)
def test_a_directory_of_another_run_is_refused_with_what_differs(options, said, tmp_path):
    run(tmp_path / "run", 2, methods=methods("vanilla"))
    before = (tmp_path / "run" / "journal.jsonl").read_bytes()
    with pytest.raises(UserError, match="holds another run") as raised:
        run(tmp_path / "run", 2, **{"methods": methods("vanilla")} | options)
    assert said in str(raised.value)
    assert (tmp_path / "run" / "journal.jsonl").read_bytes() == before


def test_other_prompts_are_another_run(tmp_path):
    run(tmp_path / "run", 2, methods=methods("vanilla"))
    compiled = methods("vanilla")
    for predictor in compiled["vanilla"].predictors():
        predictor.signature = predictor.signature.with_instructions("Answer at once.")
    with pytest.raises(UserError, match=r"methods\.vanilla\.prompts was"):
        run(tmp_path / "run", 2, methods=compiled)


def test_another_index_is_another_run(tmp_path):
    def over(fingerprint):
        programs = methods("vanilla")
        programs["vanilla"].retriever.fingerprint = fingerprint
        return programs

    run(tmp_path / "run", 1, methods=over("aa"))
    with pytest.raises(UserError, match=r'index\.fingerprint was "aa" and is now "bb"'):
        run(tmp_path / "run", 1, methods=over("bb"))


def test_methods_over_different_indexes_are_not_compared(tmp_path):
    programs = methods("vanilla", "ircot")
    for number, program in enumerate(programs.values()):
        program.retriever.fingerprint = str(number)
    with pytest.raises(UserError, match="vanilla, ircot search different indexes"):
        run(tmp_path / "run", methods=programs)
    assert not (tmp_path / "run").exists()


def test_a_directory_with_other_things_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(UserError, match=r"not empty \(it holds thesis.tex\)"):
        run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_one_process_writes_at_a_time(tmp_path):
    refused = []

    def reply(system, user):
        if not refused:
            with pytest.raises(UserError, match="Another process is writing") as raised:
                run(tmp_path / "run")
            refused.append(raised)
        return Replies()(system, user)

    assert run(tmp_path / "run", lm=scripted_lm(reply)).finished == 8
    assert len(refused) == 1


def test_the_budget_of_tokens_ends_the_run_between_questions_and_a_larger_one_goes_on(tmp_path):
    whole = run(tmp_path / "whole")
    result = run(tmp_path / "run", max_tokens=1)
    assert (result.finished, result.stopped) == (1, "max_tokens")
    result = run(tmp_path / "run", max_tokens=result.tokens)
    assert (result.finished, result.stopped) == (1, "max_tokens")
    result = run(tmp_path / "run", max_tokens=10 * whole.tokens)
    assert (result.finished, result.tokens, result.stopped) == (8, whole.tokens, "")
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def test_the_budget_of_money_ends_the_run(tmp_path):
    prices = Prices(1.0, 2.0)
    whole = run(tmp_path / "whole", prices=prices)
    assert whole.cost > 0
    result = run(tmp_path / "run", max_cost=whole.cost / 2, prices=prices)
    assert result.stopped == "max_cost"
    assert 3 <= result.finished <= 6


def test_failed_attempts_count_against_the_budget(tmp_path):
    cut = scripted_lm(lambda system, user: "<cut>" if "number 0" in user else Replies()(system, user))
    result = run(tmp_path / "run", 2, methods=methods("direct"), lm=cut)
    assert result.tokens == cut.engine.input_tokens + cut.engine.output_tokens


def test_runs_are_samples_of_their_own_also_where_replies_are_cached(tmp_path):
    drawn = iter(range(1000))

    def reply(system, user):
        return {"reasoning": "r", "answer": f"sample {next(drawn)}"}

    lm = scripted_lm(reply, temperature=0.7, cache=True)
    result = run(tmp_path / "run", 2, methods=methods("direct"), lm=lm, runs=3)
    assert result.finished == 6
    answers = {key(line): line["answer"] for line in lines(tmp_path / "run")}
    assert len(set(answers.values())) == 6
    # Replayed: the cache knows each run by its rollout.
    run(tmp_path / "again", 2, methods=methods("direct"), lm=lm, runs=3)
    assert {key(line): line["answer"] for line in lines(tmp_path / "again")} == answers
    assert all(line["usage"]["billed_tokens"] == 0 for line in lines(tmp_path / "again"))


def test_a_model_of_a_programs_own_is_sampled_anew_in_each_run(tmp_path):
    drawn = iter(range(1000))
    lm = scripted_lm(lambda system, user: {"reasoning": "r", "answer": str(next(drawn))}, temperature=0.7, cache=True)
    programs = methods("direct")
    programs["direct"].set_lm(lm)
    run(tmp_path / "run", 1, methods=programs, lm=None, runs=2)
    assert len({line["answer"] for line in lines(tmp_path / "run")}) == 2
    assert all(predictor.lm is lm for predictor in programs["direct"].predictors())


def test_several_runs_at_temperature_0_are_refused(tmp_path):
    with pytest.raises(UserError, match="runs=3 needs a temperature above 0, but scripted/model"):
        run(tmp_path / "run", lm=scripted_lm(Replies(), temperature=0.0), runs=3)
    assert not (tmp_path / "run").exists()


def test_threads_share_the_callers_settings_and_answer_everything_once(tmp_path):
    arrived = threading.Barrier(3, timeout=60)

    def reply(system, user):
        return Replies()(system, user)

    class Together(StubRetriever):
        def search(self, queries, k):
            arrived.wait()  # three questions are under way at once
            return super().search(queries, k)

    programs = methods("vanilla")
    programs["vanilla"].retriever = Together()
    with dspy.context(lm=scripted_lm(reply)):
        result = run(tmp_path / "run", 9, methods=programs, lm=None, threads=3)
    assert result.finished == 9
    assert sorted(line["id"] for line in lines(tmp_path / "run")) == [f"q{number}" for number in range(9)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"questions": []}, "No questions"),
        ({"methods": {}}, "No method"),
        ({"methods": {"mine": dspy.Predict("question -> answer")}}, "must be a SearchProgram"),
        ({"questions": questions(1) * 2}, "two questions of questions have the id 'q0'"),
        ({"questions": [dspy.Example(question="who?", answers=["x"])]}, "needs an 'id'"),
        ({"questions": [dspy.Example(id="a", question=" ", answers=["x"])]}, "'a' has no text"),
        ({"questions": [dspy.Example(id="a", question="who?")]}, "'a': A gold example needs 'answers'"),
        ({"runs": 0}, "runs must be"),
        ({"threads": 0}, "threads must be"),
        ({"max_tokens": 0}, "max_tokens must be"),
        ({"max_cost": 1.0}, "max_cost needs the prices"),
        ({"lm": None}, "No language model is set"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_written(options, said, tmp_path):
    with pytest.raises(UserError, match=f"(?i){said}"):
        run(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_a_full_disk_ends_the_run_with_the_error(tmp_path, monkeypatch):
    def full(journal, line, trajectory=None):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("maps_rag.optimize.runner.journal.Journal.add", full)
    with pytest.raises(OSError, match="No space left"):
        run(tmp_path / "run", threads=2)


def test_what_a_model_writes_cannot_break_a_line(tmp_path):
    odd = "right \ud800 \u2028 \x00 \n line"
    lm = scripted_lm(lambda system, user: {"reasoning": "r", "answer": odd})
    assert run(tmp_path / "run", 1, methods=methods("direct"), lm=lm).finished == 1
    (line,) = lines_of_bytes(tmp_path / "run" / "journal.jsonl")
    assert "right" in line["answer"]


def lines_of_bytes(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def test_reading_a_journal_to_go_on_leaves_out_the_details_whatever_the_answers_say(tmp_path):
    told = 'right ,"cost":{"a":1}'
    lm = scripted_lm(lambda system, user: {"reasoning": "r", "answer": told})
    run(tmp_path / "run", 1, methods=methods("direct"), lm=lm)
    (line,) = read_journal(tmp_path / "run")
    (whole,) = lines(tmp_path / "run")
    assert line == {name: value for name, value in whole.items() if name not in ("cost", "evidence")}
    assert line["answer"] == told
