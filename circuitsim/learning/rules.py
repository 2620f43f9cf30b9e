"""Learning rules by name. A rule is a frozen value with ``estimate(problem)``.

| name | rule | source |
|---|---|---|
| ``ep`` | `EquilibriumPropagation` | Scellier & Bengio 2017; Scellier 2024, App. B, F; Nest & Ernoult 2024, Thm 3.1 |
| ``bp`` | `TruncatedBackpropagation` | Nest & Ernoult 2024, Algorithm 12 |
| ``implicit`` | `ImplicitDifferentiation` | its limit of many sweeps |
| ``coupled`` | `CoupledLearning` | Stern, Hexner, Rocks & Liu 2021 |
| ``frequency`` | `FrequencyPropagation` | Anisetti, Kandala, Scellier & Schwarz 2024 |
| ``agnostic`` | `AgnosticPropagation` | Scellier, Mishra, Bengio & Ollivier 2022 |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from circuitsim.blocks.protocol import VARIANTS, Arrays, Kinks, State, changed, check_named, strengths, unit
from circuitsim.errors import ConvergenceError, RuleError, UsageError
from circuitsim.learning.estimate import (
    CONSTANT,
    NUDGES,
    RESISTOR,
    Estimate,
    GradientProblem,
    Nudging,
    Rule,
    contrasted,
)


@dataclass(frozen=True)
class ImplicitDifferentiation:
    """dℓ/dθ with H λ = −∂ℓ/∂v on the free coordinates, conducting diodes held merged: ∂ℓ/∂g = Δv Δλ.

    Exact wherever the loss is differentiable; what the other methods are compared with. At a kink (a diode without
    current and voltage, a unit at its bound without force) it is the derivative on one side: ``Estimate.kinks`` counts.
    """

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The gradient, from one adjoint solve."""
        return differentiated(problem, problem.block.implicit)


def differentiated(problem: GradientProblem, differentiate: Callable[..., Any]) -> Estimate:
    """The estimate by a derivative of the free state (`EnergyBlock.implicit` or one with its arguments)."""
    block, x, target, loss, free, weight = problem
    parameters, inputs = differentiate(free, x, loss.gradient(free.output, target), weight)
    at_kink = getattr(block, "kinks", None)
    kinks = None if at_kink is None else Kinks(*at_kink(free))
    return Estimate(dict(parameters), inputs, free.residual, free.certified, kinks=kinks)


