"""What ``ask`` says when the server of the model misbehaves."""

import functools
import json
import socket

import pytest
from maps_rag.programs import language_model

from tests.models.endpoint import Endpoint, Reply, error


@pytest.fixture
def pauses(monkeypatch):
    """Seconds that the driver would have waited before it tried again."""
    waited = []
    monkeypatch.setattr("maps_rag.programs.effects.Pause.run", lambda pause: waited.append(pause.seconds))
    return waited


@pytest.fixture
def ask(index, monkeypatch):
    """Arguments that ask a server; nothing is cached and time-outs are short."""
    monkeypatch.setattr("maps_rag.programs.language_model", functools.partial(language_model, cache=False, timeout=0.2))
    return lambda url, *more: ("ask", "who?", "--index", index, "--lm", "served", "--api-base", url, *more)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_an_answer_from_a_server_is_shown(run, ask):
    def answer(body):
        schema = body["response_format"]["json_schema"]["schema"]["properties"]
        if "sufficient" in schema:
            return Reply({"known": [], "missing": "nothing", "sufficient": True, "directions": []})
        return Reply({"reasoning": "as it is", "answer": "Ada"})

    with Endpoint(answer) as endpoint:
        result = run(*ask(endpoint.url, "--json"))
    assert result.exit_code == 0
    assert json.loads(result.stdout)["answer"] == "Ada"
    assert {request["model"] for request in endpoint.requests} == {"served"}


def test_no_cache_asks_the_server_at_another_address_again(run, index):
    def answering(name):
        def answer(body):
            schema = body["response_format"]["json_schema"]["schema"]["properties"]
            if "sufficient" in schema:
                return Reply({"known": [], "missing": "nothing", "sufficient": True, "directions": []})
            return Reply({"reasoning": "as it is", "answer": name})

        return answer

    said = []
    with Endpoint(answering("Ada")) as one, Endpoint(answering("Grace")) as two:
        for url, *more in ((one.url,), (two.url,), (two.url, "--no-cache")):
            result = run("ask", "who cached?", "--index", index, "--lm", "m", "--api-base", url, "--json", *more)
            said.append(json.loads(result.stdout)["answer"])
    assert said == ["Ada", "Ada", "Grace"]


def test_a_server_that_is_down_is_named(run, ask, pauses):
    url = f"http://127.0.0.1:{free_port()}/v1"
    result = run(*ask(url))
    assert_one_error(result)
    assert url in result.stderr
    assert len(pauses) == 3


@pytest.mark.parametrize(
    ("reply", "said", "tries"),
    [
        (error(401, "bad key"), "401", 1),
        (error(404, "no such model"), "404", 1),
        (error(429, "slow down", {"Retry-After": "7"}), "429", 4),
        (error(500, "on fire"), "500", 4),
        (Reply(hang=True), "", 4),
        (Reply(drop=True), "", 4),
    ],
    ids=["401", "404", "429", "500", "time-out", "dropped"],
)
def test_a_server_that_refuses_ends_in_one_line(run, ask, pauses, reply, said, tries):
    with Endpoint(reply) as endpoint:
        result = run(*ask(endpoint.url, "--json"))
        assert len(endpoint.requests) == tries
    assert_one_error(result)
    assert said in result.stderr
    if "Retry-After" in reply.headers:
        assert pauses == [7.0, 7.0, 7.0]


def assert_one_error(result):
    assert result.exit_code == 2
    assert result.stdout == ""
    *waits, last = result.stderr.splitlines()
    assert all(line.startswith("Warning: Request failed") for line in waits), result.stderr
    assert last.startswith("Error: ")


@pytest.mark.parametrize(
    "reply",
    [Reply(""), Reply("not the schema"), Reply('{"answer": "ha', finish_reason="length"), Reply(body="<html>")],
    ids=["empty", "no schema", "cut off", "no JSON"],
)
def test_a_server_that_never_gives_a_usable_reply_ends_in_an_error(run, ask, pauses, reply):
    with Endpoint(reply) as endpoint:
        result = run(*ask(endpoint.url, "--max-rounds", 1))
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in result.stderr
