# `make` lists the targets. Each first installs what the machine lacks (tools/setup); tools/cargo
# is cargo from a toolchain that is new enough.

CARGO := tools/cargo
# How long `make fuzz` spends on each target.
FUZZ_SECONDS ?= 600
# What `make test` draws its random cases from; another seed tries others, and `make fuzz` new ones.
TEST_SEED ?= 1
# How long `make soak` runs.
SOAK_MINUTES ?= 60
DEMO_DIR := out/demo

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-python test-kernels lint bench bench-ns2 fuzz soak \
	install uninstall deb cross figures

help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 15

setup: ## install what is missing to build and test (Debian: with apt-get)
	@tools/setup

demo: setup ## measure what airmend gains on this machine: a table and a picture (4 minutes)
	@$(CARGO) build --release --locked -p airmend
	@rm -rf $(DEMO_DIR) && mkdir -p $(DEMO_DIR)
	@$(CARGO) run --quiet --release --locked -p airmend -- lab compare \
		--agents plain,snoop --cc cubic --loss 0,0.01,0.02,0.05 --repeat 1 \
		--rate 20mbit --air-delay 2ms --wired-delay 40ms --bytes 4MB --plot $(DEMO_DIR)
	@ls $(DEMO_DIR)/*.svg >/dev/null
	@echo "The picture:" $(CURDIR)/$(DEMO_DIR)/*.svg

test: setup ## lint, and all tests; ends in a table of what ran
	@TEST_SEED=$(TEST_SEED) tools/test

test-python: setup ## the Python package: its wheel, types, tests and notebooks
	@tools/test-python

test-kernels: setup ## the gateway and the link on stock Debian kernels, in QEMU (15 minutes; root)
	@tools/test-kernels

lint: setup ## formatting, and clippy with warnings as errors
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
# As `pip install` builds it: with the features that its crates ask for themselves.
	@$(CARGO) check --quiet --locked -p airmend-python

bench: setup ## what a packet costs in agents and simulator, and a gateway; how true the lab is
	@$(CARGO) bench --locked --no-fail-fast -p airmend-proto -p airmend-sim -p airmend-live

bench-ns2: ## cost of a packet in the simulator beside ns-2, if that is installed
	@command -v ns >/dev/null || \
		{ echo "This compares with ns-2, which is not installed: apt-get install ns2" >&2; exit 1; }
	@tools/setup
	@$(CARGO) bench --locked -p airmend-sim --bench packet -- ns2

figures: ## write the tables of the documents; RUN=simulator, RUN=lab or RUN=NAME measures again
	@python3 -m figures $(if $(RUN),--run $(RUN))

fuzz: setup ## fuzz every target for FUZZ_SECONDS (600) each, and try 10,000 cases of each property
	@PROPTEST_CASES=10000 $(CARGO) test --release --locked -p airmend-proto --test invariants
	@tools/fuzz $(FUZZ_SECONDS)

soak: setup ## transfers come and go beside a gateway for SOAK_MINUTES (60): is memory flat? (root)
	@SOAK_MINUTES=$(SOAK_MINUTES) $(CARGO) test --release --locked -p airmend --test gateway \
		-- --exact soak --nocapture

install: setup ## install program, manual and service; PREFIX=/usr/local, DESTDIR for packagers
	@$(CARGO) build --release --locked -p airmend
	@DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) tools/install

uninstall: ## take them away again
	@DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) tools/install --remove

deb: setup ## make a Debian package in out/
	@$(CARGO) build --release --locked -p airmend
	@tools/deb

cross: ## build for aarch64, armv7, mips and s390x, and try each under qemu (half an hour, once)
	@tools/cross
