"""Problems against independent computations: differences, dense solutions, scikit-learn, SciPy."""

from __future__ import annotations

import re
import sys
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from sottovoce import problems
from sottovoce.errors import NotInstalled, ParameterError, ProblemError, UnknownName
from sottovoce.problem import Problem
from sottovoce.problem_user import x64
from sottovoce.problems.catalogue import build, catalogue

jax = pytest.importorskip("jax")
jnp = jax.numpy
rng = np.random.default_rng(5)
RECORDS = rng.standard_normal((40, 3)) * [1, 3, 0.2]
TARGETS = RECORDS @ [1.0, -0.5, 2.0] + rng.standard_normal(40)
SITES = rng.integers(0, 4, 40)
CLASSES = np.where(rng.standard_normal(40) + TARGETS > 0, "yes", "no")


def quarter(x, data):
    """A convex cost that is no quadratic: each node holds (a, t)."""
    a, t = data
    return jnp.sum(jnp.logaddexp(0.0, a @ x - t)) + jnp.sum(x**2) / 4


def ragged():
    return [(rng.standard_normal((m, 2)), rng.standard_normal(m)) for m in (3, 1, 3, 2, 1)]


MAKERS = {
    "rendezvous": lambda: problems.rendezvous(rng.standard_normal((5, 2))),
    "total": lambda: problems.total(rng.standard_normal((5, 2))),
    "estimation": lambda: problems.estimation(5, 2, scale=0.5, sigma=0.1),
    "wide": lambda: problems.estimation(4, 9, 5),
    "least squares": lambda: problems.least_squares(RECORDS, TARGETS, SITES, l2=0.3, intercept=True),
    "logistic": lambda: problems.logistic(RECORDS, CLASSES, SITES, intercept=True),
    "huber": lambda: problems.huber(RECORDS, TARGETS, SITES, delta=0.7, l2=0.2),
    "user": lambda: Problem(quarter, ragged(), 2),
    "user, equal shapes": lambda: Problem(lambda x, a: jnp.sum(jnp.cosh(x - a)), rng.standard_normal((4, 2)), 2),
}
BUILT = {name: make() for name, make in MAKERS.items()}


def differences(function, x, width=1e-6):
    """d function_i / d x_i by central differences; the new axis is the last."""
    moved = []
    for j in range(x.shape[1]):
        step = np.zeros_like(x)
        step[:, j] = width
        moved.append((function(x + step) - function(x - step)) / (2 * width))
    return np.stack(moved, axis=-1)


@pytest.fixture(params=BUILT)
def problem(request):
    return BUILT[request.param]


def test_derivatives_are_difference_quotients(problem):
    x = np.random.default_rng(1).standard_normal((problem.n, problem.d))
    scale = 1 + np.abs(problem.hessian(x)).max()
    np.testing.assert_allclose(problem.gradient(x), differences(problem.value, x), atol=2e-8 * scale)
    np.testing.assert_allclose(problem.hessian(x), differences(problem.gradient, x), atol=2e-8 * scale)


def test_gradients_sum_to_rounding_at_the_optimum(problem):
    slopes = problem.gradient(problem.optimum)
    scale = np.abs(slopes).max() + np.abs(problem.hessian(problem.optimum)).max() * np.abs(problem.optimum).max()
    assert np.abs(slopes.sum(axis=0)).max() <= 1e-14 * problem.n * scale


def test_numpy_and_jax_compute_the_same(problem):
    x = np.random.default_rng(2).standard_normal((problem.n, problem.d, 3))
    p, q = 2 * x[::-1], np.random.default_rng(3).uniform(0.1, 2, (problem.n, 1, 3))
    family, data = problem.family, problem.data
    for verb, arguments in (("value", (x,)), ("gradient", (x,)), ("hessian", (x,)), ("prox", (p, q))):
        ours = getattr(family, verb)(np, data, *arguments)
        with x64():
            theirs = jax.jit(lambda data, *a, verb=verb: getattr(family, verb)(jnp, data, *a))(data, *arguments)
            theirs = np.asarray(theirs)
        assert ours.dtype == theirs.dtype == np.float64
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13 * np.abs(ours).max(), err_msg=verb)
    assert not jax.config.jax_enable_x64


