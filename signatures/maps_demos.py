"""Demos for the roles of MAPS, for models too small to follow instructions alone.

Every name is made up, so that nothing in a demo can pass for evidence. Three a role, as for every method; the plans
show what a planner meets: a chain of which nothing is known, bridges found for two things that are compared,
everything known.
"""

from __future__ import annotations

from typing import Any

_FILMS = "Which film has the director who was born earlier, The Salt Orchard or Kestrel Lane?"
_FILM_FACTS = [
    "The Salt Orchard: The Salt Orchard is a 1952 drama film directed by Imre Voskuil.",
    "Kestrel Lane: Kestrel Lane is a 1961 thriller film directed by Odette Lammers.",
]
_BIRTHS = [
    "Imre Voskuil: Imre Voskuil (4 March 1909 - 17 June 1983) was a film director.",
    "Odette Lammers: Odette Lammers was a Belgian director, born in Ghent on 22 October 1915.",
]
_FIRM = "In which country is the university where the founder of Brightwater Instruments studied?"
_FIRM_FACTS = [
    "Brightwater Instruments: It was founded in 1934 by the engineer Perrin Askew.",
    "Perrin Askew: Askew studied at the Tarnvik Polytechnic before he went into business.",
    "Tarnvik Polytechnic: Tarnvik Polytechnic is a technical university in Norway.",
]
_GRANDMOTHER = "Who is the paternal grandmother of Prince Ardent of Velmark?"
_FAMILY = [
    "Prince Ardent of Velmark: Ardent was the only son of Duke Tobin III and Lady Sunniva Hale.",
    "Duke Tobin III of Velmark: Tobin was the eldest son of Duke Osric II and Countess Maren Lowe.",
]
_FATHER_KNOWN = "Known: the father, Duke Tobin III. Open: his mother."

_PLANS: list[dict[str, Any]] = [
    {
        "question": _GRANDMOTHER,
        "knowledge": [],
        "reasoning_state": "",
        "known": [],
        "missing": "the father of Prince Ardent, then the mother of that father",
        "sufficient": False,
        "directions": ["father of Prince Ardent of Velmark"],
    },
    {
        "question": _FILMS,
        "knowledge": _FILM_FACTS,
        "reasoning_state": "Known: the directors Imre Voskuil and Odette Lammers. Open: their dates of birth.",
        "known": ["director of The Salt Orchard: Imre Voskuil", "director of Kestrel Lane: Odette Lammers"],
        "missing": "the dates of birth of Imre Voskuil and Odette Lammers",
        "sufficient": False,
        "directions": ["date of birth of Imre Voskuil", "date of birth of Odette Lammers"],
    },
    {
        "question": _FIRM,
        "knowledge": _FIRM_FACTS,
        "reasoning_state": "Known: the founder, his university and its country, Norway. Open: nothing.",
        "known": ["founder: Perrin Askew", "university: Tarnvik Polytechnic", "country: Norway"],
        "missing": "nothing",
        "sufficient": True,
        "directions": [],
    },
]

_WRITES: list[dict[str, Any]] = [
    {
        "question": _FILMS,
        "knowledge": [],
        "reasoning_state": "",
        "directions": ["director of the film The Salt Orchard", "director of the film Kestrel Lane"],
        "queries": ["Who directed the film The Salt Orchard?", "Who directed the film Kestrel Lane?"],
    },
    {
        "question": _GRANDMOTHER,
        "knowledge": _FAMILY[:1],
        "reasoning_state": _FATHER_KNOWN,
        "directions": ["mother of Duke Tobin III of Velmark"],
        "queries": ["Who is the mother of Duke Tobin III of Velmark?"],
    },
    {
        "question": _FIRM,
        "knowledge": [],
        "reasoning_state": "",
        "directions": ["founder of Brightwater Instruments"],
        "queries": ["Who founded Brightwater Instruments?"],
    },
]

_SELECTIONS: list[dict[str, Any]] = [
    {
        "question": _FILMS,
        "knowledge": _FILM_FACTS,
        "reasoning_state": "Known: the directors Imre Voskuil and Odette Lammers. Open: their dates of birth.",
        "directions": ["date of birth of Imre Voskuil", "date of birth of Odette Lammers"],
        "passages": [
            "[1] Jan Voskuil: Jan Voskuil (born 1921) was a painter.",
            "[2] " + _BIRTHS[0] + " He made fourteen films between 1938 and 1967.",
            "[3] Odette (film): Odette is a film of 1950.",
            "[4] " + _BIRTHS[1] + " Her first job was in a theatre.",
        ],
        "selected": [2, 4],
    },
    {
        "question": _GRANDMOTHER,
        "knowledge": [],
        "reasoning_state": "",
        "directions": ["father of Prince Ardent of Velmark"],
        "passages": [
            "[1] Velmark: Velmark is a duchy on the coast. It is known for its sailors.",
            "[2] Princess Ardena: Princess Ardena was the mother of Count Ruben.",
            "[3] " + _FAMILY[0] + " He was fond of sailing.",
        ],
        "selected": [3],
    },
    {
        "question": _FIRM,
        "knowledge": [],
        "reasoning_state": "",
        "directions": ["founder of Brightwater Instruments"],
        "passages": [
            "[1] " + _FIRM_FACTS[0] + " It makes clocks for ships.",
            "[2] Brightwater Bay: Brightwater Bay is a bay with a small harbour.",
            "[3] Jonas Tarn: The instrument maker Jonas Tarn studied at the University of Graz in Austria.",
        ],
        "selected": [1],
    },
]

