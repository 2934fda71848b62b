"""MAPS: macro-adaptive parallel reasoning."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import dspy
from maps_rag.programs.base import SearchProgram, check_count
from maps_rag.programs.errors import UserError
from maps_rag.programs.passages import citations, merge_passages, opening, show_passage
from maps_rag.programs.steps import Ask, EndRound, Outcome, OutOfBudget, Search
from maps_rag.programs.texts import distinct, plain_query, says_something
from maps_rag.programs.types import Passage
from maps_rag.signatures import maps as roles
from maps_rag.signatures.fields import with_history
from maps_rag.signatures.maps_demos import maps_demos

MOST_SELECTED = 4  # ours: what one round may add, unless there are more sub-queries
STALLED_AFTER = 2  # ours: a round that changes nothing repeats itself at temperature 0

_PAPER = {"directions": 3, "passages": 5, "max_rounds": 10}  # N is ours: the paper leaves it open
PRESETS: dict[str, Mapping[str, Any]] = {"paper": _PAPER, "original": _PAPER}


@dataclass(frozen=True, slots=True)
class MAPSConfig:
    """The knobs of :class:`MAPS`; see there."""

    directions: int
    passages: int
    max_rounds: int
    min_rounds: int
    list_directions: bool
    disentangle: bool
    refine: Literal["distil", "select"]

    def __post_init__(self) -> None:
        for name in ("directions", "passages", "max_rounds"):
            check_count(name, getattr(self, name))
        check_count("min_rounds", self.min_rounds, minimum=0)
        if self.min_rounds > self.max_rounds:
            raise UserError(f"min_rounds ({self.min_rounds}) must not exceed max_rounds ({self.max_rounds}).")
        if self.refine not in ("distil", "select"):
            raise UserError(f"refine must be 'distil' or 'select', but got {self.refine!r}.")


@dataclass(slots=True)
class _State:
    """What MAPS carries from round to round: nothing else reaches a later prompt."""

    question: str
    knowledge: list[str] = field(default_factory=list)
    sources: list[Passage | None] = field(default_factory=list)
    reasoning_state: str = ""
    seen: dict[str, Passage] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    stalled: int = 0


class MAPS(SearchProgram):
    """Macro-adaptive parallel reasoning.

    Each round the model sees the question, the knowledge distilled so far and a short reasoning state, never its
    earlier sub-queries: it lists complementary directions, writes one sub-query per direction, retrieves for all of
    them in one batch, and refines what came back into knowledge and state. It answers when the planner finds the
    knowledge sufficient, or at the cap. R rounds take 3R + 2 LM calls (3R + 1 at the cap) and N x R retrievals.

    The paper publishes neither prompts nor N: the prompts are ours, and so are the defaults marked so.

    :param retriever: see :class:`SearchProgram`.
    :param directions: N, directions and sub-queries per round (ours: 3; unreported in the paper). 1 is the paper's
        ablation "no parallelism".
    :param passages: K, passages per sub-query (the paper's 5).
    :param max_rounds: the cap on retrieval rounds (the paper's 10). No prompt mentions it.
    :param min_rounds: retrieval rounds that are run even if the planner finds nothing missing (ours: 0).
    :param list_directions: False is the ablation "no direction listing": the planner writes the sub-queries itself
        and refinement sees no directions (2R + 2 calls, 2R + 1 at the cap).
    :param disentangle: False is the ablation "no disentanglement": every prompt carries the full history.
    :param refine: "distil" as in the paper: the model writes the round's knowledge. "select" (ours, for small models):
        it picks numbered passages, at least one per sub-query, whose first sentences are copied verbatim and keep the
        id of their passage; it keeps no reasoning state beyond them: the planner names what is known anew each round.
    :param options: ``max_calls``, ``max_tokens``, ``passage_chars``, ``demos``; see
        :class:`~maps_rag.programs.base.Limits`.
    :raises UserError: when a knob is out of range or unknown.
    """

    def __init__(
        self,
        retriever: Any = None,
        *,
        directions: int = 3,
        passages: int = 5,
        max_rounds: int = 10,
        min_rounds: int = 0,
        list_directions: bool = True,
        disentangle: bool = True,
        refine: Literal["distil", "select"] = "distil",
        **options: Any,
    ) -> None:
        super().__init__(retriever, **options)
        self.config = MAPSConfig(directions, passages, max_rounds, min_rounds, list_directions, disentangle, refine)
        whole = (lambda signature: signature) if disentangle else with_history
        refining: type[dspy.Signature] = roles.DistilKnowledge if refine == "distil" else roles.SelectKnowledge
        if list_directions:
            self.propose = dspy.Predict(whole(roles.ProposeDirections))
            self.write = dspy.Predict(whole(roles.WriteSubQueries))
        else:
            self.propose = dspy.Predict(whole(roles.ProposeSubQueries))
            refining = refining.delete("directions")
        self.refine = dspy.Predict(whole(refining))
        self.answer = dspy.Predict(whole(roles.AnswerQuestion))

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        config = self.config
        return maps_demos(list_directions=config.list_directions, disentangle=config.disentangle, refine=config.refine)

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        state = _State(question)
        stop_reason = "max_rounds"
        try:
            for done in range(self.config.max_rounds):
                plan = yield self._ask_plan(state, must_search=done < self.config.min_rounds)
                if plan.sufficient and done >= self.config.min_rounds:
                    stop_reason = "sufficient"
                    break
                directions, queries = yield from self._sub_queries(state, plan)
                found = yield Search(queries, self.config.passages)
                passages = merge_passages(found)
                facts = yield from self._refine(state, directions, passages, len(queries))
                yield EndRound(
                    passages=passages,
                    known=plan.known,
                    missing=plan.missing,
                    directions=directions,
                    knowledge=[(text, source.id if source else None) for text, source in facts],
                    reasoning_state=state.reasoning_state,
                )
                self._remember(state, plan, queries, passages, facts)
                if state.stalled >= STALLED_AFTER:
                    stop_reason = "stalled"
                    break
        except OutOfBudget:
            stop_reason = "budget"
        reply = yield Ask(
            self.answer, fallback={"answer": "", "reasoning": ""}, retries=1, final=True, **self._view(state)
        )
        sources = [source for source in state.sources if source is not None]
        return Outcome(
            answer=reply.answer.strip(),
            stop_reason=stop_reason,
            knowledge=state.knowledge,
            reasoning_state=state.reasoning_state,
            passages=list(state.seen.values()),
            extra={"reasoning": reply.reasoning, "citations": citations(sources)},
        )

    def _view(self, state: _State) -> dict[str, Any]:
        """What every role is given: the disentangled state, or with the whole history where that is switched on."""
        view = {"question": state.question, "knowledge": state.knowledge, "reasoning_state": state.reasoning_state}
        return view if self.config.disentangle else view | {"history": state.history}

    def _ask_plan(self, state: _State, must_search: bool) -> Ask:
        listed = "directions" if self.config.list_directions else "queries"
        return Ask(
            self.propose,
            fallback={"known": [], "missing": "", "sufficient": False, listed: []},
            bounds=(listed, int(must_search), self.config.directions),
            **self._view(state),
        )

    def _sub_queries(self, state: _State, plan: dspy.Prediction) -> Generator[Any, Any, tuple[list[str], list[str]]]:
        limit = self.config.directions
        if not self.config.list_directions:
            return [], distinct([plain_query(query) for query in plan.queries], limit) or [state.question]
        # Nothing usable listed: the question itself is the only direction.
        directions = distinct(plan.directions, limit) or [state.question]
        written = yield Ask(
            self.write,
            fallback={"queries": []},
            bounds=("queries", len(directions), len(directions)),
            directions=directions,
            **self._view(state),
        )
        queries = [plain_query(query) for query in written.queries[: len(directions)]]
        queries += [""] * (len(directions) - len(queries))
        return directions, [query or direction for query, direction in zip(queries, directions, strict=True)]

    def _refine(
        self, state: _State, directions: Sequence[str], passages: Sequence[Passage], searches: int
    ) -> Generator[Any, Any, list[tuple[str, Passage | None]]]:
        """Ask for this round's knowledge and apply it to the state."""
        inputs = self._view(state)
        if self.config.list_directions:
            inputs["directions"] = list(directions)
        if self.config.refine == "distil":
            facts = yield from self._distil(state, passages, inputs)
        else:
            facts = yield from self._select(state, passages, inputs, least=searches)
        facts = [fact for fact in facts if fact[0] not in state.knowledge]
        new_passages = [passage for passage in passages if passage.id not in state.seen]
        state.stalled = 0 if facts and new_passages else state.stalled + 1
        state.seen.update((passage.id, passage) for passage in new_passages)
        state.knowledge.extend(text for text, _ in facts)
        state.sources.extend(source for _, source in facts)
        return facts

    def _distil(
        self, state: _State, passages: Sequence[Passage], inputs: dict[str, Any]
    ) -> Generator[Any, Any, list[tuple[str, Passage | None]]]:
        """The paper's refinement: the model writes this round's knowledge and the new state."""
        reply = yield Ask(
            self.refine,
            fallback={"new_knowledge": "", "new_state": state.reasoning_state},
            passages=[show_passage(passage) for passage in passages],
            **inputs,
        )
        state.reasoning_state = str(reply.new_state).strip()
        return [(reply.new_knowledge.strip(), None)] if says_something(reply.new_knowledge) else []

    def _select(
        self, state: _State, passages: Sequence[Passage], inputs: dict[str, Any], least: int
    ) -> Generator[Any, Any, list[tuple[str, Passage | None]]]:
        """Ours: the model picks passages. No state is kept: small models filled it with what demos or wishes said."""
        known = {source.id for source in state.sources if source is not None}
        candidates = [passage for passage in passages if passage.id not in known] or passages
        texts = [opening(passage) for passage in candidates]
        reply = yield Ask(
            self.refine,
            fallback={"selected": []},
            bounds=("selected", min(least, len(texts)), min(max(least, MOST_SELECTED), len(texts))),
            passages=[f"[{number}] {text}" for number, text in enumerate(texts, 1)],
            **inputs,
        )
        picked = dict.fromkeys(number for number in reply.selected if 1 <= number <= len(texts))
        return [(texts[number - 1], candidates[number - 1]) for number in picked]

    def _remember(
        self,
        state: _State,
        plan: dspy.Prediction,
        queries: Sequence[str],
        passages: Sequence[Passage],
        facts: Sequence[tuple[str, Passage | None]],
    ) -> None:
        """Add a round to the full history, which only the ablation without disentanglement reads."""
        if self.config.disentangle:
            return
        lines = [f"Known: {'; '.join(plan.known)}", f"Missing: {plan.missing}"]
        lines += [f"Sub-query: {query}" for query in queries]
        lines += [f"Result: {show_passage(passage)}" for passage in passages]
        lines += [f"Concluded: {text}" for text, _ in facts]
        state.history.append("\n".join(lines))
