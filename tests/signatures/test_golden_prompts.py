"""The prompts as the models get them, word for word: a change of any is seen in review.

After a wanted change: ``UPDATE_GOLDEN=1 python -m pytest tests/signatures``, then read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import dspy
import pytest
from maps_rag.programs import (
    MAPS,
    S3,
    Direct,
    IRCoT,
    MultiSearch,
    ParallelSearch,
    RAGFusion,
    SearchO1,
    SelfRAG,
    VanillaRAG,
)
from maps_rag.programs.models import StructuredAdapter
from maps_rag.signatures import AnswerFromPassages
from maps_rag.signatures.fields import bounded

from tests.scripted import StubRetriever

GOLDEN = Path(__file__).parent / "golden"
ADAPTERS = {"chat": dspy.ChatAdapter(), "structured": StructuredAdapter()}
PROGRAMS = {
    "maps": MAPS(StubRetriever()),
    "maps-select": MAPS(StubRetriever(), refine="select"),
    "maps-no-listing": MAPS(StubRetriever(), list_directions=False),
    "maps-no-listing-select": MAPS(StubRetriever(), list_directions=False, refine="select"),
    "maps-entangled": MAPS(StubRetriever(), disentangle=False),
    "vanilla-rag": VanillaRAG(StubRetriever()),
    "direct": Direct(StubRetriever()),
    "rag-fusion": RAGFusion(StubRetriever()),
    "ircot": IRCoT(StubRetriever()),
    "s3": S3(StubRetriever()),
    "search-o1": SearchO1(StubRetriever()),
    "parallel-search": ParallelSearch(StubRetriever()),
    "multi-search": MultiSearch(StubRetriever()),
    "self-rag": SelfRAG(StubRetriever()),
}
BOUNDS = {
    "propose": ("directions", 0, 3),
    "write": ("queries", 2, 2),
    "rewrite": ("queries", 3, 3),
    "searcher": ("selected", 0, 3),
    "agent": ("queries", 0, 3),
}
INPUTS = {
    "question": "In which city was the director of the film The Salt Orchard born?",
    "history": ["Known: \nMissing: the director\nSub-query: Who directed The Salt Orchard?\nConcluded: Imre Voskuil"],
    "knowledge": ["The Salt Orchard is a 1952 drama film directed by Imre Voskuil."],
    "reasoning_state": "The director is known, the place of birth is open.",
    "directions": ["place of birth of Imre Voskuil", "early life of Imre Voskuil"],
    "passages": ["Imre Voskuil: Imre Voskuil was born in Szeged.", "Jan Voskuil: Jan Voskuil was a painter."],
    "passage": "Imre Voskuil: Imre Voskuil was born in Szeged.",
    "query": "place of birth of Imre Voskuil",
    "thoughts": ["The Salt Orchard was directed by Imre Voskuil."],
    "sentences": ["[1] Imre Voskuil: Imre Voskuil was born in Szeged.", "[2] Jan Voskuil: Jan Voskuil was a painter."],
}
OWN_INPUTS = {role: {"passages": INPUTS["sentences"]} for role in ("searcher", "agent")}
CASES = [
    (name, role, adapter)
    for name, program in PROGRAMS.items()
    for role, _ in program.named_predictors()
    for adapter in ADAPTERS
]


def rendered(name: str, role: str, adapter: str) -> str:
    """Render one role's whole prompt: its bounds set, its last shipped demo shown, its inputs filled in."""
    program = PROGRAMS[name]
    signature = getattr(program, role).signature
    if role in BOUNDS:
        field, least, most = BOUNDS[role]
        field = field if field in signature.output_fields else "queries"
        signature = bounded(signature, field, least, most)
    given = INPUTS | OWN_INPUTS.get(role, {})
    inputs = {field: given[field] for field in signature.input_fields}
    messages = ADAPTERS[adapter].format(signature, program.shipped_demos[role][-1:], inputs)
    return "\n".join(f"--- {message['role']}\n{message['content']}" for message in messages) + "\n"


def path_of(name: str, role: str, adapter: str) -> Path:
    return GOLDEN / f"{name}.{role}.{adapter}.txt"


@pytest.mark.parametrize(("name", "role", "adapter"), CASES)
def test_a_prompt_is_the_reviewed_one(name, role, adapter):
    path = path_of(name, role, adapter)
    text = rendered(name, role, adapter)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert path.exists(), "a new prompt: run with UPDATE_GOLDEN=1 and read it"
    assert text == path.read_text()


def test_every_reviewed_prompt_is_still_made():
    made = {path_of(*case).name for case in CASES}
    if os.environ.get("UPDATE_GOLDEN"):
        for path in GOLDEN.glob("*.txt"):
            if path.name not in made:
                path.unlink()
    assert {path.name for path in GOLDEN.glob("*.txt")} == made


@pytest.mark.parametrize(("name", "role", "adapter"), CASES)
def test_a_prompt_shows_no_annotation_of_python_and_no_cap_on_rounds(name, role, adapter):
    text = rendered(name, role, adapter)
    for word in ("Annotated", "metadata", "NoneType", "max_rounds", "MAPS"):
        assert word not in text


@pytest.mark.parametrize(("name", "role"), sorted({(name, role) for name, role, _ in CASES}))
def test_every_field_says_what_a_good_value_is_and_every_role_what_to_do(name, role):
    signature = getattr(PROGRAMS[name], role).signature
    assert len(signature.instructions.split()) > 8
    for field, info in signature.fields.items():
        assert info.json_schema_extra["desc"] != f"${{{field}}}"


def test_what_grows_stands_behind_what_stays():
    """A server's prefix cache can reuse a prompt up to its first change."""
    for program in PROGRAMS.values():
        for _, predictor in program.named_predictors():
            fields = list(predictor.signature.input_fields)
            if predictor.signature.equals(AnswerFromPassages):  # once per question: nothing to reuse
                continue
            assert fields[0] == "question"
            # the state of MAPS is rewritten each round, knowledge, history and passages only grow
            growing = [name for name in ("history", "knowledge", "passages", "thoughts") if name in fields]
            if "reasoning_state" in fields:
                assert fields.index("knowledge") < fields.index("reasoning_state")
            else:
                assert fields[1 : 1 + len(growing)] == growing
