"""The demo, with stubs in the place of the encoder and the model."""

import pytest
from maps_rag.cli.demo import QUESTIONS
from maps_rag.optimize import mini

from tests.cli.conftest import PASSAGES
from tests.scripted import Roles


@pytest.fixture
def cache(tmp_path, monkeypatch, stub_encoder):
    monkeypatch.setenv("MAPS_RAG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def examples():
    return {example.id: example for example in mini.load_questions()}


def test_every_question_of_the_demo_needs_several_passages():
    for name in QUESTIONS:
        assert examples()[name].hops >= 2


def test_the_demo_answers_its_questions_and_scores_them(run, cache, model):
    gold = [examples()[name].answers[0] for name in QUESTIONS]
    opened = model(Roles(rounds=1, answer={"reasoning": "", "answer": f"It is {gold[0]}."}))
    result = run("demo", "--lm", "local-small")
    assert result.exit_code == 0
    for name, answer in zip(QUESTIONS, gold, strict=True):
        assert examples()[name].question in result.stdout
        assert f"gold        {answer}" in result.stdout
    scores = [line.split()[-1] for line in result.stdout.splitlines() if "Cover-EM" in line]
    assert scores == ["1", "0"]
    assert f"1 of {len(QUESTIONS)} answers contain a gold answer" in result.stdout
    assert opened == [("local-small", None, {})]


def test_the_index_is_built_once(run, cache, model):
    model()
    assert "Encoding" in run("demo").stderr
    (built,) = (cache / "demo").iterdir()
    stamp = (built / "manifest.json").stat().st_mtime_ns
    second = run("demo")
    assert second.exit_code == 0
    assert second.stderr == ""
    assert (built / "manifest.json").stat().st_mtime_ns == stamp


def test_the_index_is_built_again_when_the_passages_change(run, cache, model, corpus, monkeypatch):
    model()
    run("demo")
    (before,) = (cache / "demo").iterdir()
    monkeypatch.setattr("maps_rag.optimize.mini.passages_path", lambda: corpus)
    assert f"{len(PASSAGES)}/{len(PASSAGES)}" in run("demo").stderr
    (after,) = (cache / "demo").iterdir()
    assert after != before


def test_a_damaged_index_is_built_again(run, cache, model):
    model()
    run("demo")
    (built,) = (cache / "demo").iterdir()
    (built / "index.faiss").write_bytes(b"")
    result = run("demo")
    assert result.exit_code == 0
    assert "Encoding" in result.stderr


def test_the_demo_says_what_it_will_fetch_only_while_it_is_missing(run, cache, model):
    model()
    assert "1.1 GB" in run("demo").stdout
    weights = cache / "models" / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    weights.parent.mkdir()
    weights.touch()
    assert "1.1 GB" not in run("demo").stdout


def test_the_demo_takes_the_models_it_can_fetch_and_no_other(fails):
    assert "local, local-small" in fails("demo", "--lm", "openai/gpt-4o-mini")
