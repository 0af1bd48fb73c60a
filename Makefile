# make demo   environment in .venv, then the whole workflow at scale `demo`, ending in results/report.html
# make env    the environment alone; make env TORCH=cuda puts the build of PyTorch for NVIDIA GPUs into it
# make test   the same environment, then the tests that a change should pass: those not marked `slow`; none needs a
#             cluster or a GPU; it installs no system packages: tests that need Chromium are skipped where
#             there is none (.ci/run installs them)
# make test-slow    the tests marked `slow`: kills in storms, compilers, variants of the workflow
# make test-all     both
# make test-slurm   the tests on a real Slurm, which they start as root (tests/slurm/slurm-node.sh install, once)
# make report results/report.html of what was submitted last, with all figures and tables
# make ui     the MLflow UI over the store of config.yaml (results/mlflow.db by default), live while jobs run
# make status how far the runs are: done, running, stopped, failed, waiting, and the time left; also while they run
# make queue  your jobs in Slurm's queue, by rule and name
# make lint   the static checks
# make docs   the pages as a site in site/index.html, every link checked; MkDocs goes into .venv-docs, apart from the rest
PYTHON ?= python3
# a package index that has PyTorch for GPUs, where pip's own has it for CPUs: make env TORCH=cuda TORCH_INDEX=https://...
TORCH_INDEX ?=
CORES ?= $(shell nproc)
PORT ?= 5000
SCALE ?= demo
QUIETLY := --quiet rules reason host --show-failed-logs
WORKERS ?= $(shell [ $(CORES) -lt 6 ] && expr $(CORES) + 2 || echo 8)
VENV := .venv
BIN := $(VENV)/bin
export MLFLOW_DISABLE_TELEMETRY := true
# hundreds of processes start: Python keeps what it compiled, also where a container's environment says not to
unexport PYTHONDONTWRITEBYTECODE
COMPILED := snakemake.cli shapelaw.tracking.importer shapelaw.training.driver shapelaw.studies.transitions.results \
  shapelaw.corpora.sources
INSTALLED := $(VENV)/installed-$(shell cksum < envs/requirements.lock | cut -d' ' -f1)
READY := $(VENV)/placed-$(shell pwd -P | cksum | cut -d' ' -f1)
DOCS_READY := $(VENV)-docs/installed-$(shell cksum < envs/docs.lock | cut -d' ' -f1)

.PHONY: env demo workflow test test-slow test-all test-slurm ui status queue lint docs report lock
.DELETE_ON_ERROR:

$(INSTALLED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "shapelaw needs Python 3.11 or newer; name one with: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@# with the pip that Python 3.11 brings the next line takes 55 CPU seconds, with today's 25
	$(BIN)/python -m pip install --quiet --no-compile --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --requirement envs/requirements.lock
	@# pip would compile all 20,000 files, on one core; what the workflow imports is a fifth of them
	printf '%s\n' $(COMPILED) | PYTHONPATH=scripts xargs -P $(CORES) -I{} $(BIN)/python -c 'import {}'
	rm -f $(VENV)/installed-*
	touch $@

# also of an environment that was moved or copied here
$(READY): $(INSTALLED)
	$(BIN)/python -m venv --without-pip $(VENV)
	$(BIN)/python envs/commands.py
	rm -f $(VENV)/placed-*
	touch $@

env: $(READY)
ifeq ($(TORCH),cuda)
	@# without the build for CPUs that may be there: pip takes both for the same version
	$(BIN)/python -m pip uninstall --quiet --yes torch
	$(BIN)/python -m pip install --quiet --no-compile --requirement envs/requirements.lock \
	  $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
	@PYTHONPATH=scripts $(BIN)/python -c "import sys; from shapelaw.jobs.plan import tell_build; sys.exit(tell_build())"
else ifneq ($(TORCH),)
	@echo "TORCH is $(TORCH); it can be cuda, or left out for the build that pip finds." >&2; exit 2
endif

demo: $(READY)
	$(BIN)/snakemake --cores $(CORES) --config scale=demo $(QUIETLY) --report results/report.html --report-after-run

workflow: $(READY)
	$(BIN)/snakemake --cores $(CORES) --config scale=$(SCALE) $(QUIETLY)

# of what was submitted last
report: $(READY)
	$(BIN)/snakemake --cores 1 --quiet all --report results/report.html

# the store that the workflow imports into: tracking.uri of config.yaml, MLFLOW_TRACKING_URI, or results/mlflow.db
ui: $(READY)
	@mkdir -p results
	@$(BIN)/python scripts/browse_runs.py --results results --config config.yaml --port $(PORT)

status: $(READY)
	@$(BIN)/python scripts/status.py

queue: # by the plugin's comment, rule_<rule>_wildcards_<job>; the name is one for all jobs of a workflow
	@squeue --me -o '%.12i %.9T %.11M %.11l %k %R'

# two files more at a time than cores, a thread each: they wait too; for an empty folder torch.compile would try out for 7
# CPU seconds what the CPU says of itself
PYTEST := OMP_NUM_THREADS=1 TORCHINDUCTOR_COMPILE_THREADS=1 TORCHINDUCTOR_VEC_ISA_OK=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: $(READY)
	$(PYTEST) -m "not slurm and not slow"

test-slow: $(READY)
	$(PYTEST) -m "slow and not slurm"

test-all: $(READY)
	$(PYTEST) -m "not slurm"

test-slurm: $(READY)
	$(BIN)/python -m pytest tests/slurm

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers auto
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

$(DOCS_READY):
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --no-compile --requirement envs/docs.lock
	rm -f $(VENV)-docs/installed-*
	touch $@

docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --quiet
	@echo "Done: open site/index.html, or with search: python3 -m http.server --directory site"

LOCKS := requirements docs
# resolves envs/*.in afresh; the local build tag of torch (+cpu) is not part of a pin
lock: $(LOCKS:%=lock-%)

lock-%:
	$(PYTHON) -m venv $(VENV)-lock-$*
	$(VENV)-lock-$*/bin/python -m pip install --quiet --requirement envs/$*.in
	{ echo '# Made by `make lock` from $*.in: exact versions of everything, for Python 3.11 and newer.'; $(VENV)-lock-$*/bin/python -m pip freeze | sed 's/+cpu//'; } > envs/$*.new
	mv envs/$*.new envs/$*.lock
	rm -rf $(VENV)-lock-$*
