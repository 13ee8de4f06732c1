# SPDX-License-Identifier: GPL-2.0-only
#
# The module. KDIR is a kernel build directory (headers); by default each of the
# test kernels whose headers are installed gets a module, in
# $(O)/kmod/<version>/towpin.ko. Sources are mirrored as links, so that objects
# land there: neither the tree nor the headers are written to.

KVERS = 6.12 6.1
kver = $(shell cat $(TOWPIN_CACHE)/kernels/$(1)/version 2>/dev/null)
KDIRS ?= $(if $(KDIR),$(KDIR),$(wildcard $(foreach k,$(KVERS),/usr/src/linux-headers-$(call kver,$(k)))))
KMOD_SRC := Kbuild $(wildcard kmod/*.c kmod/*.h) uapi/linux/towpin.h
KARGS ?=
WERROR ?= y

# The release that a kernel build directory is for.
krelease = $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(1)/include/generated/utsrelease.h 2>/dev/null)

.PHONY: kmod
kmod:
	@test -n '$(strip $(KDIRS))' || { echo >&2 \
	"make: no kernel headers to build the module for; run 'make setup', or give KDIR=/lib/modules/VERSION/build"; exit 1; }
	@for k in $(KDIRS); do $(MAKE) --no-print-directory kmod-one KDIR=$$k || exit 1; done

.PHONY: kmod-6.12
kmod-6.12:
	@$(MAKE) --no-print-directory kmod-one KDIR=/usr/src/linux-headers-$(call kver,6.12)

.PHONY: kmod-one
kmod-one: M = $(abspath $(O))/kmod/$(call krelease,$(KDIR))
kmod-one:
	@test -f $(KDIR)/include/generated/utsrelease.h || { echo >&2 \
	"make: $(KDIR) is not a kernel build directory; install the headers, or give another KDIR"; exit 1; }
	@mkdir -p $(M) && cp -rsfT $(CURDIR)/kmod $(M)/kmod && \
	 cp -rsfT $(CURDIR)/uapi $(M)/uapi && ln -sf $(CURDIR)/Kbuild $(M)/Kbuild
	@env -u MAKEFLAGS -u O $(MAKE) --no-print-directory -C $(KDIR) M=$(M) \
		-j$$(nproc) TOWPIN_WERROR=$(WERROR) W=1 $(KARGS) modules
