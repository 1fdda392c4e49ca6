"""Masks on costs: the same view in another world, exactly; the optimum as it was; what they promise, and what they refuse."""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import sottovoce as sv
from sottovoce.accountant import epsilon_of
from sottovoce.auditor.worlds import Iteration, World, replay
from sottovoce.draws import Stream
from sottovoce.errors import ParameterError
from sottovoce.laws import law as named_law
from sottovoce.masks import Features, Quadratics
from sottovoce.mechanisms import function_masks
from sottovoce.peer.draws import NodeDraws
from sottovoce.protection import laplacian, nearest, record_gradients
from sottovoce.simulate import threads
from sottovoce.simulate.linear import behind
from sottovoce.simulate.task import prepare

B = sv.graphs.paper_b()
CYCLE = sv.Graph(5, [(i, (i + 1) % 5) for i in range(5)])
GT = "gradient-tracking"
RNG = np.random.default_rng(4)
X = RNG.standard_normal((100, 2))
Y = X @ [1.0, -0.5] + 0.3 * RNG.standard_normal(100)
SQUARES = sv.problems.least_squares(X, Y, 5)
LOGISTIC = sv.problems.logistic(X, (Y > 0).astype(int), 5)
QUADRATIC = sv.mechanism("function-masks", scale=20.0)


def matern(iterations, **given):
    given = {"scale": 1.0, "amplitude": 3.0, "features": 20 * (iterations + 1), **given}
    return sv.mechanism("function-masks", kind="matern", **given)


def played(problem, mechanisms, method=GT, graph=B, backend="eager", **given):
    given = {"stepsize": 0.01, "iterations": 40, "runs": 2, "record": True, **given}
    return sv.run(method, problem, graph, mechanisms=mechanisms, backend=backend, **given)


def task_of(problem, mechanisms, method=GT, **given):
    given = {"stepsize": 0.01, "iterations": 40, "runs": 1, "seed": 0, "x0": None, **given}
    own = given.pop("parameters", {})
    return prepare(
        sv.registry.algorithm(method), problem, B, mechanisms=mechanisms, record=True, every=1, tolerance=None, parameters=own,
        **given,
    )  # fmt: skip


# another world, in exact arithmetic -------------------------------------------------------------------------------------

VICTIM = 0
GRAPHS = {  # how the honest neighbour, node 1, is joined to node 0; the others are curious, node 4 apart where it lies between
    "out-neighbour": ([(0, 1), (1, 2), (2, 3), (3, 0), (2, 0), (1, 4), (4, 0)], (0, 1)),
    "in-neighbour": ([(1, 0), (0, 2), (2, 3), (3, 1), (0, 3), (2, 1), (3, 4), (4, 1)], (0, 1)),
    "both ways": ([(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 0)], (0, 1)),
    "an honest path": ([(0, 4), (1, 4), (4, 2), (2, 3), (3, 0), (3, 1)], (0, 4, 1)),
}


def whole(rng, *shape):
    return np.array([Fraction(int(v)) for v in rng.integers(-9, 10, int(np.prod(shape)))], object).reshape(shape)


def stochastic(rng, ends, side, n):
    """Positive rational weights whose rows or columns sum to one."""
    raw = np.array([Fraction(int(v)) for v in rng.integers(1, 9, len(ends))], object)
    sums = [sum(raw[e] for e in range(len(ends)) if ends[e][side] == i) for i in range(n)]
    return np.array([raw[e] / sums[ends[e][side]] for e in range(len(ends))], object)[:, None]


