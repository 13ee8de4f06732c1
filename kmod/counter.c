// SPDX-License-Identifier: GPL-2.0-only
/*
 * What exists right now, in /sys/kernel/debug/towpin/counters, one "name value"
 * a line. Each is raised where a thing comes into being and lowered where it
 * ends, so that all read zero when nothing is open: the tests insist on it.
 * Nothing in the module depends on them.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include "towpin.h"

static const char * const towpin_counter_names[TOWPIN_CNT_NR] = {
	[TOWPIN_CNT_CONTEXTS] = "contexts",
	[TOWPIN_CNT_BUFFERS] = "buffers",
	[TOWPIN_CNT_BUFFER_PAGES] = "buffer_pages",
	[TOWPIN_CNT_HANDLES] = "handles",
	[TOWPIN_CNT_REGISTERED_PAGES] = "registered_pages",
	[TOWPIN_CNT_CHARGED_PAGES] = "charged_pages",
	[TOWPIN_CNT_EVENTFDS] = "eventfds",
	[TOWPIN_CNT_INFLIGHT] = "inflight",
};

static atomic_long_t towpin_counters[TOWPIN_CNT_NR];
static struct dentry *towpin_debugfs;

void towpin_count(enum towpin_counter counter, long delta)
{
	atomic_long_add(delta, &towpin_counters[counter]);
}

static int counters_show(struct seq_file *m, void *unused)
{
	unsigned int i;

	for (i = 0; i < TOWPIN_CNT_NR; i++)
		seq_printf(m, "%s %ld\n", towpin_counter_names[i],
			   atomic_long_read(&towpin_counters[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

/* debugfs answers its own errors: without it there is merely no file. */
void towpin_counter_init(void)
{
	towpin_debugfs = debugfs_create_dir("towpin", NULL);
	debugfs_create_file("counters", 0444, towpin_debugfs, NULL,
			    &counters_fops);
}

void towpin_counter_exit(void)
{
	debugfs_remove_recursive(towpin_debugfs);
}
