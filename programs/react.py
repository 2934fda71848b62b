"""ReAct: DSPy's own agent with one tool, the retriever."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dspy
from maps_rag.programs.base import SearchProgram, check_count
from maps_rag.programs.history import NO_ACTION
from maps_rag.programs.inverted import Abandoned, Perform, inverted
from maps_rag.programs.passages import show_passage
from maps_rag.programs.reader import NO_ANSWER
from maps_rag.programs.steps import Ask, EndRound, Outcome, OutOfBudget, Search
from maps_rag.programs.types import Passage
from maps_rag.signatures.react import AnswerBySearching, react_demos

PRESETS: dict[str, Mapping[str, Any]] = {
    "paper": {"passages": 5, "max_rounds": 10},
    "original": {"passages": 3, "max_rounds": 20},
}

FINISH = {"next_thought": "", "next_tool_name": "finish", "next_tool_args": {}}


@dataclass(frozen=True, slots=True)
class ReActConfig:
    """The knobs of :class:`ReAct`; see there."""

    passages: int
    max_rounds: int

    def __post_init__(self) -> None:
        check_count("passages", self.passages)
        check_count("max_rounds", self.max_rounds)


class _Agent(dspy.ReAct):  # type: ignore[misc]
    """DSPy's agent, its calls carried out by someone else.

    :param ask: takes a predictor and its inputs and returns its prediction.
    """

    def __init__(self, tool: dspy.Tool, max_iters: int, ask: Callable[..., dspy.Prediction]) -> None:
        super().__init__(AnswerBySearching, [tool], max_iters)
        self.ask = ask

    def _call_with_potential_trajectory_truncation(
        self, module: dspy.Module, trajectory: dict[str, Any], **inputs: Any
    ) -> dspy.Prediction:
        return super()._call_with_potential_trajectory_truncation(partial(self.ask, module), trajectory, **inputs)


@dataclass(slots=True)
class _Session:
    """One question on its way through the agent: carries its calls and searches to the driver."""

    program: ReAct
    perform: Perform
    seen: dict[str, Passage] = field(default_factory=dict)
    thought: str = ""
    stop_reason: str = "max_rounds"

    def ask(self, predictor: dspy.Module, **inputs: Any) -> dspy.Prediction:
        """Make one call of the agent's."""
        if predictor is self.program.extract:
            return self.perform(Ask(predictor, fallback=NO_ANSWER, retries=1, final=True, shrinkable=(), **inputs))
        unusable = {**FINISH, "next_thought": None}
        try:
            turn = self.perform(Ask(predictor, fallback=unusable, retries=1, shrinkable=(), **inputs))
        except OutOfBudget:
            self.stop_reason = "budget"
            return dspy.Prediction(**FINISH)
        if turn.next_tool_name == "finish":
            self.stop_reason = "unparseable" if turn.next_thought is None else "answered"
        self.thought = turn.next_thought or ""
        return turn

    def search(self, query: str) -> list[str]:
        """Search the corpus for passages about one person, work, place or event."""
        if not query.strip():
            return [NO_ACTION]
        try:
            (passages,) = self.perform(Search([query], self.program.config.passages))
            self.seen.update((passage.id, passage) for passage in passages)
            self.perform(EndRound(passages=passages, missing=self.thought))
        except Exception as error:  # the agent would take a broken retriever for an observation
            raise _Broken(error) from error
        return [show_passage(passage) for passage in passages]


class _Broken(Abandoned):
    """Carries an error of the retriever past the agent."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class ReAct(SearchProgram):
    """ReAct (Yao et al., 2022, arXiv 2210.03629) as DSPy has it: ``dspy.ReAct`` with one tool that searches.

    DSPy's class runs unchanged: its loop, its prompts, its tool checks, its shortening of a trajectory that exceeds the
    context, and its last call, which reads the whole trajectory and always answers, at the cap too. Only its calls are
    carried out by the driver, so that they are recorded, budgeted, retried and streamed like those of every method.
    R searches take R + 2 calls (R + 1 at the cap) and R retrievals.

    Unlike a bare ``dspy.ReAct``: a reply that cannot be used is asked for once more and then ends the search
    ("unparseable") instead of raising; an error of the retriever is raised instead of becoming an observation; a spent
    budget ends the search. The agent's own trajectory is ``prediction.react_trajectory``; ``prediction.trajectory`` is
    our record. ``knowledge`` and ``reasoning_state`` are empty: the agent keeps none.

    :param retriever: see :class:`SearchProgram`.
    :param passages: K, passages per search (ours for "original": 3; 5 in the setting of the MAPS paper).
    :param max_rounds: turns of the agent, the one that finishes included (DSPy's ``max_iters``, there 20).
    :param options: see :class:`~maps_rag.programs.base.Limits`.
    :raises UserError: when a knob is out of range or unknown.
    """

    def __init__(self, retriever: Any = None, *, passages: int = 5, max_rounds: int = 10, **options: Any) -> None:
        super().__init__(retriever, **options)
        self.config = ReActConfig(passages, max_rounds)
        agent = self._agent(_Session(self, _no_step))
        self.react = agent.react
        self.extract = agent.extract

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        return react_demos(self._agent(_Session(self, _no_step))._format_trajectory)

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        return (yield from inverted(partial(self._run, question)))

    def _run(self, question: str, perform: Perform) -> Outcome:
        session = _Session(self, perform)
        agent = self._agent(session)
        agent.react, agent.extract = self.react, self.extract
        try:
            reply = agent(question=question)
        except _Broken as broken:
            raise broken.error from None
        return Outcome(
            reply.answer,
            session.stop_reason,
            passages=list(session.seen.values()),
            extra={"reasoning": reply.reasoning, "react_trajectory": reply.trajectory},
        )

    def _agent(self, session: _Session) -> _Agent:
        return _Agent(dspy.Tool(session.search, name="search"), self.config.max_rounds, session.ask)


def _no_step(step: Any) -> Any:
    raise RuntimeError("the agent is not running")
