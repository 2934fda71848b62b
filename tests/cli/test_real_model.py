"""The command line with the real encoder and a real language model."""

import json
import subprocess
import sys

import pytest
from maps_rag.optimize.mini import load_questions, passages_path
from maps_rag.programs import UserError, build_index, fetch_weights

COMMAND = (sys.executable, "-c", "from maps_rag.cli import main; main()")


@pytest.mark.model
@pytest.mark.timeout(900)
def test_ask_answers_a_real_question_and_prints_nothing_of_the_libraries(tmp_path):
    try:
        fetch_weights("local-small")
    except UserError as missing:
        pytest.skip(str(missing))
    build_index(passages_path(), tmp_path / "index")
    question = next(example for example in load_questions() if example.hops == 2)
    options = ["--index", tmp_path / "index", "--lm", "local-small", "--max-rounds", "1", "--min-rounds", "1", "--json"]
    done = subprocess.run(
        [*COMMAND, "ask", question.question, *map(str, options)], capture_output=True, text=True, check=True
    )
    content = json.loads(done.stdout)
    assert content["answer"]
    assert (content["rounds"], content["stop_reason"]) == (1, "max_rounds")
    assert content["usage"]["calls"] == 4 + content["failures"].get("answer: reply unparseable", 0)
    found = {passage["id"] for passage in content["passages"]}
    assert found & set(question.supporting)
    assert {source["id"] for source in content["citations"]} <= found
    shown = [line for line in done.stderr.splitlines() if line]
    assert shown[0] == "Round 1"
    assert [line for line in shown[1:] if not line.startswith("  ")] == []
