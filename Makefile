# SPDX-License-Identifier: Apache-2.0
# The front door. Meson does the work; this says what a person can ask for.
#
#   make run      set up, build, and run a first sealed command
#   make build    the binary is at build/vitro
#   make test     all tests, as root and as an ordinary user, plain and sanitized
#   make test-pythons  the Python package under every python3 of the machine
#   make test-nodes   the Node package under Node 18, 20, 22 and 24, which npm has
#   make node-package  the npm package, to build/vitro-sandbox-VERSION.tgz
#   make test-inject  each system call of each process fails once (ONLY=REGEX: some ways, POINTS=N: fewer of each,
#                 PART=K/N: each N-th, WRITE=1: to docs/evidence.md)
#   make test-matrix  in poorer environments, to docs/matrix.md (ROW=REGEX, QUICK=1)
#   make test-vm  under Debian's kernels, in QEMU, to docs/matrix.md (KERNEL=REGEX, ROW=REGEX, FILTER=REGEX, ACCEL=kvm or tcg)
#   make test-arm  the same for aarch64, emulated (KERNEL=REGEX, ROW=REGEX, FILTER=REGEX)
#   make test-mutants   switch off each layer in turn; tests must fail (ONLY=REGEX: some of them)
#   make soak     an hour of calls, crashes, kills and cancels at full load (MINUTES=N, WRITE=1: to docs/evidence.md)
#   make soak-calls   100,000 calls of tools that crash, hang, flood, 10,000 of Node (CALLS=N SEED=N)
#   make bench    side by side with the alternatives, to docs/benchmarks.md, some 25 minutes (QUICK=1: a first look, in under two, to build/bench/page)
#   make fuzz     fuzz the parsers, for a minute of CPU each (SECONDS=N)
#   make deb      packages for Debian, to build/deb
#   make test-packages  .deb, wheel, tarball and a fresh clone in a clean Debian 12 (as root)
#   make docs     write the list of system calls in docs/security.md anew
#   make abi      write the ABI that the library is held to, test/library/libvitro.so.0.abi, anew
#   make check    formatting, the layer rule, and a compile of everything for aarch64
#   make tidy     clang-tidy over the sources
#   make analyze  clang-tidy, cppcheck, gcc -fanalyzer and clang --analyze, as scan-build has it: what is found is fixed, or answered
#   make coverage  what the tests run of the sources, to docs/coverage.md (FILTER=REGEX: some of the tests)
#   make install  with DESTDIR and PREFIX
#   make clean    remove what was built
#   make help     this list

PREFIX ?= /usr/local
SECONDS ?= 60

.PHONY: build setup setup-test help run test test-pythons test-nodes node-package test-inject test-matrix test-vm test-arm \
	tested sanitized test-mutants soak soak-calls bench deb test-packages fuzz docs abi check tidy analyze coverage \
	format install clean

build: setup build/build.ninja
	@[ -e build/vitro ] || echo 'building build/vitro; this takes about a minute'
	@ninja -C build >build/ninja.log || { cat build/ninja.log; exit 1; }

build/build.ninja:
	@meson setup build --prefix $(PREFIX) >build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }
	@rm -f build.log

setup:
	@tools/setup build

setup-test:
	@tools/setup build test

help:
	@sed -n 's/^#   make/make/p' Makefile

run: build
	@tools/first-run build/vitro

# What is fetched is mostly waited for, so that it is compiled meanwhile.
test:
	@tools/setup build test-packages
	@tools/setup fetches & $(MAKE) --no-print-directory tested sanitized; made=$$?; wait; exit $$made
	@tools/check
	@test/run --build build --build build-sanitized

test-pythons: setup-test tested
	@VITRO_TEST_PYTHON=all test/run --build build --filter '^python/(sdk(_.*)?|wire|package|guide|executor)$$'

