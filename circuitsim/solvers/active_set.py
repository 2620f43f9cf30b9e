"""Exact solution by active sets: which diodes conduct is a finite question, and each guess is one linear circuit.

Rounds that change all wrong diodes at once are nearly always done soon, wherever they begin; where they cycle,
`dual_method` goes on one diode at a time. What they end at is solved for with all diodes closed whose ends are equal,
so that a solve may begin with the diodes of the one before and nobody can tell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.errors import ConvergenceError
from circuitsim.program import QuadraticProgram
from circuitsim.program.flow import NOISE
from circuitsim.solvers.contracted import Network, Settled, prepare, settle
from circuitsim.solvers.doubt import beyond_doubt, may_be_clear
from circuitsim.solvers.dual import dual_method
from circuitsim.solvers.linear import ROUGH
from circuitsim.solvers.rounds import judge, polish, primal_dual
from circuitsim.solvers.solution import Solution

BALANCED = 1e-12
"""Currents below this share of a node's scale are nothing that a certificate could mind."""


class ActiveSet(NamedTuple):
    """The exact solver of every size and shape.

    Attributes
    ----------
    rounds : int
        Most rounds of the primal–dual method before the dual method takes over.
    steps : int
        Most steps of the dual method per diode.
    soon : int
        Most rounds that begin with the diodes of the solve before.
    """

    rounds: int = 40
    steps: int = 20
    soon: int = 8

    def solve(self, program: QuadraticProgram, start: np.ndarray, on: np.ndarray | None = None) -> Solution:
        """Minimise the program.

        Parameters
        ----------
        program : QuadraticProgram
            Feasible and bounded (`circuitsim.program.existence`).
        start : (n + 1,) float array
            Potentials, V, that parts left free stay near.
        on : (d,) bool array, optional
            A guess at the diodes that conduct. Otherwise the rounds begin with those of the solve before (of this
            program's structure, if any), but only where that cannot show: else with none.

        Raises
        ------
        ConvergenceError
            The diode constraints contradict each other after all: the circuit is beyond double precision.
        """
        network = prepare(program)
        memo = {} if program.memo is None else program.memo
        on = np.zeros(program.tail.size, dtype=bool) if on is None else on
        guess = on if on.any() else memo.pop("conducting", None)
        if guess is not None and may_be_clear(network):
            found = self._carried_on(network, start, guess)
            if found is not None:
                memo["conducting"] = found[1]
                return found[0]
        solution, equal = self._solved(network, start, on)
        if equal is not None:
            memo["conducting"] = equal
        return solution

    def _carried_on(
        self, network: Network, start: np.ndarray, known: np.ndarray
    ) -> tuple[Solution, np.ndarray] | None:
        """As `_solved`, with rounds that begin with the diodes ``known`` and keep all that they can; None where these
        are not done soon, or in doubt.
        """
        try:
            settled, done, rounds = primal_dual(network, known, start, self.soon, keep=True)
            found = canonical(network, settled) if done else None
        except ConvergenceError:
            return None
        return None if found is None else (_solution(network, found, rounds), found.on)

    def _solved(self, network: Network, start: np.ndarray, on: np.ndarray) -> tuple[Solution, np.ndarray | None]:
        """The solution of rounds that begin with the diodes ``on``; where they could begin with any others, the diodes
        whose ends are equal (d,).
        """
        if network.laplacian.iterative:
            try:
                return self._approached(network, start, on), None
            except ConvergenceError:
                network = prepare(network.program, direct=True)
        settled, rounds, steps, doubt = self._rest(network, on, start)
        if may_be_clear(network):
            found = canonical(network, settled)
            if found is not None:
                return _solution(network, found, rounds, steps, doubt), found.on
            settled = settle(network, settled.on, settled.x)  # its factor has been used up
        settled, more = self._settled_exactly(network, settled)
        found = canonical(network, settled) if more and may_be_clear(network) else None
        if found is not None:
            return _solution(network, found, rounds + more, steps, doubt), found.on
        return _solution(network, settled, rounds + more, steps, doubt), None

    def _rest(self, network: Network, on: np.ndarray, start: np.ndarray) -> tuple[Settled, int, int, str]:
        """Where the diodes come to rest: by rounds that begin with those that are ``on``, by rounds that begin with all
        (along a chain, diodes come on one a round but go off together), or one diode at a time.

        Returns
        -------
        settled : Settled
        rounds, steps : int
            Made by the primal–dual and by the dual method.
        doubt : str
            What to tell should the certificate fail.
        """
        settled, done, rounds = primal_dual(network, on, start, self.rounds)
        if not done:
            other, done, more = primal_dual(network, np.ones(on.size, dtype=bool), settled.x, self.rounds)
            settled, rounds = other if done else settled, rounds + more
        steps, limit = 0, self.steps * (on.size + 10)
        if not done:
            settled, steps = dual_method(network, settled, limit)
        return settled, rounds, steps, f"its diodes did not settle within {steps} steps" if steps >= limit else ""

    def _settled_exactly(self, network: Network, settled: Settled) -> tuple[Settled, int]:
        """Potentials that were rounding before may contradict a diode once they are exact: polished, after more rounds
        (how many is returned too) if it takes some.
        """
        settled = polish(network, settled)
        wrong, on = judge(network, settled)
        if not wrong:
            return settled, 0
        again, done, rounds = primal_dual(network, on, settled.x, self.rounds, polish)
        return again if done else settled, rounds

    def _approached(self, network: Network, start: np.ndarray, on: np.ndarray) -> Solution:
        """The solution by conjugate gradients."""
        rounds = 0
        if on.size:
            rough, _, rounds = primal_dual(network, on, start, self.rounds, accuracy=ROUGH)
            start, on = rough.x, judge(network, rough)[1]
        settled, more, steps, doubt = self._rest(network, on, start)
        settled, further = self._settled_exactly(network, settled)
        if not settled.missing <= BALANCED:
            raise ConvergenceError("conjugate gradients left currents beyond rounding: use a factorisation")
        return _solution(network, settled, rounds + more + further, steps, doubt)