def weights(rng, graph, K, iterations, d):
    ends = sorted([*graph.edges, *((i, i) for i in range(graph.n))], key=lambda e: e[::-1])
    found = []
    for k in range(iterations):
        step = np.full((graph.n, d), Fraction(1, 97), object)
        R, A = (stochastic(rng, ends, 1, graph.n) for _ in range(2))
        C, Bs = (stochastic(rng, ends, 0, graph.n) for _ in range(2))
        if k < K:  # any numbers, each node's own share what is missing from one
            step, R, A = whole(rng, graph.n, d) / 7, whole(rng, len(ends), d) / 5, whole(rng, len(ends), d) / 5
            C, Bs = (completed(whole(rng, len(ends), d) / 5, ends) for _ in range(2))
        found.append(Iteration(step, R, A, C, Bs))
    return tuple(found)


def completed(weight, ends):
    for e, (s, r) in enumerate(ends):
        if s == r:
            weight[e] = 1 - sum(weight[f] for f in range(len(ends)) if ends[f][0] == s and f != e)
    return weight


class Cubic(SimpleNamespace):
    """Gradients a x^2 + Q x + b of cubic costs, entry by entry in a: no class of masks that the library has, and none is needed."""

    def __call__(self, x):
        return self.a * x * x + (self.Q * x[:, None]).sum(-1) + self.b

    def plus(self, others):
        return Cubic(**{name: getattr(self, name) + sum(getattr(o, name) for o in others) for name in ("a", "Q", "b")})

    def at(self, node, n):
        """This one function as a change of one node's cost."""
        place = lambda v: np.array([v if i == node else 0 * v for i in range(n)], object)
        return Cubic(a=place(self.a), Q=place(self.Q), b=place(self.b))

    def times(self, factor):
        return Cubic(a=factor * self.a, Q=factor * self.Q, b=factor * self.b)


def drawn(rng, d, cubic, *shape):
    Q = whole(rng, *shape, d, d)
    return Cubic(a=whole(rng, *shape, d) * cubic, Q=Q + np.swapaxes(Q, -1, -2), b=whole(rng, *shape, d))


def masked(costs, masks, edges, n):
    """f^_i = f_i - what leaves on its out-edges + what comes on its in-edges."""
    return costs.plus([m.at(r, n) for (_, r), m in zip(edges, masks, strict=True)] + [
        m.times(-1).at(s, n) for (s, _), m in zip(edges, masks, strict=True)])  # fmt: skip


@pytest.mark.parametrize("cubic", [0, 1], ids=["curvature", "cubic"])
@pytest.mark.parametrize("K", [0, 2])
@pytest.mark.parametrize("name", GRAPHS)
def test_another_cost_gives_the_same_transcript(name, K, cubic):
    edges, path = GRAPHS[name]
    graph, d, n = sv.Graph(5, edges), 2, 5
    rng = np.random.default_rng(sum(map(ord, name)) + K + 10 * cubic)
    numbers, x0 = weights(rng, graph, K, 4, d), whole(rng, n, d)
    costs, masks = drawn(rng, d, cubic, n), [drawn(rng, d, cubic) for _ in graph.edges]
    h = drawn(rng, d, cubic)
    play = lambda f, R: replay(World(graph, x0, masked(f, R, graph.edges, n), numbers, K, x0 * 0))
    other = costs.plus([h.at(VICTIM, n), h.times(-1).at(path[-1], n)])
    moved = dict(enumerate(masks))
    for a, b in itertools.pairwise(path):  # h goes along the path: out of the victim's cost, into its partner's
        e, sign = next((graph.edges.index(p), s) for p, s in (((a, b), 1), ((b, a), -1)) if p in graph.edges)
        moved[e] = moved[e].plus([h.times(sign)])
    here, there = play(costs, masks), play(other, [moved[e] for e in range(len(masks))])
    same = lambda one, two: all(np.array_equal(a, b) for name in ("x", "y", "u", "M") for a, b in zip(
        getattr(one, name), getattr(two, name), strict=True))  # fmt: skip
    assert same(here, there)  # every state and every message of everybody, hence every view
    curious = set(range(n)) - set(path)
    known = [e for e, (s, r) in enumerate(graph.edges) if s in curious or r in curious]
    assert known
    assert all(moved[e] is masks[e] for e in known)  # and the masks that the coalition knows are its own still
    assert not same(here, play(other, masks))  # the masks do it, nothing else
    assert not np.array_equal(costs(x0), other(x0))


