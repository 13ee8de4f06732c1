/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#ifndef TOWI_MAP_H
#define TOWI_MAP_H

#include <stdint.h>

int towi_map(int fd, uint64_t length, int prot, void **addr);
void towi_unmap(void *addr, uint64_t length);

#endif /* TOWI_MAP_H */
