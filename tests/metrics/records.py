"""Writes trajectories as the driver does, from a few numbers."""

from maps_rag.programs.trajectory import Call, Round, SearchRecord, Trajectory


def passage(name, text="", title=""):
    return {"id": name, "title": title, "text": text, "score": 0.5}


def round_(index, found, passages=None, **more):
    """A round; ``found`` maps each sub-query to the ids it found."""
    searches = [SearchRecord(query, ids, [0.5] * len(ids)) for query, ids in found.items()]
    if passages is None:
        passages = [passage(name) for name in dict.fromkeys(name for ids in found.values() for name in ids)]
    return Round(index, searches=searches, passages=passages, **more)


def trajectory(rounds=(), calls=(), answer="", seconds=0.0):
    record = Trajectory("Who?", "MAPS", {}, rounds=list(rounds), calls=list(calls), answer=answer, seconds=seconds)
    return record.as_dict()


def call(role, number, prompt=0, completion=0, **more):
    """A call of one request that was billed."""
    counted = {"requests": 1, "billed_tokens": prompt + completion, "seconds": 1.0, **more}
    return Call(role, number, prompt_tokens=prompt, completion_tokens=completion, **counted)
