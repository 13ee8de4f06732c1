// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Shared mappings of whole files.
 *
 * Invariants: a mapping of 2 MiB or more begins at a multiple of 2 MiB, so that
 * the kernel can map the huge pages of the file whole; the search for such a
 * place never leaves a moment in which another thread could map into it.
 */
#include "map.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_SIZE	((size_t)2 << 20)

/* An aligned hole of @length bytes, or NULL. */
static char *reserve(size_t length)
{
	size_t total, head, tail;
	char *at;

	if (__builtin_add_overflow(length, HUGE_SIZE, &total))
		return NULL;
	at = mmap(NULL, total, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return NULL;

	head = -(uintptr_t)at & (HUGE_SIZE - 1);
	tail = total - head - length;
	if (head)
		munmap(at, head);
	if (tail)
		munmap(at + head + length, tail);
	return at + head;
}

int towi_map(int fd, uint64_t length, int prot, void **addr)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t rounded;
	char *at = NULL;
	void *got;

	if (length > SIZE_MAX - HUGE_SIZE)
		return -ENOMEM;
	rounded = ((size_t)length + page - 1) & ~(page - 1);
	if (length >= HUGE_SIZE)
		at = reserve(rounded);

	got = mmap(at, length, prot, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
	if (got == MAP_FAILED) {
		int err = -errno;

		/*
		 * EACCES comes before the hole is touched. After another error
		 * it may be gone, with a mapping of another thread in its
		 * place: leave it then, it is only address space.
		 */
		if (at && err == -EACCES)
			munmap(at, rounded);
		return err;
	}
	*addr = got;
	return 0;
}

void towi_unmap(void *addr, uint64_t length)
{
	munmap(addr, length);
}
