"""Witnesses: exact in rational numbers wherever Theorem 4 promises one, refused elsewhere and when a number is changed."""

import csv
import random
import tomllib
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
import scipy.stats

import sottovoce as sv
from sottovoce.auditor.plausible import log_density
from sottovoce.auditor.witness import Excluded, NoWitness, TamperedWitness, witness, witnesses
from sottovoce.auditor.witness_files import write
from sottovoce.auditor.worlds import (
    Iteration,
    Quadratics,
    World,
    gap,
    in_fractions,
    law_of,
    replay,
    view_difference,
    views_equal,
    world_of,
)
from sottovoce.errors import InputError
from sottovoce.laws import Law

# Every digraph, and rational worlds on it


def strongly_connected(n):
    """One of each class under relabelling, by brute force over all digraphs on n nodes."""
    pairs = [(s, r) for s in range(n) for r in range(n) if s != r]
    place = {pair: b for b, pair in enumerate(pairs)}
    codes = np.arange(2 ** len(pairs))
    bits = codes[:, None] >> np.arange(len(pairs)) & 1
    least = codes.copy()
    for p in permutations(range(n)):
        moved = np.array([1 << place[p[s], p[r]] for s, r in pairs], dtype=np.int64)
        least = np.minimum(least, bits @ moved)
    for row in bits[least == codes]:
        reach = np.eye(n, dtype=int)
        for (s, r), there in zip(pairs, row, strict=True):
            reach[s, r] = max(reach[s, r], there)
        if (np.linalg.matrix_power(reach, n) > 0).all():
            yield sv.Graph(n, [pair for pair, there in zip(pairs, row, strict=True) if there])


GRAPHS = {n: list(strongly_connected(n)) for n in (2, 3, 4)}


