"""The Jacobian engine against finite differences and the counts of the reading; the two attacks that fit what was seen."""

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.auditor.attack import error_of
from sottovoce.auditor.attacks import mean_weight_regression, system_identification
from sottovoce.auditor.jacobian import directions, jacobian
from sottovoce.controls import five, late_weights_secret
from sottovoce.view import view_of

reference = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("reference.py"))))

PAPER = "private-gradient-tracking"
GRAPH, N = sv.graphs.paper_b(), 5
PROBLEM = sv.problems.estimation(n=N, d=3)
NOISE = 1e-12


def secret(each):
    return (sv.mechanism("secret-late-weights", each=each),)


def recorded(algorithm=PAPER, problem=PROBLEM, **options):
    return sv.run(algorithm, problem, GRAPH, **{"iterations": 30, "stepsize": 0.02, "record": True, **options}).transcript


@pytest.fixture(scope="module")
def scenes():
    return {
        "ab": recorded("ab"),
        **{f"K={K}": recorded(K=K) for K in (1, 3)},
        **{each: recorded(K=1, mechanisms=secret(each)) for each in ("scalar", "coordinate")},
    }


def protected(transcript, who, asset, **options):
    return {row.node: (row.protected, len(row.spreads)) for row in directions(transcript, who, **options) if row.asset == asset}


def heard(transcript, edges, iterations):
    """All that comes in on these edges: rows (iteration, exchange, vector), what is pulled once for each sender."""
    d, rows = transcript.header["coordinates"], []
    pulled = list({s: e for e, (s, r) in reversed(list(enumerate(transcript.edges))) if e in edges}.values())
    for k in range(iterations):
        for exchange, ends in ((0, sorted(pulled)), (1, edges)):
            for e in ends:
                rows += list(transcript.sent[k, exchange][e, :, 0].reshape(-1, d))
    return np.array(rows)


def rms(v):
    return np.sqrt(np.mean(np.square(v)))


@pytest.mark.parametrize(("algorithm", "options"), [
    (PAPER, {"K": 1, "mechanisms": secret("coordinate")}), ("ab", {}), ("push-pull", {}), ("diging", {}),
])  # fmt: skip
def test_derivatives_against_runs_that_were_moved_a_little(algorithm, options):
    """Central differences of whole runs, moving H, b and x^0."""
    T, d = 6, 2
    H, b = sv.problems.estimation(n=N, d=d).hessian(np.zeros(d)), np.ones((N, d))
    x0, into = np.random.default_rng(0).standard_normal((N, d)), [e for e, (_, r) in enumerate(GRAPH.edges) if r == 2]

    def play(H, b, x0):
        return recorded(algorithm, sv.problems.quadratic(H, b), iterations=T, x0=x0, **options)

    def moved(H, b, x0, asset, i, c, h):
        H, b, x0 = H.copy(), b.copy(), x0.copy()
        if asset == "curvature":
            p, q = np.transpose(np.triu_indices(d))[c]
            H[i, p, q] += h * rms(H)
            H[i, q, p] = H[i, p, q]
        else:
            v = b if asset == "offset" else x0
            v[i, c] += h * rms(v)
        return heard(play(H, b, x0), into, T)

    here = play(H, b, x0)
    J, secrets = jacobian(here, {2}, iterations=T, noise=NOISE)
    J = J.reshape(-1, d, secrets.total) * NOISE * np.abs(heard(here, into, T)).max(1)[:, None, None]
    for (i, asset), where in secrets.assets.items():
        for c in range(where.stop - where.start):
            sides = [moved(H, b, x0, asset, i, c, h) for h in (1e-5, -1e-5)]
            slope = (sides[0] - sides[1]) / 2e-5
            np.testing.assert_allclose(J[..., where.start + c], slope, atol=1e-7 * (1 + np.abs(slope).max()))


