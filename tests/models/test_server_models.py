"""What goes over the wire to an OpenAI-compatible server, and what comes back as errors."""

import asyncio
import copy
import pickle
import threading
from typing import Annotated, Literal

import dspy
import pytest
from dspy.utils.exceptions import (
    AdapterParseError,
    ContextWindowExceededError,
    LMAuthError,
    LMProviderError,
    LMRateLimitError,
    LMServerError,
    LMTransportError,
    LMUnsupportedModelError,
)
from maps_rag.programs.errors import UserError
from maps_rag.programs.models import (
    ReplyCutOffError,
    StructuredAdapter,
    adapter_for,
    describe_error,
    language_model,
    retry_delay,
)
from pydantic import Field

from tests.models.endpoint import Endpoint, Reply, error


class Plan(dspy.Signature):
    """Say what is missing."""

    question: str = dspy.InputField()
    knowledge: list[str] = dspy.InputField(desc="what is known")
    missing: Annotated[str, Field(max_length=80)] = dspy.OutputField(desc="what is not known")
    directions: Annotated[list[Annotated[str, Field(max_length=40)]], Field(min_length=2, max_length=3)] = (
        dspy.OutputField()
    )
    verdict: Literal["go", "stop"] = dspy.OutputField()


PLAN = {"missing": "the year", "directions": ["a", "b"], "verdict": "go"}


def model(endpoint, **options):
    return language_model("openai/some/model", endpoint.url, cache=False, **options)


def ask(lm, **options):
    with dspy.context(lm=lm, adapter=adapter_for(lm)):
        return dspy.Predict(Plan)(question="When?", knowledge=["one", "two"], **options)


def ask_failing(reply, **options):
    """Return what one attempt raises, and how many requests reached the server."""
    with Endpoint(reply) as endpoint:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the tests look at it
            ask(model(endpoint, **options).copy(num_retries=0))
        return caught.value, len(endpoint.requests)


def test_the_schema_reaches_the_server_with_its_bounds():
    with Endpoint(Reply(PLAN)) as endpoint:
        ask(model(endpoint))
        sent = endpoint.requests[0]["response_format"]
    assert sent["type"] == "json_schema"
    schema = sent["json_schema"]["schema"]
    assert schema["properties"]["missing"] == {"type": "string", "maxLength": 80}
    assert schema["properties"]["directions"] == {
        "type": "array",
        "items": {"type": "string", "maxLength": 40},
        "minItems": 2,
        "maxItems": 3,
    }
    assert schema["properties"]["verdict"]["enum"] == ["go", "stop"]
    assert list(schema["properties"]) == schema["required"] == ["missing", "directions", "verdict"]
    assert schema["additionalProperties"] is False


def test_bounds_given_at_the_call_reach_the_server():
    narrow = Plan.with_updated_fields("directions", type_=Annotated[list[str], Field(min_length=1, max_length=1)])
    with Endpoint(Reply({**PLAN, "directions": ["a"]})) as endpoint:
        ask(model(endpoint), signature=narrow)
        sent = endpoint.requests[0]["response_format"]["json_schema"]["schema"]["properties"]["directions"]
    assert sent["maxItems"] == 1


def test_the_server_sees_the_model_name_without_its_prefix_and_the_key():
    with Endpoint(Reply(PLAN)) as endpoint:
        ask(model(endpoint, api_key="secret", max_tokens=77))
        assert endpoint.requests[0]["model"] == "some/model"
        assert endpoint.requests[0]["max_tokens"] == 77
        assert endpoint.paths == ["/v1/chat/completions"]
        assert endpoint.headers[0]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("thinking", [None, False])
def test_the_thinking_switch_is_sent_only_when_asked_for(thinking):
    with Endpoint(Reply(PLAN)) as endpoint:
        ask(model(endpoint, thinking=thinking))
        sent = endpoint.requests[0].get("chat_template_kwargs")
    assert sent == (None if thinking is None else {"enable_thinking": False})


def test_what_never_changes_comes_first():
    with Endpoint(Reply(PLAN)) as endpoint:
        lm = model(endpoint)
        with dspy.context(lm=lm, adapter=StructuredAdapter()):
            predictor = dspy.Predict(Plan)
            predictor.demos = [{"question": "Demo?", "knowledge": ["x"], **PLAN}]
            predictor(question="First?", knowledge=[])
            predictor(question="Second?", knowledge=["some"])
        first, second = (request["messages"] for request in endpoint.requests)
    assert first[:3] == second[:3]
    assert first[0]["content"].startswith("Say what is missing.")
    assert first[2] == {
        "role": "assistant",
        "content": '{"missing": "the year", "directions": ["a", "b"], "verdict": "go"}',
    }
    assert first[3]["content"] == "question: First?\nknowledge: (none)"
    assert second[3]["content"] == "question: Second?\nknowledge:\n- some"


