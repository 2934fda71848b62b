"""Search momentum, its alignment, and the beta that fits best (the definitions of the MAPS paper).

    m_t = beta_t m_{t-1} + (1 - beta_t) (q_t - q_{t-1}),  m_0 = 0        S_t = cos(m_t, q_{t+1} - q_0)

Of beta_1 nothing can be known: m_1 is a positive multiple of q_1 - q_0 whatever beta_1 < 1 is. It is held at 0 here, as
the paper's tables have it, which only fixes the scale of the others; see :func:`with_first_beta`.

A cosine with a vector of length 0: S_t is undefined, and the walk is left out at that step, where the next sub-query is
the question itself or nothing has moved yet. Where only the momentum vanishes (beta_t = 0 and a repeated sub-query),
it predicts nothing and S_t is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from maps_rag.metrics.drift.estimate import Floats
from maps_rag.metrics.drift.walks import ZERO, Walks
from maps_rag.programs.errors import UserError
from numpy.typing import NDArray
from scipy.optimize import minimize

Mode = Literal["step", "joint"]

UPPER = 1 - 1e-6
"""The largest beta: at 1 momentum would never move."""
STARTS = (0.1, 0.5, 0.9)
"""Where the fit starts: cosines have no single optimum in general."""


def step_weights(beta: Sequence[float] | Floats) -> Floats:
    """Return what each step weighs in m_1 .. m_T, shape (T, T); row t - 1 is m_t."""
    return _weights(np.asarray(beta, dtype=np.float64))[0]


def point_weights(beta: Sequence[float] | Floats) -> Floats:
    """Return what each point x_i = q_i - q_0 weighs in m_1 .. m_T, shape (T, T); row t - 1 is m_t."""
    return _to_points(step_weights(beta))


def with_first_beta(beta: Sequence[float], first: float) -> tuple[float, ...]:
    """Return the beta of the same momentum, but for its length, with another beta_1."""
    if not 0 <= first < 1 or not all(0 <= value < 1 for value in beta):
        raise UserError(f"beta must be at least 0 and below 1, but is {(first, *beta)}.")
    if not beta:
        return ()
    made, scale = [first], (1 - first) / (1 - beta[0])
    for value in beta[1:]:
        # m_{t-1} is `scale` times as long as it was: the same mixture takes another beta.
        ratio = value / (1 - value) / scale
        made.append(ratio / (1 + ratio))
        scale = (1 - made[-1]) / (1 - value)
    return tuple(made)


def defined(walks: Walks, steps: int) -> NDArray[np.bool_]:
    """Return which walks have an S_1 .. S_steps, shape (walks, steps)."""
    squares = walks.norms()
    moved = np.maximum.accumulate(squares, axis=1) > 0
    made = np.zeros((len(walks), steps), dtype=bool)
    shown = min(steps, walks.rounds - 1)
    if shown > 0:
        later = np.arange(2, shown + 2) <= walks.length[:, None]
        made[:, :shown] = later & moved[:, :shown] & (squares[:, 1 : shown + 1] > 0)
    return made


def alignment(walks: Walks, beta: Sequence[float]) -> Floats:
    """Return S_1 .. S_T of each walk, shape (walks, T); NaN where it is undefined.

    :param beta: beta_1 .. beta_T.
    """
    steps = len(beta)
    scores = np.full((len(walks), steps), np.nan)
    there = defined(walks, steps)
    weights = point_weights(beta)
    for step in range(steps):
        rows = there[:, step]
        if rows.any():
            target = _Target.of(walks, rows, step + 1)
            scores[rows, step] = target.cosines(weights[step, : step + 1])[0]
    return scores


def fit_beta(
    walks: Walks, steps: int, mode: Mode = "step", *, near: Sequence[float] | None = None
) -> tuple[float, ...]:
    """Return beta_1 .. beta_steps (beta_1 = 0) that maximise the mean S_t over questions.

    :param mode: "step": beta_t maximises S_t, given those before it. "joint": all together maximise the sum of the
        means of S_1 .. S_steps. They differ: an early beta also shapes later momentum.
    :param near: start from this beta alone, for a refit of almost the same walks; None starts from several.
    :raises UserError: when no walk has a step to fit on, or the mode is another word.
    """
    if mode not in ("step", "joint"):
        raise UserError(f"mode must be 'step' or 'joint', but is {mode!r}.")
    there = defined(walks, steps)
    if not there.any(axis=0).all():
        raise UserError(f"Of {len(walks)} walks none has all of S_1 .. S_{steps}: ask for fewer steps.")
    targets = [_Target.of(walks, there[:, step], step + 1) for step in range(steps)]
    beta = np.zeros(steps)
    for step in range(1, steps):
        starts = [[start] for start in STARTS] if near is None else [[near[step]]]
        beta[step] = _best(_single(targets[step], beta[: step + 1]), starts)[0]
    if mode == "joint" and steps > 1:
        spread = [[start] * (steps - 1) for start in STARTS]
        beta[1:] = _best(_all(targets), [*spread, beta[1:].tolist()] if near is None else [list(near[1:])])
    return tuple(float(value) for value in beta)


Objective = Callable[[Floats], tuple[float, Floats]]


@dataclass(frozen=True, slots=True)
class _Target:
    """What S_t needs of the walks that have it: Gram of x_1 .. x_t, their product with the unit x_{t+1}, weights."""

    gram: Floats
    next: Floats
    weight: Floats

    @staticmethod
    def of(walks: Walks, rows: NDArray[np.bool_], step: int) -> _Target:
        length = np.sqrt(np.einsum("nii->ni", walks.gram)[rows, step])
        toward = walks.gram[rows][:, :step, step] / length[:, None]
        _, place, count = np.unique(walks.group[rows], return_inverse=True, return_counts=True)
        return _Target(walks.gram[rows][:, :step, :step], toward, 1 / (count[place] * len(count)))

    def cosines(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Return S_t, |m_t| and Gram @ weights for the weights of the points."""
        turned = self.gram @ weights
        square = turned @ weights
        size = np.abs(self.gram).max(axis=(1, 2)) * np.abs(weights).max() ** 2
        length = np.sqrt(np.where(square > ZERO * size, square, 0.0))
        cosine = np.divide(self.next @ weights, length, out=np.zeros_like(length), where=length > 0)
        return np.clip(cosine, -1.0, 1.0), length, turned

    def mean(self, weights: Floats) -> tuple[float, Floats]:
        """Return the mean S_t over questions and its gradient by the weights of the points."""
        cosine, length, turned = self.cosines(weights)
        share = np.divide(self.weight, length, out=np.zeros_like(length), where=length > 0)
        bend = np.divide(share * cosine, length, out=np.zeros_like(length), where=length > 0)
        return float(self.weight @ cosine), share @ self.next - bend @ turned


