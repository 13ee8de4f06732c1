/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
#ifndef TOWI_CRC32C_H
#define TOWI_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC-32C of @data that follows bytes whose CRC-32C is @crc (none: 0). */
uint32_t towi_crc32c(uint32_t crc, const void *data, size_t len);

/* The same without instructions of the CPU; for the tests. */
uint32_t towi_crc32c_table(uint32_t crc, const void *data, size_t len);

#endif /* TOWI_CRC32C_H */