def test_the_prompt_names_types_and_choices_without_their_bounds():
    text = StructuredAdapter().format_system_message(Plan)
    assert text == (
        "Say what is missing.\n\n"
        "Input:\n- question\n- knowledge: what is known\n\n"
        "Reply with one JSON object with these keys, in this order:\n"
        "- missing: what is not known\n- directions (list[str])\n- verdict (go | stop)"
    )


def test_a_reply_is_parsed_into_its_types():
    with Endpoint(Reply(PLAN)) as endpoint:
        prediction = ask(model(endpoint))
    assert (prediction.missing, prediction.directions, prediction.verdict) == ("the year", ["a", "b"], "go")


@pytest.mark.parametrize("before", ["<think>\nThat {is} hard.\n</think>\n", "That is hard.</think>", "```json\n"])
def test_text_before_the_json_is_ignored(before):
    with Endpoint(Reply(before + '{"missing": "m", "directions": ["a"], "verdict": "stop"}')) as endpoint:
        assert ask(model(endpoint)).missing == "m"


def test_reasoning_in_a_field_of_its_own_is_ignored():
    with Endpoint(Reply(PLAN, reasoning="hm")) as endpoint:
        assert ask(model(endpoint)).missing == "the year"


def test_a_missing_comma_is_mended():
    with Endpoint(Reply('{"missing": "m", "directions": ["a" "b"], "verdict": "go"')) as endpoint:
        assert ask(model(endpoint)).directions == ["a", "b"]


@pytest.mark.parametrize("history", [True, False])
def test_a_reply_cut_off_is_not_mended(history):
    with Endpoint(Reply('{"missing": "the ye', finish_reason="length")) as endpoint:
        lm = model(endpoint, max_tokens=5)
        with dspy.context(disable_history=not history), pytest.raises(ReplyCutOffError, match="max_tokens=5"):
            ask(lm)


def test_a_whole_reply_that_ends_on_the_last_token_is_used():
    with Endpoint(Reply(PLAN, finish_reason="length")) as endpoint:
        assert ask(model(endpoint)).missing == "the year"


@pytest.mark.parametrize(
    "content",
    ["", None, "I do not know.", "<think>I wonder", {"missing": "m"}, {**PLAN, "verdict": "perhaps"}, "[1, 2]"],
)
def test_a_reply_that_is_not_the_schema_is_a_parse_error(content):
    raised, requests = ask_failing(Reply(content))
    assert isinstance(raised, AdapterParseError)
    assert requests == 1


CASES = [
    # reply, error, seconds until a retry, words of the description
    (error(401, "bad key"), LMAuthError, None, "refused the key (HTTP 401)"),
    (error(404, "The model `m` does not exist."), LMUnsupportedModelError, None, "knows no model openai/some/model"),
    (error(429, "slow", {"Retry-After": "7"}), LMRateLimitError, 7.0, "HTTP 429, wait 7 s"),
    (error(429, "slow"), LMRateLimitError, 1.0, "HTTP 429)"),
    (error(429, "slow", {"Retry-After": "86400"}), LMRateLimitError, None, "wait 86400 s"),
    (error(500), LMServerError, 1.0, "HTTP 500: scripted failure"),
    (error(503), LMServerError, 1.0, "HTTP 503: scripted failure"),
    (Reply(body="", status=200), LMProviderError, 1.0, "sent no valid reply"),
    (Reply(body='{"choices": [', status=200), LMProviderError, 1.0, "sent no valid reply"),
    (Reply(drop=True), LMTransportError, 1.0, "cannot be reached or broke off"),
    (
        error(400, "This model's maximum context length is 4096 tokens. However, you requested 5000."),
        ContextWindowExceededError,
        None,
        "longer than the context",
    ),
    (
        error(400, "the request exceeds the available context size, try increasing it"),
        ContextWindowExceededError,
        None,
        "longer than the context",
    ),
]


@pytest.mark.parametrize(("reply", "kind", "delay", "words"), CASES)
def test_a_failure_surfaces_once_with_its_kind_its_delay_and_one_clear_line(reply, kind, delay, words):
    raised, requests = ask_failing(reply)
    assert type(raised) is kind
    assert requests == 1
    assert retry_delay(raised, 0) == delay
    line = describe_error(raised)
    assert words in line
    assert "\n" not in line


def test_a_failure_names_the_server():
    with Endpoint(error(500)) as endpoint:
        with pytest.raises(LMServerError) as caught:
            ask(model(endpoint).copy(num_retries=0))
        assert endpoint.url in describe_error(caught.value)


def test_a_server_that_is_silent_is_a_time_out():
    raised, _ = ask_failing(Reply(hang=True), timeout=0.05)
    assert retry_delay(raised, 0) == 1.0
    assert "did not answer in time" in describe_error(raised)


