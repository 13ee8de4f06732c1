// SPDX-License-Identifier: GPL-2.0-only
/*
 * The two ways of tow demo, each one run of two processes.
 *
 * Invariants: what runs is the commands that users run, this very binary and
 * cat(1); both are timed from before the first fork to after the last exit; no
 * child is left when a function returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demo.h"
#include "tool.h"

static pid_t spawn(const char *const *argv, int in, int out)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	/* a stopped demo leaves nobody behind */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGPIPE, SIG_DFL);
	if (getppid() == parent && dup2(in, 0) >= 0 && dup2(out, 1) >= 0)
		execvp(argv[0], (char *const *)argv);
	fprintf(stderr, "%s: cannot run %s: %s\n", prog, argv[0],
		strerror(errno));
	_exit(127);
}

/* Waits for @n children; when one fails or a signal comes, ends the others. */
static int reap(pid_t *pids, unsigned int n, struct way *way)
{
	unsigned int left = 0, i;
	struct rusage use;
	int status, err = 0;
	pid_t pid;

	for (i = 0; i < n; i++)
		left += pids[i] > 0;
	if (left < n)
		err = fail(-EAGAIN, "cannot fork: %s", strerror(errno));
	while (left) {
		for (i = 0; err && i < n; i++)
			if (pids[i] > 0)
				kill(pids[i], SIGTERM);
		pid = wait4(-1, &status, 0, &use);
		if (pid < 0 && !err && stop_wanted())
			err = stop_fail();
		if (pid < 0 && errno == ECHILD)
			return err ? err : fail(-ECHILD, "lost a child");
		if (pid < 0)
			continue;
		for (i = 0; i < n; i++)
			if (pids[i] == pid)
				pids[i] = -1;
		left--;
		way->cpu_ns += (use.ru_utime.tv_sec + use.ru_stime.tv_sec) *
			       1000000000ull +
			       (use.ru_utime.tv_usec + use.ru_stime.tv_usec) *
			       1000ull;
		if (!err && stop_wanted())
			err = stop_fail();
		/* a child has said itself what was wrong */
		if (!err && status)
			err = -ECHILD;
	}
	return err;
}

int demo_run_tow(struct demo *d, unsigned int run)
{
	const char *const send[] = { "/proc/self/exe", "send", "--json",
				     "--quiet", DEMO_NAME, d->source, NULL };
	const char *const recv[] = { "/proc/self/exe", "recv", "--force",
				     "--quiet", DEMO_NAME, d->copy, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int out = open(d->result, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		       0600);
	uint64_t start = now_ns();
	pid_t pids[2];
	int err;

	pids[0] = spawn(recv, null, null);
	pids[1] = spawn(send, null, out);
	err = reap(pids, 2, &d->tow);
	d->tow.ns[run] = now_ns() - start;
	close(null);
	close(out);
	return err;
}

int demo_run_pipe(struct demo *d, unsigned int run)
{
	static const char *const cat[] = { "cat", NULL };
	int in = open(d->source, O_RDONLY | O_CLOEXEC);
	int out = open(d->copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int p[2] = { -1, -1 };
	uint64_t start = now_ns();
	pid_t pids[2];
	int err;

	if (in < 0 || out < 0 || pipe2(p, O_CLOEXEC)) {
		err = fail(-errno, "cannot set up a pipe: %s",
			   strerror(errno));
		goto out;
	}
	pids[0] = spawn(cat, in, p[1]);
	pids[1] = spawn(cat, p[0], out);
	close(p[0]);
	close(p[1]);
	err = reap(pids, 2, &d->pipe);
	d->pipe.ns[run] = now_ns() - start;
out:
	close(in);
	close(out);
	return err;
}
