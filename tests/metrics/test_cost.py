"""What a question cost, against sums by hand and what an endpoint saw."""

import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maps_rag.metrics import Prices, money, question_cost
from maps_rag.programs import MAPS, UserError
from maps_rag.programs.trajectory import Call

from tests.metrics.records import call, round_, trajectory
from tests.scripted import Roles, StubRetriever, scripted_lm

COUNTS = (
    "requests",
    "retries",
    "cache_hits",
    "prompt_tokens",
    "completion_tokens",
    "cached_prompt_tokens",
    "billed_tokens",
)


def two_rounds():
    calls = [
        call("propose", 1, 100, 10),
        call("write", 1, 200, 20, retries=1, requests=2),
        call("propose", 2, 300, 30, cached_prompt_tokens=250),
        call("write", 2, 400, 40, cache_hits=1, billed_tokens=0),
        call("answer", 3, 500, 50),
    ]
    rounds = [round_(1, {"q1": ["a"], "q2": ["b"]}), round_(2, {"q3": ["a"]})]
    return trajectory(rounds, calls, seconds=4.5)


def test_the_whole_cost_is_the_sum_of_the_calls():
    cost = question_cost(two_rounds())
    totals = {name: value for name, value in cost.items() if name not in ("by_role", "by_round")}
    assert totals == {
        "calls": 5,
        "requests": 6,
        "retries": 1,
        "cache_hits": 1,
        "prompt_tokens": 1500,
        "completion_tokens": 150,
        "cached_prompt_tokens": 250,
        "billed_tokens": 1650 - 440,
        "retrievals": 3,
        "seconds": 4.5,
    }


def test_roles_and_rounds_share_the_cost_out():
    cost = question_cost(two_rounds())
    assert list(cost["by_role"]) == ["propose", "write", "answer"]
    write = cost["by_role"]["write"]
    assert (write["calls"], write["requests"], write["retries"], write["cache_hits"]) == (2, 3, 1, 1)
    assert (write["prompt_tokens"], write["billed_tokens"], write["seconds"]) == (600, 220, 2.0)
    assert list(cost["by_round"]) == ["1", "2", "3"]
    assert [part["retrievals"] for part in cost["by_round"].values()] == [2, 1, 0]
    assert [part["calls"] for part in cost["by_round"].values()] == [2, 2, 1]


def test_a_round_that_only_searched_has_its_retrievals():
    cost = question_cost(trajectory([round_(1, {"q": ["a"]})], [call("answer", 2, 10, 1)]))
    assert (cost["by_round"]["1"]["retrievals"], cost["by_round"]["1"]["calls"]) == (1, 0)
    assert (cost["by_round"]["2"]["retrievals"], cost["by_round"]["2"]["calls"]) == (0, 1)


def test_a_question_of_which_nothing_was_recorded_cost_nothing():
    cost = question_cost(trajectory())
    assert cost.pop("by_role") == {}
    assert cost.pop("by_round") == {}
    assert set(cost.values()) == {0}


CALLS = st.builds(
    Call,
    st.sampled_from(["propose", "write", "answer"]),
    st.integers(1, 12),
    *(st.integers(0, 10_000) for _ in COUNTS),
    st.floats(0, 100),
)


@given(st.lists(CALLS, max_size=12))
@settings(max_examples=50)
def test_roles_and_rounds_always_add_up_to_the_whole(calls):
    record = trajectory([round_(1, {"q": ["a"]}), round_(2, {"r": [], "s": []})], calls)
    cost = question_cost(record)
    for part in ("by_role", "by_round"):
        for name in ("calls", *COUNTS):
            assert sum(values[name] for values in cost[part].values()) == cost[name]
    assert sum(values["retrievals"] for values in cost["by_round"].values()) == cost["retrievals"]
    assert {name: cost[name] for name in record["usage"]} == record["usage"]
    assert json.loads(json.dumps(cost)) == cost


def test_the_cost_of_questions_side_by_side_is_what_the_endpoint_counted():
    lm = scripted_lm(Roles(rounds=2))
    program = MAPS(StubRetriever())
    program.set_lm(lm)
    costs = []
    threads = [
        threading.Thread(target=lambda n=n: costs.append(question_cost(program(question=f"Who is {n}?").trajectory)))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(cost["requests"] for cost in costs) == len(lm.engine.requests) == 4 * 8
    assert sum(cost["prompt_tokens"] for cost in costs) == lm.engine.input_tokens
    assert sum(cost["completion_tokens"] for cost in costs) == lm.engine.output_tokens
    assert [cost["by_role"]["write"]["calls"] for cost in costs] == [2] * 4
    assert [cost["retrievals"] for cost in costs] == [4] * 4


def test_money_is_tokens_times_prices_per_million():
    assert money({"prompt_tokens": 2_000_000, "completion_tokens": 500_000}, Prices(0.5, 4.0)) == 3.0


def test_tokens_in_the_prefix_cache_of_the_server_have_their_own_price():
    cost = {"prompt_tokens": 1_000_000, "cached_prompt_tokens": 400_000, "completion_tokens": 0}
    assert money(cost, Prices(1.0, 5.0, 0.25)) == pytest.approx(0.7)
    assert money(cost, Prices(1.0, 5.0)) == pytest.approx(1.0)


def test_replies_out_of_the_cache_cost_nothing_but_have_a_logical_price():
    cost = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "billed_tokens": 0}
    assert money(cost, Prices(1.0, 5.0)) == 0
    assert money(cost, Prices(1.0, 5.0), logical=True) == 1
    assert money({**cost, "billed_tokens": 250_000}, Prices(1.0, 5.0)) == 0.25


def test_no_tokens_cost_nothing():
    assert money(question_cost(trajectory()), Prices(1.0, 5.0)) == 0


@pytest.mark.parametrize("prices", [(-1.0, 1.0), (1.0, float("nan")), (1.0, 1.0, float("inf"))])
def test_a_price_that_is_none_is_refused(prices):
    with pytest.raises(UserError, match="must be 0 or more"):
        Prices(*prices)