def _solution(network: Network, settled: Settled, rounds: int, steps: int = 0, doubt: str = "") -> Solution:
    """What a settled circuit says; its factor is kept for other values."""
    program = network.program
    network.laplacian.keep(settled.factored)
    carrying = np.zeros(program.tail.size, dtype=bool)
    carrying[settled.forest] = True
    closed = carrying | (settled.x[program.tail] - settled.x[program.head] >= program.bound)
    info: dict[str, object] = {"rounds": rounds, "steps": steps, "linear": network.laplacian.way}
    return Solution(settled.x, "active-set", info, closed, carrying, doubt=doubt)


def canonical(network: Network, settled: Settled) -> Settled | None:
    """The same operating point, polished, with all diodes as shorts (``on``) whose ends are equal in it.

    Which rounds led there is then forgotten, to the last bit. None where this leads elsewhere, or where rounds that
    begin with other diodes might not end with these.
    """
    for _ in range(3):
        on = _equal(network.program, settled)
        if not np.array_equal(on, settled.on):
            settled = settle(network, on, settled.x, previous=settled.factored)
        settled = polish(network, settled)
        if judge(network, settled)[0] or settled.stranded.any():
            break
        if np.array_equal(on, _equal(network.program, settled)):
            return settled._replace(on=on) if beyond_doubt(network, settled) else None
    return None


def _equal(program: QuadraticProgram, settled: Settled) -> np.ndarray:
    """The diodes whose ends are equal (d,), be it that shorts join them or that they block nothing but rounding."""
    xt, xh = settled.x[program.tail], settled.x[program.head]
    gap = xt - xh - program.bound
    near: np.ndarray = np.abs(gap) <= NOISE * (np.abs(xt) + np.abs(xh) + np.abs(program.bound))
    return near | settled.equal