def array(shape, number):
    return np.array([number() for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape)


def rational(graph, d, K, iterations, seed=0):
    """Any world of Table II in small fractions; gradients at the start never are whole numbers."""
    rng, n = random.Random(seed), graph.n
    some = lambda: Fraction(rng.choice([-5, -3, -2, -1, 1, 2, 3, 5]), rng.choice([1, 2, 4]))
    ends = sorted([*((r, s) for s, r in graph.edges), *((i, i) for i in range(n))])
    receiver, sender = np.array(ends).T

    def early(side):
        w = array((len(ends), d), some)
        if side == "column":
            for e in np.flatnonzero(sender == receiver):
                w[e] = 1 - sum(w[f] for f in np.flatnonzero(sender == sender[e]) if f != e)
        return w

    def late(side):
        index = sender if side == "column" else receiver
        return np.array([[Fraction(1, int((index == own).sum()))] for own in index], dtype=object)

    def one(k):
        if k < K:
            return Iteration(array((n, d), some), *(early(s) for s in ("row", "row", "column", "column")))
        step = np.full((n, 1), Fraction(1, 4), dtype=object)
        return Iteration(step, *(late(s) for s in ("row", "row", "column", "column")))

    H = array((n, d, d), some)
    b = array((n, d), lambda: Fraction(rng.randrange(30), 1) + Fraction(1, 3))
    costs = Quadratics(H + H.swapaxes(1, 2), b)
    return World(graph, array((n, d), some), costs, tuple(one(k) for k in range(iterations)), K, np.full((n, d), Fraction(0)))


def coalitions(n, victim):
    others = [j for j in range(n) if j != victim]
    return [a for size in range(1, n) for a in combinations(others, size)]


def neighbours(graph, i):
    return {s for s, r in graph.edges if r == i} | {r for s, r in graph.edges if s == i}


DELTA = (Fraction(22, 7), Fraction(-5, 7))


def test_how_many_digraphs():
    assert {n: len(g) for n, g in GRAPHS.items()} == {2: 1, 3: 5, 4: 83}  # OEIS A035512


@pytest.mark.parametrize(("n", "d", "K", "iterations"), [(2, 2, 1, 4), (3, 2, 1, 4), (3, 2, 2, 5), (4, 1, 1, 3), (4, 1, 2, 3)])
def test_views_are_identical_wherever_theorem_4_promises(n, d, K, iterations):
    """Every victim and coalition; `witness` has replayed both worlds when it returns."""
    for number, graph in enumerate(GRAPHS[n]):
        world = rational(graph, d, K, iterations, seed=number)
        for i in range(n):
            for coalition in coalitions(n, i):
                if neighbours(graph, i) <= set(coalition):
                    with pytest.raises(NoWitness, match="Theorem 5"):
                        witness(world, i, DELTA[:d], coalition)
                    continue
                found = witness(world, i, DELTA[:d], coalition)
                assert found.difference == 0
                assert isinstance(found.difference, int)
                assert found.feasible
                assert found.neighbour in neighbours(graph, i) - set(coalition)


def dense(world):
    """Algorithm 1 once more, with matrices and loops over nodes, for the messages of a world."""
    n = world.graph.n
    x, g = world.x0, world.gradient(world.x0)
    y, sent = g, []
    for w in world.iterations:
        R, A, C, B = ({(r, s): v for s, r, v in zip(world.sender, world.receiver, m, strict=True)} for m in w[1:])
        u = w.stepsize * y
        x = np.array([sum(R[i, j] * x[j] - A[i, j] * u[j] for j in range(n) if (i, j) in R) for i in range(n)])
        step, g = world.gradient(x) - g, world.gradient(x)
        M = {(i, j): C[i, j] * y[j] + B[i, j] * step[j] for i, j in C}
        y = np.array([sum(M[i, j] for j in range(n) if (i, j) in M) for i in range(n)])
        sent.append((u, M))
    return x, y, sent


def test_every_neighbour_and_case_by_a_second_replay():
    """The message between the pair and their gradients differ, and nothing else that is sent."""
    cases = set()
    for graph in GRAPHS[4][::9]:
        world = rational(graph, 1, 2, 4, seed=7)
        x, y, sent = dense(world)
        for i in range(4):
            for found in witnesses(world, i, DELTA[:1], [j for j in range(4) if j != i and j != max(neighbours(graph, i))]):
                m, cases = found.neighbour, cases | {found.case}
                p, q, sent_there = dense(found.other)
                assert (x == p).all()
                assert (y == q).all()
                for k, ((u, M), (v, N)) in enumerate(zip(sent, sent_there, strict=True)):
                    assert (u == v).all()
                    r = m if found.case == "I" else i
                    assert {e for e in M if (M[e] != N[e]).any()} == ({(r, i), (r, m)} if k == 0 else set())
    assert cases == {"I", "II"}


# What is refused


def printed(found):
    """The equations as the paper prints them: in case I its line C' = C undoes the change, in case II c_mi, c_mm stay."""
    world, i, m, delta = found.world, found.victim, found.neighbour, found.delta
    y, first, there = world.gradient(world.x0), world.iterations[0], found.other.iterations[0]
    C = np.array(first.C)
    if found.case == "II":
        for e, (s, r) in enumerate(zip(world.sender, world.receiver, strict=True)):
            if s == i and r != m:
                C[e] = (first.C[e] * y[i] + delta * int(r == i)) / (y[i] + delta)
            if s == m and r != m:
                C[e] = (first.C[e] * y[m] - delta * int(r == i)) / (y[m] - delta)
    return replace(found.other, iterations=(there._replace(C=C), *found.other.iterations[1:]))


def test_the_printed_construction_fails():
    """The negative control: both of its cases, each refused, and each seen by the coalition."""
    graph = sv.Graph(4, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 0), (0, 3)])
    world = rational(graph, 2, 1, 4)
    found = witnesses(world, 1, DELTA, [2, 3])
    assert {w.case for w in found} == {"I", "II"}
    for right in found:
        wrong = replace(right, other=printed(right))
        assert view_difference(world, wrong.other, (2, 3)) > 0
        assert wrong.feasible == (right.case == "I")  # in case II a column does not sum to one
        with pytest.raises(TamperedWitness):
            wrong.check()


