"""Shows a question being answered, round by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maps_rag.cli.console import Screen, Spinner, count

if TYPE_CHECKING:
    import dspy
    from maps_rag.programs import Round, SearchProgram
    from maps_rag.programs.driver import Step

STOPPED = {
    "answered": "the model answered",
    "sufficient": "nothing was missing any more",
    "max_rounds": "the most rounds allowed",
    "max_turns": "the most turns allowed",
    "no_query": "no further query was written",
    "no_thought": "no further thought was written",
    "unparseable": "a reply could not be read",
    "stalled": "two rounds brought nothing new",
    "budget": "the budget was used up",
}

# The output fields in which the methods reason.
THOUGHTS = ("reasoning", "thought", "next_thought")


def answer_question(program: SearchProgram, question: str, screen: Screen) -> dspy.Prediction:
    """Answer a question and show each round as it happens, then the answer and what it took."""
    from maps_rag.programs import MAPS, Round
    from maps_rag.programs.driver import Step

    plans = isinstance(program, MAPS)
    with Spinner(screen.live, "Planning round 1" if plans else "Thinking") as spinner:
        view: RoundView = RoundView(screen, spinner)
        if plans:
            view = PlannedView(screen, spinner, program.config.min_rounds, program.config.max_rounds)
        for item in program.stream(question, steps=True):
            if isinstance(item, Step):
                view.step(item)
            elif isinstance(item, Round):
                view.end(item)
            else:
                prediction = item
    show_answer(prediction, screen)
    return prediction


class RoundView:
    """Writes the steps of a run as they end, and names the one that begins: the searches and thoughts of any method."""

    def __init__(self, screen: Screen, spinner: Spinner) -> None:
        self.screen = screen
        self.spinner = spinner
        self.headed = 0
        self.thoughts: list[str] = []

    def step(self, step: Step) -> None:
        """Show one finished step."""
        if step.role == "search":
            self._found(step.round, step.outputs)
            return
        # Held back until the round goes on: the thoughts that end in an answer belong to no round.
        thoughts = (step.outputs.get(name) for name in THOUGHTS)
        self.thoughts += [thought for thought in thoughts if isinstance(thought, str) and thought.strip()]
        self.spinner.step("Thinking")

    def end(self, record: Round) -> None:
        """Show what a round added."""
        self._head(record.index)
        self.screen.field("learned", learned(record), style="green")
        self.spinner.step("Thinking")

    def _head(self, index: int) -> None:
        if self.headed < index:
            self.headed = index
            self.screen.say(f"Round {index}", style="bold cyan")
        self.screen.field("thought", self.thoughts)
        self.thoughts = []

    def _found(self, index: int, found: Mapping[str, Sequence[Any]]) -> None:
        self._head(index)
        for query, titles in zip(found["queries"], found["titles"], strict=True):
            self.screen.field("sub-query", [query], style="bold")
            self.screen.field("  found", ["; ".join(title or "(no title)" for title in titles) or "nothing"])
        passages = {title for titles in found["titles"] for title in titles}
        self.spinner.step(f"Reading {count(len(passages), 'passage')}")


class PlannedView(RoundView):
    """Shows the rounds of MAPS with their plans."""

    def __init__(self, screen: Screen, spinner: Spinner, min_rounds: int, max_rounds: int) -> None:
        super().__init__(screen, spinner)
        self.min_rounds = min_rounds
        self.max_rounds = max_rounds
        self.planned = 0

    def step(self, step: Step) -> None:
        """Show one finished step."""
        if step.role == "propose":
            self._plan(step.round, step.outputs)
        elif step.role == "write":
            self.spinner.step("Searching")
        elif step.role == "search":
            self._found(step.round, step.outputs)

    def end(self, record: Round) -> None:
        """Show what a round added, and what its steps could not show because a reply was unusable."""
        self._head(record.index)
        if self.planned < record.index:
            self.screen.field("directions", record.directions)
        added = learned(record)
        self.screen.field("learned", added or ["nothing new"], style="green" if added else "")
        last = record.index >= self.max_rounds
        self.spinner.step("Answering" if last else f"Planning round {record.index + 1}")

    def _plan(self, index: int, plan: Mapping[str, Any]) -> None:
        self.planned = index
        known = "; ".join(plan.get("known") or []) or "nothing yet"
        if plan.get("sufficient") and index > self.min_rounds:
            self.screen.say("Enough is known", style="bold cyan")
            self.screen.field("known", [known])
            self.spinner.step("Answering")
            return
        self._head(index)
        self.screen.field("known", [known])
        self.screen.field("missing", [plan.get("missing") or "not said"])
        self.screen.field("directions", plan.get("directions") or ["none listed: the question itself"])
        self.spinner.step("Writing sub-queries")


def learned(record: Round) -> list[str]:
    """Return the knowledge that a round added, each with the passage it comes from where that is known."""
    return [
        f"{item['text']} [{item['passage_id']}]" if item["passage_id"] else item["text"] for item in record.knowledge
    ]


def show_answer(prediction: dspy.Prediction, screen: Screen) -> None:
    """Show the answer, its sources, what it took and what went wrong on the way."""
    usage = prediction.usage
    screen.say()
    screen.field("answer", [prediction.answer or "(none)"], style="bold green" if prediction.answer else "bold red")
    if citations := prediction.get("citations"):
        screen.field("sources", [f"{source['title']} [{source['id']}]" for source in citations])
    screen.field("rounds", [f"{prediction.rounds}: {STOPPED.get(prediction.stop_reason, prediction.stop_reason)}"])
    cached = f" ({usage['cache_hits']} from the cache of replies)" if usage["cache_hits"] else ""
    calls = count(usage["calls"], "model call") + cached
    tokens = f"{count(usage['prompt_tokens'], 'prompt token')} and {usage['completion_tokens']:,} written"
    screen.field("took", [f"{calls}, {count(usage['retrievals'], 'search')}, {tokens}, {usage['seconds']:.1f} s"])
    if usage["retries"]:
        screen.field("retries", [count(usage["retries"], "request") + " sent again"], style="yellow")
    screen.field("failures", [f"{what} ({times}x)" for what, times in prediction.failures.items()], style="yellow")
