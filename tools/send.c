// SPDX-License-Identifier: GPL-2.0-only
/*
 * tow send: its command line and its input.
 *
 * Invariants: a wrong command line ends the program before anything is opened;
 * an input that cannot be read is found before a receiver is sought.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rendezvous.h"
#include "send.h"
#include "tool.h"

static int open_input(struct send *s)
{
	struct stat st;

	s->input = STDIN_FILENO;
	if (s->path && !strcmp(s->path, "-"))
		s->path = NULL;
	if (s->path) {
		s->input = open(s->path, O_RDONLY | O_CLOEXEC);
		if (s->input < 0 && stop_wanted())
			return stop_fail();
	}
	if (s->input < 0 || fstat(s->input, &st) < 0)
		return fail(-errno, "cannot open %s: %s",
			    s->path ? s->path : "standard input",
			    strerror(errno));
	if (S_ISDIR(st.st_mode))
		return fail(-EISDIR, "'%s' is a directory",
			    s->path ? s->path : "standard input");
	if ((fcntl(s->input, F_GETFL) & O_ACCMODE) == O_WRONLY)
		return fail(-EBADF, "standard input is closed; name a FILE");
	s->slow_input = !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode);
	return 0;
}

static int run(struct send *s)
{
	int err;

	err = stop_init();
	if (!err)
		err = open_input(s);
	if (!err)
		err = context_open(&s->ctx, s->slots);
	if (err)
		return err;
	err = send_run(s);
	tow_close(s->ctx);
	return err;
}

enum { OPT_SLOTS = 256, OPT_SLOT_SIZE, OPT_ANY_USER };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct send *s = state->input;

	switch (key) {
	case OPT_SLOTS:
		s->sized = true;
		if (parse_count(arg, 1, RING_SLOTS_MAX, &s->slots))
			usage_fail("bad --slots '%s'; give 1 to %d", arg,
				   RING_SLOTS_MAX);
		break;
	case OPT_SLOT_SIZE:
		s->sized = true;
		if (parse_size(arg, &s->slot_size) ||
		    !ring_geometry_ok(1, s->slot_size))
			usage_fail("bad --slot-size '%s'; give a multiple of 4K from 4K to 1G",
				   arg);
		break;
	case 't':
		if (parse_seconds(arg, &s->timeout))
			usage_fail("bad --timeout '%s'; give seconds", arg);
		break;
	case OPT_ANY_USER:
		s->any_user = true;
		break;
	case 'j':
		s->json = true;
		break;
	case 'q':
		s->quiet = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			s->name = arg;
		else if (state->arg_num == 1)
			s->path = arg;
		else
			usage_fail("too many arguments; give NAME and FILE");
		break;
	case ARGP_KEY_END:
		if (!s->name)
			usage_fail("no NAME given; choose one that the receiver uses too");
		rdv_name_check(s->name);
		if (!ring_geometry_ok(s->slots, s->slot_size))
			usage_fail("more than 4G in all; use smaller --slots or --slot-size");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_send(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "timeout", 't', "SECONDS", 0,
		  "wait so long for a receiver (30)", 0 },
		{ "slots", OPT_SLOTS, "N", 0, "slots of the ring (8)", 0 },
		{ "slot-size", OPT_SLOT_SIZE, "SIZE", 0,
		  "bytes of a slot, with K, M or G (1M)", 0 },
		{ "any-user", OPT_ANY_USER, NULL, 0,
		  "allow a receiver of another user", 0 },
		{ "json", 'j', NULL, 0,
		  "print the result to stdout as a JSON object", 0 },
		{ "quiet", 'q', NULL, 0, "show no progress", 0 },
		{ 0 }
	};
	static const struct argp argp = {
		.options = options, .parser = parse, .args_doc = "NAME [FILE]",
		.doc =
			"Hand FILE, or standard input, to the 'tow recv' of the same NAME.",
	};
	struct send s = {
		.timeout = RDV_TIMEOUT,
		.slots = RING_SLOTS,
		.slot_size = RING_SLOT_SIZE,
		.reason = WIRE_ENGINE,
	};

	argp_parse(&argp, argc, argv, 0, NULL, &s);
	return run(&s);
}