def test_derivatives_with_respect_to_weights_against_complex_steps(scenes):
    """Equation (4) of the paper, dense, with one weight at a time moved by 1e-30 i."""
    T, d, transcript = 4, 3, scenes["scalar"]
    J, secrets = jacobian(transcript, {2}, iterations=T, noise=NOISE)
    x = transcript.states[-1]["x"][..., 0]
    H, gradient = PROBLEM.hessian(np.zeros(d)), PROBLEM.gradient(np.zeros(d))
    rounds = reference.recorded(transcript, dict.fromkeys("RACB"), transcript.header["stepsize"], N)[:T]
    plain = reference.eq4(rounds, reference.quadratic(H, -gradient), x)
    per_iteration = J.reshape(T, -1, d, secrets.total)[:, [0, 2]]  # x of nodes 0 and 1, then u of each, as edges are sorted
    senders = [s for s, r in GRAPH.edges if r == 2]
    assert senders == [0, 1]
    count = 0
    for k, named in secrets.nudges.items():
        for name, nudges in named.items():
            for nudge in nudges:
                p, change = nudge.secret[0], np.zeros((5 if name == "stepsize" else 13, d))
                change[nudge.place, nudge.coordinate] = nudge.slope
                if name in "CB":
                    total = np.zeros((N, d))
                    np.add.at(total, [s for s, _ in entries()], change)
                    assert np.abs(total).max() < 1e-14, "a move of column weights must keep their sums"
                xs = reference.eq4(tilted(rounds, k, name, change), reference.quadratic(H, -gradient), x.astype(complex))
                slope = xs.imag[:T, senders] / 1e-30
                mine = per_iteration[..., p] * NOISE * np.abs(plain[:T, senders]).max(-1, keepdims=True)
                np.testing.assert_allclose(mine, slope, atol=1e-10 * (1 + np.abs(slope).max()))
                count += np.abs(slope).max() > 0
    assert count > 100


def entries():
    return sorted([*GRAPH.edges, *((i, i) for i in range(N))], key=lambda e: e[::-1])


def tilted(rounds, k, name, change):
    """The same rounds, one weight of one iteration moved into the complex plane."""
    new = [list(r) for r in rounds]
    at = "RACB".find(name) if name != "stepsize" else 4
    move = change if at == 4 else reference.dense(GRAPH.edges, N, change)
    new[k][at] = new[k][at] + 1e-30j * move
    return new


@pytest.mark.parametrize("name", ["ab", "K=1", "K=3"])
def test_public_late_weights_give_all_curvature_away(scenes, name):
    assert protected(scenes[name], {2}, "curvature") == dict.fromkeys((0, 1, 3, 4), (0, 6))


def test_a_random_start_protects_the_offset(scenes):
    assert protected(scenes["ab"], {2}, "offset") == dict.fromkeys((0, 1, 3, 4), (0, 3))
    for name in ("K=1", "K=3"):
        assert protected(scenes[name], {2}, "offset") == dict.fromkeys((0, 1, 3, 4), (3, 3))
    enclosed = protected(scenes["K=1"], {0, 2, 3}, "offset")  # all neighbours of node 1, and of node 4
    assert enclosed == dict.fromkeys((1, 4), (0, 3))


def test_secret_late_weights_of_any_size(scenes):
    """The counts of the reading, whose prior lets weights stray by one."""
    scalar = protected(scenes["scalar"], {2}, "curvature", late_spread=1.0)
    assert scalar == {0: (1, 6), 1: (1, 6), 3: (6, 6), 4: (6, 6)}
    assert protected(scenes["scalar"], {2, 3}, "curvature", late_spread=1.0)[1] == (0, 6)  # all its out-neighbours
    diagonal = protected(scenes["coordinate"], {2}, "curvature", late_spread=1.0)
    assert diagonal == dict.fromkeys((0, 1, 3, 4), (6, 6))
    assert protected(scenes["coordinate"], {2}, "offset") == dict.fromkeys((0, 1, 3, 4), (3, 3))


def test_their_declared_law_tells_more(scenes):
    """The band of the sampler is narrow: what is open for weights of any size is narrowed, bit by bit."""
    for name in ("scalar", "coordinate"):
        wide, narrow = (directions(scenes[name], {2}, late_spread=spread) for spread in (1.0, None))
        for a, b in zip(wide, narrow, strict=True):
            assert b.bits > a.bits - 1e-6
            if a.asset == "curvature":
                assert b.bits > a.bits + 2


