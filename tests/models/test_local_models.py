"""llama.cpp in this process: one server per weights and settings, kept as long as the process lives."""

import asyncio
import builtins
import copy
import pickle
import sys
import types
from types import SimpleNamespace
from typing import Annotated

import dspy
import pytest
from dspy.utils.exceptions import ContextWindowExceededError, LMServerError
from maps_rag.programs.errors import UserError
from maps_rag.programs.models import adapter_for, describe_error, is_local, language_model, llama
from pydantic import Field

from tests.models.endpoint import Endpoint, Reply, error


@pytest.fixture
def started(monkeypatch):
    """A stand-in for xllamacpp whose servers are scripted endpoints; the parameters each was started with."""
    parameters = []
    endpoints = []

    class Params(SimpleNamespace):
        def __init__(self):
            super().__init__(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())

    class Server:
        def __init__(self, params):
            parameters.append(params)
            endpoints.append(Endpoint(Reply("hello")).__enter__())
            self.listening_address = endpoints[-1].url.removesuffix("/v1")

    module = types.ModuleType("xllamacpp")
    module.CommonParams, module.Server = Params, Server
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    monkeypatch.setattr(llama, "_servers", {})
    yield parameters
    for endpoint in endpoints:
        endpoint.__exit__(None, None, None)


@pytest.fixture
def gguf(tmp_path):
    path = tmp_path / "own.gguf"
    path.write_bytes(b"GGUF and so on")
    return str(path)


def test_models_of_equal_settings_share_a_server(started, gguf):
    first, second = language_model(gguf, cache=False), language_model(gguf, temperature=0.7, cache=False)
    assert first("hi") == second("hi") == ["hello"]
    assert len(started) == 1


def test_other_settings_start_another_server(started, gguf):
    language_model(gguf, slots=1)
    language_model(gguf, slots=2)
    assert [params.n_parallel for params in started] == [1, 2]


@pytest.mark.parametrize("slots", [1, 4])
def test_every_slot_holds_at_least_8k_tokens_and_all_together_16k(started, gguf, slots):
    language_model(gguf, slots=slots)
    assert started[0].n_ctx >= 16_384
    assert started[0].n_ctx / slots >= 8_192


def test_copies_and_pickles_share_the_server(started, gguf):
    lm = language_model(gguf, cache=False)
    for one in (lm.copy(num_retries=0), copy.deepcopy(lm), pickle.loads(pickle.dumps(lm))):
        assert one("hi") == ["hello"]
        assert is_local(one)
        assert adapter_for(one) is not None
    assert len(started) == 1


def test_a_pickle_starts_the_server_where_none_runs(started, gguf):
    pickled = pickle.dumps(language_model(gguf, cache=False))
    llama.stop_servers()
    assert pickle.loads(pickled)("hi") == ["hello"]
    assert len(started) == 2


def test_a_model_in_use_starts_its_server_again_after_a_stop(started, gguf):
    lm = language_model(gguf, cache=False)
    assert lm("hi") == ["hello"]
    llama.stop_servers()
    assert lm("hi") == asyncio.run(lm.acall("hi")) == ["hello"]
    assert len(started) == 2


def test_a_saved_model_starts_again_when_it_is_used(started, gguf):
    state = language_model(gguf, cache=False, slots=2).dump_state()
    llama.stop_servers()
    lm = dspy.LM.load_state(state, allow_custom_lm_class=True)
    assert lm("hi") == ["hello"]
    assert started[1].n_parallel == 2


def test_threads_come_from_the_argument_the_environment_or_the_cores(started, gguf, monkeypatch):
    monkeypatch.setenv("MAPS_RAG_THREADS", "3")
    language_model(gguf)
    language_model(gguf, threads=5)
    monkeypatch.delenv("MAPS_RAG_THREADS")
    monkeypatch.setattr(llama.os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 4, 5, 6}, raising=False)
    language_model(gguf)
    assert [params.cpuparams.n_threads for params in started] == [3, 5, 7]


