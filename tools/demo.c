// SPDX-License-Identifier: GPL-2.0-only
/*
 * tow demo: send a file to itself through towpin, and through a pipe.
 *
 * Invariants: both ways read the same file and write a new one in the same
 * directory; each copy is compared with the original, outside the time; numbers
 * are printed only if every copy was right.
 */
#include <argp.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "demo.h"
#include "tool.h"

/* ---- all runs ---- */

/* Taken in turn, so that what else the machine does meets both alike. */
static int run_all(struct demo *d)
{
	unsigned int i;
	int err = 0;

	/* Who inherits it as ignored has no children to wait for. */
	signal(SIGCHLD, SIG_DFL);
	for (i = 0; !err && i < d->runs; i++) {
		unlink(d->copy);
		err = demo_run_pipe(d, i);
		if (!err)
			err = demo_check_copy(d);
		unlink(d->copy);
		if (!err)
			err = demo_run_tow(d, i);
		if (!err)
			err = demo_check_copy(d);
		if (!err)
			err = demo_check_result(d);
	}
	return err;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double median(struct way *way, unsigned int runs)
{
	qsort(way->ns, runs, sizeof(way->ns[0]), compare_ns);
	return (way->ns[(runs - 1) / 2] + way->ns[runs / 2]) / 2e9;
}

static struct json_object *way_json(const struct demo *d, double s,
				    const struct way *way)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "seconds", report_seconds(s));
	json_object_object_add(o, "cpu_seconds",
			       report_seconds(way->cpu_ns / 1e9 / d->runs));
	json_object_object_add(o, "throughput_bytes_per_second",
			       json_object_new_uint64(d->size / s));
	return o;
}

static void way_text(const struct demo *d, const char *name, double s,
		     const struct way *way)
{
	char rate[32];

	printf("  %-10s %8.3f s  %10s/s  %6.3f s of CPU\n", name, s,
	       size_text(rate, sizeof(rate), d->size / s),
	       way->cpu_ns / 1e9 / d->runs);
}

static int print(struct demo *d)
{
	double tow = median(&d->tow, d->runs);
	double pipe = median(&d->pipe, d->runs);
	struct json_object *o;
	char size[32], crc[16];

	snprintf(crc, sizeof(crc), "%08x", d->crc);
	if (d->json) {
		o = json_object_new_object();
#define ADD(key, value)	json_object_object_add(o, key, value)
		ADD("bytes", json_object_new_uint64(d->size));
		ADD("runs", json_object_new_uint64(d->runs));
		ADD("provider", json_object_new_string(d->provider));
		ADD("chunks", json_object_new_uint64(d->chunks));
		ADD("crc32c", json_object_new_string(crc));
		ADD("identical", json_object_new_boolean(true));
		ADD("tow", way_json(d, tow, &d->tow));
		ADD("pipe", way_json(d, pipe, &d->pipe));
#undef ADD
		return report_json(o, stdout);
	}
	printf("%s from one process to another, median of %d:\n\n",
	       size_text(size, sizeof(size), d->size), (int)d->runs);
	way_text(d, "tow", tow, &d->tow);
	way_text(d, "cat | cat", pipe, &d->pipe);
	printf("\nprovider %s, %d chunks, CRC-32C %s; all copies identical\n",
	       d->provider, (int)d->chunks, crc);
	return stdout_close();
}

/* ---- the command ---- */

static int run(struct demo *d)
{
	int err;

	err = stop_init();
	if (!err)
		err = demo_make_dir(d);
	if (err)
		return err;
	err = demo_make_source(d);
	if (!err)
		err = run_all(d);
	if (!err)
		err = print(d);
	demo_remove_dir(d);
	return err;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct demo *d = state->input;

	switch (key) {
	case 's':
		if (parse_size(arg, &d->size) || d->size > INT64_MAX)
			usage_fail("bad --size '%s'; give bytes, or K, M, G",
				   arg);
		break;
	case 'r':
		if (parse_count(arg, 1, DEMO_RUNS_MAX, &d->runs))
			usage_fail("bad --runs '%s'; give 1 to %d", arg,
				   DEMO_RUNS_MAX);
		break;
	case 'j':
		d->json = true;
		break;
	case ARGP_KEY_ARG:
		if (d->path)
			usage_fail("too many arguments; give one FILE");
		d->path = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_demo(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "size", 's', "SIZE", 0,
		  "bytes to send without FILE, with K, M or G (128M)", 0 },
		{ "runs", 'r', "N", 0, "how often each way (3)", 0 },
		{ "json", 'j', NULL, 0, "print a JSON object", 0 },
		{ 0 }
	};
	static const struct argp argp = {
		.options = options, .parser = parse, .args_doc = "[FILE]",
		.doc =
			"Send FILE, or generated data, from one process to another through towpin and through a pipe, compare the copies and print the times.",
	};
	struct demo d = {
		.size = UINT64_C(128) << 20,
		.runs = 3,
	};

	argp_parse(&argp, argc, argv, 0, NULL, &d);
	return run(&d);
}
