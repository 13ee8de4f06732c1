// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Memory handles of the user provider.
 *
 * Invariants: mems[handle] is NULL or holds one reference; a handle given back
 * is the last to be used again, so that a stale one is most likely noticed.
 * Mappings made here are not inherited by forked children. Registered memory is
 * the caller's mapping itself: unlike with the module it must stay mapped until
 * it is unregistered.
 */
#include "user.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/dma-buf.h>

#include "map.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

#define DMA_BUF_FS_MAGIC	0x444d4142	/* of linux/magic.h */
#define HUGETLBFS_MAGIC		0x958458f6	/* the same */

/* ---- the table ---- */

int user_mem_init(struct user *u)
{
	/* Large and mostly untouched, so mostly not there. */
	u->mems = calloc(TOWPIN_MAX_HANDLES + 1, sizeof(*u->mems));
	u->spare_handles = calloc(TOWPIN_MAX_HANDLES,
				  sizeof(*u->spare_handles));
	u->next_handle = 1;
	return u->mems && u->spare_handles ? 0 : -ENOMEM;
}

static void mem_free(struct user_mem *mem, bool forked)
{
	if (mem->mapped && !forked)
		towi_unmap(mem->base, mem->length);
	if (mem->sync_fd >= 0)
		close(mem->sync_fd);
	free(mem);
}

void user_mem_exit(struct user *u, bool forked)
{
	uint32_t i;

	for (i = 1; i < u->next_handle; i++)
		if (u->mems[i])
			mem_free(u->mems[i], forked);
	free(u->mems);
	free(u->spare_handles);
}

/* Takes over @mem, also when it fails. */
static int mem_publish(struct user *u, struct user_mem *mem, uint32_t *handle)
{
	uint32_t h = 0;

	atomic_init(&mem->refs, 1);
	pthread_mutex_lock(&u->mem_lock);
	if (u->next_handle <= TOWPIN_MAX_HANDLES) {
		h = u->next_handle++;
	} else if (u->nr_spare) {
		h = u->spare_handles[u->first_spare];
		u->first_spare = (u->first_spare + 1) % TOWPIN_MAX_HANDLES;
		u->nr_spare--;
	}
	if (h)
		u->mems[h] = mem;
	pthread_mutex_unlock(&u->mem_lock);

	if (!h) {
		mem_free(mem, false);
		return -ENOSPC;
	}
	*handle = h;
	return 0;
}

struct user_mem *user_mem_get(struct user *u, uint32_t handle)
{
	struct user_mem *mem = NULL;

	pthread_mutex_lock(&u->mem_lock);
	if (handle <= TOWPIN_MAX_HANDLES)
		mem = u->mems[handle];
	if (mem)
		atomic_fetch_add(&mem->refs, 1);
	pthread_mutex_unlock(&u->mem_lock);
	return mem;
}

void user_mem_put(struct user *u, struct user_mem *mem)
{
	/* The last one: detach() has taken the table's and waits for this. */
	if (!mem || atomic_fetch_sub(&mem->refs, 1) != 1)
		return;
	pthread_mutex_lock(&u->mem_lock);
	mem->idle = true;
	pthread_cond_broadcast(&u->mem_idle);
	pthread_mutex_unlock(&u->mem_lock);
}

int user_detach(struct towi_provider *p, uint32_t handle, uint32_t flags)
{
	struct user *u = to_user(p);
	struct user_mem *mem = NULL;
	int err = 0;

	if (flags & ~TOWPIN_DETACH_NOWAIT)
		return -EINVAL;
	pthread_mutex_lock(&u->mem_lock);
	if (handle <= TOWPIN_MAX_HANDLES)
		mem = u->mems[handle];
	if (!mem)
		err = -ENOENT;
	else if (flags & TOWPIN_DETACH_NOWAIT && atomic_load(&mem->refs) > 1)
		err = -EBUSY;
	if (err) {
		pthread_mutex_unlock(&u->mem_lock);
		return err;
	}

	u->mems[handle] = NULL;
	u->spare_handles[(u->first_spare + u->nr_spare++) %
			 TOWPIN_MAX_HANDLES] = (uint16_t)handle;
	if (atomic_fetch_sub(&mem->refs, 1) != 1)
		while (!mem->idle)
			pthread_cond_wait(&u->mem_idle, &u->mem_lock);
	pthread_mutex_unlock(&u->mem_lock);
	mem_free(mem, false);
	return 0;
}

bool user_mem_same(const struct user_mem *a, const struct user_mem *b)
{
	return a == b || (a->is_file && b->is_file && a->dev == b->dev &&
			  a->ino == b->ino);
}

/* ---- access to a dma-buf of a device ---- */

static int dmabuf_sync(const struct user_mem *mem, uint64_t flags)
{
	struct dma_buf_sync sync = { .flags = flags };
	int ret;

	if (mem->sync_fd < 0)
		return 0;
	do {
		ret = ioctl(mem->sync_fd, DMA_BUF_IOCTL_SYNC, &sync);
	} while (ret && (errno == EINTR || errno == EAGAIN));
	return ret ? -errno : 0;
}

static uint64_t sync_flags(uint32_t access)
{
	return (access & TOWPIN_RIGHT_READ ? DMA_BUF_SYNC_READ : 0) |
	       (access & TOWPIN_RIGHT_WRITE ? DMA_BUF_SYNC_WRITE : 0);
}

int user_mem_begin(const struct user_mem *mem, uint32_t access)
{
	return dmabuf_sync(mem, DMA_BUF_SYNC_START | sync_flags(access));
}

