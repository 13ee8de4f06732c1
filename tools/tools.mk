# SPDX-License-Identifier: GPL-2.0-only
#
# The command tow and its manual pages.
#
# Invariants: tow is linked with libtowpin.a, so that it runs from $(O) and from
# a RAM disk as it is; install-tools and uninstall-tools name the same files.

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
COMPDIR ?= $(PREFIX)/share/bash-completion/completions
SCDOC ?= scdoc
PKG_CONFIG ?= pkg-config

TOW_SRC := tow.c demo.c demo_files.c demo_run.c info.c output.c progress.c \
	   recv.c recv_run.c rendezvous.c report.c ring.c send.c send_run.c \
	   stop.c stream.c util.c wire.c
TOW_OBJ := $(TOW_SRC:%.c=$(O)/tools/%.o)
TOW_BIN := $(O)/tools/tow
TOW_MAN := $(patsubst tools/man/%.scd,$(O)/tools/man/%,\
	     $(wildcard tools/man/*.scd))

TOW_JSON_CFLAGS = $(shell $(PKG_CONFIG) --cflags json-c)
TOW_JSON_LIBS = $(shell $(PKG_CONFIG) --libs json-c)

.PHONY: tools tools-man install-tools uninstall-tools
all: tools
tools: $(TOW_BIN) tools-man
tools-man: $(TOW_MAN)

$(TOW_OBJ): $(O)/tools/%.o: tools/%.c
	@mkdir -p $(@D)
	$(CC) $(TOW_CFLAGS) $(TOW_JSON_CFLAGS) -c -o $@ $<

$(TOW_BIN): $(TOW_OBJ) $(O)/lib/libtowpin.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(TOW_JSON_LIBS) -pthread

$(TOW_MAN): $(O)/tools/man/%: tools/man/%.scd
	@mkdir -p $(@D)
	$(SCDOC) < $< > $@

install-tools: tools
	install -D -m 0755 $(TOW_BIN) $(DESTDIR)$(BINDIR)/tow
	install -d $(DESTDIR)$(MANDIR)/man1
	install -m 0644 $(TOW_MAN) $(DESTDIR)$(MANDIR)/man1/
	install -D -m 0644 tools/tow.bash $(DESTDIR)$(COMPDIR)/tow

uninstall-tools:
	rm -f $(DESTDIR)$(BINDIR)/tow $(DESTDIR)$(COMPDIR)/tow
	rm -f $(patsubst %,$(DESTDIR)$(MANDIR)/man1/%,$(notdir $(TOW_MAN)))

-include $(TOW_OBJ:.o=.d)