def _single(target: _Target, beta: Floats) -> Objective:
    step = len(beta) - 1

    def objective(free: Floats) -> tuple[float, Floats]:
        weights, slopes = _weights(np.append(beta[:step], free))
        value, gradient = target.mean(_to_points(weights)[step])
        return -value, -np.atleast_1d(gradient @ _to_points(slopes[step, :, step]))

    return objective


def _all(targets: Sequence[_Target]) -> Objective:
    def objective(free: Floats) -> tuple[float, Floats]:
        weights, slopes = _weights(np.append(0.0, free))
        total, slope = 0.0, np.zeros(len(targets))
        for step, target in enumerate(targets):
            value, gradient = target.mean(_to_points(weights[step, : step + 1]))
            total += value
            slope += gradient @ _to_points(slopes[step, : step + 1].T).T
        return -total, -slope[1:]

    return objective


def _best(objective: Objective, starts: Sequence[Sequence[float]]) -> Floats:
    found = [
        minimize(
            objective,
            np.asarray(start, dtype=np.float64),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, UPPER)] * len(start),
            options={"ftol": 1e-12, "gtol": 1e-8},
        )
        for start in starts
    ]
    best: Floats = min(found, key=lambda result: float(result.fun)).x
    return best


def _weights(beta: Floats) -> tuple[Floats, Floats]:
    """Return the weights of the steps, shape (T, T), and their derivatives by each beta, shape (T, T, T)."""
    size = len(beta)
    weights, slopes = np.zeros((size, size)), np.zeros((size, size, size))
    for step in range(size):
        if step:
            weights[step] = beta[step] * weights[step - 1]
            slopes[step] = beta[step] * slopes[step - 1]
            slopes[step, :, step] = weights[step - 1]
        weights[step, step] = 1 - beta[step]
        slopes[step, step, step] -= 1
    return weights, slopes


def _to_points(steps: Floats) -> Floats:
    """Return weights of points from weights of steps along the last axis: step i is x_i - x_{i-1}."""
    points = steps.copy()
    points[..., :-1] -= steps[..., 1:]
    return points