_DISTILLATIONS: list[dict[str, Any]] = [
    {
        **{name: _SELECTIONS[0][name] for name in ("question", "knowledge", "reasoning_state", "directions")},
        "passages": [
            "Jan Voskuil: Jan Voskuil (born 1921) was a painter.",
            _BIRTHS[0] + " He made fourteen films between 1938 and 1967.",
            _BIRTHS[1] + " Her first job was in a theatre.",
        ],
        "new_knowledge": "Imre Voskuil was born on 4 March 1909. Odette Lammers was born on 22 October 1915.",
        "new_state": "Known: both directors and both dates of birth. Open: nothing.",
    },
    {
        **{name: _SELECTIONS[2][name] for name in ("question", "knowledge", "reasoning_state", "directions")},
        "passages": [
            "Brightwater Bay: Brightwater Bay is a bay with a small harbour.",
            _FIRM_FACTS[0] + " It makes clocks for ships.",
        ],
        "new_knowledge": "Brightwater Instruments was founded by Perrin Askew.",
        "new_state": "Known: the founder, Perrin Askew. Open: his university and its country.",
    },
    {
        **{name: _SELECTIONS[1][name] for name in ("question", "knowledge", "reasoning_state", "directions")},
        "passages": [
            "Velmark: Velmark is a duchy on the coast.",
            "Princess Ardena: Princess Ardena was the mother of Count Ruben.",
            _FAMILY[0] + " He was fond of sailing.",
        ],
        "new_knowledge": "Prince Ardent of Velmark was the son of Duke Tobin III and Lady Sunniva Hale.",
        "new_state": _FATHER_KNOWN,
    },
]

_ANSWERS: list[dict[str, Any]] = [
    {
        "question": _FILMS,
        "knowledge": _FILM_FACTS + _BIRTHS,
        "reasoning_state": "Known: both directors and both dates of birth. Open: nothing.",
        "reasoning": "Imre Voskuil, director of The Salt Orchard, was born in 1909. Odette Lammers, director of "
        "Kestrel Lane, was born in 1915. 1909 is earlier, so the film is The Salt Orchard.",
        "answer": "The Salt Orchard",
    },
    {
        "question": _FIRM,
        "knowledge": _FIRM_FACTS,
        "reasoning_state": "Known: the founder, his university and its country, Norway. Open: nothing.",
        "reasoning": "The founder Perrin Askew studied at the Tarnvik Polytechnic, which is in Norway.",
        "answer": "Norway",
    },
    {
        "question": _GRANDMOTHER,
        "knowledge": _FAMILY,
        "reasoning_state": "Known: the father, Duke Tobin III, and his mother, Countess Maren Lowe. Open: nothing.",
        "reasoning": "The father of Prince Ardent is Duke Tobin III. The mother of Tobin III is Countess Maren Lowe.",
        "answer": "Countess Maren Lowe",
    },
]

VANILLA_DEMOS: dict[str, list[dict[str, Any]]] = {
    "answer": [
        {name: demo[name] for name in ("question", "reasoning", "answer")} | {"passages": demo["knowledge"]}
        for demo in _ANSWERS
    ]
}


def maps_demos(*, list_directions: bool, disentangle: bool, refine: str) -> dict[str, list[dict[str, Any]]]:
    """Return the demos of every role of MAPS, with the fields that its switches give the roles."""
    refinements = _SELECTIONS if refine == "select" else _DISTILLATIONS
    demos = {"propose": _PLANS, "write": _WRITES, "refine": refinements, "answer": _ANSWERS}
    if refine == "select":
        demos = {role: [{**demo, "reasoning_state": ""} for demo in shown] for role, shown in demos.items()}
    if not list_directions:
        del demos["write"]
        demos["propose"] = [_renamed(plan, "directions", "queries") for plan in _PLANS]
        demos["refine"] = [{k: v for k, v in demo.items() if k != "directions"} for demo in demos["refine"]]
    if not disentangle:
        demos = {role: [{**demo, "history": []} for demo in shown] for role, shown in demos.items()}
    return demos


def _renamed(demo: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in demo.items()}