void user_mem_end(const struct user_mem *mem, uint32_t access)
{
	dmabuf_sync(mem, DMA_BUF_SYNC_END | sync_flags(access));
}

/* ---- attach: files ---- */

/* Which of the two kinds of files @fd is; its length is in *@length. */
static int file_kind(int fd, const struct stat *st, bool *dmabuf,
		     uint64_t *length)
{
	struct statfs fs;
	off_t end;
	int seals;

	if (fstatfs(fd, &fs))
		return -EINVAL;
	/* Punching a hole takes its pages away, and others may get them. */
	if ((unsigned long)fs.f_type == HUGETLBFS_MAGIC)
		return -EINVAL;
	*dmabuf = (unsigned long)fs.f_type == DMA_BUF_FS_MAGIC;
	if (*dmabuf) {
		end = lseek(fd, 0, SEEK_END);
	} else {
		/* One that can shrink makes a copy die of SIGBUS. */
		seals = fcntl(fd, F_GET_SEALS);
		if (seals < 0 || !(seals & F_SEAL_SHRINK))
			return -EINVAL;
		/* No writable mapping could be made of it. */
		if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR &&
		    seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
			return -EINVAL;
		end = st->st_size;
	}
	if (end <= 0)
		return -EINVAL;
	*length = (uint64_t)end;
	return 0;
}

int user_attach(struct towi_provider *p, int fd, struct towpin_attach *result)
{
	struct user *u = to_user(p);
	int prot = PROT_READ;
	struct user_mem *mem;
	struct stat st;
	bool dmabuf;
	void *base;
	int mode, err;

	mode = fcntl(fd, F_GETFL);
	if (mode < 0 || fstat(fd, &st))
		return -EBADF;
	mode &= O_ACCMODE;
	if (mode != O_RDWR && mode != O_RDONLY)
		return -EINVAL;

	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	mem->sync_fd = -1;
	mem->is_file = true;
	mem->dev = st.st_dev;
	mem->ino = st.st_ino;
	mem->rights = TOWPIN_RIGHT_READ;
	if (mode == O_RDWR) {
		mem->rights |= TOWPIN_RIGHT_WRITE;
		prot |= PROT_WRITE;
	}

	err = file_kind(fd, &st, &dmabuf, &mem->length);
	if (!err && mem->length > TOWPIN_MAX_LENGTH)
		err = -EINVAL;
	if (!err)
		err = towi_map(fd, mem->length, prot, &base);
	if (err) {
		/* No CPU mapping, or one that a seal forbids to write to. */
		if (err != -EINVAL && err != -ENOMEM)
			err = dmabuf ? -EOPNOTSUPP : -EINVAL;
		goto err_free;
	}
	mem->base = base;
	mem->mapped = true;
	madvise(base, mem->length, MADV_DONTFORK);
	if (dmabuf) {
		mem->sync_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (mem->sync_fd < 0) {
			err = -errno;
			goto err_free;
		}
	}

	*result = (struct towpin_attach) {
		.size = sizeof(*result),
		.fd = (uint32_t)fd,
		.length = mem->length,
		.rights = mem->rights,
	};
	return mem_publish(u, mem, &result->handle);

err_free:
	mem_free(mem, false);
	return err;
}

/* ---- register: memory of the caller ---- */

static bool is_mapped(char *at, size_t length)
{
	unsigned char resident[1024];
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t step = sizeof(resident) * page;
	size_t n;

	for (; length; length -= n, at += n) {
		n = length < step ? length : step;
		while (mincore(at, n, resident)) {
			if (errno != EAGAIN)
				return false;
		}
	}
	return true;
}

/*
 * Has the kernel touch each page, as the module's pinning does: memory that is
 * not there, or not to be written, is found now and not by a crash later. A
 * kernel that cannot (before Linux 5.14) gets a page that is mapped on trust.
 */
static int touch(char *at, size_t length, bool write)
{
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (!madvise(at, length, advice))
		return 0;
	switch (errno) {
	case ENOMEM:
		return is_mapped(at, length) ? -ENOMEM : -EFAULT;
	case EAGAIN:
	case EINTR:
		return -EINTR;
	case EINVAL:
		if (madvise(NULL, 0, advice))
			return is_mapped(at, length) ? 0 : -EFAULT;
		return -EFAULT;
	default:
		return -EFAULT;
	}
}

int user_register(struct towi_provider *p, uint64_t addr, uint64_t length,
		  uint32_t flags, uint32_t *handle)
{
	bool write = !(flags & TOWPIN_REG_READ_ONLY);
	struct user_mem *mem;
	uintptr_t page, first;
	uint64_t end;
	int err;

	if (flags & ~TOWPIN_REG_READ_ONLY || !length)
		return -EINVAL;
	if (length > TOWPIN_MAX_LENGTH ||
	    __builtin_add_overflow(addr, length, &end))
		return -EOVERFLOW;
	if (end > UINTPTR_MAX)
		return -EFAULT;

	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	first = (uintptr_t)addr & ~(page - 1);
	if (__builtin_add_overflow(end, page - 1, &end))
		return -EFAULT;
	err = touch((char *)first, (size_t)((end & ~(uint64_t)(page - 1)) -
					    first), write);
	if (err)
		return err;

	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	mem->sync_fd = -1;
	mem->base = (char *)(uintptr_t)addr;
	mem->length = length;
	mem->rights = TOWPIN_RIGHT_READ | (write ? TOWPIN_RIGHT_WRITE : 0);
	return mem_publish(to_user(p), mem, handle);
}