@pytest.mark.parametrize("value", ["0", "-1", "two", ""])
def test_a_thread_variable_that_is_no_number_is_refused(started, gguf, monkeypatch, value):
    monkeypatch.setenv("MAPS_RAG_THREADS", value)
    with pytest.raises(UserError, match="MAPS_RAG_THREADS"):
        language_model(gguf)


@pytest.mark.parametrize(
    "option", [{"slots": 0}, {"threads": 0}, {"slots": True}, {"threads": 1.5}, {"max_tokens": 0}, {"timeout": 0}]
)
def test_impossible_settings_are_refused(started, gguf, option):
    with pytest.raises(UserError, match=next(iter(option))):
        language_model(gguf, **option)
    assert started == []


def test_files_of_one_name_do_not_share_replies(started, tmp_path):
    names = []
    for folder in ("a", "b"):
        path = tmp_path / folder / "own.gguf"
        path.parent.mkdir()
        path.write_bytes(b"GGUF" + folder.encode())
        names.append(language_model(str(path)).model)
    assert names[0] != names[1]
    assert all(name.startswith("local/own-") for name in names)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"none\.gguf does not exist"):
        language_model(str(tmp_path / "none.gguf"))


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "text.gguf"
    path.write_text("no weights")
    with pytest.raises(UserError, match="no GGUF file"):
        language_model(str(path))


def test_missing_llama_cpp_is_said_with_its_remedy(monkeypatch, gguf):
    really_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "xllamacpp":
            raise ImportError(name)
        return really_import(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(llama, "_servers", {})
    with pytest.raises(UserError, match=r"pip install 'maps-rag\[local\]'"):
        language_model(gguf)


def test_weights_that_cannot_be_loaded_are_refused_with_the_reason(started, gguf, monkeypatch):
    def fail(params):
        raise RuntimeError("broken tensor")

    monkeypatch.setattr(sys.modules["xllamacpp"], "Server", fail)
    with pytest.raises(UserError, match="broken tensor"):
        language_model(gguf)


def test_errors_of_the_local_server_surface_like_those_of_any_other(started, gguf, monkeypatch):
    with Endpoint(error(500, "no slot")) as endpoint:
        server = SimpleNamespace(listening_address=endpoint.url.removesuffix("/v1"))
        monkeypatch.setattr(sys.modules["xllamacpp"], "Server", lambda params: server)
        with pytest.raises(LMServerError, match="no slot"):
            language_model(gguf, cache=False).copy(num_retries=0)("hi")


def real_model():
    try:
        return language_model("local-small", slots=2, cache=False, max_tokens=60)
    except UserError as reason:
        pytest.skip(f"the small model cannot be had here: {reason}")


class Places(dspy.Signature):
    """Name places."""

    country: str = dspy.InputField()
    towns: Annotated[list[Annotated[str, Field(max_length=20)]], Field(min_length=2, max_length=2)] = dspy.OutputField()
    coastal: bool = dspy.OutputField()


@pytest.mark.model
def test_the_small_model_keeps_to_types_and_bounds_for_threads_and_tasks():
    lm, places = real_model(), dspy.Predict(Places)

    async def both():
        return await asyncio.gather(places.acall(country="Italy"), places.acall(country="Japan"))

    with dspy.context(lm=lm, adapter=adapter_for(lm)):
        found = [places(country="France"), *asyncio.run(both())]
    for prediction in found:
        assert len(prediction.towns) == 2
        assert all(0 < len(town) <= 20 for town in prediction.towns)
        assert isinstance(prediction.coastal, bool)


@pytest.mark.model
def test_the_small_model_reads_a_known_beginning_only_once():
    lm = real_model()
    rules = " ".join(f"Rule {number}: be brief." for number in range(40))
    for country in ("Spain", "Peru"):
        lm(f"{rules} Where is {country}?", max_tokens=1)
    usage = lm.history[-1]["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] > 0.8 * usage["prompt_tokens"]


@pytest.mark.model
def test_the_small_model_says_when_a_prompt_is_too_long():
    lm = real_model()
    with pytest.raises(ContextWindowExceededError) as caught:
        lm("word " * 9_000)
    assert "longer than the context" in describe_error(caught.value)