def test_what_the_mechanism_computes_is_that_cost():
    """From the recorded draws alone, in NumPy: H + S and t, and for other costs the gradient of the features."""
    t = played(SQUARES, QUADRATIC, runs=1).transcript
    a = t.draws["draw-0", -1].value[:, :, 0]
    assert t.draws["draw-0", -1][:3] == ("edge", "edge", "normal(scale 1)")
    S, v = np.zeros((5, 2, 2)), np.zeros((5, 2))
    for (s, r), (p, q, w, *rest) in zip(B.edges, a, strict=True):
        M = 20 * np.array([[np.sqrt(2) * p, q], [q, np.sqrt(2) * w]])
        S[s] -= M
        S[r] += M
        v[s] -= 200 * np.array(rest)
        v[r] += 200 * np.array(rest)
    for k in (-1, 5, 39):
        x, g = (t.states[k][name][:, :, 0] for name in "xg")
        assert np.allclose(SQUARES.gradient(x) + (S @ x[..., None])[..., 0] + v, g, rtol=1e-13, atol=1e-11)
    assert np.abs(S.sum(0)).max() + np.abs(v.sum(0)).max() < 1e-12


def test_features_are_gradients_and_hessians_of_a_matern_field():
    features = Features(2, 1.5, 2.0, 40_000)
    rng = np.random.default_rng(0)
    waves = features.waves(np, rng.standard_normal((1, features.numbers, 1)), rng.uniform(-1, 1, (1, 40_000, 1)))
    a, x, e = rng.standard_normal((1, 40_000, 1)), rng.standard_normal((1, 2, 1)), 1e-6
    H = features.hessian(np, a, waves, x)[0, :, :, 0]
    for j, unit in enumerate(np.eye(2)):
        ahead, behind_ = (features.gradient(np, a, waves, x + s * e * unit[None, :, None]) for s in (1, -1))
        assert np.allclose((ahead - behind_)[0, :, 0] / (2 * e), H[:, j], atol=1e-7)
    w, phase, v = (part[0, ..., 0] for part in waves)
    r = np.array([0.0, 0.7, 2.0, 4.0])
    values = lambda at: np.sqrt(2 / 40_000) * 1.5 * v * np.cos(np.array([at, 0.0]) @ w.T + phase)
    s = np.sqrt(7) * r / 2.0
    kernel = 1.5**2 * np.exp(-s) * (1 + s + 0.4 * s**2 + s**3 / 15)
    assert np.allclose([values(0.0) @ values(at) for at in r], kernel, atol=0.06)
    assert np.allclose(features.gradients_of(waves, x[:, :, 0]) @ a[0, :, 0], features.gradient(np, a, waves, x)[0, :, 0])


# on every player, to the optimum ----------------------------------------------------------------------------------------

BOOK = sv.MaskBook.open(SQUARES, B, label=3)
CASES = [
    (SQUARES, QUADRATIC, GT, {"consensus": 3}, True), (SQUARES, QUADRATIC, "push-diging", {}, False),
    (SQUARES, sv.mechanism("function-masks", book=BOOK), "ab", {}, False), (LOGISTIC, matern(40), GT, {}, False),
    (SQUARES, QUADRATIC, "private-gradient-tracking", {"K": 2}, False),
    (LOGISTIC, matern(40, book=sv.MaskBook.open(LOGISTIC, B)), "add-opt", {}, True),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "mechanism", "method", "own", "compiled"), CASES)
def test_players_agree(problem, mechanism, method, own, compiled):
    backends = ("eager", "compiled") if compiled else ("eager", "eager")
    one, two = (played(problem, mechanism, method, backend=b, **own).trajectory for b in backends)
    three = threads.play(task_of(problem, mechanism, method, parameters=own)).answers
    size = np.maximum.accumulate(np.abs(one).max((2, 3)))
    assert (np.abs(one - two).max((2, 3)) / size).max() < 1e-12
    assert (np.abs(one[:, 0] - three[..., 0]).max((1, 2)) / size[:, 0]).max() < 1e-12