def test_a_wire_tapper_reads_all_but_sealed_links(scenes):
    tapped = directions(scenes["coordinate"], "wire")
    assert len(tapped) == 15
    assert all(row.protected == 0 for row in tapped if row.asset != "start")
    sealed = recorded(K=1, mechanisms=("encrypted-links",))
    assert all(row.bits == 0 for row in directions(sealed, "wire"))


def test_a_larger_coalition_learns_more(scenes):
    one, two = ({(r.node, r.asset): r.bits for r in directions(scenes["scalar"], who)} for who in ({2}, {2, 3}))
    assert all(bits > one[key] - 1e-3 for key, bits in two.items())
    assert directions(scenes["ab"], range(5)) == []


def test_other_methods_and_costs_are_refused():
    with pytest.raises(sv.errors.ParameterError, match="quadratic"):
        directions(replace(recorded("ab"), costs=None), {2})
    with pytest.raises(sv.errors.ParameterError, match="gradient tracking"):
        directions(recorded("push-diging", stepsize=0.001), {2})
    with pytest.raises(sv.errors.ParameterError, match="differ"):
        directions(recorded("ab", mechanisms=(sv.mechanism("message-noise", scale=0.1),)), {2})


def test_one_node_identifies_everybody():
    view, victim, truth = system_identification.control()
    assert (victim, 2) not in GRAPH.edges
    for i in (0, 1, 3, 4):
        (estimate,) = system_identification.attack(view, i)
        assert estimate.nodes == (i,)
        assert error_of(estimate, truth) < 1e-6


def test_one_node_identifies_everybody_who_pushes_plain_increments():
    """DIGing's B = I hides increments from the secant, not from the fit; d = 1, and only x is pulled."""
    view, truth = five((2,), "diging", d=1)
    assert max(error_of(system_identification.attack(view, i)[0], truth) for i in (0, 1, 3, 4)) < 1e-6


def test_nothing_is_identified_without_weights_or_when_too_large():
    view, _ = five((2,), d=2, late="fixed")
    assert system_identification.attack(late_weights_secret(view), 4) == []
    assert system_identification.attack(five((2,), d=5)[0], 4) == []
    assert system_identification.attack(five("wire")[0], 4) == []


def test_a_view_that_the_model_cannot_explain_identifies_nothing():
    view, _ = five((2,), d=1, late="fixed")
    rng = np.random.default_rng(0)
    noisy = replace(view, sent={key: m * (1 + 0.1 * rng.standard_normal(m.shape)) for key, m in view.sent.items()})
    assert system_identification.attack(noisy, 4) == []


def test_secret_weights_average_out():
    view, victim, truth = mean_weight_regression.control()

    def error(runs):
        part = replace(view, sent={key: m[..., runs] for key, m in view.sent.items()})
        (estimate,) = mean_weight_regression.run(part, victim)
        return error_of(estimate, truth)

    single = np.median([error([r]) for r in range(9)])
    assert error(range(100)) < 0.1
    assert error(range(100)) < single / 3


def test_the_mean_says_nothing_where_weights_are_public_or_y_is_not_sent():
    assert mean_weight_regression.run(five((1,))[0], 0) == []
    for changes in ({"A": "identity"}, {"A": "R"}, {"B": "identity"}):
        view, _ = five((1,), "gradient-tracking", **{"R": "paper", "A": "paper", "C": "paper", "B": "paper", **changes},
                       mechanisms=secret("scalar"))  # fmt: skip
        assert mean_weight_regression.run(view, 0) == []


def test_a_view_from_elsewhere_does_as_well(tmp_path):
    """Attacks read a View that was saved."""
    view, victim, truth = system_identification.control()
    again = type(view).load(view.save(tmp_path))
    assert error_of(system_identification.attack(again, victim)[0], truth) < 1e-6
    assert view_of(recorded("ab"), {2}).coalition == (2,)
