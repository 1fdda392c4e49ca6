"""The closed-form attacks A1 to A8: each breaks its control, reads what the table says, and nothing from noise."""

from dataclasses import replace

import numpy as np
import pytest

import sottovoce as sv
from sottovoce import controls
from sottovoce.auditor.attack import attacks, error_of
from sottovoce.auditor.attacks.knowledge_matrix import reconstructed
from sottovoce.auditor.reading import flow, heard
from sottovoce.view import View

PAPER = controls.PAPER
CLOSED = {a.id: a for a in attacks().values() if a.id in {f"A{i}" for i in range(1, 9)}}
READ = 1e-8


def found(scene, attack, victim=0):
    """Asset -> error of what an attack says."""
    view, truth = scene
    return {e.asset: error_of(e, truth) for e in CLOSED[attack].run(view, victim)}


def read(scene, attack, victim=0):
    """The assets that it reads."""
    return {asset for asset, error in found(scene, attack, victim).items() if error < READ}


def noise(view: View, seed=0) -> View:
    rng = np.random.default_rng(seed)
    return replace(view, sent={key: rng.standard_normal(m.shape) for key, m in view.sent.items()})


@pytest.mark.parametrize("id", CLOSED)
def test_breaks_its_control(id):
    view, victim, truth = CLOSED[id].control()
    estimates = CLOSED[id].run(view, victim)
    assert estimates
    assert {e.asset for e in estimates} <= set(CLOSED[id].assets)
    limit = 1e-10 if id in ("A2", "A6", "A7") else 1e-8
    assert max(error_of(e, truth) for e in estimates) < limit


@pytest.mark.parametrize("id", CLOSED)
def test_works_on_a_view_from_disk(id, tmp_path):
    view, victim, truth = CLOSED[id].control()
    loaded = View.load(view.save(tmp_path))
    errors = [error_of(e, truth) for e in CLOSED[id].run(loaded, victim)]
    assert errors == [error_of(e, truth) for e in CLOSED[id].run(view, victim)]


@pytest.mark.parametrize("id", CLOSED)
def test_reads_nothing_from_noise(id):
    view, victim, truth = CLOSED[id].control()
    for e in CLOSED[id].run(noise(view), victim):
        assert error_of(e, truth) > 0.1, (e.asset, error_of(e, truth))


@pytest.mark.parametrize("K", [1, 3, 10])
def test_the_paper_s_algorithm(K):
    scene = controls.five(K=K, scale=0.4)
    assert "offset" not in found(scene, "A1")  # its start gradient is behind a random stepsize
    assert found(scene, "A3")["curvature"] < 1e-10
    assert found(scene, "A8", 4)["curvature"] < 1e-8  # node 4, which node 1 never hears
    assert found(scene, "A2") == found(scene, "A4") == found(scene, "A7") == {}
    assert found(controls.leaf(K=K, scale=0.4), "A6")["offset"] < 1e-10
    assert found(controls.five("wire", K=K, scale=0.4), "A7", 3)["along-the-way"] < 1e-10
    assert found(controls.one_record(K=K, scale=0.4), "A4")["record"] < 1e-10
    assert found(controls.five(d=3, K=K, scale=0.4), "A5")["curvature"] < 1e-8


@pytest.mark.parametrize("K", [1, 3, 10])
def test_a_pocket_of_two_gives_its_sum_and_not_each(K):
    view, truth = controls.pocket(K=K, scale=0.4)
    for victim in (0, 1):
        (estimate,) = CLOSED["A6"].run(view, victim)
        assert estimate.asset == "group-sum"
        assert estimate.nodes == (0, 1)
        assert error_of(estimate, truth) < 1e-10
        assert not {"offset", "along-the-way"} & set(found((view, truth), "A8", victim))


def test_a_wrong_guess_of_the_first_stepsize_is_wrong():
    """What A1 would say if it took the late stepsize for the first one."""
    view, truth = controls.five(K=1)
    guessed = replace(view, header={**view.header, "settled": 0})
    (offset,) = (e for e in CLOSED["A1"].run(guessed, 0) if e.asset == "offset")
    assert error_of(offset, truth) > 0.1


def test_without_a_random_start_everything_is_read():
    scene = controls.five(K=0)
    assert read(scene, "A1") == {"offset", "start"}
    assert read(scene, "A3") == {"curvature", "along-the-way"}
    assert reconstructed(scene[0]) == 1.0


@pytest.mark.parametrize("name", ["diging", "push-pull-du"])
def test_gradients_that_stay_at_home(name):
    """B = I: the start gradient is read, increments are not; the knowledge matrix has the curvature all the same."""
    scene = controls.five(algorithm=name)
    assert read(scene, "A1") == {"offset", "start"}
    assert found(scene, "A3") == found(scene, "A2") == {}
    assert "curvature" in read(scene, "A8")
    assert {"offset", "along-the-way"} <= read(controls.leaf(name), "A6")
    assert read(controls.pocket(name), "A6") == {"group-sum"}
    assert {"offset", "along-the-way"} <= read(controls.five("wire", name), "A7", 4)