@dataclass(frozen=True)
class TruncatedBackpropagation:
    """Σ_k (1 − A)^k of the adjoint's Neumann series, as many terms as a nudged phase makes sweeps.

    A sweep of `EquilibriumPropagation` with β → 0 is a term of this series (Nest & Ernoult 2024, App. A.5). A block
    without sweeps gives its exact limit, that of `ImplicitDifferentiation`.
    """

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The gradient, from as many sweeps as a nudged phase makes."""
        return differentiated(problem, getattr(problem.block, "truncated", problem.block.implicit))


REDUCTION, REDUCTIONS = 0.25, 12
"""Factor on an automatic β per attempt, and the maximum number of attempts: down to 2e-7 of the first."""


@dataclass(frozen=True)
class EquilibriumPropagation:
    """The gradient from the difference of two states: how ∂E/∂θ changes when the outputs are nudged.

        positive  (∂E^β − ∂E⁰)/β      negative  (∂E⁰ − ∂E^−β)/β      centred  (∂E^β − ∂E^−β)/(2β)

    With F(β) = E + β · cost and G(β) = min F, each is exactly the gradient of L_β = (G(β) − G(0))/β, of L_−β, or of
    their mean; G is concave, so L_β ≤ loss ≤ L_−β, and both are reported (Scellier 2024, Theorem 3).

    Parameters
    ----------
    beta : float or "auto"
        Strength of the nudge, positive; S for circuits with the squared error. ``"auto"``: at each estimate a tenth of
        the strength that leaves a circuit's energy convex (of other blocks 0.1), and a quarter of it as long as more
        diodes and clamped units change between the phases than ``kink_share`` allows.
    variant : {"centred", "positive", "negative"}
    nudging : Nudging
        How the outputs are pulled.
    kink_share : float
        With ``beta="auto"``: largest fraction of diodes and clamped units, over the batch, that may change.
    form : {"explicit", "implicit"}
        What is passed to the stages before a block of a chain: the difference of its two states (Nest & Ernoult 2024,
        Algorithm 4), or each state in turn (Algorithm 2).
    relative : bool
        β counts in units of the block's own stiffness (`circuitsim.blocks.protocol.unit`), and may be negative.
    scale_errors : bool
        See `circuitsim.learning.estimate.Rule`.
    allow_nonconvex : bool
        Samples count too whose states are finite, but not certified.
    bracket : bool
        Whether L_β and L_−β are measured.

    Notes
    -----
    Where a diode or a clamp changes between the phases the energy has another curvature in each, and the estimate at a
    finite β is off by what lies between; ``Estimate.kinks`` counts them.
    """

    beta: float | Literal["auto"] = 0.01
    variant: str = "centred"
    nudging: Nudging = CONSTANT
    kink_share: float = 0.001
    form: str = "explicit"
    relative: bool = False
    scale_errors: bool = False
    allow_nonconvex: bool = False
    bracket: bool = True

    def __post_init__(self) -> None:
        if self.relative and not (isinstance(self.beta, Real) and 0.0 < abs(self.beta) < np.inf):
            raise UsageError(
                f"beta must be a finite number other than zero, not {self.beta!r}: chains have no automatic strength; "
                "lower it where kink_share in the history is large"
            )
        positive = isinstance(self.beta, Real) and 0.0 < self.beta < np.inf
        if not (self.relative or self.beta == "auto" or positive):
            raise UsageError(f"beta must be positive and finite, not {self.beta}")
        if not 0.0 <= self.kink_share <= 1.0:
            raise UsageError(f"the fraction of diodes must lie in [0, 1], not {self.kink_share}")
        check_named(variant=(self.variant, VARIANTS), form=(self.form, ("explicit", "implicit")))

    @property
    def sides(self) -> tuple[str, ...]:
        """Sides of the bracket that are measured: fields of `Estimate`."""
        upper, lower = strengths(self.variant, float(self.bracket))
        return tuple(side for side, strength in (("lower", lower), ("upper", upper)) if strength)

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The estimate, from one nudged phase or two; with ``beta="auto"`` at most `REDUCTIONS` more.

        Raises
        ------
        RuleError
            ``beta="auto"`` for a block that does not tell which of its diodes conduct.
        """
        if self.beta != "auto":
            return self._at(problem, float(self.beta) * (unit(problem.block) if self.relative else 1.0))
        limit = float(getattr(problem.block, "stiffness_limit", lambda: 1.0)())
        beta = 0.1 * (limit if 0.0 < limit < np.inf else 1.0) / (problem.loss.gradient_lipschitz or 1.0)
        for _ in range(REDUCTIONS):
            found = self._at(problem, beta)
            if found.kinks is None:
                raise RuleError("the block's states do not tell which units are at bounds ('active'): give a beta")
            if found.kinks.share <= self.kink_share:
                break
            beta *= REDUCTION
        return found._replace(beta=beta)

    def _at(self, problem: GradientProblem, beta: float) -> Estimate:
        """The estimate at a strength."""
        free, (low, high) = problem.free, strengths(self.variant, beta)
        minus, plus = (self.nudging.relax(problem, each) if each else free for each in (low, high))
        bounds = {}
        if getattr(problem.block, "has_energy", True):
            ends = {"lower": (plus, beta), "upper": (minus, -beta)}
            bounds = {side: self._bound(problem, *ends[side]) for side in self.sides}
        apart, states = self.form == "implicit", (free, plus, minus)
        return contrasted(problem, states, plus, minus, high - low, self.allow_nonconvex, apart, **bounds)

    def _bound(self, problem: GradientProblem, state: State, beta: float) -> np.ndarray:
        """(batch,) L_β = (G(β) − G(0))/β."""
        block, x, _, _, free, _ = problem
        raised = block.energy(state, x) - block.energy(free, x)
        return raised / beta + self.nudging.cost(problem, state.output)


