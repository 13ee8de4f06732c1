// SPDX-License-Identifier: GPL-2.0-only
/*
 * GB/s of copies through libtowpin without the module, beside memcpy(3).
 *
 * Invariants: each round runs every method once, the first of them another each
 * time, so that what the machine does meanwhile meets all of them alike; ratios
 * are taken within a round and then their median, not the other way round. One
 * copy is in flight at a time: one worker against one memcpy().
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "host.h"
#include "stats.h"

struct length {
	const char *name;
	const char *key;
	size_t size;
	unsigned int rounds;
	unsigned int copies;	/* in one sample, so that it is long enough */
};

static const struct length lengths[] = {
	{ "1 MiB", "copy_1m", MIB(1), 101, 16 },
	{ "64 MiB", "copy_64m", MIB(64), 31, 1 },
};

#define NR_LENGTHS	(sizeof(lengths) / sizeof(lengths[0]))
#define MAX_ROUNDS	101

static const struct {
	const char *name;
	const char *key;
} methods[NR_METHODS] = {
	[MEMCPY_OWN] = { "memcpy, own memory", "memcpy_own" },
	[MEMCPY_SHARED] = { "memcpy, these buffers", "memcpy" },
	[TOW_NORMAL] = { "libtowpin, NORMAL", "tow_normal" },
	[TOW_NOCACHE] = { "libtowpin, NOCACHE", "tow_nocache" },
};

struct outcome {
	struct stats speed;	/* GB/s */
	struct stats ratio;	/* to MEMCPY_SHARED of the same round */
};

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* GB/s, or 0 when a copy failed. */
static double sample(struct pool *pool, const struct length *length,
		     enum method method)
{
	double begin = seconds();
	unsigned int i;

	for (i = 0; i < length->copies; i++)
		if (!pool_copy(pool, method))
			return 0;
	return (double)length->size * length->copies /
	       (seconds() - begin) / 1e9;
}

static bool measure(struct tow_ctx *ctx, const struct length *length,
		    struct outcome *out)
{
	static double speed[NR_METHODS][MAX_ROUNDS];
	static double ratio[NR_METHODS][MAX_ROUNDS];
	struct pool pool;
	unsigned int r, i, m;
	bool ok;

	if (!pool_open(&pool, ctx, length->size))
		return false;
	for (r = 0; r < length->rounds; r++) {
		for (i = 0; i < NR_METHODS; i++) {
			m = (r + i) % NR_METHODS;
			speed[m][r] = sample(&pool, length, m);
			if (speed[m][r] <= 0)
				return false;
		}
		for (m = 0; m < NR_METHODS; m++)
			ratio[m][r] = speed[m][r] / speed[MEMCPY_SHARED][r];
	}
	ok = pool_verify(&pool);
	pool_close(&pool);
	for (m = 0; m < NR_METHODS; m++) {
		out[m].speed = stats_of(speed[m], length->rounds);
		out[m].ratio = stats_of(ratio[m], length->rounds);
	}
	return ok;
}

static void print_table(struct outcome out[][NR_METHODS])
{
	const struct outcome *o;
	unsigned int l, m;

	printf("user provider, medians and [10 %% .. 90 %%]\n\n%-8s %-24s %7s %16s %6s %16s\n",
	       "one copy", "by", "GB/s", "", "ratio", "");
	for (l = 0; l < NR_LENGTHS; l++) {
		for (m = 0; m < NR_METHODS; m++) {
			o = &out[l][m];
			printf("%-8s %-24s %7.2f [%6.2f ..%6.2f] %6.2f [%6.2f ..%6.2f]\n",
			       lengths[l].name, methods[m].name,
			       o->speed.median, o->speed.p10, o->speed.p90,
			       o->ratio.median, o->ratio.p10, o->ratio.p90);
		}
	}
}

static json_object *to_json(struct outcome out[][NR_METHODS])
{
	json_object *root = json_object_new_object();
	unsigned int l, m;

	json_object_object_add(root, "bench", json_object_new_string("host"));
	for (l = 0; l < NR_LENGTHS; l++) {
		json_object *of_length = json_object_new_object();

		json_object_object_add(of_length, "rounds",
				       json_object_new_int((int)lengths[l].rounds));
		for (m = 0; m < NR_METHODS; m++) {
			json_object *o = json_object_new_object();

			json_object_object_add(o, "gb_per_s",
					       stats_json(&out[l][m].speed));
			json_object_object_add(o, "ratio",
					       stats_json(&out[l][m].ratio));
			json_object_object_add(of_length, methods[m].key, o);
		}
		json_object_object_add(root, lengths[l].key, of_length);
	}
	return root;
}

static void usage(FILE *f)
{
	fputs("Usage: host [--json FILE]\n\n"
	      "Speed of copies through libtowpin without the module, beside memcpy(3).\n"
	      "Takes 1 GiB of memory.\n\n"
	      "  --json FILE  write the results to FILE as well\n", f);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	struct tow_open_opts opts = {
		.size = sizeof(opts),
		.provider = TOW_PROVIDER_USER,
	};
	static struct outcome out[NR_LENGTHS][NR_METHODS];
	const char *json = NULL;
	struct tow_ctx *ctx;
	unsigned int l;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c != 'j') {
			usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
		json = optarg;
	}
	if (optind != argc) {
		usage(stderr);
		return 2;
	}

	if (tow_open(&ctx, &opts)) {
		fputs("host: cannot open the user provider\n", stderr);
		return 1;
	}
	for (l = 0; l < NR_LENGTHS; l++) {
		if (!measure(ctx, &lengths[l], out[l])) {
			fprintf(stderr, "host: copies of %s failed\n",
				lengths[l].name);
			return 1;
		}
	}
	tow_close(ctx);

	print_table(out);
	return json && !stats_save(to_json(out), json);
}
