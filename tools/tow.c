// SPDX-License-Identifier: GPL-2.0-only
/*
 * tow: one command for towpin.
 *
 * Invariants: this file only finds the subcommand; it is given its own argv,
 * whose first word is "tow SUB" so that messages name it.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "towpin.h"

static const struct {
	const char *name, *prog;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "info", "tow info", cmd_info, "what moves the bytes here, and why" },
	{ "send", "tow send", cmd_send, "hand a stream to a tow recv" },
	{ "recv", "tow recv", cmd_recv, "take the stream of a tow send" },
	{ "demo", "tow demo", cmd_demo, "send a file to itself, and measure" },
};

static void print_help(FILE *out)
{
	unsigned int i;

	fputs("Usage: tow COMMAND [OPTION...] [ARGUMENT...]\n\n", out);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-6s %s\n", commands[i].name,
			commands[i].help);
	fputs("\n'tow COMMAND --help' tells its options; --version, the version.\n", out);
}

static void print_version(FILE *out, struct argp_state *state)
{
	(void)state;
	fprintf(out, "tow %s (libtowpin %s)\n", TOW_VERSION, tow_version());
}

int main(int argc, char **argv)
{
	unsigned int i;
	int err;

	if (stdio_open())
		return EXIT_FAILURE;
	argp_err_exit_status = EXIT_USAGE;
	argp_program_version_hook = print_version;

	if (argc < 2)
		usage_fail("no command given; 'tow --help' lists them");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?") ||
	    !strcmp(argv[1], "help")) {
		print_help(stdout);
		return stdout_close() ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		print_version(stdout, NULL);
		return stdout_close() ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		prog = commands[i].prog;
		argv[1] = (char *)prog;
		program_invocation_short_name = (char *)prog;
		err = commands[i].run(argc - 1, argv + 1);
		return err ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	usage_fail("no command '%s'; 'tow --help' lists them", argv[1]);
}
