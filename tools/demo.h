/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of tow demo; see demo.c, demo_files.c and demo_run.c. */
#ifndef DEMO_H
#define DEMO_H

#include <stdbool.h>
#include <stdint.h>

#define DEMO_NAME	"demo"
#define DEMO_RUNS_MAX	99

struct way {
	uint64_t ns[DEMO_RUNS_MAX];	/* wall-clock time of each run */
	uint64_t cpu_ns;		/* of all runs, both processes */
};

struct demo {
	const char *path;
	uint64_t size, runs;
	bool json;
	char dir[256];
	char source[300], copy[300], result[300];
	struct way tow, pipe;
	uint32_t crc;			/* of the source, computed here */
	char provider[16];		/* as tow send says */
	uint64_t chunks;
};

int demo_make_dir(struct demo *d);
void demo_remove_dir(struct demo *d);
int demo_make_source(struct demo *d);
int demo_check_copy(struct demo *d);
int demo_check_result(struct demo *d);

int demo_run_tow(struct demo *d, unsigned int run);
int demo_run_pipe(struct demo *d, unsigned int run);

#endif /* DEMO_H */
