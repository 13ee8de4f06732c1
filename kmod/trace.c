// SPDX-License-Identifier: GPL-2.0-only
/* The one place where the tracepoints of trace.h are defined. */
#include "towpin.h"
#define CREATE_TRACE_POINTS
#include "trace.h"
