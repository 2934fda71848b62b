"""The prompts of MAPS, one per role.

The papers print none: the wording, the split into fields and the order of the fields are ours. What stays the same
from round to round stands first, what grows stands last, so that a server can reuse its prefix cache.
"""

from __future__ import annotations

from typing import Annotated

import dspy
from maps_rag.signatures.fields import Line, Phrases
from pydantic import Field

_KNOWLEDGE = "facts found so far"
_STATE = "where the search stands"


class ProposeDirections(dspy.Signature):
    """Plan the next search for a question whose answer needs facts from several pages.

    First write what is known by name: every person, work, place and date that the knowledge gives and the question
    needs. Then write what is still missing. Set sufficient to true only if the knowledge states every fact that the
    question needs. Otherwise list search directions that complement each other: one per missing fact and entity.
    Once an entity is known, use its name instead of its description.
    """

    question: str = dspy.InputField(desc="the question to answer")
    knowledge: list[str] = dspy.InputField(desc=_KNOWLEDGE)
    reasoning_state: str = dspy.InputField(desc=_STATE)
    known: Phrases = dspy.OutputField(desc="names and dates known so far, from the knowledge only", max_length=6)
    missing: Line = dspy.OutputField(desc="the facts still missing, or nothing")
    sufficient: bool = dspy.OutputField(desc="true only if nothing is missing")
    directions: Phrases = dspy.OutputField(desc="complementary search directions; empty if sufficient")


class ProposeSubQueries(dspy.Signature):
    """Plan the next search for a question whose answer needs facts from several pages.

    First write what is known by name: every person, work, place and date that the knowledge gives and the question
    needs. Then write what is still missing. Set sufficient to true only if the knowledge states every fact that the
    question needs. Otherwise write search queries for the missing facts, each about one entity, by its name once known.
    """

    question: str = dspy.InputField(desc="the question to answer")
    knowledge: list[str] = dspy.InputField(desc=_KNOWLEDGE)
    reasoning_state: str = dspy.InputField(desc=_STATE)
    known: Phrases = dspy.OutputField(desc="names and dates known so far, from the knowledge only", max_length=6)
    missing: Line = dspy.OutputField(desc="the facts still missing, or nothing")
    sufficient: bool = dspy.OutputField(desc="true only if nothing is missing")
    queries: Phrases = dspy.OutputField(desc="search queries; empty if sufficient")


class WriteSubQueries(dspy.Signature):
    """Write one search query for each direction, in the same order.

    A query asks for what its direction says and for nothing else. It names its subject in full, so that it can be
    understood without the question.
    """

    question: str = dspy.InputField(desc="the question to answer")
    knowledge: list[str] = dspy.InputField(desc=_KNOWLEDGE)
    reasoning_state: str = dspy.InputField(desc=_STATE)
    directions: list[str] = dspy.InputField(desc="what to search for")
    queries: Phrases = dspy.OutputField(desc="one search query per direction")


class DistilKnowledge(dspy.Signature):
    """Distil from the passages the facts that help to answer the question.

    Write only what the passages state. Name the subject of every fact, with the names and dates that the question
    needs. Leave out what is already known. Leave the new knowledge empty if no passage helps.
    """

    question: str = dspy.InputField(desc="the question to answer")
    knowledge: list[str] = dspy.InputField(desc=_KNOWLEDGE)
    reasoning_state: str = dspy.InputField(desc=_STATE)
    directions: list[str] = dspy.InputField(desc="what was searched for")
    passages: list[str] = dspy.InputField(desc="passages found")
    new_knowledge: Annotated[str, Field(max_length=900)] = dspy.OutputField(desc="the facts that help, or nothing")
    new_state: Line = dspy.OutputField(desc="what is known now and what is still open, by name")


class SelectKnowledge(dspy.Signature):
    """Select the numbered passages that state a fact the question needs.

    Take the passages about the very persons, works and places that are searched for, one for each direction, not those
    about others of a similar name or with a similar story.
    """

    question: str = dspy.InputField(desc="the question to answer")
    knowledge: list[str] = dspy.InputField(desc=_KNOWLEDGE)
    reasoning_state: str = dspy.InputField(desc=_STATE)
    directions: list[str] = dspy.InputField(desc="what was searched for")
    passages: list[str] = dspy.InputField(desc="numbered passages, each with its title")
    selected: list[int] = dspy.OutputField(desc="numbers of the passages that help")


class AnswerQuestion(dspy.Signature):
    """Answer the question from the knowledge.

    First reason briefly: put the facts together, compare dates where the question compares. Then answer with the name,
    date, number or yes/no that is asked for, as short as possible: the very thing asked for, not the last thing found.
    Always answer: if the knowledge does not settle it, give the most likely answer.
    """

    question: str = dspy.InputField(desc="the question to answer")
    knowledge: list[str] = dspy.InputField(desc=_KNOWLEDGE)
    reasoning_state: str = dspy.InputField(desc=_STATE)
    reasoning: Annotated[str, Field(max_length=400)] = dspy.OutputField(desc="the facts put together")
    answer: Annotated[str, Field(max_length=200)] = dspy.OutputField(desc="the short answer")
