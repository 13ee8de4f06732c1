/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * What the library's tests share.
 *
 * Invariants: asserts are made by the main thread of the test process only;
 * threads answer with a text and children with an exit status. Random numbers
 * come from one printed seed. The program ends by itself, by SIGALRM if by
 * nothing else.
 */
#ifndef TOW_TEST_H
#define TOW_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "towpin.h"

#define KIB(n)	((uint64_t)(n) << 10)
#define MIB(n)	((uint64_t)(n) << 20)
#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED	1
#else
#define SANITIZED	0
#endif

/* ThreadSanitizer cannot have threads started in a forked child. */
#if defined(__SANITIZE_THREAD__)
#define CHILD_THREADS	0
#else
#define CHILD_THREADS	1
#endif

/* The value of @expr, which must not be negative. */
#define ok(expr)	check_ok((expr), #expr, __FILE__, __LINE__)
/* @expr must be -@err. */
#define fails(expr, err) check_fails((expr), (err), #expr, __FILE__, __LINE__)

int check_ok(int ret, const char *expr, const char *file, int line);
void check_fails(int ret, int err, const char *expr, const char *file,
		 int line);

uint64_t rnd(void);
uint64_t rnd_below(uint64_t n);
void rnd_bytes(void *data, size_t n);

/* @n, or fewer where $TOW_TEST_DIVISOR says that the machine is slow. */
unsigned int rounds(unsigned int n);

/* A context of $TOW_PROVIDER; the user provider's works inline up to 4 KiB. */
struct tow_ctx *open_ctx(unsigned int entries);
bool on_kmod(struct tow_ctx *ctx);
unsigned int inflight(struct tow_ctx *ctx);

/* Submits, waits, and expects success. */
struct tow_result run_ok(struct tow_ctx *ctx, const struct tow_op *op);

/* A buffer, and where it is mapped. */
struct tow_buf *new_buf(struct tow_ctx *ctx, uint64_t length, void *map);

uint32_t model_crc32c(uint32_t crc, const void *data, size_t n);

/* Operations that keep the workers busy for some time. */
struct busy {
	struct tow_ctx *ctx;
	unsigned int n;
	tow_token tokens[64];
	unsigned char *mem;
	size_t length;
	uint32_t handle;
};

void busy_start(struct busy *busy, struct tow_ctx *ctx, unsigned int n,
		size_t length);
void busy_reap(struct busy *busy);
void busy_free(struct busy *busy);

uint64_t now_ns(void);
int count_dir(const char *path);
/* fork(2), for a child that ends by itself and with its parent. */
int start_child(void);
/* The exit status of @pid, or 255. */
int wait_child(int pid);

/* Each file's tests. */
extern const struct CMUnitTest open_tests[], buf_tests[], share_tests[],
	mem_tests[], op_tests[], errno_tests[], wait_tests[], event_tests[],
	thread_tests[];
extern const size_t nr_open_tests, nr_buf_tests, nr_share_tests, nr_mem_tests,
	nr_op_tests, nr_errno_tests, nr_wait_tests, nr_event_tests,
	nr_thread_tests;

#endif /* TOW_TEST_H */
