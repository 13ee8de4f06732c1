/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: where each microsecond goes. They are an interface: names and
 * fields stay, new fields go to the end. All are flat integers, so that classic
 * tracepoints can be used with no BTF of the module. "op" is the operation id
 * of the completion record, "ctx" numbers the open files, "buf" the buffers
 * (0: not one of ours), "pid" is the calling process; times are nanoseconds, 0
 * where nobody measured.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM towpin

#if !defined(TOWPIN_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TOWPIN_TRACE_H

#include <linux/sched.h>
#include <linux/tracepoint.h>

TRACE_EVENT(towpin_buf_create,
	TP_PROTO(u32 buf, u64 bytes, u64 huge_bytes, s32 numa_node),
	TP_ARGS(buf, bytes, huge_bytes, numa_node),
	TP_STRUCT__entry(
		__field(u32, buf)
		__field(s32, numa_node)
		__field(u64, bytes)
		__field(u64, huge_bytes)
	),
	TP_fast_assign(
		__entry->buf = buf;
		__entry->numa_node = numa_node;
		__entry->bytes = bytes;
		__entry->huge_bytes = huge_bytes;
	),
	TP_printk("buf=%u bytes=%llu huge_bytes=%llu numa_node=%d",
		  __entry->buf, __entry->bytes, __entry->huge_bytes,
		  __entry->numa_node)
);

TRACE_EVENT(towpin_buf_free,
	TP_PROTO(u32 buf, u64 bytes),
	TP_ARGS(buf, bytes),
	TP_STRUCT__entry(
		__field(u32, buf)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->buf = buf;
		__entry->bytes = bytes;
	),
	TP_printk("buf=%u bytes=%llu", __entry->buf, __entry->bytes)
);

TRACE_EVENT(towpin_attach,
	TP_PROTO(u32 ctx, u32 handle, u64 bytes, u32 rights, u32 buf),
	TP_ARGS(ctx, handle, bytes, rights, buf),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, handle)
		__field(u64, bytes)
		__field(u32, rights)
		__field(u32, buf)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->handle = handle;
		__entry->bytes = bytes;
		__entry->rights = rights;
		__entry->buf = buf;
	),
	TP_printk("ctx=%u handle=%u bytes=%llu rights=%u buf=%u",
		  __entry->ctx, __entry->handle, __entry->bytes,
		  __entry->rights, __entry->buf)
);

TRACE_EVENT(towpin_register,
	TP_PROTO(u32 ctx, u32 handle, u64 bytes, u32 rights, u64 pages),
	TP_ARGS(ctx, handle, bytes, rights, pages),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, handle)
		__field(u64, bytes)
		__field(u64, pages)
		__field(u32, rights)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->handle = handle;
		__entry->bytes = bytes;
		__entry->pages = pages;
		__entry->rights = rights;
	),
	TP_printk("ctx=%u handle=%u bytes=%llu rights=%u pages=%llu",
		  __entry->ctx, __entry->handle, __entry->bytes,
		  __entry->rights, __entry->pages)
);

TRACE_EVENT(towpin_detach,
	TP_PROTO(u32 ctx, u32 handle, u64 bytes),
	TP_ARGS(ctx, handle, bytes),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, handle)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->handle = handle;
		__entry->bytes = bytes;
	),
	TP_printk("ctx=%u handle=%u bytes=%llu",
		  __entry->ctx, __entry->handle, __entry->bytes)
);

#ifndef TOWPIN_TRACE_H_DESC
#define TOWPIN_TRACE_H_DESC
/* 0 when the start was not measured. */
static inline u64 towpin_trace_span(u64 from, u64 to)
{
	return from && to > from ? to - from : 0;
}
#endif

/* Accepted: in flight from here on. "depth": others in flight. */
TRACE_EVENT(towpin_submit,
	TP_PROTO(const struct towpin_desc *desc, u32 depth),
	TP_ARGS(desc, depth),
	TP_STRUCT__entry(
		__field(u64, op)
		__field(u32, ctx)
		__field(u32, pid)
		__field(u32, opcode)
		__field(u32, hint)
		__field(u32, slot)
		__field(u32, flags)
		__field(u32, engine)
		__field(u32, depth)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->op = desc->id;
		__entry->ctx = desc->ctx->id;
		__entry->pid = task_tgid_nr(current);
		__entry->opcode = desc->opcode;
		__entry->hint = desc->hint;
		__entry->slot = desc->slot;
		__entry->flags = desc->flags;
		__entry->engine = desc->engine;
		__entry->depth = depth;
		__entry->bytes = desc->len;
	),
	TP_printk("op=%llu ctx=%u pid=%u opcode=%u hint=%u slot=%u flags=%u engine=%u depth=%u bytes=%llu",
		  __entry->op, __entry->ctx, __entry->pid, __entry->opcode,
		  __entry->hint, __entry->slot, __entry->flags,
		  __entry->engine, __entry->depth, __entry->bytes)
);