def test_a_server_that_is_down_is_described_with_its_address():
    with Endpoint() as endpoint:
        lm = model(endpoint).copy(num_retries=0)
    with pytest.raises(LMTransportError) as caught:
        ask(lm)
    assert retry_delay(caught.value, 0) == 1.0
    assert "Connection refused" in describe_error(caught.value)
    assert endpoint.url in describe_error(caught.value)


def test_the_wait_doubles_up_to_a_minute():
    waits = [retry_delay(LMServerError("down"), attempt) for attempt in range(8)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_mistakes_of_the_program_are_not_retried():
    assert retry_delay(TypeError("no"), 0) is None


def test_a_model_survives_copies_and_pickles():
    with Endpoint(Reply("hello")) as endpoint:
        lm = model(endpoint, api_key="secret")
        copies = [lm.copy(num_retries=0), copy.deepcopy(lm), pickle.loads(pickle.dumps(lm))]
        assert [one("hi") for one in copies] == [["hello"]] * 3
        assert all(isinstance(adapter_for(one), StructuredAdapter) for one in copies)


def test_a_saved_model_finds_its_server_again_and_keeps_no_key():
    with Endpoint(Reply("hello")) as endpoint:
        state = model(endpoint, api_key="secret").dump_state()
        assert "secret" not in repr(state)
        lm = dspy.LM.load_state(state, allow_custom_lm_class=True)
        assert lm("hi") == ["hello"]
        assert isinstance(adapter_for(lm), StructuredAdapter)


def test_asynchronous_calls_work_in_one_event_loop_after_another():
    async def both(lm):
        return await asyncio.gather(lm.acall("a"), lm.acall("b"))

    with Endpoint(Reply("hello")) as endpoint:
        lm = model(endpoint)
        assert asyncio.run(both(lm)) == asyncio.run(both(lm)) == [["hello"], ["hello"]]


def test_an_asynchronous_failure_names_the_server_too():
    with Endpoint(error(500)) as endpoint:
        with pytest.raises(LMServerError) as caught:
            asyncio.run(model(endpoint).copy(num_retries=0).acall("hi"))
        assert endpoint.url in describe_error(caught.value)


def test_threads_share_one_model():
    with Endpoint(lambda request: Reply(request["messages"][-1]["content"])) as endpoint:
        lm, replies = model(endpoint), {}
        threads = [
            threading.Thread(target=lambda word=word: replies.update({word: lm(word)})) for word in map(str, range(8))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert replies == {word: [word] for word in map(str, range(8))}


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with Endpoint(Reply("hello")) as endpoint:
        assert model(endpoint).copy(num_retries=0)("hi") == ["hello"]


def test_the_adapter_of_the_user_comes_first():
    with Endpoint() as endpoint, dspy.context(adapter=dspy.ChatAdapter()):
        assert adapter_for(model(endpoint)) is None


def test_models_made_elsewhere_keep_their_adapter():
    assert adapter_for(dspy.LM("openai/gpt-4o-mini")) is None


@pytest.mark.parametrize("name", ["gpt-4", "nosuchprovider/x", "openai/", "locale"])
def test_an_unknown_name_is_refused_with_what_is_allowed(name):
    with pytest.raises(UserError, match=r"'local'.*'local-small'.*\.gguf.*api_base"):
        language_model(name)


@pytest.mark.parametrize(
    "address", ["localhost:8000", "", "ftp://host/v1", "http://", "http://[::1", "http://host:x/v1", "http://:80", 5]
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(UserError, match="http://localhost:8000/v1"):
        language_model("openai/x", address)


def test_a_hosted_model_without_a_key_says_which_variable_to_set(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    lm = language_model("openai/gpt-4o-mini", cache=False)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - looked at below
        lm("hi")
    assert describe_error(caught.value) == (
        "No API key for openai/gpt-4o-mini: set OPENAI_API_KEY or give the key itself."
    )
    assert retry_delay(caught.value, 0) is None


def test_reasoning_models_of_openai_get_no_temperature():
    lm = language_model("openai/o3-mini")
    assert lm.kwargs["temperature"] is None


def test_an_address_with_a_password_is_refused_without_showing_it():
    with pytest.raises(UserError, match="api_key") as caught:
        language_model("served", api_base="http://user:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("timeout", ["5", 0, -1, float("nan"), float("inf")])
def test_a_timeout_that_makes_no_sense_is_refused(timeout):
    with pytest.raises(UserError, match="seconds above 0"):
        language_model("served", api_base="http://host/v1", timeout=timeout)


@pytest.mark.parametrize("name", [None, 5, ["local"]])
def test_a_name_that_is_no_text_is_refused(name):
    with pytest.raises(UserError, match="by its name"):
        language_model(name)


def test_thinking_needs_a_server():
    with pytest.raises(UserError, match="api_base"):
        language_model("openai/gpt-4o-mini", thinking=False)