def test_excluded_deltas_are_refused():
    graph = sv.Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0), (1, 0), (0, 2)])
    world = rational(graph, 2, 1, 3)
    y = world.gradient(world.x0)
    with pytest.raises(Excluded, match="Theorem 4 is false"):
        witness(world, 0, [Fraction(1), -y[0, 1]], [3])
    with pytest.raises(Excluded, match="every honest neighbour"):
        witness(world, 3, [y[0, 0], Fraction(1)], [2])  # node 0 is the only one left
    assert witness(world, 0, [y[1, 0], Fraction(1)], [3]).neighbour == 2  # another neighbour takes it
    for delta in (0, [1, 2, 3], [[1, 2]]):
        with pytest.raises(InputError, match="delta"):
            witness(world, 0, delta, [3])


def test_a_coordinate_that_is_not_shifted_may_have_a_gradient_of_zero():
    world = rational(GRAPHS[3][0], 2, 1, 3)
    b = np.array(world.costs.b)
    b[:, 1] += world.gradient(world.x0)[:, 1]
    world = replace(world, costs=world.costs._replace(b=b))
    assert not world.gradient(world.x0)[:, 1].any()
    assert witness(world, 0, [Fraction(1, 7), Fraction(0)], [1]).difference == 0


def test_no_witness_where_nothing_is_promised():
    world = rational(GRAPHS[3][0], 1, 1, 3)
    with pytest.raises(NoWitness, match="K = 0"):
        witness(replace(world, settled=0), 0, DELTA[:1], [1])
    with pytest.raises(NoWitness, match="wire-tapper"):
        witness(world, 0, DELTA[:1], "wire")
    with pytest.raises(NoWitness, match="column of C"):
        witness(changed(world, 0, "C", 0, Fraction(1, 10**6)), 0, DELTA[:1], [1])
    for coalition in ([0], [], [3]):
        with pytest.raises(InputError, match="coalition"):
            witness(world, 0, DELTA[:1], coalition)


def changed(world, k, name, row, by):
    """The same world but for one number."""
    value = np.array(getattr(world.iterations[k], name))
    value[row, 0] += by
    iterations = list(world.iterations)
    iterations[k] = iterations[k]._replace(**{name: value})
    return replace(world, iterations=tuple(iterations))


def other_number(array, index):
    copy = np.array(array)
    copy[index] += Fraction(1, 10**9)
    return copy


def tampered(world):
    """Every world that differs in one number."""
    for k, numbers in enumerate(world.iterations):
        for name in Iteration._fields:
            for row in range(len(getattr(numbers, name))):
                yield f"{name} {k} {row}", changed(world, k, name, row, Fraction(1, 10**9))
    for i in range(world.graph.n):
        yield f"x0 {i}", replace(world, x0=other_number(world.x0, (i, 0)))
        yield f"shift {i}", replace(world, shift=other_number(world.shift, (i, 0)))
        yield f"b {i}", replace(world, costs=world.costs._replace(b=other_number(world.costs.b, (i, 0))))
        yield f"H {i}", replace(world, costs=world.costs._replace(H=other_number(world.costs.H, (i, 0, 0))))
    yield "K", replace(world, settled=world.settled + 1)
    yield "length", replace(world, iterations=world.iterations[:-1])


