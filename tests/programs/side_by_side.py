"""A program whose calls run side by side, for the tests of the driver."""

from __future__ import annotations

import dspy
from maps_rag.programs import Ask, Outcome, SearchProgram

from tests.scripted import StubRetriever, scripted_lm


class First(dspy.Signature):
    """Give a first view."""

    question: str = dspy.InputField()
    first: str = dspy.OutputField()


class Second(dspy.Signature):
    """Give a second view."""

    question: str = dspy.InputField()
    second: str = dspy.OutputField()


class Both(SearchProgram):
    """Two views side by side, any number of each."""

    def __init__(self, retriever=None, *, width: int = 1, **options):
        super().__init__(retriever, **options)
        self.width = width
        self.one = dspy.Predict(First)
        self.two = dspy.Predict(Second)

    def steps(self, question):
        asks = []
        for i in range(self.width):
            asks.append(Ask(self.one, fallback={"first": "lost"}, question=f"{question} {i}"))
            asks.append(Ask(self.two, fallback={"second": "lost"}, question=f"{question} {i}"))
        views = yield asks
        return Outcome(" ".join(next(iter(dict(view.items()).values())) for view in views), "answered")


def views(system, user):
    number = user.split("question ## ]]\n", 1)[1].split("\n", 1)[0]
    return {"first": f"1:{number}"} if "`first`" in system else {"second": f"2:{number}"}


def both(reply=views, **options):
    lm = scripted_lm(reply)
    with dspy.context(lm=lm, trace=[], **options):
        program = Both(StubRetriever(), width=3)
        prediction = program(question="Q")
        return prediction, lm, program, list(dspy.settings.trace or [])
