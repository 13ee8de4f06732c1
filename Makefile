# SPDX-License-Identifier: GPL-2.0-only
#
# towpin: the module, the library, the tools and their tests.
#
# Invariants: nothing is written outside $(O) and $(TOWPIN_CACHE); each folder
# brings its own rules in a .mk fragment, with paths relative to this file; no
# recipe but `load` asks which kernel this machine runs.

.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash -o pipefail
ifeq ($(V),)
.SILENT:
endif

VERSION := 0.1.0
O ?= build
TOWPIN_CACHE ?= $(CURDIR)/.cache
PREFIX ?= /usr/local
export TOWPIN_CACHE

ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
TOW_CFLAGS = -std=gnu11 $(WARN) -fno-strict-aliasing -D_GNU_SOURCE \
	     -DTOW_VERSION='"$(VERSION)"' -Iuapi -Ilib -MMD -MP $(CFLAGS)

.PHONY: all help setup demo check lint clean
all:

include kmod/kmod.mk
include lib/lib.mk
include tools/tools.mk
include kmod/install.mk
include selftests/selftests.mk

all: kmod tests

help:
	@echo 'make            the module (for each test kernel, or KDIR=...), library, tools, tests'
	@echo 'make setup      install what is missing and fetch the test kernels'
	@echo 'make demo       two processes hand over a file through /dev/towpin, in a VM'
	@echo 'make check      every test; STEPS="module-6.12 ..." runs some of them'
	@echo 'make lint       checkpatch, sparse, shellcheck ...'
	@echo 'make bench      the benchmarks'
	@echo 'make lib tools  the library and the command alone; make kmod KDIR=... the module'
	@echo 'make load       build the module for the running kernel and insert it (root); unload'
	@echo 'make install    library, tools, udev rule, group (DESTDIR, PREFIX); uninstall'
	@echo 'make install-dkms   source for DKMS; uninstall-dkms'
	@echo 'make clean      remove $(O)'
	@echo 'V=1 shows the commands'

# Build with one job a core, in a make of its own: what set-up brings is then
# there when the rules are read.
jobs = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

setup:
	@selftests/setup/setup

demo: setup
	@$(MAKE) --no-print-directory $(jobs) kmod-6.12 tools
	@selftests/demo/run $(O)

check: setup
	@$(MAKE) --no-print-directory $(jobs) all
	@selftests/check $(O) $(STEPS)

lint: setup
	@$(MAKE) --no-print-directory $(jobs) kmod lib-man tools-man
	@selftests/lint/lint $(O)

clean:
	rm -rf $(O)
