"""What `import sottovoce` offers, and what it costs."""

from __future__ import annotations

import contextlib
import importlib.metadata
import subprocess
import sys
import types

import sottovoce as sv

NAMES = {
    "Algorithm", "Ball", "Box", "Graph", "GraphSequence", "MaskBook", "Mechanism", "Node", "Parameter", "Problem", "Report",
    "Result", "Transcript", "View", "accountant", "audit", "audit_transcript", "average", "columns", "compare",
    "compare_privacy", "doubly", "errors", "graphs", "mechanism", "pooled", "problems", "protection", "register", "registry",
    "reproduce", "rows", "run", "solve", "standardise", "stepsize",
}  # fmt: skip
MODULES = {"accountant", "errors", "graphs", "problems", "registry"}  # of the submodules, those that are meant to be used


def python(code, *flags):
    found = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_the_public_names():
    public = {name for name in dir(sv) if not name.startswith("_")} - {"annotations"}
    inside = {n for n in public if isinstance(getattr(sv, n), types.ModuleType)}
    assert (public - inside) | MODULES == NAMES
    assert inside >= MODULES
    assert all(getattr(sv, n).__name__ == f"sottovoce.{n}" for n in inside)


def test_functions_are_not_hidden_by_the_modules_of_their_name():
    code = "import sottovoce.run, sottovoce.stepsize, sottovoce as sv; sv.registry.algorithms(); print(sv.run, sv.stepsize)"
    assert python(code).count("<function") == 2


def test_everything_public_says_what_it_is():
    for name in NAMES - {"columns", "rows", "doubly"}:
        assert getattr(sv, name).__doc__, name


def test_a_version():
    assert sv.__version__.count(".") == 2
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        assert importlib.metadata.version("sottovoce") == sv.__version__


def test_importing_is_light():
    """No part that a first small run can do without; NumPy's own time is taken off."""
    heavy = ("jax", "matplotlib", "scipy", "networkx", "rich", "cyclopts", "pandas")
    loaded = python("import sottovoce, sys; print(*sys.modules)").split()
    assert not set(heavy) & {name.split(".")[0] for name in loaded}


def test_importing_is_quick():
    """A fifth of a second on a quiet machine (`make bench` measures it); here, against NumPy's own import in the same process."""
    code = """
import time
began = time.process_time(); import numpy
between = time.process_time(); import sottovoce
print((time.process_time() - between) / (between - began))
"""
    assert min(float(python(code)) for _ in range(3)) < 3


def test_a_small_run_imports_no_compiler():
    code = """
import sys, sottovoce as sv
sv.run("ab", sv.problems.estimation(n=5, d=2), sv.graphs.paper_b(), stepsize=0.05, iterations=50)
print(*sys.modules)
"""
    assert not {"jax", "matplotlib", "rich", "networkx"} & {name.split(".")[0] for name in python(code).split()}


def test_the_host_programs_jax_is_left_alone():
    code = """
import jax, jax.numpy as jnp
import sottovoce as sv
r = sv.run("ab", sv.problems.estimation(n=5, d=2), sv.graphs.paper_b(), stepsize=0.05, iterations=5, backend="compiled")
assert r.backend == "compiled" and r.x.dtype == "float64"
assert not jax.config.jax_enable_x64
assert jnp.ones(2).dtype == "float32" and jax.jit(lambda x: x + 1.0)(jnp.ones(2)).dtype == "float32"
"""
    python(code, "-W", "error")
