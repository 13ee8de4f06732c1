# SPDX-License-Identifier: GPL-2.0-only
#
# What goes with the module on a host: device node, group, load at boot, DKMS.
#
# Invariants: with DESTDIR nothing outside it is touched; uninstall removes what
# install put there, and no more.

UDEVDIR ?= /usr/lib/udev/rules.d
SYSUSERSDIR ?= /usr/lib/sysusers.d
TMPFILESDIR ?= /usr/lib/tmpfiles.d
MODULESLOADDIR ?= /etc/modules-load.d
SHAREDIR ?= $(PREFIX)/share/towpin
DKMSDIR ?= /usr/src/towpin-$(VERSION)
BT_SCRIPTS = $(wildcard tools/bpftrace/*.bt)

.PHONY: install uninstall install-host uninstall-host install-dkms uninstall-dkms
install: install-lib install-tools install-host
uninstall: uninstall-lib uninstall-tools uninstall-host

install-host:
	install -D -m 0644 kmod/dist/60-towpin.rules $(DESTDIR)$(UDEVDIR)/60-towpin.rules
	install -D -m 0644 kmod/dist/sysusers.conf $(DESTDIR)$(SYSUSERSDIR)/towpin.conf
	install -D -m 0644 kmod/dist/tmpfiles.conf $(DESTDIR)$(TMPFILESDIR)/towpin.conf
	# The administrator's to edit: not written again.
	test -e $(DESTDIR)$(MODULESLOADDIR)/towpin.conf || \
		install -D -m 0644 kmod/dist/modules-load.conf $(DESTDIR)$(MODULESLOADDIR)/towpin.conf
	install -D -m 0644 uapi/linux/towpin.h $(DESTDIR)$(INCLUDEDIR)/linux/towpin.h
	install -d $(DESTDIR)$(SHAREDIR)/bpftrace
	install -m 0755 $(BT_SCRIPTS) $(DESTDIR)$(SHAREDIR)/bpftrace/

uninstall-host:
	rm -f $(DESTDIR)$(UDEVDIR)/60-towpin.rules $(DESTDIR)$(SYSUSERSDIR)/towpin.conf
	rm -f $(DESTDIR)$(TMPFILESDIR)/towpin.conf
	rm -f $(DESTDIR)$(MODULESLOADDIR)/towpin.conf $(DESTDIR)$(INCLUDEDIR)/linux/towpin.h
	rm -f $(patsubst tools/bpftrace/%,$(DESTDIR)$(SHAREDIR)/bpftrace/%,$(BT_SCRIPTS))
	-rmdir --ignore-fail-on-non-empty -p $(DESTDIR)$(SHAREDIR)/bpftrace

# The source for `dkms add -m towpin -v VERSION`.
install-dkms:
	install -D -m 0644 -t $(DESTDIR)$(DKMSDIR) Kbuild kmod/dkms.conf
	install -D -m 0644 -t $(DESTDIR)$(DKMSDIR)/kmod kmod/*.c kmod/*.h
	install -D -m 0644 -t $(DESTDIR)$(DKMSDIR)/uapi/linux uapi/linux/towpin.h

uninstall-dkms:
	rm -rf $(DESTDIR)$(DKMSDIR)

# This host, now, without installing anything: the module for the running
# kernel, and its device for the group towpin.
.PHONY: load unload
load:
	@test -d /lib/modules/$$(uname -r)/build || { echo >&2 \
	"make: the headers of the running kernel are not installed: apt-get install linux-headers-$$(uname -r)"; exit 1; }
	@test "$$(id -u)" = 0 || { echo >&2 "make: loading a module needs root: sudo make load"; exit 1; }
	$(MAKE) --no-print-directory kmod-one KDIR=/lib/modules/$$(uname -r)/build WERROR=
	for m in $$(modinfo -F depends $(O)/kmod/$$(uname -r)/towpin.ko | tr , ' '); do \
		modprobe $$m || exit 1; done
	insmod $(O)/kmod/$$(uname -r)/towpin.ko
	getent group towpin >/dev/null || groupadd --system towpin
	chgrp towpin /dev/towpin && chmod 0660 /dev/towpin

unload:
	rmmod towpin
