# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# libtowpin: shared and static library, pkg-config file, manual pages.
#
# Invariants: one set of objects serves both libraries; only what the version
# map names leaves the shared one; every name in the NAME line of a page is a
# page of its own, a link made here.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
SCDOC ?= scdoc
AR ?= ar
OBJCOPY ?= objcopy
INSTALL ?= install

LIB_SONAME := libtowpin.so.0
LIB_SRCS := buffer.c crc32c.c device.c event.c kmod.c map.c mem.c op.c user.c \
	    user_buf.c user_check.c user_event.c user_mem.c user_queue.c \
	    user_run.c
LIB_OBJS := $(LIB_SRCS:%.c=$(O)/lib/obj/%.o)
LIB_CFLAGS = -fPIC -fvisibility=hidden -pthread
LIB_PAGES := $(notdir $(wildcard lib/man/*.scd))
LIB_MAN := $(LIB_PAGES:%.scd=$(O)/man/%)
LIB_MAN_LINKS := $(O)/man/links

LIB_FILES := $(O)/lib/$(LIB_SONAME) $(O)/lib/libtowpin.so \
	     $(O)/lib/libtowpin.a $(O)/lib/libtowpin.pc

.PHONY: lib lib-man install-lib uninstall-lib
all: lib lib-man
lib: $(LIB_FILES)
lib-man: $(LIB_MAN) $(LIB_MAN_LINKS)

$(O)/lib/obj/%.o: lib/%.c
	@mkdir -p $(@D)
	$(CC) $(TOW_CFLAGS) $(LIB_CFLAGS) -c $< -o $@

$(O)/lib/$(LIB_SONAME): $(LIB_OBJS) lib/libtowpin.map
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -pthread -Wl,-soname,$(LIB_SONAME) \
		-Wl,--version-script=lib/libtowpin.map -Wl,-z,defs \
		$(LIB_OBJS) -o $@

$(O)/lib/libtowpin.so: $(O)/lib/$(LIB_SONAME)
	ln -sf $(LIB_SONAME) $@

# One object, in which the inner names are local: they cannot clash.
$(O)/lib/obj/libtowpin.o: $(LIB_OBJS)
	$(CC) $(CFLAGS) -r -nostdlib $^ -o $@
	$(OBJCOPY) --localize-hidden $@

$(O)/lib/libtowpin.a: $(O)/lib/obj/libtowpin.o
	rm -f $@
	$(AR) rcs $@ $<

# Written anew each time: it depends on variables of the command line.
.PHONY: lib-always
$(O)/lib/libtowpin.pc: lib/libtowpin.pc.in lib-always
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
	    -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	    $< >$@

$(O)/man/%: lib/man/%.scd
	@mkdir -p $(@D)
	$(SCDOC) <$< >$@

# "name page" a line, for each name that is not that of the page itself.
$(LIB_MAN_LINKS): $(wildcard lib/man/*.scd)
	@mkdir -p $(@D)
	@for page in $(patsubst %.scd,%,$(filter %.3.scd,$(LIB_PAGES))); do \
		sed -n '/^# NAME/,/^# SYN/s/^\(tow_.*\) - .*/\1/p' \
			lib/man/$$page.scd | tr -d ',' | tr ' ' '\n' | \
		while read -r name; do \
			[ "$$name.3" = "$$page" ] || echo "$$name.3 $$page"; \
		done; \
	done >$@

install-lib: lib lib-man
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR) \
		$(DESTDIR)$(MANDIR)/man3 $(DESTDIR)$(MANDIR)/man7
	$(INSTALL) -m 755 $(O)/lib/$(LIB_SONAME) $(DESTDIR)$(LIBDIR)/
	ln -sf $(LIB_SONAME) $(DESTDIR)$(LIBDIR)/libtowpin.so
	$(INSTALL) -m 644 $(O)/lib/libtowpin.a $(DESTDIR)$(LIBDIR)/
	$(INSTALL) -m 644 $(O)/lib/libtowpin.pc $(DESTDIR)$(LIBDIR)/pkgconfig/
	$(INSTALL) -m 644 lib/towpin.h $(DESTDIR)$(INCLUDEDIR)/
	$(INSTALL) -m 644 $(filter %.3,$(LIB_MAN)) $(DESTDIR)$(MANDIR)/man3/
	$(INSTALL) -m 644 $(filter %.7,$(LIB_MAN)) $(DESTDIR)$(MANDIR)/man7/
	@while read -r name page; do \
		echo ".so man3/$$page" >$(DESTDIR)$(MANDIR)/man3/$$name; \
	done <$(LIB_MAN_LINKS)

uninstall-lib: lib-man
	rm -f $(DESTDIR)$(LIBDIR)/$(LIB_SONAME) \
		$(DESTDIR)$(LIBDIR)/libtowpin.so \
		$(DESTDIR)$(LIBDIR)/libtowpin.a \
		$(DESTDIR)$(LIBDIR)/pkgconfig/libtowpin.pc \
		$(DESTDIR)$(INCLUDEDIR)/towpin.h
	rm -f $(patsubst $(O)/man/%.3,$(DESTDIR)$(MANDIR)/man3/%.3,$(filter %.3,$(LIB_MAN)))
	rm -f $(patsubst $(O)/man/%.7,$(DESTDIR)$(MANDIR)/man7/%.7,$(filter %.7,$(LIB_MAN)))
	@while read -r name page; do \
		rm -f $(DESTDIR)$(MANDIR)/man3/$$name; \
	done <$(LIB_MAN_LINKS)

-include $(LIB_OBJS:.o=.d)
