// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The layouts of the public structures, for 64-bit and 32-bit programs. Only
 * compiled: what does not hold is an error of the compiler. A change here is a
 * new soname, but for members at the end of a structure with a size.
 */
#include "towpin.h"

#define AT(type, member, offset) \
	_Static_assert(offsetof(struct type, member) == (offset), #type)
#define SIZE(type, bytes) \
	_Static_assert(sizeof(struct type) == (bytes), #type)

#if UINTPTR_MAX == UINT64_MAX
#define W	8	/* a size_t */
#define A	8	/* alignment of a uint64_t in a structure */
#else
#define W	4
#if defined(__i386__)
#define A	4
#else
#define A	8
#endif
#endif

SIZE(tow_open_opts, W + 16);
AT(tow_open_opts, size, 0);
AT(tow_open_opts, provider, W);
AT(tow_open_opts, entries, W + 4);
AT(tow_open_opts, workers, W + 8);
AT(tow_open_opts, inline_max, W + 12);

AT(tow_info, size, 0);
AT(tow_info, provider, W);
AT(tow_info, engines, W + 4);
AT(tow_info, entries, W + 8);
AT(tow_info, max_handles, W + 12);
AT(tow_info, max_eventfds, W + 16);
AT(tow_info, inline_max, W + 20);
AT(tow_info, inflight, W + 24);
#define INFO_U64	((W + 28 + A - 1) / A * A)
AT(tow_info, max_length, INFO_U64);
AT(tow_info, memlock, INFO_U64 + 8);
AT(tow_info, reason, INFO_U64 + 16);
SIZE(tow_info, INFO_U64 + 16 + 256);

SIZE(tow_op, 64);
AT(tow_op, opcode, 0);
AT(tow_op, hint, 1);
AT(tow_op, notify_size, 2);
AT(tow_op, reserved, 3);
AT(tow_op, seed, 4);
AT(tow_op, src, 8);
AT(tow_op, dst, 12);
AT(tow_op, src_off, 16);
AT(tow_op, dst_off, 24);
AT(tow_op, len, 32);
AT(tow_op, notify, 40);
AT(tow_op, eventfd, 44);
AT(tow_op, notify_off, 48);
AT(tow_op, notify_value, 56);

SIZE(tow_result, 32);
AT(tow_result, status, 0);
AT(tow_result, engine, 4);
AT(tow_result, bytes, 8);
AT(tow_result, crc, 16);
AT(tow_result, differs, 20);
AT(tow_result, op_id, 24);

_Static_assert(sizeof(tow_token) == 8, "tow_token");