@pytest.mark.parametrize("case", ["I", "II"])
def test_a_witness_with_any_one_number_changed_is_refused(case):
    graph = sv.Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0), (1, 0), (0, 2)])
    world = replace(rational(graph, 1, 1, 3), law=Law("cauchy", 2.0))
    found = next(w for w in witnesses(world, 0, DELTA[:1], [3]) if w.case == case)
    found.check()
    worse = {f"other {what}": replace(found, other=o) for what, o in tampered(found.other)}
    worse |= {f"world {what}": replace(found, world=w) for what, w in tampered(found.world)}
    worse["victim"] = replace(found, victim=2)
    worse["neighbour"] = replace(found, neighbour=3 - found.neighbour)
    worse["case"] = replace(found, case={"I": "II", "II": "I"}[case])
    worse["delta"] = replace(found, delta=found.delta + Fraction(1, 10**9))
    worse["coalition"] = replace(found, coalition=(found.neighbour,))
    worse["difference"] = replace(found, difference=Fraction(1, 10**30))
    worse["ratio"] = replace(found, log_likelihood_ratio=found.log_likelihood_ratio + 1e-9)
    for what, wrong in worse.items():
        try:
            wrong.check()
        except TamperedWitness:
            continue
        pytest.fail(f"{what} was changed and not refused")


def test_two_changes_that_hide_each_other_are_refused():
    """Nothing that is sent elsewhere shows them: columns that do not sum to one, and an honest node's weights."""
    graph = sv.Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0), (1, 0), (0, 2)])
    found = next(w for w in witnesses(rational(graph, 1, 1, 3), 0, DELTA[:1], [3]) if (w.neighbour, w.case) == (1, "I"))
    other, entry = found.other, {(s, r): e for e, (s, r) in enumerate(zip(found.other.sender, found.other.receiver, strict=True))}
    played, bit = replay(other), Fraction(1, 9)
    y, x, u = (v[0][:, 0] for v in (played.y, played.x, played.u))
    columns = changed(changed(other, 0, "C", entry[0, 1], bit), 0, "C", entry[1, 1], -bit * y[0] / y[1])
    weights = changed(changed(other, 0, "R", entry[1, 2], bit), 0, "A", entry[1, 2], bit * x[1] / u[1])
    for wrong, why in ((columns, "column of C"), (weights, "R of iteration 0")):
        assert view_difference(found.world, wrong, [3]) == 0
        with pytest.raises(TamperedWitness, match=why):
            replace(found, other=wrong).check()


# float64, from a recorded run


def recorded(**options):
    problem = sv.problems.estimation(n=5, d=2, s=3, scale=0.5, seed=0)
    options = {"stepsize": 0.06, "K": 3, "iterations": 40, "record": True} | options
    return sv.run("private-gradient-tracking", problem, sv.graphs.paper_b(), **options).transcript


@pytest.mark.parametrize("options", [{}, {"K": 1, "law": "cauchy"}, {"late": "fixed", "runs": 3}])
def test_the_replay_sends_what_the_simulator_sent(options):
    transcript = recorded(**options)
    run = options.get("runs", 1) - 1
    world = world_of(transcript, run)
    played, edges = replay(world), world.sender != world.receiver
    for k in range(transcript.iterations):
        pulled = np.concatenate([played.x[k], played.u[k]], axis=1)[world.sender[edges]]
        for mine, theirs in ((pulled, transcript.sent[k, 0]), (played.M[k][edges], transcript.sent[k, 1])):
            largest = max(np.abs(transcript.sent[t, e][..., run]).max() for t in range(k + 1) for e in (0, 1))
            assert np.abs(mine - theirs[..., run]).max() <= 1e-12 * largest


@pytest.mark.parametrize("options", [{}, {"K": 1, "law": "laplace"}, {"K": 2, "law": "log-laplace", "scale": 0.3}])
def test_float_witnesses_of_a_recorded_run(options):
    transcript = recorded(**options)
    world = world_of(transcript)
    for i in range(5):
        for coalition in coalitions(5, i)[::3]:
            if neighbours(world.graph, i) <= set(coalition):
                continue
            for found in witnesses(world, i, [1.7, -0.4], coalition):
                found.check()
                assert found.difference <= 1e-12
                assert found.feasible
                assert views_equal(world, found.other, coalition)
                assert gap([world.gradient(world.x0)[i] + [1.7, -0.4]], [found.other.gradient(world.x0)[i]]) < 1e-15
                assert not views_equal(world, found.other, {found.neighbour})  # whose own draws differ