@dataclass(frozen=True)
class CoupledLearning:
    """Outputs are clamped a step η from where they are to where they should be: o^C = o^F + η (y − o^F).

        Δg = (α / 2η) [(Δv^F)² − (Δv^C)²]            the estimate is −Δg/α

    As η → 0 this is equilibrium propagation driven by S e instead of e, with e = o − y and S the conductance matrix of
    the outputs: the gradient of ½ eᵀ S e at fixed S. For one output it is parallel to the gradient of the squared
    error; for several it is not, though both vanish together.

    Parameters
    ----------
    eta : float
        Size of the step, in (0, 1].
    """

    eta: float = 0.01

    def __post_init__(self) -> None:
        if not 0.0 < self.eta <= 1.0:
            raise UsageError(f"the step of coupled learning must lie in (0, 1], not {self.eta}")

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The estimate, from one clamped state.

        Raises
        ------
        RuleError
            A loss that is not the squared error, or a block whose outputs cannot be held.
        """
        block: Any = problem.block
        loss = problem.loss
        if not (loss.quadratic and loss.gradient_lipschitz) or not hasattr(block, "clamp"):
            raise RuleError("coupled learning holds the outputs of a circuit near target voltages: squared error only")
        free = problem.free
        output = free.output - self.eta * loss.gradient(free.output, problem.target)
        clamped = block.clamp(problem.x, output, free)
        return contrasted(problem, (free, clamped), clamped, free, self.eta)


@dataclass(frozen=True)
class FrequencyPropagation:
    """The outputs receive the current −γ sin(ωt) ∂loss/∂o; each branch has its own voltage a + b sin(ωt).

        a = mean of v(t)        b = (2/T) ∫ v(t) sin(ωt) dt        Δg = −η a b / γ        the estimate is a b / γ

    Activation and error are components of one signal, at frequencies 0 and ω, without storage. The period is simulated
    at equally spaced times, quasi-statically (the circuit has no memory). Exact at every γ while the same diodes
    conduct throughout and the error is held at its free value; off by O(γ²) where the error follows the state.

    Parameters
    ----------
    gamma : float
        Amplitude; S for circuits with the squared error.
    times : int
        Times in a period, at least 3 (a and b are not determined by fewer).
    nudging : Nudging
        `ConstantCurrent`, or `FollowingCurrent` for an error that follows the state.
    """

    gamma: float = 0.01
    times: int = 8
    nudging: Nudging = CONSTANT

    def __post_init__(self) -> None:
        if not 0.0 < self.gamma < np.inf:
            raise UsageError(f"the amplitude must be positive and finite, not {self.gamma}")
        if self.times < 3:
            raise UsageError(f"a period needs at least 3 times, not {self.times}")

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The estimate, from one period.

        Raises
        ------
        RuleError
            A block that is not a circuit.
        """
        # Circuits are slow to import; chains without them need none.
        from circuitsim.blocks.circuit import CircuitState, combined

        free = problem.free
        if not isinstance(free, CircuitState):
            raise RuleError("frequency propagation needs a circuit: the branch voltages of a block over a period")
        sines = np.sin(2.0 * np.pi * np.arange(self.times) / self.times)
        states, here = [], free
        for sine in sines.tolist():
            # Each time starts at the state of the previous one; the error is that of the free state throughout, as the
            # pull is evaluated at its output.
            begin = free._replace(solution=here.solution)
            here = self.nudging.relax(problem._replace(free=begin), self.gamma * sine)  # type: ignore[assignment]
            states.append(here)
        mean = combined(states, [1.0 / self.times] * self.times)
        swing = combined(states, (2.0 / self.times * sines).tolist())
        # ½ (a + b/2)² − ½ (a − b/2)² = a b, and what is linear in the state gives b.
        above, below = combined([mean, swing], [1.0, 0.5]), combined([mean, swing], [1.0, -0.5])
        return contrasted(problem, (free, mean), above, below, self.gamma, kinks=changed([free, *states]))


