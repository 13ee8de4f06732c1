/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is counted by the icount benchmark.
 *
 * Invariants: run() does the whole operation, from nothing prepared but its
 * arguments to its result seen by the caller; it checks that result as a user
 * would, and a failure is kept in @failed until somebody looks.
 */
#ifndef TOWPIN_BENCH_ICOUNT_H
#define TOWPIN_BENCH_ICOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/towpin.h>

#include "towpin.h"

#define BATCH		32
#define ASYNC		65536	/* above the default of inline_max */
#define BUFFER_LENGTH	(BATCH * 4096)

struct bench {
	/* the module by ioctls */
	int dev;
	const volatile struct towpin_record *records;
	uint32_t src_handle;
	uint32_t dst_handle;
	struct towpin_op ops[BATCH];

	/* the module by the library, on the same two buffers */
	struct tow_ctx *ctx;
	uint32_t lib_src;
	uint32_t lib_dst;
	struct tow_op lib_ops[BATCH];
	tow_token tokens[BATCH];

	/* both buffers as mapped */
	char *src;
	char *dst;

	int pipe[2];
	size_t size;		/* bytes of the case at hand, 0: none */
	unsigned int n;		/* operations of the case at hand */
	bool failed;
};

struct bench_case {
	const char *key;	/* in the file of results: never changes */
	const char *what;
	void (*run)(struct bench *b);
	size_t size;
	unsigned int n;		/* operations in one run */
	bool copies;		/* to dst, so look whether it did */
};

extern const struct bench_case bench_cases[];
extern const unsigned int bench_nr_cases;

/* The cost of measuring. */
void bench_run_nothing(struct bench *b);

/* A thousand instructions, to see whether the clock counts them. */
void bench_run_thousand(struct bench *b);

bool bench_open(struct bench *b);
void bench_prepare(struct bench *b, const struct bench_case *c);
bool bench_verify(const struct bench *b, const struct bench_case *c);
void bench_close(struct bench *b);

#endif /* TOWPIN_BENCH_ICOUNT_H */
