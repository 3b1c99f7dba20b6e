# What you type. `make help` lists it; CMake with presets (CMakePresets.json) does the work in build/<preset>.
PREFIX ?= /usr/local
WERROR ?= OFF
JOBS ?= $(shell nproc)
BUILD := build/release
# Kernels for every GPU of NVIDIA take minutes: what is installed or packaged has them, other builds have PTX.
CUBINS ?= OFF
# A terminal sees one moving line, a log sees only warnings and errors.
NINJA_FLAGS := $(if $(MAKE_TERMOUT),,--quiet)

.PHONY: help demo check check-full bench bench-calibrate bench-cluster bench-finetune bench-opencl bench-place bench-plan bench-tier bench-torch bench-train check-torch figures format install package build

help:
	@echo "make demo        train a small network three ways and show what happened to memory; about two minutes"
	@echo "make check       build and run the tests, also those of the OpenCL device; installs missing Debian packages first"
	@echo "make check-full  the same, the slow tests, and every gate CI has"
	@echo "make check-torch the Python package and training with PyTorch, which it installs once (7 GB in the user's cache folder)"
	@echo "                 ARGS=\"-m 'not slow'\" leaves out other sizes and budgets of what quick tests show, too"
	@echo "make bench       measure and print the figures; draw those of docs/policies"
	@echo "make figures     only draw those"
	@echo "make bench-calibrate  simulated against measured step times, on this machine"
	@echo "make bench-cluster  several ranks on this machine: bits, bytes per rank, lost ranks; ARGS=\"--families lenet\" runs less"
	@echo "make bench-opencl  the OpenCL device beside the CPU's; installs PoCL first"
	@echo "make bench-place placement and pool; PLACE_DIR=DIR takes problems (*.csv), SINGA_DIR=DIR streams (malloc*.txt)"
	@echo "make bench-plan  planning only; DTR_DIR=DIR adds DTR's logs in DIR/*.log, SINGA_DIR=DIR streams (access*.txt)"
	@echo "                 POLICIES=\"hybrid\" looks for the deepest network under fewer policies (bench/bench_plan_depth.c)"
	@echo "                 MODELS=\"resnet50 rtx3090 low\" runs fewer networks (bench/bench_plan_models.c)"
	@echo "                 GRAPHS=\"--all --efforts low\" runs more or other random graphs (bench/bench_plan_graphs.c)"
	@echo "make bench-tier  the disk tier only; TIER_DIR=DIR puts its file there"
	@echo "make bench-torch PyTorch inside budgets beside PyTorch alone and its checkpointing; ARGS=\"resnet18 60%\" runs fewer"
	@echo "make bench-finetune  LoRA on a Llama with its weights in files beside plain PEFT; ARGS=\"--shape 1b\" takes five minutes and 9 GiB"
	@echo "make bench-train speed of training, also against PyTorch (installed below build/); ROUNDS=N; a quarter of an hour"
	@echo "make format      clang-format the whole tree"
	@echo "make install     into PREFIX (now $(PREFIX)), below DESTDIR if set"
	@echo "make package     a Debian package and a tarball of the same files, in build/package"

build:
	@tools/deps build
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DTIDE_WERROR=$(WERROR) -DTIDE_CUDA_CUBINS=$(CUBINS) --log-level=WARNING >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) -- $(NINJA_FLAGS)

demo: build
	@tools/demo $(BUILD)/tidemark

# The plug-ins are configured when their MPI is there, so it comes before the build.
check: deps-mpi build
	@tools/deps opencl || echo "without a driver for OpenCL: its tests are skipped"
	@ctest --test-dir $(BUILD) -j $(JOBS) -LE full --output-on-failure --no-tests=error
	@tools/skipped $(BUILD)

.PHONY: deps-mpi
deps-mpi:
	@tools/deps mpi || echo "without MPI: tests of several ranks are skipped"

check-torch: build
	@tools/deps build torch
	@python=$$(tools/torch-env) && TIDEMARK=$(abspath $(BUILD)/tidemark) OMP_WAIT_POLICY=passive $$python -m pytest -q -p no:cacheprovider python/tests $(ARGS)

check-full:
	@.ci/run --full

bench: build
	@failed=0; for program in $(BUILD)/bench_*; do echo "== $${program##*/}"; $$program || failed=1; done; \
	tools/figures $(BUILD)/tidemark || failed=1; exit $$failed

figures: build
	@tools/figures $(BUILD)/tidemark

bench-calibrate: build
	@$(BUILD)/bench_calibrate

bench-cluster: build
	@tools/deps mpi
	@python3 bench/cluster/bench_cluster.py $(BUILD) $(ARGS)

bench-opencl: build
	@tools/deps opencl
	@$(BUILD)/bench_opencl && for program in test_kernels test_kernels_tokens; do \
		OMP_WAIT_POLICY=passive $(BUILD)/tests/device_$$program perf; done

bench-place: build
	@$(BUILD)/bench_place $(if $(PLACE_DIR),$(wildcard $(PLACE_DIR)/*.csv)) \
		$(if $(SINGA_DIR),$(wildcard $(SINGA_DIR)/malloc*.txt))

bench-plan: build
	@tools/deps bench || echo "without cbc: bench_plan_exact skips its integer programs"
	@failed=0; $(BUILD)/bench_plan || failed=1; \
	$(BUILD)/bench_plan_exact || failed=1; \
	$(BUILD)/bench_plan_dtr $(if $(DTR_DIR),$(wildcard $(DTR_DIR)/*.log)) || failed=1; \
	$(BUILD)/bench_plan_swap $(SINGA_DIR) || failed=1; \
	$(BUILD)/bench_plan_models $(or $(MODELS),all) || failed=1; \
	$(BUILD)/bench_plan_parts || failed=1; \
	$(BUILD)/bench_plan_graphs $(GRAPHS) || failed=1; \
	$(BUILD)/bench_plan_depth $(POLICIES) || failed=1; exit $$failed

bench-tier: build
	@$(BUILD)/bench_tier $(TIER_DIR)

bench-torch:
	@tools/deps build torch
	@python=$$(tools/torch-env) && OMP_WAIT_POLICY=passive $$python python/bench/bench_torch.py $(ARGS)

bench-finetune:
	@tools/deps build torch
	@python=$$(tools/torch-env) && OMP_WAIT_POLICY=passive $$python python/bench/bench_finetune.py $(ARGS)

bench-train: build
	@python=$$(tools/bench-python build/torch torch torch numpy); failed=0; \
	$(BUILD)/bench_train $${python:+--python $$python} $(if $(ROUNDS),--rounds $(ROUNDS)) || failed=1; \
	$(BUILD)/bench_train_learn || failed=1; \
	$(BUILD)/bench_train_recipes $${python:+--python $$python} || failed=1; \
	$(BUILD)/bench_train_depth || failed=1; exit $$failed

format:
	@tools/deps gates
	@tools/format

install: CUBINS := ON
install: build
	@cmake --install $(BUILD) | grep -v Up-to-date

package:
	@tools/deps build package
	@cmake --preset release -B build/package -DCMAKE_INSTALL_PREFIX=/usr -DTIDE_TESTS=OFF -DTIDE_CUDA_CUBINS=ON --log-level=WARNING >/dev/null
	@cmake --build build/package -j $(JOBS) -- $(NINJA_FLAGS)
	@cd build/package && rm -f tidemark[-_]*.deb* tidemark-*.tar.gz* && cpack >cpack.log || { cat cpack.log; exit 1; }
	@ls build/package/tidemark_*.deb build/package/tidemark-*.tar.gz
