"""Evaluating methods from the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import dspy
import pytest
from maps_rag.programs import METHODS

from tests.models.endpoint import Endpoint, Reply
from tests.optimize.runs import Replies, number_in

ROOT = Path(__file__).parents[2]
PATIENCE = 120  # seconds until a hanging process is given up


@pytest.fixture
def asked(tmp_path):
    """Six questions in a file."""
    path = tmp_path / "asked.jsonl"
    rows = ({"id": f"q{i}", "question": f"What is number {i}?", "answers": ["right"]} for i in range(6))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def command(asked, index, tmp_path, model):
    """The arguments of an evaluation of two methods, on a scripted model."""
    model(Replies())
    more = ("--index", index, "--dataset", asked, "--out", tmp_path / "run", "--lm", "some/model")
    return ("eval", "--method", "vanilla,direct", *more)


def journal(tmp_path):
    return [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]


def manifest(tmp_path):
    return json.loads((tmp_path / "run" / "manifest.json").read_text())


def test_every_question_is_answered_by_every_method_and_the_scores_are_shown(run, command, tmp_path):
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert len(journal(tmp_path)) == 12
    assert re.search(r"Cover-EM +vanilla: 50\.0", result.stdout)
    assert re.search(r"Cover-EM +direct: 50\.0", result.stdout)
    assert re.search(r"answered +12 of 12", result.stdout)
    assert "maps-rag report" in result.stdout
    assert "12 of 12 questions" in result.stderr
    assert "\x1b" not in result.output


def test_the_same_command_again_asks_nothing(run, command, tmp_path, model):
    run(*command)
    model(lambda system, user: pytest.fail("asked again"))
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert len(journal(tmp_path)) == 12


def test_other_settings_are_refused_for_the_same_directory(run, fails, command):
    run(*command)
    said = fails(*command, "--passages", 2)
    assert "methods.vanilla.settings.passages was 5 and is now 2" in said
    assert "name a new directory" in said


def test_a_knob_goes_to_the_methods_that_have_it(run, command, tmp_path):
    run(*command, "--passages", 2)
    methods = manifest(tmp_path)["methods"]
    assert methods["vanilla"]["settings"]["passages"] == 2
    assert "passages" not in methods["direct"]["settings"]


def test_the_knobs_are_those_of_the_paper_whatever_the_model(run, asked, index, tmp_path, model):
    model(Replies())
    result = run(
        "eval", "--method", "maps", "--dataset", asked, "--index", index, "--out", tmp_path / "run", "--max-rounds", 2
    )
    assert result.exit_code == 0, result.output
    settings = manifest(tmp_path)["methods"]["maps"]["settings"]
    assert (settings["passages"], settings["max_rounds"], settings["refine"]) == (5, 2, "distil")


def test_a_sample_is_drawn_and_recorded_with_its_seed(run, command, tmp_path):
    run(*command, "--n", 3, "--seed", 5)
    dataset = manifest(tmp_path)["dataset"]
    assert (dataset["n"], dataset["seed"], len(dataset["ids"])) == (3, 5, 3)
    assert {line["id"] for line in journal(tmp_path)} == set(dataset["ids"])


def test_all_means_every_method(run, asked, index, tmp_path, model):
    model(Replies())
    options = ("--dataset", asked, "--index", index, "--out", tmp_path / "run", "--lm", "some/model", "--dry-run")
    result = run("eval", "--method", "all", *options)
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.stdout.splitlines()[1 : len(METHODS) + 1]] == list(METHODS)


def test_a_dry_run_says_what_is_ahead_and_does_nothing(run, command, tmp_path, model):
    model(lambda system, user: pytest.fail("asked"))
    result = run(*command, "--dry-run", "--price-in", 1, "--price-out", 2)
    assert result.exit_code == 0, result.output
    header, vanilla, direct, total = result.stdout.splitlines()[:4]
    assert header.split("  ")[0] == "method"
    assert re.match(r"vanilla +6 +6 +6 +[\d,]+ +[\d,]+ +\d\.\d\d +formulas$", vanilla)
    assert re.match(r"direct +6 +6 +0 ", direct)
    assert re.match(r"all +12 +12 +6 ", total)
    assert "rough guess" in result.stdout
    assert not (tmp_path / "run").exists()


def test_a_dry_run_goes_by_what_was_measured(run, command, tmp_path):
    run(*command, "--max-tokens", 1, "--threads", 1)
    result = run(*command, "--dry-run")
    assert re.search(r"vanilla +5 +5 +5 .* 1 answered", result.stdout)
    assert re.search(r"direct +6 .* formulas", result.stdout)


def test_a_budget_stops_the_run_and_says_how_to_go_on(run, command, tmp_path):
    result = run(*command, "--max-tokens", 1, "--threads", 1)
    assert result.exit_code == 0, result.output
    assert len(journal(tmp_path)) == 1
    assert "the budget of --max-tokens is used up" in result.stdout
    assert run(*command).exit_code == 0
    assert len(journal(tmp_path)) == 12


def test_a_budget_of_money_needs_both_prices(fails, command):
    assert "--price-in and --price-out belong together" in fails(*command, "--max-cost", 1, "--price-in", 1)
    assert "max_cost needs the prices" in fails(*command, "--max-cost", 1)


def test_runs_need_a_temperature(run, command, tmp_path, model):
    opened = model(Replies())
    result = run(*command, "--runs", 2, "--temperature", 0.7)
    assert result.exit_code == 0, result.output
    assert opened[0][2]["temperature"] == 0.7
    assert {line["run"] for line in journal(tmp_path)} == {0, 1}


def test_questions_that_fail_are_told_and_asked_again(run, command, tmp_path, model):
    def refuse_one(system, user):
        refused = number_in(user) == "3"
        return dspy.LMInvalidRequestError(message="refused") if refused else Replies()(system, user)

    model(refuse_one)
    result = run(*command)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("Error: 2 questions ended in an error, recorded in ")
    model(Replies())
    assert run(*command).exit_code == 0
    assert sum("error" not in line for line in journal(tmp_path)) == 12


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--method", "mops"), "there is no method 'mops'; there are: maps,"),
        (("--method", ","), "--method names none"),
        (("--method", "direct", "--passages", 3), "--passages fits none of the methods direct"),
        (("--dataset", "hotpots"), "'hotpots' is no data set and no file"),
        (("--dataset", ","), "--dataset names none"),
        (("--passages", 0), "passages must be"),
    ],
)
def test_a_mistake_is_one_line(more, said, fails, command, tmp_path):
    assert said in fails(*command, *more)
    assert not (tmp_path / "run").exists()


def test_methods_that_search_need_an_index(run, fails, asked, tmp_path, model):
    model(Replies())
    options = ("--dataset", asked, "--out", tmp_path / "run", "--lm", "some/model")
    assert "vanilla searches; name an index with --index" in fails("eval", "--method", "direct,vanilla", *options)
    assert run("eval", "--method", "direct", *options).exit_code == 0


def test_an_interrupted_evaluation_says_that_it_can_go_on(asked, tmp_path):
    arrived, requests = threading.Event(), []

    def reply(body):
        requests.append(body)
        if len(requests) > 2:
            arrived.set()
            return Reply(hang=True)
        return Reply({"reasoning": "r", "answer": "right"})

    with Endpoint(reply) as endpoint:
        arguments = ("--dataset", asked, "--out", tmp_path / "run", "--lm", "m", "--api-base", endpoint.url)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.stubbed", "eval", "--method", "direct", "--threads", "1"]
            + [str(argument) for argument in arguments],
            cwd=ROOT,
            env=os.environ | {"DSPY_CACHEDIR": str(tmp_path / "cache")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert arrived.wait(PATIENCE)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 130
    assert stdout == ""
    assert stderr.splitlines()[-1].startswith("Stopped: what is done is in ")
    assert "Traceback" not in stderr
    assert [line["id"] for line in journal(tmp_path)] == ["q0", "q1"]