def test_prox_is_the_minimiser(problem):
    x = np.random.default_rng(4).standard_normal((problem.n, problem.d))
    q = np.linspace(0.3, 2, problem.n)
    found = problem.prox(x, q)
    np.testing.assert_allclose(problem.gradient(found) + x + q[:, None] * found, 0, atol=1e-12 * (1 + np.abs(x).max()))
    one_for_all = problem.family.prox(np, problem.data, x[..., None], 0.5)[..., 0]
    np.testing.assert_allclose(one_for_all, problem.prox(x, 0.5), rtol=1e-13, atol=1e-13)
    i = problem.n - 1

    def phi(point):
        return problem.value(point)[i] + x[i] @ point + q[i] * point @ point / 2

    independent = minimize(phi, np.zeros(problem.d), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(found[i], independent.x, atol=1e-4)


def test_one_node_alone_computes_the_same(problem):
    x = np.random.default_rng(6).standard_normal((problem.n, problem.d))
    alone = [problem.family.gradient(np, problem.only(i), x[i : i + 1, :, None]) for i in range(problem.n)]
    np.testing.assert_allclose(np.concatenate(alone)[..., 0], problem.gradient(x), rtol=1e-13, atol=1e-13)


def test_smoothness_bounds_every_hessian(problem):
    for factor in (0, 1, 10) if problem.family.name != "cost" else ():
        hessians = problem.hessian(factor * np.random.default_rng(7).standard_normal(problem.d))
        assert (np.linalg.eigvalsh(hessians).max(axis=1) <= problem.smoothness * (1 + 1e-12)).all()
    if problem.family.name == "cost":
        highest = np.linalg.eigvalsh(problem.hessian(problem.optimum)).max(axis=1)
        np.testing.assert_allclose(problem.smoothness, highest)


def test_the_quadratic_model_matches_at_the_optimum(problem):
    model, x = problem.quadratic_model(), problem.optimum
    assert (model is problem) == (problem.family.name == "quadratic")
    assert model.optimum is problem.optimum or np.array_equal(model.optimum, x)
    for verb in ("value", "gradient", "hessian"):
        np.testing.assert_allclose(getattr(model, verb)(x), getattr(problem, verb)(x), atol=1e-11)


# The optimum and the cost, against others


def test_estimation_is_the_papers():
    Q, z, sigma = rng.standard_normal((4, 3, 2)), rng.standard_normal((4, 3)), np.array([0.0, 0.1, 0.2, 0.3])
    problem, x = problems.estimation(Q=Q, z=z, sigma=sigma), rng.standard_normal(2)
    by_hand = [np.sum((z[i] - Q[i] @ x) ** 2) + sigma[i] * x @ x for i in range(4)]
    np.testing.assert_allclose(problem.value(x), by_hand, rtol=1e-13)
    rows = np.vstack([*Q, *(np.sqrt(s) * np.eye(2) for s in sigma)])
    dense = np.linalg.lstsq(rows, np.concatenate([z.ravel(), np.zeros(8)]), rcond=None)[0]
    np.testing.assert_allclose(problem.optimum, dense, rtol=1e-12)


def test_drawn_estimation_recovers_the_truth_and_repeats():
    first, again = problems.estimation(50, 2, noise=1e-9, seed=3), problems.estimation(50, 2, noise=1e-9, seed=3)
    truth_rng = np.random.default_rng(3)
    truth_rng.standard_normal((50, 3, 2))
    np.testing.assert_allclose(first.optimum, truth_rng.standard_normal(2), atol=1e-8)
    assert first.digest() == again.digest() != problems.estimation(50, 2, noise=1e-9, seed=4).digest()
    spread = problems.estimation(300, 2, scale=2.0).hessian(np.zeros(2)).mean(axis=0)
    np.testing.assert_allclose(spread, 2 * 3 * 4 * np.eye(2), atol=3)


@pytest.mark.parametrize("intercept", [False, True])
def test_least_squares_is_lstsq(intercept):
    problem = problems.least_squares(RECORDS, TARGETS, SITES, intercept=intercept)
    X = np.column_stack([RECORDS, np.ones(40)]) if intercept else RECORDS
    np.testing.assert_allclose(problem.optimum, np.linalg.lstsq(X, TARGETS, rcond=None)[0], rtol=1e-12)
    by_hand = [np.sum((X[s == SITES] @ problem.optimum - TARGETS[s == SITES]) ** 2) / 2 for s in range(4)]
    np.testing.assert_allclose(problem.value(problem.optimum), by_hand, rtol=1e-12)
    assert problem.labels == (0, 1, 2, 3)


@pytest.mark.parametrize("intercept", [False, True])
def test_logistic_is_scikit_learns(intercept):
    from sklearn.linear_model import LogisticRegression

    problem = problems.logistic(RECORDS, CLASSES, SITES, intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its line search complains at rounding level
        peer = LogisticRegression(C=1.0, tol=1e-14, solver="newton-cholesky", fit_intercept=intercept, max_iter=500)
        peer.fit(RECORDS, CLASSES)
    weights = np.concatenate([peer.coef_[0], peer.intercept_]) if intercept else peer.coef_[0]
    np.testing.assert_allclose(problem.optimum, weights, rtol=1e-11)


def test_logistic_value_is_the_log_loss_and_never_overflows():
    problem = problems.logistic(RECORDS, CLASSES, SITES, l2=0.5)
    x, signs = np.array([0.3, -1.0, 2.0]), np.where(CLASSES == "yes", 1, -1)
    losses = np.log1p(np.exp(-signs * (RECORDS @ x)))
    np.testing.assert_allclose(problem.value(x).sum(), losses.sum() + 0.25 * x @ x, rtol=1e-13)
    assert np.isfinite(problem.value(1e6 * x)).all()
    assert np.isfinite(problem.gradient(1e6 * x)).all()
    assert np.isfinite(problem.hessian(1e6 * x)).all()


def test_logistic_on_columns_of_very_different_sizes():
    problem = problems.logistic(RECORDS * [1e4, 1, 1e-3], CLASSES, 4, intercept=True)
    assert np.abs(problem.gradient(problem.optimum).sum(axis=0) / [1e4, 1, 1e-3, 1]).max() < 1e-11


@pytest.mark.parametrize("outliers", [0.0, 1e4])
def test_huber_is_scipys(outliers):
    y = TARGETS + outliers * (np.arange(40) % 7 == 0)
    problem = problems.huber(RECORDS, y, 4, delta=0.7)

    def loss(w):
        r = np.abs(RECORDS @ w - y)
        return np.sum(np.where(r <= 0.7, r**2 / 2, 0.7 * (r - 0.35)))

    found = minimize(loss, problem.optimum + 0.1, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    np.testing.assert_allclose(problem.value(problem.optimum).sum(), loss(problem.optimum), rtol=1e-13)
    assert loss(problem.optimum) <= found.fun * (1 + 1e-13)
    np.testing.assert_allclose(problem.optimum, found.x, atol=1e-5)


def test_huber_from_a_start_without_curvature():
    problem = problems.huber(RECORDS, TARGETS + 1e3, 4, delta=0.5, intercept=True)
    assert np.abs(problem.gradient(problem.optimum).sum(axis=0)).max() < 1e-11


@pytest.mark.parametrize("seed", [6, 19, 42, 95, 105])
def test_huber_nearly_absolute_on_badly_scaled_columns(seed):
    draw = np.random.default_rng(seed)
    units = 10.0 ** draw.uniform(-3, 3, 3)
    X = draw.standard_normal((35, 3)) * units
    problem = problems.huber(X, X @ (1 / units) + draw.standard_cauchy(35), 3, delta=0.01)
    assert np.abs(problem.gradient(problem.optimum).sum(axis=0) / units).max() < 1e-12


def test_means_and_sums_are_exact():
    values = np.array([1e16, 1.0, -1e16, 3.0])
    assert problems.total(values).optimum == [4.0]
    assert problems.average(values).optimum == [1.0]
    np.testing.assert_array_equal(problems.average(values).values, values[:, None])
    np.testing.assert_array_equal(problems.total(values).gradient([7.0]), 0)


def test_quadratic_by_hand():
    problem = problems.quadratic([[[2.0, 1.0], [1.0, 3.0]]], [[1.0, 2.0]], [5.0])
    assert problem.value([1.0, 1.0]) == [7 / 2 - 3 + 5]
    np.testing.assert_allclose(problem.optimum, [0.2, 0.6], rtol=1e-15)


# Users' functions


def test_a_cost_equals_the_closed_form():
    X, y = RECORDS.reshape(4, 10, 3), TARGETS.reshape(4, 10)
    cost = lambda x, data: jnp.sum((data["X"] @ x - data["y"]) ** 2) / 2
    ours = Problem(cost, [{"X": a, "y": b} for a, b in zip(X, y, strict=True)], 3, labels="abcd")
    ready, x = problems.least_squares(RECORDS, TARGETS, 4), rng.standard_normal((4, 3))
    for verb in ("value", "gradient", "hessian"):
        np.testing.assert_allclose(getattr(ours, verb)(x), getattr(ready, verb)(x), rtol=1e-12)
    np.testing.assert_allclose(ours.optimum, ready.optimum, rtol=1e-12)
    assert type(ours.gradient(x)) is np.ndarray
    assert ours.traceable
    assert ours.labels == tuple("abcd")


def test_what_a_cost_closes_over_may_change_between_two_problems():
    scale = [1.0]
    cost = lambda x, a: scale[0] * jnp.sum((x - a) ** 2)
    first = Problem(cost, [1.0, 2.0], 2)
    x = np.ones((2, 2))
    before = first.gradient(x)
    scale[0] = 3.0
    second = Problem(cost, [1.0, 2.0], 2)
    assert first.family != second.family
    np.testing.assert_allclose(second.gradient(x), 3 * before, rtol=1e-12)


def test_ragged_nodes_come_back_in_order():
    data = ragged()
    together, x = Problem(quarter, data, 2), rng.standard_normal((5, 2))
    assert len(together.data[2]) == 3
    for i, entry in enumerate(data):
        alone = Problem(quarter, [entry], 2)
        np.testing.assert_allclose(together.gradient(x)[i], alone.gradient(x[i])[0], rtol=1e-13)


def test_a_numpy_gradient_runs_without_a_value():
    problem = Problem(gradient=lambda x, a: np.sinh(x - a), data=rng.standard_normal((3, 2)), d=2)
    twin = Problem(lambda x, a: jnp.sum(jnp.cosh(x - a)), np.array(problem.data), 2)
    x = rng.standard_normal((3, 2))
    np.testing.assert_allclose(problem.gradient(x), twin.gradient(x), rtol=1e-14)
    np.testing.assert_allclose(problem.optimum, twin.optimum, rtol=1e-12)
    np.testing.assert_allclose(problem.smoothness, twin.smoothness, rtol=1e-8)
    np.testing.assert_allclose(problem.prox(x, 0.5), twin.prox(x, 0.5), rtol=1e-11)
    np.testing.assert_allclose(problem.quadratic_model().optimum, problem.optimum)
    assert not problem.traceable
    assert problem.only(1)[0] is problem.data[1]
    with pytest.raises(ProblemError, match="value="):
        problem.value(x)
    with pytest.raises(ProblemError, match="eager"):
        problem.family.gradient(jnp, problem.data, x[..., None])


def test_a_numpy_gradient_with_its_value():
    problem = Problem(gradient=lambda x, a: x - a, value=lambda x, a: np.sum((x - a) ** 2) / 2, data=[1.0, 2.0], d=1)
    np.testing.assert_array_equal(problem.value([0.0]), [0.5, 2.0])
    np.testing.assert_allclose(problem.optimum, [1.5], rtol=1e-14)


OUTSIDE = jnp.array([0.1, 0.2])


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (lambda x, a: jnp.sum((x - OUTSIDE) ** 2), "float32 for good"),
        (jax.jit(lambda x, a: jnp.sum(x * OUTSIDE[0])), "float32 for good"),
        (lambda x, a: jax.lax.fori_loop(0, 2, lambda k, s: s + x[0] * OUTSIDE[1], 0.0), "float32 for good"),
        (lambda x, a: jnp.sum(x.astype(jnp.bfloat16)).astype(x.dtype), "bfloat16"),
        (lambda x, a: np.exp(x).sum(), "write it with jax.numpy, or pass gradient="),
        (lambda x, a: x[0] if x[0] > 0 else -x[0], "write it with jax.numpy, or pass gradient="),
        (lambda x, a: {}["key"], "KeyError"),
        (lambda x, a: x - a, "one real number"),
        (lambda x, a: None, "NoneType"),
        (lambda x, a: jnp.argmax(x), "one real number"),
    ],
)
def test_a_cost_that_cannot_be_used(cost, words):
    with pytest.raises(ProblemError, match=words) as caught:
        Problem(cost, [0.0, 1.0], 2)
    assert "\n" not in str(caught.value)
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize(
    ("gradient", "words"),
    [
        (lambda x, a: (x - a).astype(np.float32), "float32"),
        (lambda x, a: x @ x, r"shape \(2,\); at node 0 it has \(\)"),
        (lambda x, a: x + 0j, "complex128"),
    ],
)
def test_a_gradient_that_cannot_be_used(gradient, words):
    with pytest.raises(ProblemError, match=words):
        Problem(gradient=gradient, data=[0.0, 1.0], d=2)


def test_without_jax(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(NotInstalled, match=r"gradient=.*sottovoce\[fast\]"):
        Problem(lambda x, a: x @ x, [0.0], 2)
    assert Problem(gradient=lambda x, a: x - a, data=[0.0, 4.0], d=1).optimum == pytest.approx([2.0])


# Bad input

GRAD = lambda x, a: x
EYES = np.stack([np.eye(2)] * 3)
HOLED = np.where(np.arange(120).reshape(40, 3) == 16, np.nan, RECORDS)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Problem(), "give a cost"),
        (lambda: Problem(GRAD, [1.0], 1, gradient=GRAD), "not both"),
        (lambda: Problem(GRAD, [1.0], 1, value=GRAD), "its own value"),
        (lambda: Problem(3, [1.0], 1), "must be a function"),
        (lambda: Problem(gradient=GRAD, data=[1.0], d=0), "d must be an integer"),
        (lambda: Problem(gradient=GRAD, data=[1.0]), "d must be an integer"),
        (lambda: Problem(gradient=GRAD, data=[], d=1), "empty"),
        (lambda: Problem(gradient=GRAD, data=5, d=1), "one entry per node"),
        (lambda: Problem(gradient=GRAD, data={"X": EYES}, d=1), "one entry per node"),
        (lambda: Problem(gradient=GRAD, data=[1.0, np.nan], d=1), "node 1 holds nan"),
        (lambda: Problem(gradient=GRAD, data=[1.0, ([1.0, np.inf],)], d=1), "node 1 holds inf at row 1"),
        (lambda: Problem(gradient=GRAD, data=["a"], d=1), "real numbers"),
        (lambda: Problem(gradient=GRAD, data=[None], d=1), "real numbers|nan"),
        (lambda: Problem(gradient=GRAD, data=[()], d=1), "hold no number"),
        (lambda: Problem(gradient=GRAD, data=[1.0], d=1, labels=["a", "b"]), "one label per node"),
        (lambda: problems.rendezvous([[1.0, np.nan]]), "nan at row 0, column 1"),
        (lambda: problems.rendezvous(np.zeros((0, 2))), "at least 1"),
        (lambda: problems.average(1.0), r"\(n, d\) or \(n,\)"),
        (lambda: problems.quadratic(EYES + np.triu(np.ones((2, 2)), 1), np.ones((3, 2))), "symmetric"),
        (lambda: problems.quadratic(EYES, np.ones((3, 3))), "shapes"),
        (lambda: problems.estimation(0, 2), "n must be an integer"),
        (lambda: problems.estimation(3, -1), "d must be an integer"),
        (lambda: problems.estimation(Q=EYES), "go together"),
        (lambda: problems.estimation(Q=EYES, z=np.ones((2, 2))), "shapes"),
        (lambda: problems.estimation(4, Q=EYES, z=np.ones((3, 2))), "n=4"),
        (lambda: problems.estimation(3, 2, sigma=[1.0]), "sigma"),
        (lambda: problems.estimation(3, 2, sigma=-1.0), "sigma"),
        (lambda: problems.least_squares(HOLED, TARGETS, 4), "X holds nan at row 5, column 1"),
        (lambda: problems.least_squares(RECORDS, TARGETS[1:], 4), "X has 40, y has 39"),
        (lambda: problems.least_squares(RECORDS, TARGETS, SITES[1:]), "40; it has 39"),
        (lambda: problems.least_squares(RECORDS, TARGETS, 0), "from 1 to 40"),
        (lambda: problems.least_squares(RECORDS, TARGETS, 41), "from 1 to 40"),
        (lambda: problems.least_squares(RECORDS, TARGETS, 2.5), "one label per record"),
        (lambda: problems.least_squares(RECORDS[:, 0], TARGETS, 4), "2 axes"),
        (lambda: problems.least_squares(RECORDS, TARGETS, [*SITES[1:], np.nan]), "row 39"),
        (lambda: problems.logistic(RECORDS, SITES, 4), "exactly two"),
        (lambda: problems.logistic(RECORDS, np.ones(40), 4), "exactly two"),
        (lambda: problems.logistic(RECORDS, np.where(SITES > 1, np.nan, 0), 4), "nan at row"),
        (lambda: problems.estimation(1, 3, s=2).optimum, "no unique minimiser"),
        (lambda: problems.quadratic(-EYES, np.ones((3, 2))).optimum, "no unique minimiser"),
        (lambda: problems.logistic([[1.0], [-1.0]], [1, 0], 2, l2=0.0).optimum, "minimiser"),
        (lambda: Problem(gradient=lambda x, a: np.ones(1), data=[1.0], d=1).optimum, "minimiser"),
        (lambda: BUILT["huber"].gradient(np.zeros(7)), r"shape \(4, 3\) or \(3,\)"),
        (lambda: BUILT["huber"].prox(np.zeros(3), 0.0), "q must be positive"),
        (lambda: BUILT["huber"].only(4), "0 to 3"),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(ProblemError, match=words):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: problems.logistic(RECORDS, CLASSES, 4, l2=-1.0),
        lambda: problems.huber(RECORDS, TARGETS, 4, delta=0.0),
        lambda: problems.estimation(3, 2, scale=0.0),
        lambda: problems.estimation(3, 2, noise=np.nan),
    ],
)
def test_bad_parameters(make):
    with pytest.raises(ParameterError, match="finite number"):
        make()


