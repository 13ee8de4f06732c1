# SPDX-License-Identifier: GPL-2.0-only
#
# towpin: the module, the library, the tools and their tests.
#
#   make            build everything into $(O) (default build/)
#   make demo       the main job, in a virtual machine
#   make check      every test
#   make help       the other targets
#
# Invariants: nothing is written outside $(O) and $(TOWPIN_CACHE); each folder
# brings its own rules in a .mk fragment, with paths relative to this file; no
# recipe asks which kernel this machine runs.

.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash -o pipefail

O ?= build
TOWPIN_CACHE ?= $(CURDIR)/.cache
export TOWPIN_CACHE
VERSION := 0.1.0

CC ?= cc
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
TOW_CFLAGS = -std=gnu11 $(WARN) -fno-strict-aliasing -D_GNU_SOURCE \
	     -DTOW_VERSION='"$(VERSION)"' -Iuapi -Ilib -MMD -MP $(CFLAGS)

.PHONY: all
all: kmod

include kmod/kmod.mk
