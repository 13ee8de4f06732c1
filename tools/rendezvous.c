// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finding the peer: a socket NAME.sock in a directory of the user's.
 *
 * Invariants: only the holder of the lock on NAME.lock binds, replaces or
 * removes NAME.sock; the lock ends with its process, so a name is free again
 * however its receiver died; a lock file is removed only by who holds its lock,
 * and a lock counts only if the file still has its name; all names are resolved
 * from one directory descriptor that was checked once.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rendezvous.h"
#include "tool.h"

#define NAME_LEN_MAX	64
#define RUN_DIR		"/run/towpin"
#define RETRY_NS	20000000ull

static bool name_ok(const char *name)
{
	size_t len = strlen(name), i;

	for (i = 0; i < len; i++) {
		char c = name[i];

		/* not isalnum(), which asks the locale */
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && !strchr("._-", c))
			return false;
	}
	return len >= 1 && len <= NAME_LEN_MAX && name[0] != '.';
}

/* For a name of the command line. */
void rdv_name_check(const char *name)
{
	if (!name_ok(name))
		usage_fail("bad NAME '%s'; use 1 to 64 of A-Z a-z 0-9 . _ -, no dot first",
			   name);
}

/* ---- the directory ---- */

static int check_dir(int fd, const char *path, bool shared, bool any_user)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail(-errno, "cannot look at %s: %s", path,
			    strerror(errno));
	if (st.st_uid && st.st_uid != geteuid() && !any_user)
		return fail(-EPERM,
			    "%s belongs to user %u; set XDG_RUNTIME_DIR to a directory of your own, or use --any-user",
			    path, st.st_uid);
	/* in a sticky directory nobody can replace the names of others */
	if (st.st_mode & S_ISVTX)
		return 0;
	if (st.st_mode & 0002)
		return fail(-EPERM,
			    "everyone can write to %s; chmod it to 0700", path);
	/* RUN_DIR is an administrator's, who may trust a group */
	if (st.st_mode & 0020 && !shared)
		return fail(-EPERM, "a group can write to %s; chmod it to 0700",
			    path);
	return 0;
}

/* Returns a descriptor of the directory of the sockets. */
int rdv_open_dir(bool any_user)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	char path[4096] = RUN_DIR;
	int fd, n;

	if (base && *base) {
		n = snprintf(path, sizeof(path), "%s/towpin", base);
		if (n >= (int)sizeof(path))
			return fail(-ENAMETOOLONG,
				    "XDG_RUNTIME_DIR is too long");
	} else {
		base = NULL;
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return fail(-errno,
			    "cannot create %s: %s; set XDG_RUNTIME_DIR to a directory of your own",
			    path, strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fail(-errno, "cannot open %s: %s", path,
			    strerror(errno));
	n = check_dir(fd, path, !base, any_user);
	if (n) {
		close(fd);
		return n;
	}
	return fd;
}

/* By way of the descriptor, any path fits sun_path. */
static void address(struct sockaddr_un *sun, int dir_fd, const char *name)
{
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	snprintf(sun->sun_path, sizeof(sun->sun_path),
		 "/proc/self/fd/%d/%s.sock", dir_fd, name);
}

/* ---- waiting ---- */

static int ms_until(uint64_t deadline)
{
	uint64_t now = now_ns();

	if (now >= deadline)
		return 0;
	now = (deadline - now + 999999) / 1000000;
	return now > 1000000 ? 1000000 : now;
}

/* -ETIMEDOUT, not reported, once @deadline has passed. */
static int poll_until(int fd, uint64_t deadline)
{
	struct pollfd p[2] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = stop_fd(), .events = POLLIN },
	};
	int n;

	for (;;) {
		n = poll(p, 2, ms_until(deadline));
		if (stop_wanted())
			return stop_fail();
		if (n > 0 && p[0].revents)
			return 0;
		if (n < 0 && errno != EINTR)
			return fail(-errno, "poll: %s", strerror(errno));
		if (now_ns() >= deadline)
			return -ETIMEDOUT;
	}
}

int rdv_wait(struct peer *peer, uint64_t deadline)
{
	return poll_until(peer->sock, deadline);
}

int rdv_pause(uint64_t deadline)
{
	uint64_t until = now_ns() + RETRY_NS;
	int err;

	if (now_ns() >= deadline)
		return -ETIMEDOUT;
	err = poll_until(-1, until < deadline ? until : deadline);
	return err == -ETIMEDOUT ? 0 : err;
}

/* ---- who is it ---- */

static int identify(struct peer *peer, int sock, const char *role,
		    bool any_user)
{
	static bool refused;
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return fail(-errno, "cannot tell who the peer is: %s",
			    strerror(errno));
	peer->sock = sock;
	peer->pid = cred.pid;
	peer->uid = cred.uid;
	peer->role = role;
	if (any_user || !cred.uid || cred.uid == geteuid())
		return 0;
	wire_abort(peer, -EPERM, WIRE_USER);
	/* once: a stranger who keeps trying must not fill our log */
	if (!refused)
		fail(-EPERM,
		     "refused a %s of user %u (pid %d); --any-user would allow it",
		     role, cred.uid, (int)cred.pid);
	refused = true;
	return -EPERM;
}

/* ---- the receiver ---- */

