"""Every method by its name: its class, presets, fixed switches and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maps_rag.programs import (
    direct,
    ircot,
    maps,
    multi_search,
    parallel_search,
    rag_fusion,
    react,
    s3,
    search_o1,
    self_rag,
    vanilla_rag,
)
from maps_rag.programs.base import SearchProgram
from maps_rag.programs.errors import UserError

_MAPS_PAPER = "MAPS"
_MAPS_CALLS = "3R + 2 (3R + 1 at the cap)"


@dataclass(frozen=True, slots=True)
class Method:
    """One method as it is listed, compared and constructed.

    :param cls: the program.
    :param presets: knobs by the name of the preset: "paper" (K = 5, at most 10 rounds: the setting in which the paper
        of MAPS compares) and "original" (that of its own paper).
    :param paper: where the method comes from.
    :param calls: LM calls per question as a formula in R (retrieval rounds), N (queries a round) and K (passages per
        query).
    :param retrievals: queries searched per question, as a formula in the same letters.
    :param fixed: switches that make the method what it is; they cannot be given.
    :param trained: whether the original is a trained model, so that ours is a prompted re-implementation.
    """

    cls: type[SearchProgram]
    presets: Mapping[str, Mapping[str, Any]]
    paper: str
    calls: str
    retrievals: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    trained: bool = False

    def knobs(self) -> list[str]:
        """Return the names of the knobs that can be given."""
        return [knob for knob in self.cls.knobs() if knob != "retriever" and knob not in self.fixed]


METHODS: dict[str, Method] = {
    "maps": Method(maps.MAPS, maps.PRESETS, _MAPS_PAPER, _MAPS_CALLS, "N * R"),
    "maps-no-directions": Method(
        maps.MAPS, maps.PRESETS, _MAPS_PAPER, "2R + 2 (2R + 1 at the cap)", "N * R", {"list_directions": False}
    ),
    "maps-no-parallelism": Method(maps.MAPS, maps.PRESETS, _MAPS_PAPER, _MAPS_CALLS, "R", {"directions": 1}),
    "maps-no-disentanglement": Method(
        maps.MAPS, maps.PRESETS, _MAPS_PAPER, _MAPS_CALLS, "N * R", {"disentangle": False}
    ),
    "vanilla": Method(vanilla_rag.VanillaRAG, vanilla_rag.PRESETS, "Lewis et al. 2020, arXiv 2005.11401", "1", "1"),
    "direct": Method(direct.Direct, direct.PRESETS, "Wei et al. 2022, arXiv 2201.11903", "1", "0"),
    "rag-fusion": Method(rag_fusion.RAGFusion, rag_fusion.PRESETS, "Rackauckas 2024, arXiv 2402.03367", "2", "N"),
    "ircot": Method(ircot.IRCoT, ircot.PRESETS, "Trivedi et al. 2023, arXiv 2212.10509", "R + 1", "R"),
    "s3": Method(s3.S3, s3.PRESETS, "Jiang et al. 2025, arXiv 2505.14146", "R + 1", "R", trained=True),
    "search-o1": Method(
        search_o1.SearchO1,
        search_o1.PRESETS,
        "Li et al. 2025, arXiv 2501.05366",
        "2R + 1 (1 more per query that is not searched)",
        "R",
    ),
    "parallel-search": Method(
        parallel_search.ParallelSearch,
        parallel_search.PRESETS,
        "Zhao et al. 2025, arXiv 2508.09303",
        "R + 1",
        "N * R",
        trained=True,
    ),
    "multi-search": Method(
        multi_search.MultiSearch,
        multi_search.PRESETS,
        "Liu et al. 2026, arXiv 2605.13534",
        "R + 1 (R + 2 where an answer is forced)",
        "N * R",
        trained=True,
    ),
    "self-rag": Method(
        self_rag.SelfRAG,
        self_rag.PRESETS,
        "Asai et al. 2023, arXiv 2310.11511",
        "K + 1 (2 without retrieval)",
        "1 (0 without retrieval)",
        trained=True,
    ),
    "react": Method(
        react.ReAct, react.PRESETS, "Yao et al. 2022, arXiv 2210.03629; dspy.ReAct", "R + 2 (R + 1 at the cap)", "R"
    ),
}


def create(name: str, retriever: Any = None, preset: str = "paper", **knobs: Any) -> SearchProgram:
    """Construct a method by its name.

    :param name: a key of :data:`METHODS`.
    :param retriever: see :class:`~maps_rag.programs.base.SearchProgram`.
    :param preset: "paper" or "original"; see :class:`Method`.
    :param knobs: arguments of the constructor that override those of the preset.
    :raises UserError: when the name, the preset or a knob is unknown, or a knob is one that the method fixes.
    """
    if not isinstance(name, str) or name not in METHODS:
        raise UserError(f"There is no method {name!r}. There are: {', '.join(METHODS)}.")
    method = METHODS[name]
    if not isinstance(preset, str) or preset not in method.presets:
        raise UserError(f"{name} has no preset {preset!r}. It has: {', '.join(method.presets)}.")
    if fixed := sorted(set(knobs) & set(method.fixed)):
        switches = ", ".join(f"{knob}={method.fixed[knob]!r}" for knob in fixed)
        raise UserError(f"{name} is defined by {switches}: leave it out, or choose another method.")
    if unknown := sorted(set(knobs) - set(method.knobs())):
        raise UserError(f"{name} has no knob {', '.join(unknown)}. It has: {', '.join(method.knobs())}.")
    return method.cls(retriever, **{**method.presets[preset], **method.fixed, **knobs})