@pytest.mark.parametrize("q", [1, 3])
def test_the_optimum_stays(q):
    quadratic = sv.run(GT, SQUARES, B, mechanisms=QUADRATIC, iterations=3000, tolerance=1e-16, consensus=q, runs=3)
    assert quadratic.final.max() < 1e-12
    assert quadratic.invariant < 1e3
    other = sv.run(GT, LOGISTIC, B, mechanisms=matern(400), iterations=400, consensus=q)
    assert other.final.max() < 1e-10


def test_a_sequence_of_graphs_is_masked_on_all_its_edges():
    turns = sv.GraphSequence([sv.Graph(5, B.edges[i::2]) for i in range(2)])
    result = sv.run("push-diging", SQUARES, turns, mechanisms="function-masks:scale=2", stepsize=0.004, iterations=6000)
    assert result.final.max() < 1e-11


# the stepsize tells no more than the masked cost ------------------------------------------------------------------------


def test_the_adviser_sees_the_masked_cost_and_nothing_else(monkeypatch):
    """In the other world masks and costs differ and the masked costs do not: the advice must be the same."""
    task = task_of(SQUARES, QUADRATIC)
    h = np.array([[9.0, 4.0], [4.0, -7.0]])
    e = B.edges.index((0, 1))
    data = [np.array(part) for part in SQUARES.data]
    data[0][0] += h
    data[0][1] -= h
    twin = sv.problems.quadratic(*data)
    mask = Quadratics(2, 20.0, 10.0)
    step = lambda problem: sv.stepsize(GT, problem, B, mechanisms=QUADRATIC).good
    shares = lambda problem: behind(task_of(problem, QUADRATIC), 0, task.runs).data[0] - problem.data[0]
    seeing = lambda problem: 1 / (np.abs(np.linalg.eigvalsh(problem.data[0])) + np.abs(np.linalg.eigvalsh(shares(problem)))).max()
    here, knows_here = step(SQUARES), seeing(SQUARES)

    def moved(node, size, labels, plain=function_masks._drawn):
        found = plain(node, size, labels).copy()
        change = np.array([h[0, 0] / np.sqrt(2), h[0, 1], h[1, 1] / np.sqrt(2), 0, 0]) / mask.scale  # that of edge (0, 1) plus h
        found[B.edges[e][0], :, 0] -= change
        found[B.edges[e][1], :, 0] += change
        return found

    monkeypatch.setattr(function_masks, "_drawn", moved)
    there, knows_there = step(twin), seeing(twin)
    assert abs(there / here - 1) < 1e-9
    assert abs(knows_there / knows_here - 1) > 1e-3  # an adviser that looks behind the mask tells the worlds apart
    moved_there = played(twin, QUADRATIC, runs=1).x
    monkeypatch.undo()
    assert np.allclose(played(SQUARES, QUADRATIC, runs=1).x, moved_there, rtol=0, atol=1e-9)  # the same run


def test_advice_is_for_the_masks_of_the_run():
    advised = {seed: sv.stepsize(GT, SQUARES, B, mechanisms=QUADRATIC, seed=seed).good for seed in (0, 1)}
    assert advised[0] != advised[1]
    assert played(SQUARES, QUADRATIC, stepsize="auto", runs=1, seed=1).stepsize[0] == advised[1]
    several = sv.stepsize(GT, SQUARES, B, mechanisms=QUADRATIC, runs=8)
    assert several.good <= min(sv.stepsize(GT, SQUARES, B, mechanisms=QUADRATIC, runs=[r]).good for r in range(8)) * 1.5
    assert sv.stepsize(GT, SQUARES, B).largest > 2 * several.largest


# repeated runs ----------------------------------------------------------------------------------------------------------


