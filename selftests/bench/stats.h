/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the benchmarks share: order statistics and the file of results.
 */
#ifndef TOWPIN_BENCH_STATS_H
#define TOWPIN_BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

/* Of all samples, so that a disturbed one moves nothing but the outer two. */
struct stats {
	double median;
	double p10;		/* a tenth of the samples lies below */
	double p90;		/* a tenth lies above */
};

/* Sorts @samples, of which there is at least one. */
struct stats stats_of(double *samples, size_t n);

/* A number that is written with two digits after the point. */
json_object *stats_number(double value);

/* { "median": , "p10": , "p90": } */
json_object *stats_json(const struct stats *stats);

/* Writes @root to the file @path, "-" being standard output, and drops it. */
bool stats_save(json_object *root, const char *path);

#endif /* TOWPIN_BENCH_STATS_H */
