/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a stream goes; see output.c. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct peer;

struct output {
	int fd;
	const char *path;	/* NULL: stdout */
	int dir_fd;		/* a new file: of its directory, else -1 */
	const char *base;	/* a new file: its name there */
	char temp[NAME_MAX + 1];/* of the unfinished file, "" if unnamed */
	bool force, sync;
	size_t step;		/* bytes a write may have, not to block */
	bool may_wait;		/* poll before each write */
	bool own_fd;
};

int output_open(struct output *out, const char *path, bool force, bool sync);
int output_write(struct output *out, struct peer *peer, const char *data,
		 size_t len);
int output_finish(struct output *out);
void output_discard(struct output *out);

#endif /* OUTPUT_H */
