// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cpu engine: kernel workers, always there.
 *
 * An unbound workqueue rather than a kthread per node: the workqueue core keeps
 * its workers in the NUMA node that is asked for, runs as many as there are
 * descriptors and cores, and lets the administrator limit and place them through
 * sysfs (devices/virtual/workqueue/towpin). Work goes to the node where the
 * written (or else the read) memory lies. It is done first come, first served,
 * and on no process's account.
 */
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/workqueue.h>
#include "engine.h"
#include "trace.h"

/* More than this would hold the submitter up. */
#define TOWPIN_INLINE_MOST	1048576U

static unsigned int inline_max = 16384;
module_param(inline_max, uint, 0644);
MODULE_PARM_DESC(inline_max,
		 "Bytes up to which an operation runs in the submitter's own context (default 16384, at most 1048576)");

static struct workqueue_struct *towpin_cpu_wq;

unsigned int towpin_engine_inline_max(void)
{
	return min(READ_ONCE(inline_max), TOWPIN_INLINE_MOST);
}

static void towpin_cpu_work(struct work_struct *work)
{
	struct towpin_desc *desc = container_of(work, struct towpin_desc, work);

	if (desc->submit_ns)
		desc->start_ns = ktime_get_ns();
	trace_towpin_engine_start(desc);
	towpin_memops_run(desc);
	towpin_desc_complete(desc);
}

/* The workqueue core allows requeueing before the function has returned. */
void towpin_engine_desc_init(struct towpin_desc *desc)
{
	INIT_WORK(&desc->work, towpin_cpu_work);
}

static int towpin_cpu_node(const struct towpin_desc *desc)
{
	const struct towpin_mem *mem = desc->dst ? desc->dst : desc->src;
	u64 off = desc->dst ? desc->dst_off : desc->src_off;

	if (!mem || !mem->pages)
		return NUMA_NO_NODE;
	return page_to_nid(mem->pages[(mem->first_off + off) >> PAGE_SHIFT]);
}

static void towpin_cpu_submit(struct towpin_desc *desc)
{
	queue_work_node(towpin_cpu_node(desc), towpin_cpu_wq, &desc->work);
}

const struct towpin_engine towpin_engine_cpu = {
	.id = TOWPIN_ENGINE_CPU,
	.submit = towpin_cpu_submit,
};

int towpin_engine_cpu_init(void)
{
	towpin_cpu_wq = alloc_workqueue("towpin", WQ_UNBOUND | WQ_SYSFS, 0);
	return towpin_cpu_wq ? 0 : -ENOMEM;
}

/* Drains: returns when the last headless context is gone. */
void towpin_engine_cpu_exit(void)
{
	destroy_workqueue(towpin_cpu_wq);
}
