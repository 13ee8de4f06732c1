// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Buffers of the user provider: memory files.
 *
 * Invariants: all memory of a buffer is there when its descriptor is returned
 * and the file is sealed against changes of its size, so that no mapping of it
 * ever raises SIGBUS; a descriptor's rights are its access mode. The file's
 * mode is 0444 from then on: nobody but its owner and root can reopen a
 * read-only descriptor for writing.
 */
#include "user.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "towpin.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL	0x0008U
#endif

#define MPOL_BIND	2	/* linux/mempolicy.h clashes with numaif.h */
#define MAX_NODES	1024

/* A signal undoes a fallocate(2) in the middle; short ones get through. */
#define ALLOC_STEP	((uint64_t)64 << 20)

_Static_assert(TOW_BUF_SMALL_PAGES == TOWPIN_BUF_SMALL_PAGES, "TOW_BUF");
_Static_assert(TOW_RIGHT_READ == TOWPIN_RIGHT_READ, "TOW_RIGHT");
_Static_assert(TOW_RIGHT_WRITE == TOWPIN_RIGHT_WRITE, "TOW_RIGHT");

/* Bytes that the kernel thinks can be had without swapping; or no limit. */
static uint64_t ram_available(void)
{
	char text[512];
	const char *line;
	ssize_t n;
	int fd;

	fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return UINT64_MAX;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, "\nMemAvailable:");
	if (!line)
		return UINT64_MAX;
	return strtoull(line + strlen("\nMemAvailable:"), NULL, 10) << 10;
}

/* For where mbind(2) is not to be had: is @node all there is? */
static bool only_node(uint32_t node)
{
	char online[8] = "0\n";
	int fd;

	fd = open("/sys/devices/system/node/online", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, online, sizeof(online) - 1) <= 0)
			online[0] = '\0';
		close(fd);
	}
	return node == 0 && !strcmp(online, "0\n");
}

/* The policy is kept with the file and outlives the mapping that sets it. */
static int bind_node(int fd, uint64_t length, uint32_t node)
{
	unsigned long mask[MAX_NODES / (8 * sizeof(long))] = { 0 };
	void *at;
	int err = 0;

	if (node >= MAX_NODES)
		return -EINVAL;
	mask[node / (8 * sizeof(long))] = 1ul << node % (8 * sizeof(long));

	if (length > SIZE_MAX)
		return -ENOMEM;
	at = mmap(NULL, length, PROT_NONE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	if (syscall(SYS_mbind, at, (unsigned long)length, MPOL_BIND, mask,
		    (unsigned long)MAX_NODES + 1, 0u))
		err = -errno;
	munmap(at, length);

	if (err == -ENOSYS || err == -EPERM)
		return only_node(node) ? 0 : -EINVAL;
	return err;
}

/*
 * Memory files are not charged to anybody, and asking for more than there is ends
 * in the OOM killer rather than in an error: so look before each step.
 */
static int populate(int fd, uint64_t length)
{
	uint64_t at, n;

	for (at = 0; at < length; at += n) {
		n = length - at < ALLOC_STEP ? length - at : ALLOC_STEP;
		if (ram_available() < n)
			return -ENOMEM;
		while (fallocate(fd, 0, (off_t)at, (off_t)n)) {
			if (errno == EINTR)
				continue;
			return errno == ENOSPC ? -ENOMEM : -errno;
		}
	}
	return 0;
}

static int memfd_new(void)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd;

	fd = memfd_create("towpin", flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)	/* before Linux 6.3 */
		fd = memfd_create("towpin", flags);
	return fd < 0 ? -errno : fd;
}

int user_buf_create(struct towi_provider *p, uint64_t length, uint32_t flags,
		    uint32_t node)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int fd, err;

	(void)p;
	if (flags & ~TOWPIN_BUF_SMALL_PAGES || !length)
		return -EINVAL;
	if (length > TOWPIN_MAX_LENGTH)
		return -EOVERFLOW;
	length = (length + page - 1) & ~(page - 1);
	if (ram_available() < length)
		return -ENOMEM;

	fd = memfd_new();
	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)length))
		goto err_errno;
	if (node != TOWPIN_NODE_ANY) {
		err = bind_node(fd, length, node);
		if (err)
			goto err_close;
	}
	err = populate(fd, length);
	if (err)
		goto err_close;
	if (fchmod(fd, 0444) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto err_errno;
	return fd;

err_errno:
	err = -errno;
err_close:
	close(fd);
	return err;
}

/* The rights of @fd if it is a buffer of this provider, or an error. */
static int buf_rights(int fd, struct stat *st)
{
	int mode, seals;

	mode = fcntl(fd, F_GETFL);
	if (mode < 0)
		return -errno;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, st))
		return -EINVAL;
	switch (mode & O_ACCMODE) {
	case O_RDWR:
		return TOWPIN_RIGHT_READ | TOWPIN_RIGHT_WRITE;
	case O_RDONLY:
		return TOWPIN_RIGHT_READ;
	default:
		return -EINVAL;
	}
}

int user_buf_derive(struct towi_provider *p, int fd, uint32_t rights)
{
	char path[32];
	struct stat st;
	int has;

	(void)p;
	has = buf_rights(fd, &st);
	if (has < 0)
		return has;
	if (!(rights & TOWPIN_RIGHT_READ) ||
	    rights & ~(TOWPIN_RIGHT_READ | TOWPIN_RIGHT_WRITE))
		return -EINVAL;
	if (rights & ~(uint32_t)has)
		return -EACCES;

	/* The mode does not let a writable one be opened again; share it. */
	if (rights & TOWPIN_RIGHT_WRITE) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	} else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			return -ENOSYS;		/* no /proc */
	}
	return fd < 0 ? -errno : fd;
}

int user_buf_info(struct towi_provider *p, int fd,
		  struct towpin_buf_info *info)
{
	struct stat st;
	int rights;

	(void)p;
	rights = buf_rights(fd, &st);
	if (rights < 0)
		return rights;
	*info = (struct towpin_buf_info) {
		.size = sizeof(*info),
		.fd = (uint32_t)fd,
		.rights = (uint32_t)rights,
		.length = (uint64_t)st.st_size,
	};
	return 0;
}
