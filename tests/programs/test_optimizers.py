"""DSPy's optimizers run end to end on MAPS and change its prompts or demos; what they make survives saving."""

from __future__ import annotations

import itertools
import random
import re

import dspy
import pytest
from maps_rag.programs import MAPS

from tests.programs.test_saving import prompts_in_a_new_process, prompts_of
from tests.scripted import Roles, StubRetriever, scripted_lm, written

PROPOSED = "Proposed instruction number"


class Mixed(Roles):
    """Right half the time, and always where the instructions are proposed ones, so that there is something to learn."""

    def __init__(self):
        super().__init__(rounds=1)
        self.chance = random.Random(7)

    def __call__(self, system, user):
        reply = super().__call__(system, user)
        if "answer" in reply and PROPOSED not in system and self.chance.random() < 0.5:
            return {**reply, "answer": "a wrong answer"}
        return reply


class Proposer:
    """Fills every field that an optimizer asks for, and proposes instructions that can be told apart."""

    def __init__(self):
        self.count = itertools.count()

    def __call__(self, system, user):
        text = f"{PROPOSED} {next(self.count)}."
        if "Your output fields are:" not in system:
            return f"```\n{text}\n```"
        outputs = system.split("Your output fields are:", 1)[1].split("All interactions", 1)[0]
        fields = re.findall(r"^\d+\. `(\w+)` \((\w+)", outputs, re.MULTILINE)
        return written({name: {} if kind == "dict" else text for name, kind in fields}, system)


def examples(size):
    return [
        dspy.Example(question=f"What is asked in {i}?", answer="the answer").with_inputs("question")
        for i in range(size)
    ]


def exact(example, prediction, trace=None):
    return prediction.answer == example.answer


def feedback(gold, pred, trace=None, pred_name=None, pred_trace=None):
    score = float(pred.answer == gold.answer)
    if pred_name is None:
        return score
    return dspy.Prediction(score=score, feedback=f"The answer was {pred.answer}, it should be {gold.answer}.")


def instructions(program):
    return {name: predictor.signature.instructions for name, predictor in program.named_predictors()}


def demos(program):
    return {name: [dict(demo) for demo in predictor.demos] for name, predictor in program.named_predictors()}


def bootstrap(program):
    return dspy.BootstrapFewShot(metric=exact, max_bootstrapped_demos=2, max_labeled_demos=0).compile(
        program, trainset=examples(4)
    )


def mipro(program):
    optimizer = dspy.MIPROv2(
        metric=exact,
        prompt_model=scripted_lm(Proposer()),
        auto=None,
        num_candidates=2,
        max_bootstrapped_demos=1,
        max_labeled_demos=0,
        num_threads=1,
        seed=1,
    )
    return optimizer.compile(program, trainset=examples(4), valset=examples(2), num_trials=3, minibatch=False)


def simba(program):
    optimizer = dspy.SIMBA(
        metric=exact, bsize=4, num_candidates=2, max_steps=2, prompt_model=scripted_lm(Proposer()), num_threads=1
    )
    return optimizer.compile(program, trainset=examples(4), seed=1)


def gepa(program):
    optimizer = dspy.GEPA(
        metric=feedback,
        max_metric_calls=20,
        reflection_lm=scripted_lm(Proposer()),
        reflection_minibatch_size=2,
        num_threads=1,
        component_selector="all",
        skip_perfect_score=False,
        seed=1,
    )
    return optimizer.compile(program, trainset=examples(4), valset=examples(4))


OPTIMIZERS = {"BootstrapFewShot": bootstrap, "MIPROv2": mipro, "SIMBA": simba, "GEPA": gepa}


def compiled_by(name, **knobs):
    program = MAPS(StubRetriever(), **{"directions": 2, "max_rounds": 2, **knobs})
    with dspy.context(lm=scripted_lm(Mixed())):
        return program, OPTIMIZERS[name](program)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_changes_prompts_or_demos_and_the_result_survives_saving(name, tmp_path):
    program, compiled = compiled_by(name)
    assert isinstance(compiled, MAPS)
    assert compiled.retriever is program.retriever
    assert compiled.config == program.config
    changed = (instructions(compiled), demos(compiled)) != (instructions(MAPS()), demos(MAPS()))
    assert changed
    sent = prompts_of(compiled)
    assert sent != prompts_of(MAPS(StubRetriever(), directions=2, max_rounds=2))
    compiled.save(tmp_path / "program.json")
    assert prompts_in_a_new_process("state", tmp_path / "program.json") == sent


def test_bootstrapping_gives_every_role_demos_with_all_their_fields():
    _, compiled = compiled_by("BootstrapFewShot")
    for name, shown in demos(compiled).items():
        assert shown, name
        for demo in shown:
            assert set(demo) - {"augmented"} == set(dict(compiled.named_predictors())[name].signature.fields)


def test_bootstrapped_demos_do_not_hold_knowledge_of_a_later_round():
    _, compiled = compiled_by("BootstrapFewShot")
    for demo in compiled.propose.demos:
        assert demo.sufficient == bool(demo.knowledge)
    for role in (compiled.write, compiled.refine):
        assert all(demo.knowledge == [] for demo in role.demos)


def test_a_failed_reply_does_not_become_a_demo():
    lm = scripted_lm(Roles(write="nonsense"))
    program = MAPS(StubRetriever(), directions=2, max_rounds=2)
    with dspy.context(lm=lm):
        compiled = bootstrap(program)
    assert compiled.write.demos == []
    assert compiled.answer.demos


def test_gepa_proposes_for_every_role():
    _, compiled = compiled_by("GEPA")
    assert {name for name, text in instructions(compiled).items() if PROPOSED in text} == {
        "propose",
        "write",
        "refine",
        "answer",
    }
