// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where a received stream goes.
 *
 * Invariants: a new file has no name, or only a temporary one, until
 * output_finish() has seen every byte written; output_discard() leaves nothing
 * behind; an existing regular file is replaced only when forced, then in one
 * step; waiting for a slow reader of a pipe never hides the peer's death.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"
#include "tool.h"
#include "wire.h"

#define TRIES	100

/* For a file beside the final one; "." first, so that *.x does not match it. */
static void temp_name(struct output *out)
{
	static unsigned int n;

	snprintf(out->temp, sizeof(out->temp), ".towpin.%d.%u.%08x",
		 (int)getpid(), n++, (unsigned int)now_ns());
}

static int open_named(struct output *out)
{
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		temp_name(out);
		out->fd = openat(out->dir_fd, out->temp, O_WRONLY | O_CREAT |
				 O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (out->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	out->temp[0] = '\0';
	return -errno;
}

static int open_new(struct output *out, const char *path)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int err;

	out->base = slash ? slash + 1 : path;
	if (!*out->base || !strcmp(out->base, ".") ||
	    !strcmp(out->base, ".."))
		return fail(-EISDIR, "'%s' is not the name of a file", path);
	if (snprintf(dir, sizeof(dir), "%.*s",
		     slash ? (int)(slash - path) + 1 : 1,
		     slash ? path : ".") >= (int)sizeof(dir))
		return fail(-ENAMETOOLONG, "the path is too long");
	out->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (out->dir_fd < 0)
		return fail(-errno, "cannot open directory %s: %s", dir,
			    strerror(errno));
	out->own_fd = true;
	out->fd = openat(out->dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC,
			 0666);
	err = 0;
	if (out->fd < 0)	/* not every file system can */
		err = open_named(out);
	if (err) {
		close(out->dir_fd);
		out->dir_fd = -1;
		return fail(err, "cannot create a file in %s: %s", dir,
			    strerror(-err));
	}
	return 0;
}

/*
 * A pipe may be shared with others, so its O_NONBLOCK is not ours to set; a
 * second open of the same pipe has flags of its own. Where that cannot be had,
 * a pipe that polls writable takes PIPE_BUF bytes without blocking.
 */
static void avoid_blocking(struct output *out, mode_t mode)
{
	char path[64];
	int fd;

	/* disks do not wait for anybody, nor do /dev/null and its like */
	if (!S_ISFIFO(mode) && !S_ISSOCK(mode) && !isatty(out->fd))
		return;
	out->may_wait = true;
	out->step = PIPE_BUF;
	if (!S_ISFIFO(mode))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", out->fd);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	if (out->own_fd)
		close(out->fd);
	out->fd = fd;
	out->own_fd = true;
	out->step = SSIZE_MAX;
}

static int open_existing(struct output *out, const char *path)
{
	struct stat st;

	/* of a FIFO this waits for its reader; a signal ends that */
	out->fd = open(path, O_WRONLY | O_CLOEXEC);
	if (out->fd < 0 && stop_wanted())
		return stop_fail();
	if (out->fd < 0)
		return fail(-errno, "cannot open %s: %s", path,
			    strerror(errno));
	out->own_fd = true;
	/* It was none when the caller looked: somebody exchanged it. */
	if (!fstat(out->fd, &st) && S_ISREG(st.st_mode))
		return fail(-EEXIST,
			    "'%s' exists by now; use --force to replace it",
			    path);
	return 0;
}

int output_open(struct output *out, const char *path, bool force, bool sync)
{
	struct stat st;
	int err;

	memset(out, 0, sizeof(*out));
	out->fd = STDOUT_FILENO;
	out->dir_fd = -1;
	out->force = force;
	out->sync = sync;
	out->step = SSIZE_MAX;
	if (!path || !strcmp(path, "-")) {
		int fl = fcntl(out->fd, F_GETFL);

		if (fl < 0 || (fl & O_ACCMODE) == O_RDONLY)
			return fail(-EBADF,
				    "standard output is closed; name a FILE");
	} else {
		out->path = path;
		if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
			if (S_ISDIR(st.st_mode))
				return fail(-EISDIR, "'%s' is a directory",
					    path);
			err = open_existing(out, path);
		} else if (!lstat(path, &st) && !force) {
			err = fail(-EEXIST,
				   "'%s' exists; use --force to replace it",
				   path);
		} else {
			err = open_new(out, path);
		}
		if (err)
			return err;
	}
	if (fstat(out->fd, &st) < 0) {
		err = fail(-errno, "cannot look at the output: %s",
			   strerror(errno));
		output_discard(out);
		return err;
	}
	avoid_blocking(out, st.st_mode);
	return 0;
}

