// SPDX-License-Identifier: GPL-2.0-only
/*
 * Instructions per operation, in a guest whose clock counts instructions.
 *
 * Invariants: a case is run alone, many times, each between two readings of the
 * clock, and the median counts, so that a timer interrupt in some of them does
 * not; what reading the clock costs is measured the same way and taken off. The
 * program refuses to say anything if the clock is found not to count
 * instructions.
 */
#include <getopt.h>
#include <sys/utsname.h>

#include "../module/fixture.h"
#include "icount.h"
#include "stats.h"

#define WARM_UP		50
#define ROUNDS		301

/* The aims: see README.md. */
#define AIM_NOP		400	/* instructions for one of a batch */
#define AIM_COPY	3	/* getpid() above the bare copy */

struct aim {
	const char *key;
	const char *what;
	double value;
	double limit;
	bool gate;			/* missing it fails --tap */
};

static struct stats measure(struct bench *b, void (*run)(struct bench *b))
{
	static double samples[ROUNDS];
	uint64_t begin;
	int i;

	for (i = 0; i < WARM_UP; i++) {
		now_ns();
		run(b);
	}
	for (i = 0; i < ROUNDS; i++) {
		begin = now_ns();
		run(b);
		samples[i] = (double)(now_ns() - begin);
	}
	return stats_of(samples, ROUNDS);
}

/* The cost of one operation, @clock being that of measuring. */
static struct stats per_op(struct stats s, double clock, unsigned int n)
{
	s.median = (s.median - clock) / n;
	s.p10 = (s.p10 - clock) / n;
	s.p90 = (s.p90 - clock) / n;
	return s;
}

static bool measure_clock(struct bench *b, double *clock)
{
	double thousand;

	*clock = measure(b, bench_run_nothing).median;
	thousand = measure(b, bench_run_thousand).median - *clock;
	if (thousand >= 999 && thousand <= 1001)
		return true;
	fprintf(stderr,
		"icount: 1000 instructions take %.0f ns here, so this clock does not count them\n",
		thousand);
	return false;
}

static bool measure_all(struct bench *b, double clock, struct stats *results)
{
	const struct bench_case *c;
	unsigned int i;

	for (i = 0; i < bench_nr_cases; i++) {
		c = &bench_cases[i];
		bench_prepare(b, c);
		results[i] = per_op(measure(b, c->run), clock, c->n);
		if (!bench_verify(b, c)) {
			fprintf(stderr, "icount: wrong result: %s\n", c->what);
			return false;
		}
	}
	return true;
}

static double median_of(const struct stats *results, const char *key)
{
	unsigned int i;

	for (i = 0; i < bench_nr_cases; i++)
		if (!strcmp(bench_cases[i].key, key))
			return results[i].median;
	abort();
}

#define NR_AIMS 3

/*
 * 4 KiB by the kernel's memcpy, which is not the C library's: from what the
 * bytes beyond 64 add to a copy, all else being equal.
 */
static double kernel_copy(const struct stats *results)
{
	return (median_of(results, "ioctl_copy_4096") -
		median_of(results, "ioctl_copy_64")) * 4096 / (4096 - 64);
}

static void find_aims(const struct stats *results, struct aim *aims)
{
	aims[0] = (struct aim) {
		"nop_batch", "one of 32 NOPs by ioctl",
		median_of(results, "ioctl_nop_batch"), AIM_NOP, true,
	};
	aims[1] = (struct aim) {
		"copy_4096_peer", "ioctl, copy 4 KiB, and process_vm_readv()",
		median_of(results, "ioctl_copy_4096"),
		median_of(results, "vm_readv_4096"), true,
	};
	aims[2] = (struct aim) {
		"copy_4096", "ioctl, copy 4 KiB, above the bare copy",
		median_of(results, "ioctl_copy_4096") - kernel_copy(results),
		AIM_COPY * median_of(results, "getpid"), false,
	};
}

static bool met(const struct aim *aim)
{
	return aim->value <= aim->limit;
}