def test_a_book_keeps_masks_and_adds_one_on_the_increment():
    data = [np.array(part) for part in SQUARES.data]
    data[0][2] += np.outer([1.0, 2.0], [1.0, 2.0])
    changed = sv.problems.quadratic(*data)
    of = lambda problem, book, **given: behind(
        task_of(problem, sv.mechanism("function-masks", scale=20.0, book=book), **given), given.get("seed", 0), np.arange(1)
    ).data[0]
    first = of(SQUARES, BOOK)
    assert np.array_equal(first, of(SQUARES, BOOK, seed=9))  # another run, the same masked cost
    later = BOOK.on(changed)
    assert BOOK.on(SQUARES) is BOOK
    increment = of(changed, later) - first
    assert np.abs(increment).max() > 10  # the change of 1 to 4 lies under a mask of its own
    assert np.abs(increment.sum(0) - np.outer([1.0, 2.0], [1.0, 2.0])).max() < 1e-12
    assert not np.allclose(of(SQUARES, sv.MaskBook.open(SQUARES, B, label=4)), first)
    other = sv.mechanism("function-masks", scale=40.0, book=BOOK)
    twice = behind(task_of(SQUARES, other), 0, np.arange(1)).data[0] - SQUARES.data[0]
    assert not np.allclose(twice, 2 * (first - SQUARES.data[0]))  # another scale, other masks
    for book, graph, words in ((BOOK, B, "data have changed"), (later, sv.graphs.ring(5), "of another graph")):
        with pytest.raises(ParameterError, match=words):
            played(changed, sv.mechanism("function-masks", book=book), graph=graph)
    with pytest.raises(ParameterError, match="whole number from 0 on"):
        sv.MaskBook.open(SQUARES, B, label=-1)


def test_kept_masks_on_real_nodes_come_from_their_keys_and_the_label():
    """Both ends of an edge have the same numbers in every run, under another roster too; another label gives others."""
    keys = [X25519PrivateKey.generate() for _ in range(2)]
    public = tuple(k.public_key().public_bytes_raw() for k in keys)
    node = lambda i, roster: NodeDraws(i, keys[i].private_bytes_raw(), public, roster, 7)
    ask = lambda draws, who="between": getattr(draws, who)(np, named_law("normal"), Stream(5), -1, [0], [1], 6, (0,))[0]
    one, two = (ask(node(i, roster).kept(11)) for i, roster in ((0, b"monday"), (1, b"friday")))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, ask(node(0, b"monday").kept(12)))
    assert not np.array_equal(one, ask(node(0, b"monday")))
    assert np.array_equal(*(ask(node(i, b"any").kept(11), "common") for i in (0, 1)))


# what is refused --------------------------------------------------------------------------------------------------------

PLAIN_START = {"x0": np.arange(10.0).reshape(5, 2)}
REFUSED = [
    ("leave the records of logistic costs open", LOGISTIC, QUADRATIC, GT, {}),
    ("take kind='quadratic'", SQUARES, matern(40), GT, {}),
    ("random start throws x out", LOGISTIC, matern(40), "private-gradient-tracking", {"K": 1}),
    ("random start throws x out", LOGISTIC, (matern(40), "random-start"), GT, {}),
    ("at least features=164, which is 2 .T . 1. d", LOGISTIC, matern(40, features=163), GT, {}),
    ("all nodes must start at the same point", LOGISTIC, matern(40), GT, PLAIN_START),
    ("book must be a sv.MaskBook", SQUARES, "function-masks:book=3", GT, {}),
    ("scale must be a number above 0", SQUARES, "function-masks:scale=0", GT, {}),
]


@pytest.mark.parametrize(("words", "problem", "mechanism", "method", "own"), REFUSED)
def test_refused_with_a_reason(words, problem, mechanism, method, own):
    with pytest.raises(ParameterError, match=words):
        played(problem, mechanism, method, **own)