TRACE_EVENT(towpin_engine_start,
	TP_PROTO(const struct towpin_desc *desc),
	TP_ARGS(desc),
	TP_STRUCT__entry(
		__field(u64, op)
		__field(u32, ctx)
		__field(u32, opcode)
		__field(u32, engine)
		__field(u64, bytes)
		__field(u64, queue_ns)
	),
	TP_fast_assign(
		__entry->op = desc->id;
		__entry->ctx = desc->ctx->id;
		__entry->opcode = desc->opcode;
		__entry->engine = desc->engine;
		__entry->bytes = desc->len;
		__entry->queue_ns = towpin_trace_span(desc->submit_ns,
						      desc->start_ns);
	),
	TP_printk("op=%llu ctx=%u opcode=%u engine=%u bytes=%llu queue_ns=%llu",
		  __entry->op, __entry->ctx, __entry->opcode,
		  __entry->engine, __entry->bytes, __entry->queue_ns)
);

/* Data and stores are visible, the record is about to be. */
TRACE_EVENT(towpin_complete,
	TP_PROTO(const struct towpin_desc *desc, u64 now),
	TP_ARGS(desc, now),
	TP_STRUCT__entry(
		__field(u64, op)
		__field(u32, ctx)
		__field(u32, opcode)
		__field(u32, engine)
		__field(s32, status)
		__field(u64, bytes)
		__field(u64, queue_ns)
		__field(u64, engine_ns)
	),
	TP_fast_assign(
		__entry->op = desc->id;
		__entry->ctx = desc->ctx->id;
		__entry->opcode = desc->opcode;
		__entry->engine = desc->engine;
		__entry->status = desc->status;
		__entry->bytes = desc->bytes;
		__entry->queue_ns = towpin_trace_span(desc->submit_ns,
						      desc->start_ns);
		__entry->engine_ns = towpin_trace_span(desc->start_ns, now);
	),
	TP_printk("op=%llu ctx=%u opcode=%u engine=%u status=%d bytes=%llu queue_ns=%llu engine_ns=%llu",
		  __entry->op, __entry->ctx, __entry->opcode,
		  __entry->engine, __entry->status, __entry->bytes,
		  __entry->queue_ns, __entry->engine_ns)
);

TRACE_EVENT(towpin_wait_begin,
	TP_PROTO(u32 ctx, u32 nr, u32 min_done, u64 deadline),
	TP_ARGS(ctx, nr, min_done, deadline),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, pid)
		__field(u32, nr)
		__field(u32, min_done)
		__field(u64, deadline)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->pid = task_tgid_nr(current);
		__entry->nr = nr;
		__entry->min_done = min_done;
		__entry->deadline = deadline;
	),
	TP_printk("ctx=%u pid=%u nr=%u min_done=%u deadline=%llu",
		  __entry->ctx, __entry->pid, __entry->nr,
		  __entry->min_done, __entry->deadline)
);

TRACE_EVENT(towpin_wait_end,
	TP_PROTO(u32 ctx, u32 done, s32 status, u64 wait_ns),
	TP_ARGS(ctx, done, status, wait_ns),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, pid)
		__field(u32, done)
		__field(s32, status)
		__field(u64, wait_ns)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->pid = task_tgid_nr(current);
		__entry->done = done;
		__entry->status = status;
		__entry->wait_ns = wait_ns;
	),
	TP_printk("ctx=%u pid=%u done=%u status=%d wait_ns=%llu",
		  __entry->ctx, __entry->pid, __entry->done,
		  __entry->status, __entry->wait_ns)
);

/* An ioctl ("nr" of its number) is refused; status is the negative errno. */
TRACE_EVENT(towpin_error,
	TP_PROTO(u32 ctx, u32 nr, s32 status),
	TP_ARGS(ctx, nr, status),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, pid)
		__field(u32, nr)
		__field(s32, status)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->pid = task_tgid_nr(current);
		__entry->nr = nr;
		__entry->status = status;
	),
	TP_printk("ctx=%u pid=%u nr=%u status=%d",
		  __entry->ctx, __entry->pid, __entry->nr, __entry->status)
);

#endif /* TOWPIN_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