static void print_table(const struct stats *results, const struct aim *aims)
{
	double pid = median_of(results, "getpid");
	struct utsname name;
	unsigned int i;

	uname(&name);
	printf("Linux %s\n\n%-44s %13s %10s\n", name.release, "one operation",
	       "instructions", "getpid()s");
	for (i = 0; i < bench_nr_cases; i++)
		printf("%-44s %13.1f %10.2f\n", bench_cases[i].what,
		       results[i].median, results[i].median / pid);
	printf("%-44s %13.1f %10.2f\n", "(4 KiB by the kernel's memcpy)",
	       kernel_copy(results), kernel_copy(results) / pid);
	printf("\n%-44s %13s %10s\n", "aims", "instructions", "at most");
	for (i = 0; i < NR_AIMS; i++)
		printf("%-44s %13.1f %10.1f  %s\n", aims[i].what, aims[i].value,
		       aims[i].limit, met(&aims[i]) ? "met" : "missed");
}

static void print_tap(const struct aim *aims)
{
	unsigned int i, n = 0;

	printf("TAP version 13\n");
	for (i = 0; i < NR_AIMS; i++) {
		if (aims[i].gate)
			printf("%sok %u ", met(&aims[i]) ? "" : "not ", ++n);
		else
			printf("# ");
		printf("%s: %.1f of at most %.1f instructions\n", aims[i].what,
		       aims[i].value, aims[i].limit);
	}
	printf("1..%u\n", n);
}

static json_object *to_json(const struct stats *results, const struct aim *aims,
			    double clock)
{
	json_object *root = json_object_new_object();
	json_object *list = json_object_new_object();
	struct utsname name;
	unsigned int i;

	uname(&name);
	json_object_object_add(root, "bench", json_object_new_string("icount"));
	json_object_object_add(root, "kernel",
			       json_object_new_string(name.release));
	json_object_object_add(root, "rounds", json_object_new_int(ROUNDS));
	json_object_object_add(root, "clock", stats_number(clock));
	for (i = 0; i < bench_nr_cases; i++)
		json_object_object_add(list, bench_cases[i].key,
				       stats_json(&results[i]));
	json_object_object_add(root, "instructions", list);
	json_object_object_add(root, "kernel_memcpy_4096",
			       stats_number(kernel_copy(results)));

	list = json_object_new_object();
	for (i = 0; i < NR_AIMS; i++) {
		json_object *o = json_object_new_object();

		json_object_object_add(o, "value", stats_number(aims[i].value));
		json_object_object_add(o, "limit", stats_number(aims[i].limit));
		json_object_object_add(o, "met",
				       json_object_new_boolean(met(&aims[i])));
		json_object_object_add(list, aims[i].key, o);
	}
	json_object_object_add(root, "aims", list);
	return root;
}

static void usage(FILE *f)
{
	fputs("Usage: icount [--json FILE] [--tap]\n\n"
	      "Counts instructions per operation of /dev/towpin, in a virtual machine\n"
	      "whose clock counts them (selftests/vm/run --icount).\n\n"
	      "  --json FILE  write the results to FILE as well\n"
	      "  --tap        print a verdict on each aim, not the table\n",
	      f);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", required_argument, NULL, 'j' },
		{ "tap", no_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	struct stats results[bench_nr_cases];
	static struct bench b;
	struct aim aims[NR_AIMS];
	const char *json = NULL;
	bool tap = false;
	double clock;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'j') {
			json = optarg;
		} else if (c == 't') {
			tap = true;
		} else {
			usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind != argc) {
		usage(stderr);
		return 2;
	}

	if (!bench_open(&b)) {
		fputs("icount: cannot set up /dev/towpin\n", stderr);
		return 1;
	}
	if (!measure_clock(&b, &clock) || !measure_all(&b, clock, results))
		return 1;
	bench_close(&b);

	find_aims(results, aims);
	if (tap)
		print_tap(aims);
	else
		print_table(results, aims);
	if (json && !stats_save(to_json(results, aims, clock), json))
		return 1;
	for (c = 0; c < NR_AIMS; c++)
		if (tap && aims[c].gate && !met(&aims[c]))
			return 1;
	return 0;
}
