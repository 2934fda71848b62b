"""The data sets known by name: where each lies on the hub, and which split is used to evaluate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType

from maps_rag.programs.errors import UserError

_FLASHRAG = "RUC-NLPIR/FlashRAG_datasets"
_SAME_SPLIT = {"dev": "validation", "validation": "dev"}


@dataclass(frozen=True)
class DataSet:
    """One data set.

    ``hub`` and ``config`` are what `datasets` is asked for; ``hub`` is "" for the package's own set. ``split`` is the
    split used where none is named: the one that FlashRAG and Search-R1 evaluate on, or the same questions. A ``gated``
    set is handed out only to those who accepted its terms.
    """

    name: str
    title: str
    hub: str
    config: str | None
    split: str
    splits: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    gated: bool = False

    def named_split(self, split: str | None) -> str:
        """Return the split as the set calls it; "dev" and "validation" mean the same.

        :raises UserError: the set has no such split, or none with answers.
        """
        wanted = split or self.split
        for name in (wanted, _SAME_SPLIT.get(wanted)):
            if name in self.splits:
                return name
        raise UserError(f"{self.name} has no split {wanted!r} with answers; it has {', '.join(self.splits)}")


_TRAINED = ("train", "validation")
_SETS = (
    DataSet("nq", "NQ", "google-research-datasets/nq_open", "nq_open", "validation", _TRAINED, ("natural_questions",)),
    DataSet("popqa", "PopQA", "akariasai/PopQA", None, "test", ("test",)),
    DataSet("hotpotqa", "HotpotQA", "hotpotqa/hotpot_qa", "distractor", "validation", _TRAINED, ("hotpot",)),
    DataSet(
        "2wikimultihopqa",
        "2WikiMultihopQA",
        "framolfese/2WikiMultihopQA",
        None,
        "validation",
        _TRAINED,
        ("2wiki", "2wikimqa"),
    ),
    DataSet("musique", "MuSiQue", "dgslibisey/MuSiQue", None, "validation", _TRAINED),
    DataSet(
        "gpqa_diamond", "GPQA Diamond", "Idavidrein/gpqa", "gpqa_diamond", "train", ("train",), ("gpqa",), gated=True
    ),
    DataSet("triviaqa", "TriviaQA", _FLASHRAG, "triviaqa", "test", ("train", "dev", "test")),
    DataSet("bamboogle", "Bamboogle", _FLASHRAG, "bamboogle", "test", ("test",)),
    DataSet("mini", "the package's own small set", "", None, "test", ("test",)),
)

DATA_SETS: Mapping[str, DataSet] = MappingProxyType({data_set.name: data_set for data_set in _SETS})

# Several sets share the hub repository of FlashRAG, which therefore names none of them.
_HUB_IDS = {data_set.hub.lower(): data_set for data_set in _SETS if data_set.hub not in ("", _FLASHRAG)}
_NAMES = {name: data_set for data_set in _SETS for name in (data_set.name, *data_set.aliases)} | _HUB_IDS


def find_data_set(name: str) -> DataSet | None:
    """Return the set of a name, of an alias or of a hub id, in any case; None if there is none."""
    folded = name.strip().lower()
    return _NAMES.get(folded) or _NAMES.get(folded.replace("-", "_"))


def guess_name(path: PurePath) -> str:
    """Return the set that the name of a file or of its folder mentions, else the name of the file without suffixes.

    FlashRAG keeps the files of a set in a folder of its name.
    """
    for text in (path.name, path.parent.name):
        whole = find_data_set(text.split(".")[0])
        for word in re.split(r"[^a-z0-9]+", text.lower()):
            found = whole or find_data_set(word)
            if found and found.hub:
                return found.name
    return path.name.split(".")[0] or path.name