def test_sites_are_sorted_or_first_seen():
    assert problems.least_squares(RECORDS, TARGETS, ["b", "a"] * 20).labels == ("a", "b")
    assert problems.least_squares(RECORDS, TARGETS, ["b", 1] * 20).labels == ("b", 1)
    assert problems.least_squares(RECORDS, TARGETS, 3).labels is None


def test_data_cannot_be_changed_afterwards():
    points = np.ones((3, 2))
    problem = problems.rendezvous(points)
    points[0] = 7
    np.testing.assert_array_equal(problem.optimum, 1)
    with pytest.raises(ValueError, match="read-only"):
        problem.data[0][0] = 7


# By name


def test_the_catalogue_builds_everything():
    for name in catalogue():
        problem = build(name)
        assert problem.n == 5, name
        assert np.isfinite(problem.optimum).all()
        assert build(name).digest() == problem.digest() != build(f"{name}:seed=1").digest()
    same = problems.estimation(4, 3, scale=0.5, seed=2)
    assert build("estimation:n=4, d=3,scale=0.5,seed=2").digest() == same.digest()
    assert build("least_squares:intercept=true").d == 4
    assert repr(build("huber:n=3")) == "Problem(huber, n=3, d=3)"


def test_names_that_are_not_there():
    with pytest.raises(UnknownName, match="estimation"):
        build("estimaton:n=3")
    for text in ("estimation:m=3", "estimation:n", "estimation:n=3,n=4", "estimation:n=two", "huber:intercept=maybe"):
        with pytest.raises(ParameterError, match=r"estimation|huber"):
            build(text)
    with pytest.raises(ParameterError, match="csv"):
        build("huber:target=y")
    with pytest.raises(ProblemError, match="n must be"):
        build("average:n=0")