def test_ab():
    """It sends no y here: increments follow only for those who hear all that the victim hears."""
    assert read(controls.five(algorithm="ab"), "A2") == {"offset"}
    assert found(controls.five(algorithm="ab"), "A3") == {}
    assert read(controls.five((4,), "ab"), "A3", 3) == {"curvature", "along-the-way"}
    assert found(controls.five(algorithm="ab", d=3), "A5") == {}
    assert "offset" in read(controls.leaf("ab"), "A6")
    assert read(controls.pocket("ab"), "A6") == {"group-sum"}
    assert "along-the-way" in read(controls.pocket("ab"), "A8")  # each of the two, as its start is open
    assert "along-the-way" in read(controls.five("wire", "ab"), "A7")


@pytest.mark.parametrize("name", ["add-opt", "push-diging"])
def test_push_sum(name):
    assert read(controls.five(algorithm=name), "A1") == {"offset", "start"}
    assert read(controls.leaf(name), "A6") == {"offset", "along-the-way", "curvature"}
    assert read(controls.pocket(name), "A6") == {"group-sum"}


def test_secret_late_weights():
    """Scalars: the direction of the curvature is left, a leaf is read, the rest is not."""
    view, truth = controls.five(d=3, K=1)
    scene = controls.late_weights_secret(view), truth
    assert found(scene, "A3") == found(scene, "A4") == found(scene, "A8") == {}
    assert found(scene, "A5")["curvature"] < READ
    (estimate,) = CLOSED["A5"].run(scene[0], 0)
    assert estimate.up_to == "scale"
    leaf, truth = controls.leaf(K=1)
    assert "offset" in read((controls.late_weights_secret(leaf), truth), "A6")


def test_links_of_a_larger_group_give_its_sum_in_the_limit():
    """Nodes 0, 1 and 2 in a row behind node 3, which hears node 2 alone."""
    graph = sv.Graph(5, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 3)])
    view, truth = controls.five((3,), graph=graph, K=1, iterations=2500)
    (estimate,) = CLOSED["A6"].run(view, 0)
    assert estimate.nodes == (0, 1, 2)
    assert error_of(estimate, truth) < 1e-6


def test_heard_against_the_run_itself():
    view, truth = controls.five(K=3, iterations=10)
    ears = heard(view, 0)
    x, y, g = (np.array([truth.states[k - 1][name][0, :, 0] for k in range(10)]) for name in "xyg")
    assert np.array_equal(ears.x, x)
    assert np.isnan(ears.y[:3]).all()
    assert np.allclose(ears.y[3:], y[3:], rtol=1e-12, atol=0)
    assert np.allclose(ears.dg[3:-1], np.diff(g, axis=0)[3:], rtol=1e-9)
    assert heard(view, 1) is None  # oneself
    assert heard(view, 4) is None  # not heard
    wire, truth = controls.five("wire", K=3, iterations=10)
    y, g = (np.array([truth.states[k - 1][name][2, :, 0] for k in range(10)]) for name in "yg")
    assert np.allclose(flow(wire, [2])[:-1].astype(float), y - g, rtol=1e-9, atol=1e-9)


def test_says_nothing_where_it_cannot():
    logistic = sv.problems.logistic(np.random.default_rng(0).standard_normal((10, 2)), np.tile([-1.0, 1.0], 5), sites=5)
    scenes = [
        controls.five(algorithm="dgd"),
        controls.five(algorithm="subgradient-push"),
        controls.five(iterations=1, K=3),
        controls.five(iterations=1, K=0),
        controls.five(d=1, iterations=3),
        controls.recorded(PAPER, logistic, sv.graphs.paper_b(), [1], stepsize=0.1, iterations=30),
    ]
    view, truth = controls.five(K=1)
    scenes += [(replace(view, sent={}), truth), (replace(view, draws={}), truth), (replace(view, states={}), truth)]
    scenes += [(replace(view, sent={key: m[:, :1] for key, m in view.sent.items()}), truth)]
    wrong = {"curvature", "offset", "along-the-way", "record", "group-sum"}
    for number, scene in enumerate(scenes):
        for id, attack in CLOSED.items():
            for victim in (0, 1, 4, 7):
                said = {e.asset for e in attack.run(scene[0], victim)}
                assert not (said & wrong) or number in (3, 4, 5, 6, 7, 8), (number, id, said)
                assert not said or victim != 1  # nobody attacks itself
                assert not said or victim != 7


@pytest.mark.parametrize("each", ["scalar", "coordinate"])
def test_the_mechanism_that_keeps_late_weights_secret(each):
    options = {"K": 1, "mechanisms": [sv.mechanism("secret-late-weights", each=each)]}
    scene = controls.five(d=3, **options)
    assert found(scene, "A3") == found(scene, "A8") == {}
    assert read(scene, "A5") == ({"curvature"} if each == "scalar" else set())
    assert {"offset", "along-the-way"} <= read(controls.leaf(**options), "A6")
    assert {"offset", "along-the-way"} <= read(controls.five("wire", **options), "A7", 3)


def test_sealed_links_stop_the_wire_tap_and_no_neighbour():
    wire, neighbour = (controls.five(who, mechanisms=["encrypted-links"]) for who in ("wire", (1,)))
    assert all(found(wire, id, victim) == {} for id in CLOSED for victim in range(5))
    assert read(neighbour, "A3") == {"curvature"}
