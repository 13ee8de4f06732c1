// SPDX-License-Identifier: GPL-2.0-only
/*
 * Signals that ask the command to stop.
 *
 * Invariants: a signal sets the flag first and then makes the eventfd readable,
 * so a wait that polls the eventfd cannot sleep through one, whichever thread
 * it was delivered to; system calls are not restarted.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tool.h"

static volatile sig_atomic_t stop_signal;
static int stop_event = -1;

static void on_signal(int sig)
{
	uint64_t one = 1;
	int saved = errno;

	stop_signal = sig;
	/* fails only when it is readable already */
	(void)!write(stop_event, &one, sizeof(one));
	errno = saved;
}

int stop_init(void)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP };
	/* Once: a second signal ends the process whatever it is doing. */
	struct sigaction sa = {
		.sa_handler = on_signal, .sa_flags = SA_RESETHAND,
	}, old;
	unsigned int i;

	stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stop_event < 0)
		return fail(-errno, "cannot create an eventfd: %s",
			    strerror(errno));
	for (i = 0; i < ARRAY_SIZE(sigs); i++) {
		sigaction(sigs[i], NULL, &old);
		/* nohup(1) and background jobs of a script ignore some */
		if (old.sa_handler != SIG_IGN)
			sigaction(sigs[i], &sa, NULL);
	}
	/* These are errors of write(2) instead. */
	sa.sa_handler = SIG_IGN;
	sa.sa_flags = 0;
	sigaction(SIGPIPE, &sa, NULL);
	sigaction(SIGXFSZ, &sa, NULL);
	return 0;
}

int stop_fd(void)
{
	return stop_event;
}

bool stop_wanted(void)
{
	return stop_signal;
}

int stop_fail(void)
{
	return fail(-EINTR, "stopped by signal %d (%s)", (int)stop_signal,
		    strsignal(stop_signal));
}
