// SPDX-License-Identifier: GPL-2.0-only
/*
 * The progress line.
 *
 * Invariants: nothing is written unless stderr is a terminal; at most one line
 * is on it, and it is erased before anything else is printed.
 */
#include <stdio.h>
#include <unistd.h>

#include "tool.h"

#define PERIOD_MS	200

static bool enabled, visible;
static uint64_t started, last;

void progress_start(bool quiet)
{
	enabled = !quiet && isatty(STDERR_FILENO);
	started = now_ns();
	last = started;
}

int progress_timeout(void)
{
	return enabled ? PERIOD_MS : -1;
}

bool progress_shown(void)
{
	return enabled;
}

void progress_update(uint64_t bytes)
{
	char done[32], rate[32];
	uint64_t now;

	if (!enabled)
		return;
	now = now_ns();
	if (now - last < PERIOD_MS * 1000000ull)
		return;
	last = now;
	size_text(done, sizeof(done), bytes);
	size_text(rate, sizeof(rate), bytes / ((now - started) / 1e9));
	fprintf(stderr, "\r%s: %s, %s/s\033[K", prog, done, rate);
	fflush(stderr);
	visible = true;
}

void progress_clear(void)
{
	if (!visible)
		return;
	fputs("\r\033[K", stderr);
	visible = false;
}