def test_no_prox_and_nothing_to_mask():
    layer = function_masks.FunctionMasks(None, None, None)
    with pytest.raises(ParameterError, match="prox need not exist"):
        layer.prox(None, 1.0)
    idle = SimpleNamespace(minimises=False)
    assert "none to minimise" in function_masks.needs(idle, None, [])
    together = played(LOGISTIC, matern(40), runs=3).trajectory[0]
    assert (together == together[:, :1]).all()  # drawn once for all
    assert np.ptp(together[:, 0], axis=0).min() > 0.1  # another in each run


# what is promised -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("graph", "honest", "i", "best", "worst"),
    [(sv.Graph(2, [(0, 1), (1, 0)]), {0, 1}, 0, 0.5, 0.5), (B, range(5), 2, None, None),
     (sv.Graph(10, [(i, (i + s) % 10) for i in range(10) for s in (1, 9)]), range(10), 0, 0.45, 1.25),
     (sv.graphs.complete(10), range(10), 3, 0.1, 0.1)],
)  # fmt: skip
def test_effective_resistance(graph, honest, i, best, worst):
    members, L = laplacian(graph, honest)
    inverse = np.linalg.inv(L + 1 / len(members))  # an independent way to L^+
    R = [inverse[i, i] + inverse[j, j] - 2 * inverse[i, j] for j in range(len(members)) if j != i]
    assert nearest(graph, honest, i)[1] == pytest.approx(min(R))
    if best is not None:
        assert (min(R), max(R)) == pytest.approx((best, worst))
    alone = nearest(CYCLE, {0, 2}, 0)  # no honest edge
    assert alone == (None, np.inf)


def test_the_budget_is_what_the_likelihood_says():
    """The masked costs of many runs, in this world and with a record moved to its honest neighbour: mu is read off both."""
    graph, record, target = sv.Graph(3, [(0, 1), (1, 2), (2, 0), (0, 2)]), np.array([1.5, 0.5]), 0.8
    problem = sv.problems.least_squares(X[:9], Y[:9], 3)
    applied = sv.mechanism("function-masks", scale=3.0, tilt=2.0)
    told = sv.protection(problem, graph, applied, bound=(2.0, 2.0), coalition={1}, records=([record], [target])).rows[0]
    assert (told.partner, told.resistance) == (2, pytest.approx(0.5))  # an edge each way
    result = sv.run(GT, problem, graph, mechanisms=applied, stepsize=1e-3, iterations=1, runs=4000, record=True)
    draws = result.transcript.draws["draw-0", -1].value
    honest = [(e, s, r) for e, (s, r) in enumerate(graph.edges) if 1 not in (s, r)]
    seen = np.array([sum((1 if r == i else -1) * draws[e] for e, s, r in honest if i in (s, r)) for i in (0, 2)])
    S, t = np.outer(record, record), -target * record
    h = np.array([S[0, 0] / np.sqrt(2), S[0, 1], S[1, 1] / np.sqrt(2), *t / 2.0]) / 3.0
    assert np.allclose(seen[0], -seen[1])
    ratio = (seen[0] * h[:, None]).sum(0) / 2 - h @ h / 4  # log-likelihood ratio of one observation with variance 2
    assert np.mean(ratio) == pytest.approx(-(told.worst**2) / 2, abs=0.1 * told.worst**2)
    assert np.std(ratio) == pytest.approx(told.worst, rel=0.05)


