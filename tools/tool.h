/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tow: what its subcommands share.
 *
 * Invariants: an error is reported once, as one line "tow SUB: what was wrong;
 * what to do", by the function that knows most about it; that function then
 * returns a negative errno, and its callers pass it on without a word.
 */
#ifndef TOOL_H
#define TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_object;
struct tow_ctx;

#define EXIT_USAGE	2	/* 0 and 1 are EXIT_SUCCESS, EXIT_FAILURE */

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define __printf(fmt, va) __attribute__((__format__ \
	(__printf__, fmt, va)))

/* A word of shared memory that the peer may change: read or write it once. */
#define load_once(p)		__atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p)		__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)

/* ---- util.c ---- */

extern const char *prog;		/* "tow send" */

__printf(2, 3) int fail(int err, const char *fmt, ...);
int fail_memory(struct tow_ctx *ctx, const char *what, uint64_t bytes);
__printf(1, 2) _Noreturn void usage_fail(const char *fmt, ...);

int parse_size(const char *text, uint64_t *bytes);
int parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *n);
int parse_seconds(const char *text, uint64_t *ns);
const char *size_text(char *buf, size_t len, double bytes);

uint64_t now_ns(void);
int stdio_open(void);
int stdout_close(void);
int context_open(struct tow_ctx **ctx, unsigned int entries);
const char *provider_name(unsigned int provider);

/* ---- stop.c: SIGINT, SIGTERM, SIGHUP ---- */

int stop_init(void);
int stop_fd(void);			/* readable once a signal came */
bool stop_wanted(void);
int stop_fail(void);			/* says so; -EINTR */

/* ---- progress.c: the moving line on a terminal ---- */

void progress_start(bool quiet);
int progress_timeout(void);		/* ms for poll; -1: none */
void progress_update(uint64_t bytes);
void progress_clear(void);
bool progress_shown(void);

/* ---- report.c: what a finished transfer says ---- */

struct report {
	const char *command;		/* "send" */
	const char *verb;		/* "sent" */
	const char *name;
	uint64_t bytes;
	uint64_t ns;
	uint32_t crc;
	unsigned int provider;
	uint64_t chunks;
	uint64_t operations;
	unsigned int slots;
	uint64_t slot_size;
	int peer_pid;
	unsigned int peer_uid;
};

int report_print(const struct report *r, bool json, FILE *json_out);
struct json_object *report_seconds(double seconds);
int report_json(struct json_object *object, FILE *out);

/* ---- the subcommands ---- */

int cmd_info(int argc, char **argv);
int cmd_send(int argc, char **argv);
int cmd_recv(int argc, char **argv);
int cmd_demo(int argc, char **argv);

#endif /* TOOL_H */