test-nodes: setup-test tested
	@tools/setup nodes
	@failed=0; for node in $(CURDIR)/build/nodes/*/bin/node; do \
		echo "Node $$($$node --version):"; \
		VITRO_TEST_NODE=$$node test/run --build build \
			--filter '^node/(adapters|codec|escape|eval|fork|guide|messages|ncp|package|runtime|schema|sdk|state|toolhost|wire)$$' || failed=1; \
	done; exit $$failed

node-package: build
	@node sdk/node/pack.mjs build build

test-inject: setup-test tested
	@VITRO_INJECT=$(or $(POINTS),all) VITRO_INJECT_PART=$(or $(PART),1/1) VITRO_INJECT_POINTS=$(abspath build/inject.jsonl) \
		VITRO_TEST_SECONDS=36000 VITRO_BINARY=$(abspath build/vitro) VITRO_TEST_BIN=$(abspath build/test) \
		test/inject/inject_test.py $(if $(ONLY),"$(ONLY)")
	@$(if $(WRITE),test/inject/tally.py build/inject.jsonl)

test-matrix: setup-test tested
	@test/matrix/run --build build $(if $(QUICK),--quick) $(if $(ROW),--row '$(ROW)')

test-vm: setup-test tested
	@tools/setup vm
	@test/vm/run --build build $(if $(KERNEL),--kernel '$(KERNEL)') $(if $(ROW),--row '$(ROW)') $(if $(FILTER),--filter '$(FILTER)') \
		$(if $(ACCEL),--accel $(ACCEL))

test-arm: setup-test tested
	@tools/setup arm
	@test/vm/run --machine aarch64 --build build-aarch64 $(if $(KERNEL),--kernel '$(KERNEL)') $(if $(ROW),--row '$(ROW)') \
		$(if $(FILTER),--filter '$(FILTER)')

# A build folder that was set up before the tests' packages were there has no tests yet.
tested: build/build.ninja
	@meson configure build -Dtests=enabled
	@[ -e build/test/vitro-actor ] || echo 'building the tests; this takes some minutes'
	@ninja -C build >build/ninja.log || { cat build/ninja.log; exit 1; }

sanitized: build-sanitized/build.ninja
	@[ -e build-sanitized/vitro ] || echo 'building build-sanitized, for the tests; this takes some minutes'
	@ninja -C build-sanitized >build-sanitized/ninja.log || { cat build-sanitized/ninja.log; exit 1; }

build-sanitized/build.ninja:
	@meson setup build-sanitized -Dtests=enabled -Dwerror=false -Ddebug=false -Dc_args=-g1 -Doptimization=1 -Db_sanitize=address,undefined \
		-Db_lundef=false >/dev/null

test-mutants: setup-test
	@test/mutants/run $(if $(ONLY),--only '$(ONLY)')

soak: setup-test tested
	@test/soak/soak $(or $(MINUTES),60) $(if $(WRITE),--write)

soak-calls: setup-test tested
	@VITRO_BINARY=$(abspath build/vitro) build/test/library-soak $(or $(CALLS),100000) $(SEED)
	@[ ! -f build/node/harness.cjs ] || VITRO_BINARY=$(abspath build/vitro) node test/node/soak.mjs $(or $(CALLS),10000) $(SEED)

bench: setup build
	@tools/setup bench
	@bench/all/run $(if $(QUICK),--quick) build/vitro

# For Debian, to build/deb.
deb: setup
	@tools/setup packages
	@packaging/deb build/deb

test-packages: build
	@tools/setup packages
	@test/package/run build

fuzz: setup-test
	@tools/setup fuzz
	@tools/fuzz $(SECONDS)

docs: setup-test tested
	@build/test/vitro-syscalls --write docs/security.md build/profiles/docker.json

abi: setup-test tested
	@test/library/check --renew build/include/vitro.h build/src/libvitro.so.$(shell sed -n "s/^  version: '\(.*\)',/\1/p" meson.build) \
		build/src/libvitro.a build/test/libvitro-abi.so

check:
	@tools/check

tidy: setup-test tested
	@tools/setup analyze
	@tools/analyze clang-tidy

analyze: setup-test tested
	@tools/setup analyze
	@tools/analyze

coverage: setup-test
	@tools/setup analyze
	@tools/coverage $(if $(FILTER),--filter '$(FILTER)')

format:
	@clang-format -i $$(git ls-files '*.c')

# Said in a line beforehand: meson would end in a traceback.
install: build
	@for at in bin libexec share; do \
		at='$(abspath $(DESTDIR))$(PREFIX)'/$$at; \
		while [ ! -e "$$at" ]; do at=$$(dirname "$$at"); done; \
		[ -d "$$at" ] && [ -w "$$at" ] && continue; \
		echo "make install: $$at cannot be written; run it as root, or give PREFIX=FOLDER" >&2; \
		exit 1; \
	done
	@{ meson configure build --prefix $(PREFIX) && \
		DESTDIR=$(abspath $(DESTDIR)) meson install -C build --quiet; } >build/install.log || \
		{ cat build/install.log; exit 1; }
	@to='$(abspath $(DESTDIR))$(PREFIX)'; echo "installed in $$to:"; \
	echo '  bin/vitro                        the program'; \
	echo '  lib, include/vitro.h             libvitro, and vitro.pc for pkg-config'; \
	echo '  libexec/vitro                    what eval, tools in Python and Node, and doctor --self-test need'; \
	echo '  share/man                        man pages'; \
	echo '  share/vitro/*.schema.json        for editors'; \
	echo '  share                            completions for bash, zsh and fish'
	@case '$(DESTDIR)$(PREFIX)' in \
	/usr|/usr/local) /sbin/ldconfig ;; \
	*) [ '$(DESTDIR)' ] || { \
		found=$$(find '$(PREFIX)' -name vitro.pc 2>/dev/null) && \
			echo "To compile with it: export PKG_CONFIG_PATH=$$(dirname "$$found")"; \
		echo 'Programs find libvitro there if linked with -Wl,-rpath,$$(pkg-config --variable=libdir vitro)'; } ;; \
	esac

clean:
	@rm -rf build build-sanitized build-fuzz build-coverage build-aarch64