def test_a_recorded_run_in_rational_numbers():
    """Where float64 is too coarse for a delta, fractions are not; the rational world is the recorded one to rounding."""
    world = world_of(recorded())
    with pytest.raises(NoWitness, match="in_fractions"):
        witness(world, 0, 1e9, [2])
    exact = in_fractions(world, 12)
    assert gap(replay(world).x[:13], [x.astype(float) for x in replay(exact).x]) < 1e-12
    assert witness(exact, 0, Fraction(10**9), [2]).difference == 0


def test_a_cost_that_is_no_quadratic():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), np.sign(rng.standard_normal(30))
    problem = sv.problems.logistic(X, (y > 0).astype(int), np.repeat(range(5), 6), l2=1.0)
    t = sv.run("private-gradient-tracking", problem, sv.graphs.paper_b(), stepsize=0.02, iterations=30, record=True).transcript
    found = witness(world_of(t), 0, [3.0, -2.0], [2, 3, 4])
    assert found.neighbour == 1
    assert found.difference <= 1e-12
    found.check()
    with pytest.raises(InputError, match="quadratic"):
        in_fractions(found.world)


def test_other_methods_of_gradient_tracking():
    """Weights that are the identity, or the same as another, after the random start."""
    problem, start = sv.problems.estimation(n=5, d=2, seed=0, scale=0.5), sv.mechanism("random-start", K=1)
    for name in ("ab", "push-pull", "push-pull-du", "gradient-tracking"):
        t = sv.run(name, problem, sv.graphs.paper_b(), stepsize=0.02, iterations=20, record=True, mechanisms=(start,)).transcript
        assert witness(world_of(t), 0, 1.0, [2]).difference <= 1e-12
        bare = sv.run(name, problem, sv.graphs.paper_b(), stepsize=0.02, iterations=20, record=True).transcript
        with pytest.raises(NoWitness, match="K = 0"):
            witness(world_of(bare), 0, 1.0, [2])


def test_transcripts_that_tell_of_no_world(tmp_path):
    transcript = recorded()
    loaded = sv.Transcript.load(transcript.save(tmp_path))
    with pytest.raises(InputError, match="problem="):
        world_of(loaded)
    assert view_difference(world_of(transcript), world_of(loaded, problem=transcript.costs), range(5)) == 0
    with pytest.raises(InputError, match="no run 1"):
        world_of(transcript, 1)
    draws = dict(transcript.draws)
    value = np.array(draws["C", 5].value)
    value[3] += 1e-6
    with pytest.raises(InputError, match="replay"):
        world_of(replace(transcript, draws=draws | {("C", 5): draws["C", 5]._replace(value=value)}))
    everybody_knows = {("stepsize", 0): draws["stepsize", 0]._replace(known="all")}
    world = world_of(replace(transcript, draws=draws | everybody_knows))
    with pytest.raises(NoWitness, match="K = 0"):
        witness(world, 0, 1.0, [2])
    two_way = sv.graphs.cycle(5, two_way=True)
    t = sv.run("dgd", transcript.costs, two_way, stepsize=0.01, iterations=3, record=True).transcript
    with pytest.raises(InputError, match="another method"):
        world_of(t)


# Likelihood


LAWS = {
    "normal": scipy.stats.norm.logpdf,
    "laplace": scipy.stats.laplace.logpdf,
    "cauchy": scipy.stats.cauchy.logpdf,
    "uniform": lambda w, scale: scipy.stats.uniform.logpdf(w, -scale, 2 * scale),
    "log-laplace": lambda w, scale: scipy.stats.laplace.logpdf(np.log(abs(w) / scale), scale=8) - np.log(2 * abs(w)),
}


