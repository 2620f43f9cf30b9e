"""A mesh with diodes, too large for one kernel, against an integrator."""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.sparse import csr_array, diags_array

from circuitsim import loads, transient

SIDE, FARAD, OHM, SERIES = 64, 1e-9, 1e3, 100.0


def test_mesh_with_diodes_as_an_integrator() -> None:
    """BDF on C v' = −G v + (source − v) / R − max(±v, 0) / R; two sources, 24 diodes in series with resistors,
    half of them each way."""
    stop, nodes = 1.6e-5, SIDE * SIDE
    spots = np.random.default_rng(5).permutation(nodes)[:26]
    beside = [(k, k + 1) for k in range(nodes) if (k + 1) % SIDE] + [(k, k + SIDE) for k in range(nodes - SIDE)]
    lines = ["mesh", *(f"C{k} n{k} 0 {FARAD} ic=0" for k in range(nodes))]
    lines += [f"R{a}_{b} n{a} n{b} {OHM}" for a, b in beside]
    lines += ["V0 s0 0 SIN(0 5 20k)", "V1 s1 0 PULSE(0 5 10u 1u 1u 30u)"]
    lines += [f"RS{j} s{j} n{k} {SERIES}" for j, k in enumerate(spots[:2])]
    for j, k in enumerate(spots[2:]):
        lines.append(f"RD{j} n{k} d{j} {SERIES}\nD{j} {f'd{j} 0' if j % 2 else f'0 d{j}'}")
    run = transient(loads("\n".join([*lines, f".tran {stop / 6} {stop} uic", ".end"])), method="implicit")
    ends = np.concatenate([beside, np.array(beside)[:, ::-1]])
    links = csr_array((np.full(len(ends), 1.0 / OHM), (ends[:, 0], ends[:, 1])), shape=(nodes, nodes))
    matrix = links - diags_array(links.sum(axis=1))
    sign, driven, diodes = np.where(np.arange(24) % 2, 1.0, -1.0), spots[:2], spots[2:]

    def rate(t: float, v: np.ndarray) -> np.ndarray:
        into = matrix @ v
        source = 5.0 * np.sin(4e4 * np.pi * t), 5.0 * np.interp(t, [1e-5, 1.1e-5], [0.0, 1.0])
        into[driven] += (np.array(source) - v[driven]) / SERIES
        into[diodes] -= sign * np.maximum(sign * v[diodes], 0.0) / SERIES
        return into / FARAD

    def jacobian(t: float, v: np.ndarray) -> csr_array:
        own = np.zeros(nodes)
        own[driven] = 1.0 / SERIES
        own[diodes] += (sign * v[diodes] > 0.0) / SERIES
        return csr_array((matrix - diags_array(own)) / FARAD)

    state = np.zeros(nodes)
    # From corner to corner of the pulse, which an integrator steps over.
    for begin, end in ((0.0, 1e-5), (1e-5, 1.1e-5), (1.1e-5, stop)):
        state = solve_ivp(rate, (begin, end), state, "BDF", jac=jacobian, rtol=1e-6, atol=1e-9).y[:, -1]
    found = run.at([stop])[0][0, :nodes]  # capacitors come first
    error = max(abs(found - state) / np.maximum(abs(state), 5e-3))
    assert run.difference / 10.0 < error < run.difference <= 1e-4
    assert run.certificate.certified and len(run.events) >= 6
