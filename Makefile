# One word per wish. The work is done by tools/bootstrap (installing) and tools/checks.py (testing).
# PYTHON: which Python makes the environments. ENGINE: auto, cpu, gpu, or none for attached engines and replay only.

PYTHON ?= python3
ENGINE ?= auto
# More words for `make soak`, such as SOAK="--minutes 2 --write".
SOAK ?=
BOOTSTRAP = $(PYTHON) -m tools.bootstrap
APP = .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test check soak format doctor wheel clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## both environments and the embedded model; starts nothing
	@$(BOOTSTRAP) setup --engine $(ENGINE)

demo: setup  ## everything, then the page at http://127.0.0.1:7860
	@exec $(APP)/python app.py

test:  ## everything the tests need, then all tests: Python, JavaScript, real engines on CPU, Chromium
	@$(BOOTSTRAP) tests --engine $(ENGINE)
	@$(APP)/python -m tools.checks test

check:  ## lint, format, types, JavaScript, audit, coverage; needs no engine
	@$(BOOTSTRAP) checks
	@$(APP)/python -m tools.checks check

soak:  ## 20 visitors for 10 minutes on scripted engines: stops, reloads, dead tabs, killed engines
	@$(BOOTSTRAP) tests --engine none
	@$(APP)/python -m tools.soak $(SOAK)

format:  ## rewrite Python and JavaScript in the project's format
	@$(BOOTSTRAP) checks
	@$(APP)/python -m tools.checks format

doctor:  ## what was found on this machine, what is not right, and the mend for each
	@$(APP)/specdemo doctor

wheel:  ## build the wheel into dist/
	@$(BOOTSTRAP) checks
	@$(APP)/python -m pip wheel --no-deps --quiet --wheel-dir dist .

clean:  ## remove the environments and caches of this folder
	@$(BOOTSTRAP) clean