static const char *where(const struct output *out)
{
	return out->path ? out->path : "standard output";
}

/* Until a reader has made room. */
static int wait_writable(struct output *out, struct peer *peer)
{
	struct pollfd p[3] = {
		{ .fd = out->fd, .events = POLLOUT },
		/* what it says can wait; that it is gone cannot */
		{ .fd = peer->sock, .events = POLLRDHUP },
		{ .fd = stop_fd(), .events = POLLIN },
	};

	for (;;) {
		int n = poll(p, 3, -1);

		if (stop_wanted())
			return stop_fail();
		if (n < 0 && errno != EINTR)
			return fail(-errno, "poll: %s", strerror(errno));
		if (n <= 0)
			continue;
		if (p[0].revents)
			return 0;
		if (p[1].revents) {
			union wire_msg msg;
			int type = wire_recv(peer, &msg, NULL);

			if (type == -EAGAIN)
				continue;
			if (type < 0)
				return type;
			if (type == WIRE_ABORT)
				return peer_unexpected(peer, &msg);
			/* also after END, if it did not stay for VERDICT */
			return peer_gone(peer);
		}
	}
}

int output_write(struct output *out, struct peer *peer, const char *data,
		 size_t len)
{
	ssize_t n;
	int err;

	while (len) {
		if (stop_wanted())
			return stop_fail();
		if (out->may_wait) {
			err = wait_writable(out, peer);
			if (err)
				return err;
		}
		n = write(out->fd, data, len < out->step ? len : out->step);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0 && errno == EPIPE)
			return fail(-EPIPE,
				    "cannot write to %s: its reader went away",
				    where(out));
		if (n < 0)
			return fail(-errno, "cannot write to %s: %s%s",
				    where(out), strerror(errno),
				    errno == ENOSPC || errno == EDQUOT ?
				    "; free some space and send again" : "");
		data += n;
		len -= n;
	}
	return 0;
}

/* Give the open, unnamed file a name in its directory. */
static int link_as(struct output *out, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", out->fd);
	if (linkat(AT_FDCWD, path, out->dir_fd, name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	return 0;
}

static int rename_temp(struct output *out)
{
	int err = 0;

	if (renameat2(out->dir_fd, out->temp, out->dir_fd, out->base,
		      out->force ? 0 : RENAME_NOREPLACE) < 0)
		err = -errno;
	/*
	 * A file system that cannot: link(2) does not replace either. The old
	 * name goes with output_discard().
	 */
	if (err == -EINVAL && !out->force)
		return linkat(out->dir_fd, out->temp, out->dir_fd, out->base,
			      0) < 0 ? -errno : 0;
	if (!err)
		out->temp[0] = '\0';
	return err;
}

static int give_name(struct output *out)
{
	int tries, err;

	if (out->temp[0])
		return rename_temp(out);
	err = link_as(out, out->base);
	if (err != -EEXIST || !out->force)
		return err;
	/* link(2) replaces nothing: link beside it, then rename over it */
	for (tries = 0; tries < TRIES; tries++) {
		temp_name(out);
		err = link_as(out, out->temp);
		if (!err)
			return rename_temp(out);
		out->temp[0] = '\0';
		if (err != -EEXIST)
			break;
	}
	return err;
}

int output_finish(struct output *out)
{
	int err = 0;

	if (out->sync && out->path && fsync(out->fd) < 0 && errno != EINVAL)
		err = -errno;
	/*
	 * Some file systems tell of a failed write only at close; those have
	 * no unnamed files, which can only be named while they are open.
	 */
	if (!err && (out->dir_fd < 0 || out->temp[0])) {
		if (close(out->fd) < 0)
			err = -errno;
		out->fd = -1;
	}
	if (!err && out->dir_fd >= 0)
		err = give_name(out);
	if (!err && out->sync && out->dir_fd >= 0 && fsync(out->dir_fd) < 0 &&
	    errno != EINVAL)
		err = -errno;
	if (err == -EEXIST)
		fail(err, "'%s' exists by now; use --force to replace it",
		     out->path);
	else if (err)
		fail(err, "cannot finish %s: %s", where(out), strerror(-err));
	output_discard(out);
	return err;
}

/* Of no effect once output_finish() has succeeded. */
void output_discard(struct output *out)
{
	if (out->temp[0])
		unlinkat(out->dir_fd, out->temp, 0);
	out->temp[0] = '\0';
	if (out->fd >= 0 && out->own_fd)
		close(out->fd);
	out->fd = -1;
	if (out->dir_fd >= 0)
		close(out->dir_fd);
	out->dir_fd = -1;
}