def test_a_csv_file(tmp_path):
    path = tmp_path / "records.csv"
    lines = [f"{s},{r[0]!r},{r[1]!r},{r[2]!r},{t!r},{c}" for s, r, t, c in zip(
        SITES, RECORDS.tolist(), TARGETS.tolist(), CLASSES, strict=True)]
    path.write_text("\n".join(["site,a,b,c,y,class", *lines]))
    read = build(f"least-squares:csv={path},target=y,site=site,features=a+b+c,intercept=true")
    ready = problems.least_squares(RECORDS, TARGETS, [str(s) for s in SITES], intercept=True)
    assert read.digest() == ready.digest()
    assert read.labels == ready.labels
    classes = build(f"logistic:csv={path},target=class,n=4,features=a+b+c")
    assert classes.digest() == problems.logistic(RECORDS, CLASSES, 4).digest()
    for column, words in (("class", "row 2, column 'class'"), ("z", "no column 'z'; it has site, a")):
        with pytest.raises(ProblemError, match=words):
            build(f"huber:csv={path},target=y,features=a+{column}")
    for broken, words in (("1,2,,3,4,no", "row 42, column 'b': the value is missing"), ("1,2", "missing"),
                          ("1,nan,1,3,4,no", "row 42, column 'a'"), ("1,2,3,4,5,no,7", "more values")):
        path.write_text("\n".join(["site,a,b,c,y,class", *lines, broken]))
        with pytest.raises(ProblemError, match=words):
            build(f"huber:csv={path},target=y,site=site,features=a+b+c")
    with pytest.raises(ProblemError, match="cannot read"):
        build(f"huber:csv={tmp_path / 'none.csv'},target=y")
    with pytest.raises(ParameterError, match="target=COLUMN"):
        build(f"huber:csv={path}")


def test_a_gradient_that_does_not_fit_its_data_is_told_with_shapes_and_no_numbers():
    P = rng.standard_normal((5, 2))
    for data, d, shape in ((P.T, 2, "(5,)"), (P, 3, "(2,)")):
        with pytest.raises(ProblemError, match=re.escape(f"at node 0 with x of {d} numbers and data of shape {shape}: gradient(")):
            Problem(gradient=lambda x, p: x - p, data=data, d=d)

    def complains(x, p):
        raise KeyError(float(p[0]))

    with pytest.raises(ProblemError) as told:
        Problem(gradient=complains, data=P, d=2)
    assert str(float(P[0, 0])) not in str(told.value)
    with pytest.raises(ProblemError, match=r"data of shapes \(2,\), one number"):
        Problem(gradient=lambda x, p: p[2], data=[(p, 1.0) for p in P], d=2)


def test_logistic_points_from_C_to_l2():
    with pytest.raises(ParameterError, match="no 'C'; scikit-learn's C is l2 = 1/C here"):
        problems.logistic(RECORDS, CLASSES, SITES, C=1)
