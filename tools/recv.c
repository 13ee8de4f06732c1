// SPDX-License-Identifier: GPL-2.0-only
/*
 * tow recv: its command line.
 *
 * Invariants: a wrong command line ends the program before anything is opened;
 * an output that cannot be written is found before a sender is awaited; when
 * the command fails, its output is discarded.
 */
#include <argp.h>
#include <errno.h>
#include <string.h>

#include "recv.h"
#include "tool.h"

static int run(struct recv *r)
{
	int err;

	err = stop_init();
	if (!err)
		err = output_open(&r->out, r->path, r->force, r->sync);
	if (err)
		return err;
	err = recv_run(r);
	output_discard(&r->out);
	if (r->ctx)
		tow_close(r->ctx);
	return err;
}

enum { OPT_ANY_USER = 256, OPT_SYNC };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct recv *r = state->input;

	switch (key) {
	case 't':
		if (parse_seconds(arg, &r->timeout))
			usage_fail("bad --timeout '%s'; give seconds", arg);
		break;
	case 'f':
		r->force = true;
		break;
	case OPT_SYNC:
		r->sync = true;
		break;
	case OPT_ANY_USER:
		r->any_user = true;
		break;
	case 'j':
		r->json = true;
		break;
	case 'q':
		r->quiet = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			r->name = arg;
		else if (state->arg_num == 1)
			r->path = arg;
		else
			usage_fail("too many arguments; give NAME and FILE");
		break;
	case ARGP_KEY_END:
		if (!r->name)
			usage_fail("no NAME given; choose one that the sender uses too");
		rdv_name_check(r->name);
		if (r->path && !strcmp(r->path, "-"))
			r->path = NULL;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_recv(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "timeout", 't', "SECONDS", 0,
		  "wait so long for a sender (30)", 0 },
		{ "force", 'f', NULL, 0, "replace FILE if it exists", 0 },
		{ "sync", OPT_SYNC, NULL, 0,
		  "have FILE on the disk before it gets its name", 0 },
		{ "any-user", OPT_ANY_USER, NULL, 0,
		  "allow a sender of another user", 0 },
		{ "json", 'j', NULL, 0,
		  "print the result as JSON, to stderr if stdout is the stream", 0 },
		{ "quiet", 'q', NULL, 0, "show no progress", 0 },
		{ 0 }
	};
	static const struct argp argp = {
		.options = options, .parser = parse, .args_doc = "NAME [FILE]",
		.doc =
			"Take the stream of the 'tow send' of the same NAME and write it to FILE, or standard output.",
	};
	struct recv r = {
		.timeout = RDV_TIMEOUT,
		.reason = WIRE_ENGINE,
	};

	argp_parse(&argp, argc, argv, 0, NULL, &r);
	return run(&r);
}