@dataclass(frozen=True)
class AgnosticPropagation:
    """Parameters θ are springs at knobs u: E_tot = ‖u − θ‖²/(2ε) + E(θ, v) + β cost, minimal over v *and* θ.

    In the free phase the knobs are turned so that θ stays where it is; then they are held and the outputs nudged. θ
    moves to the minimum of the total energy:

        Δg = −(ε/2) [(Δv^β)² − (Δv⁰)²]        with Δv^β at the *new* g        = −ε β ∇loss + O(εβ (ε + β))

    so that physics itself takes the step. The estimate is −Δθ / (εβ); SGD with rate εβ makes exactly this move.

    Parameters
    ----------
    epsilon : float
        Compliance of the parameters; S/W for conductances.
    beta : float
        Strength of the nudge, positive.
    nudging : Nudging
    tolerance : float
        Largest error of the move, as a fraction of it.
    iterations : int
        Largest number of iterations for the move.
    """

    epsilon: float = 0.01
    beta: float = 0.01
    nudging: Nudging = RESISTOR
    tolerance: float = 1e-9
    iterations: int = 200

    def __post_init__(self) -> None:
        if not (0.0 < self.epsilon < np.inf and 0.0 < self.beta < np.inf):
            raise UsageError(f"epsilon and beta must be positive and finite, not {self.epsilon} and {self.beta}")

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The move of the parameters as a gradient.

        Raises
        ------
        ConvergenceError
            No steady parameters were found: ε is too large for the energy to stay convex in θ and v together.
        RuleError
            A block without an energy, or one that cannot be relaxed at other parameters within bounds.
        """
        block: Any = problem.block
        if not getattr(block, "has_energy", True):
            raise RuleError(
                "agnostic propagation needs one energy of parameters and voltages, which a circuit "
                "with controlled sources has not: use equilibrium propagation or implicit differentiation"
            )
        if not hasattr(block, "bounds"):
            raise RuleError("agnostic propagation needs a block that relaxes at trial parameters: a circuit")
        here, state = dict(block.parameters), problem.free

        def distance(one: Arrays, other: Arrays) -> float:
            return max(float(np.abs(one[name] - other[name]).max()) for name in here)

        for _ in range(self.iterations):
            start = problem.free._replace(solution=state.solution)  # type: ignore[attr-defined]
            state = self.nudging.relax(problem._replace(block=block.at(here), free=start), self.beta)
            force = block.parameter_difference(state, problem.free, problem.x, problem.weight)
            # Where the knobs let the parameters go, within their bounds.
            there = {
                name: np.clip(theta - self.epsilon * force[name], *block.bounds[name])
                for name, theta in block.parameters.items()
            }
            change, here = distance(there, here), there
            if change <= self.tolerance * distance(here, block.parameters):
                break
        else:
            raise ConvergenceError(
                f"no convergence of the parameters in {self.iterations} iterations; use a smaller epsilon or beta"
            )
        scale = self.epsilon * self.beta
        gradient = {name: (theta - here[name]) / scale for name, theta in block.parameters.items()}
        residual = np.maximum(problem.free.residual, state.residual)
        certified = problem.free.certified & state.certified
        states = (problem.free, state)
        return Estimate(gradient, None, residual, certified, kinks=changed(states), states=states)


RULES: dict[str, Any] = {
    "ep": EquilibriumPropagation,
    "bp": TruncatedBackpropagation,
    "implicit": ImplicitDifferentiation,
    "coupled": CoupledLearning,
    "frequency": FrequencyPropagation,
    "agnostic": AgnosticPropagation,
}


def rule_named(method: str | Rule, known: Collection[str] = RULES, **options: Any) -> Rule:
    """The rule of a name, with those of the options that it has; a rule as it is; an instance of a class.

    Parameters
    ----------
    method : str, Rule or its class
    known : collection of str
        Names to choose from.
    **options
        Fields of rules; ``nudging`` may be a name in `NUDGES`, or such a name with fields that differ: ``{"current":
        {"tolerance": 1e-9}}``.

    Raises
    ------
    UsageError
        A name that is not known, or a value that the rule refuses.
    """
    if not isinstance(method, str):
        return method() if isinstance(method, type) else method
    check_named(method=(method, known))
    nudging = options.get("nudging")
    if isinstance(nudging, str):
        nudging = {nudging: {}}
    if isinstance(nudging, Mapping):
        ((name, changed),) = nudging.items()
        of: Any = type(NUDGES[name])
        options["nudging"] = of(**changed)
    kind = RULES[method]
    return kind(**{field.name: options[field.name] for field in dataclasses.fields(kind) if field.name in options})


def describe_rule(rule: Rule) -> dict[str, Any]:
    """A rule as the arguments of `Chaining`; none for a rule of your own."""
    named = {type(nudging): name for name, nudging in NUDGES.items()}
    for method, kind in RULES.items():
        if type(rule) is kind:
            table = {"method": method, **vars(rule)}
            nudging = table.get("nudging")
            return table if nudging is None else table | {"nudging": {named[type(nudging)]: vars(nudging)}}
    return {}


def Chaining(
    method: str | Rule = "ep",
    beta: float = 0.02,
    form: str = "explicit",
    last: str = "stationary",
    scale_errors: bool = True,
    allow_nonconvex: bool = False,
    **fields: Any,
) -> Rule:
    """The rule of a chain after Nest & Ernoult (2024).

    Parameters
    ----------
    method : {"ep", "bp", "implicit"} or Rule
        ``ep``: blocks are relaxed with the error as nudge of either sign at their outputs (equilibrium propagation).
        ``bp``: backpropagation through as many free sweeps of relaxed blocks as a nudged phase makes (Algorithm 12);
        a block without sweeps gives its exact limit. ``implicit``: that limit for all blocks.
    beta : float
        Strength of the nudge, of either sign, relative to the block's own stiffness (`unit`): about how far the output
        moves that moves furthest.
    form : {"explicit", "implicit"}
        Whether the stages before a block receive the difference of its two states (Algorithm 4), or each state in turn
        (Algorithm 2). The results agree at every β.
    last : {"stationary", "elastic"}
        Whether the error at the last block stays as it was at the free state or follows the state (Algorithms 7, 9).
    scale_errors : bool
        Divide each sample's error by its largest entry before a block is relaxed, and multiply after: β is then the
        largest pull on any output, for every loss, and round-off is the same from block to block.
    allow_nonconvex : bool
        Compute with samples too whose nudged energy is not convex (an elastic nudge too strong for the last block).
        Otherwise they are left out; either way they count as uncertified.
    **fields
        Further fields of the rule.

    Raises
    ------
    UsageError
        A name that does not exist, or a β that is zero or no number.
    """
    nudges = {"stationary": "constant", "elastic": "current"}
    check_named(last=(last, nudges))
    chosen = {
        "beta": beta,
        "nudging": nudges[last],
        "relative": True,
        "bracket": False,
        "form": form,
        "allow_nonconvex": allow_nonconvex,
        "scale_errors": scale_errors and last == "stationary",
    }
    return rule_named(method, **{**chosen, **fields})