static int lock_name(struct rdv_claim *claim)
{
	char file[NAME_LEN_MAX + 8];
	struct stat mine, named;
	int fd;

	snprintf(file, sizeof(file), "%s.lock", claim->name);
	for (;;) {
		fd = openat(claim->dir_fd, file,
			    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			return fail(-errno, "cannot open %s: %s", file,
				    strerror(errno));
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			int err = -errno;

			close(fd);
			if (err != -EWOULDBLOCK)
				return fail(err, "cannot lock %s: %s", file,
					    strerror(-err));
			return fail(-EADDRINUSE,
				    "name '%s' has a tow recv: %s; choose another name",
				    claim->name, strerror(EADDRINUSE));
		}
		/* did its last holder remove it between open and flock? */
		if (!fstat(fd, &mine) &&
		    !fstatat(claim->dir_fd, file, &named,
			     AT_SYMLINK_NOFOLLOW) &&
		    mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
			break;
		close(fd);
	}
	claim->lock_fd = fd;
	return 0;
}

static void unlink_sock(struct rdv_claim *claim)
{
	char file[NAME_LEN_MAX + 8];

	snprintf(file, sizeof(file), "%s.sock", claim->name);
	unlinkat(claim->dir_fd, file, 0);
}

static int bind_name(struct rdv_claim *claim, bool any_user)
{
	struct sockaddr_un sun;
	mode_t mask;
	int err;

	claim->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
				  SOCK_NONBLOCK, 0);
	if (claim->listen_fd < 0)
		return fail(-errno, "cannot create a socket: %s",
			    strerror(errno));
	/* what is there is a dead receiver's: we hold the lock */
	unlink_sock(claim);
	address(&sun, claim->dir_fd, claim->name);
	mask = umask(any_user ? 0111 : 0177);
	err = bind(claim->listen_fd, (struct sockaddr *)&sun, sizeof(sun));
	err = err ? -errno : 0;
	umask(mask);
	if (err)
		return fail(err, "cannot bind a socket to name '%s': %s",
			    claim->name, strerror(-err));
	claim->bound = true;
	if (listen(claim->listen_fd, 8) < 0)
		return fail(-errno, "cannot listen: %s", strerror(errno));
	return 0;
}

int rdv_claim(struct rdv_claim *claim, const char *name, bool any_user)
{
	int err;

	*claim = (struct rdv_claim){
		.name = name, .dir_fd = -1, .lock_fd = -1, .listen_fd = -1,
	};
	claim->dir_fd = rdv_open_dir(any_user);
	if (claim->dir_fd < 0)
		return claim->dir_fd;
	err = lock_name(claim);
	if (!err)
		err = bind_name(claim, any_user);
	if (err)
		rdv_release(claim);
	return err;
}

/* A stranger is turned away, and does not end the wait. */
int rdv_accept(struct rdv_claim *claim, struct peer *peer, bool any_user,
	       uint64_t deadline)
{
	int sock, err;

	for (;;) {
		err = poll_until(claim->listen_fd, deadline);
		if (err == -ETIMEDOUT)
			return fail(err,
				    "no sender came for name '%s'; start 'tow send %s', or wait longer with --timeout",
				    claim->name, claim->name);
		if (err)
			return err;
		sock = accept4(claim->listen_fd, NULL, NULL,
			       SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (sock < 0 && (errno == EAGAIN || errno == ECONNABORTED ||
				 errno == EINTR))
			continue;
		if (sock < 0)
			return fail(-errno, "cannot accept a connection: %s",
				    strerror(errno));
		err = identify(peer, sock, "sender", any_user);
		if (!err)
			return 0;
		close(sock);
	}
}

/* No further sender can connect; the name stays ours. */
void rdv_unlisten(struct rdv_claim *claim)
{
	if (claim->bound)
		unlink_sock(claim);
	claim->bound = false;
	if (claim->listen_fd >= 0)
		close(claim->listen_fd);
	claim->listen_fd = -1;
}

void rdv_release(struct rdv_claim *claim)
{
	char file[NAME_LEN_MAX + 8];

	rdv_unlisten(claim);
	if (claim->lock_fd >= 0) {
		snprintf(file, sizeof(file), "%s.lock", claim->name);
		unlinkat(claim->dir_fd, file, 0);
		close(claim->lock_fd);
		claim->lock_fd = -1;
	}
	if (claim->dir_fd >= 0)
		close(claim->dir_fd);
	claim->dir_fd = -1;
}

/* ---- the sender ---- */

/* Tries until @deadline; then -ETIMEDOUT, not reported, and why in @missing. */
int rdv_connect(int dir_fd, const char *name, struct peer *peer, bool any_user,
		uint64_t deadline, const char **missing)
{
	struct sockaddr_un sun;
	int sock, err;

	address(&sun, dir_fd, name);
	for (;;) {
		sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
			      SOCK_NONBLOCK, 0);
		if (sock < 0)
			return fail(-errno, "cannot create a socket: %s",
				    strerror(errno));
		if (!connect(sock, (struct sockaddr *)&sun, sizeof(sun)))
			break;
		err = errno;
		close(sock);
		switch (err) {
		case ENOENT:
		case ECONNREFUSED:
			*missing = "no receiver";
			break;
		case EAGAIN:
			*missing = "the receiver is busy";
			break;
		default:
			return fail(-err, "cannot connect to name '%s': %s",
				    name, strerror(err));
		}
		err = rdv_pause(deadline);
		if (err)
			return err;
	}
	err = identify(peer, sock, "receiver", any_user);
	if (err)
		close(sock);
	return err;
}