@pytest.mark.parametrize("name", LAWS)
def test_likelihood_ratio_against_scipy(name):
    transcript = recorded(law=name, scale=0.7, iterations=5)
    world = world_of(transcript)
    found = witness(world, 0, [0.02, 0.0], [2])
    m, expected = found.neighbour, 0.0
    a, b = world.iterations[0], found.other.iterations[0]
    for node in (0, m):
        expected += LAWS[name](b.stepsize[node, 0], scale=0.7) - LAWS[name](a.stepsize[node, 0], scale=0.7)
        for e, (s, r) in enumerate(zip(world.sender, world.receiver, strict=True)):
            if s == node != r:
                expected += LAWS[name](b.C[e, 0], scale=0.7) - LAWS[name](a.C[e, 0], scale=0.7)
    assert found.log_likelihood_ratio == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found.feasible == np.isfinite(expected)
    w = np.linspace(-2, 2, 8)
    assert log_density(Law(name, 0.7), w) == pytest.approx(LAWS[name](w, scale=0.7))


def test_a_law_that_cannot_draw_the_other_world():
    world = world_of(recorded(law="uniform", scale=0.7, iterations=3))
    found = witness(world, 0, -0.999 * world.gradient(world.x0)[0], [2])
    assert found.log_likelihood_ratio == -np.inf
    assert not found.feasible
    assert witness(replace(world, law=None), 0, 1.0, [2]).log_likelihood_ratio is None
    assert law_of("unit") is None
    assert law_of("log-laplace(scale 2, spread 3)") == Law("log-laplace", 2.0, 3.0)


def test_volume_is_the_determinant_of_the_construction():
    """By differences over every drawn number of i and m, their own shares following."""
    world = world_of(recorded(iterations=3))
    found = witness(world, 0, [0.8, 0.0], [2])
    pair, C = [0, found.neighbour], world.iterations[0].C
    mine = [("stepsize", i) for i in pair]
    mine += [("C", e) for e in range(len(C)) if world.sender[e] in pair and world.sender[e] != world.receiver[e]]

    def image(w):
        chosen = next(v for v in witnesses(w, 0, [0.8, 0.0], [2]) if (v.neighbour, v.case) == (found.neighbour, found.case))
        return np.array([getattr(chosen.other.iterations[0], name)[row, 0] for name, row in mine])

    def moved(name, row):
        w = changed(world, 0, name, row, 1e-4)
        own = np.flatnonzero((w.sender == w.receiver) & (w.sender == w.sender[row]))[0]
        return changed(w, 0, "C", own, -1e-4) if name == "C" else w

    J = np.array([(image(moved(*which)) - image(world)) / 1e-4 for which in mine])
    assert found.log_volume == pytest.approx(np.linalg.slogdet(J)[1], abs=1e-6)


# On disk


def test_two_worlds_side_by_side(tmp_path):
    world = rational(sv.Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0), (1, 0), (0, 2)]), 2, 1, 3)
    found = witness(world, 0, DELTA, [3])
    about = tomllib.loads((write(found, tmp_path) / "witness.toml").read_text())
    assert (about["delta"], about["difference"], about["coalition"]) == (["22/7", "-5/7"], 0, [3])
    read = lambda name: list(csv.DictReader((tmp_path / f"{name}.csv").read_text().splitlines()))
    tables = {name: read(name) for name in ("costs", "draws", "view")}
    assert all(row["this world"] == row["other world"] for row in tables["view"])
    assert len(tables["view"]) > 50
    shifts = {(int(r["node"]), int(r["coordinate"])): Fraction(r["other world"]) - Fraction(r["this world"])
              for r in tables["costs"] if r["quantity"] == "b"}  # fmt: skip
    m = found.neighbour
    assert shifts == {(0, 0): -DELTA[0], (0, 1): -DELTA[1], (m, 0): DELTA[0], (m, 1): DELTA[1]}
    for quantity in ("Lambda", "C"):
        assert {int(r["sender"]) for r in tables["draws"] if r["quantity"] == quantity} == {0, m}
    columns = [sum(Fraction(r["other world"]) for r in tables["draws"]
                   if (r["quantity"], r["sender"], r["coordinate"]) == ("C", str(i), l)) for i in (0, m) for l in "01"]  # fmt: skip
    assert columns == [1, 1, 1, 1]