def test_worst_median_runs_and_the_scale_that_is_needed():
    bound = (np.linalg.norm(X, axis=1).max(), np.abs(Y).max())
    one = sv.protection(SQUARES, B, QUADRATIC, bound=bound, records=(X, Y))
    declared = sv.protection(SQUARES, B, QUADRATIC, bound=bound)
    assert declared.worst == pytest.approx(np.sqrt(bound[0] ** 4 / 2 + (bound[0] * bound[1] / 10) ** 2) / 20)
    assert all(row.median < row.worst for row in declared.rows)
    assert one.worst <= declared.worst
    assert sv.protection(SQUARES, B, QUADRATIC, bound=bound, runs=9).worst == pytest.approx(3 * declared.worst)
    kept = sv.mechanism("function-masks", scale=20.0, book=BOOK)
    assert sv.protection(SQUARES, B, kept, bound=bound, runs=9).worst == pytest.approx(declared.worst)
    enough = sv.mechanism("function-masks", scale=20.0 * declared.times(0.5))
    row = sv.protection(SQUARES, B, enough, bound=bound).rows[0]
    assert row.worst == pytest.approx(0.5)
    assert row.guess == pytest.approx(0.598706, abs=1e-6)
    assert row.epsilon == pytest.approx(epsilon_of(0.5, 1e-5))
    assert "node 0 with node 1: mu 0.5" in str(sv.protection(SQUARES, B, enough, bound=bound))
    spread = sv.protection(SQUARES, B, QUADRATIC, bound=bound, coalition={3})
    assert spread.worst < declared.worst
    enclosed = sv.protection(SQUARES, CYCLE, QUADRATIC, bound=bound, coalition={1, 4}).rows[0]
    assert (enclosed.partner, enclosed.worst, enclosed.guess) == (None, np.inf, 1.0)
    meeting = sv.problems.rendezvous(np.arange(10.0).reshape(5, 2))
    assert sv.protection(meeting, B, QUADRATIC, bound=4.0).worst == pytest.approx(4 / 200)  # a value is a slope


def test_the_matern_budget_falls_to_that_of_the_field():
    """More features hide more, down to what the Gaussian process itself hides, here by its own covariance and 100 times as many."""
    mus = {}
    for features in (64, 320, 32_000):
        applied = matern(15, features=features, scale=0.5, length=2.0)
        result = played(LOGISTIC, applied, iterations=15, runs=1, stepsize=0.03)
        mus[features] = sv.protection(LOGISTIC, B, applied, bound=2.0, result=result, coalition={2, 3, 4}).rows[0].worst
    assert mus[64] > 2 * mus[320]
    assert mus[320] == pytest.approx(mus[32_000], rel=0.3)
    with pytest.raises(ParameterError, match="rehearsal with record=True"):
        sv.protection(LOGISTIC, B, matern(15), bound=2.0)
    with pytest.raises(ParameterError, match="other masks"):
        sv.protection(LOGISTIC, B, matern(15, features=999), bound=2.0, result=result)


def test_a_record_is_what_it_adds_to_the_cost():
    points = RNG.standard_normal((4, 2))
    found = record_gradients(LOGISTIC, X[:3], np.array([1.0, -1.0, 1.0]), points)
    for i, x in enumerate(points):
        u = np.array([1.0, -1.0, 1.0]) * (X[:3] @ x)
        expected = -(np.array([1.0, -1.0, 1.0]) / (1 + np.exp(u)))[:, None] * X[:3]
        assert np.allclose(found[:, i], expected)


def test_the_budget_asks_for_what_it_needs():
    for words, problem, masks, given in [
        ("both bounds", SQUARES, QUADRATIC, {"bound": 3.0}),
        ("one or two numbers above 0", SQUARES, QUADRATIC, {"bound": (1.0, -1.0)}),
        ("only function masks", SQUARES, "message-noise", {"bound": (1.0, 1.0)}),
        ("larger than the declared bound", SQUARES, QUADRATIC, {"bound": (0.1, 9.0), "records": (X, Y)}),
        ("shapes", SQUARES, QUADRATIC, {"bound": (9.0, 9.0), "records": (X[:, :1], Y)}),
    ]:
        with pytest.raises(ParameterError, match=words):
            sv.protection(problem, B, masks, **given)
    with pytest.raises(ParameterError, match="not for a sequence"):
        sv.protection(SQUARES, sv.GraphSequence([B, B]), QUADRATIC, bound=(1.0, 1.0))
