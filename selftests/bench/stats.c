// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

struct stats stats_of(double *samples, size_t n)
{
	qsort(samples, n, sizeof(*samples), compare);
	return (struct stats) {
		.median = samples[n / 2],
		.p10 = samples[n / 10],
		.p90 = samples[n - 1 - n / 10],
	};
}

json_object *stats_number(double value)
{
	char text[64];

	snprintf(text, sizeof(text), "%.2f", value);
	return json_object_new_double_s(value, text);
}

json_object *stats_json(const struct stats *stats)
{
	json_object *o = json_object_new_object();

	json_object_object_add(o, "median", stats_number(stats->median));
	json_object_object_add(o, "p10", stats_number(stats->p10));
	json_object_object_add(o, "p90", stats_number(stats->p90));
	return o;
}

bool stats_save(json_object *root, const char *path)
{
	bool out = !strcmp(path, "-");
	FILE *f = out ? stdout : fopen(path, "we");
	bool ok = f;

	if (f) {
		fprintf(f, "%s\n",
			json_object_to_json_string_ext(root,
						       JSON_C_TO_STRING_PRETTY |
						       JSON_C_TO_STRING_SPACED));
		ok = !ferror(f);
	}
	if (f && !out && fclose(f))
		ok = false;
	if (!ok)
		fprintf(stderr, "cannot write %s\n", path);
	json_object_put(root);
	return ok;
}
