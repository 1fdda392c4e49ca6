# Everything sets itself up in .venv from nothing but Python and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check bench soak docs clean

demo: .venv/.demo            ## five real processes over mutual TLS, each killed once on the way, solve the paper's problem
	$(BIN)/sottovoce demo

test: .venv/.test            ## the test suite, under ten minutes on two cores
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

check: .venv/.check          ## lint, types, who may import whom
	$(BIN)/ruff check src tests bench
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: .venv/.test           ## the figures of docs/speed.md, as ratios within one run
	$(BIN)/python -m bench

soak: .venv/.test            ## real nodes for a long time: 100,000 iterations, 20 kills, a stopped process, mutated messages
	$(BIN)/python -m bench.soak

docs: .venv/.demo            ## write the generated tables and pictures of docs/ anew
	$(BIN)/python tools/generate_docs.py

clean:
	rm -rf .venv out bench.json

.venv/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "sottovoce needs Python 3.11 or newer; say make PYTHON=python3.12"'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

.venv/.demo: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[node,plot]'
	touch $@

.venv/.test: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group test
	touch $@

.venv/.check: .venv/.test
	$(BIN)/python -m pip install --quiet --group check
	touch $@
