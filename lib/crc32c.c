// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * CRC-32C (RFC 3720 appendix B.4): polynomial 0x1EDC6F41, reflected, inverted
 * before and after.
 *
 * Invariants: all ways to compute it agree, and each splits anywhere: feeding
 * the result as the start of the next piece continues it. Data is read with
 * memcpy(3), so any alignment and either byte order will do.
 */
#include "crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#pragma GCC visibility push(default)
#include "towpin.h"
#pragma GCC visibility pop

#define POLY	0x82f63b78u	/* reflected: bit 31 is x^0 */

/* table[k][b]: the CRC of byte b followed by k zero bytes, not inverted */
static uint32_t table[8][256];

static void table_init(void)
{
	unsigned int b, k;

	for (b = 0; b < 256; b++) {
		uint32_t crc = b;

		for (k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? POLY : 0);
		table[0][b] = crc;
	}
	for (b = 0; b < 256; b++)
		for (k = 1; k < 8; k++)
			table[k][b] = table[k - 1][b] >> 8 ^
				      table[0][table[k - 1][b] & 0xff];
}

uint32_t towi_crc32c_table(uint32_t crc, const void *data, size_t len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const unsigned char *p = data;

	pthread_once(&once, table_init);
	crc = ~crc;
	for (; len >= 8; len -= 8, p += 8) {
		uint32_t lo, hi;

		memcpy(&lo, p, 4);
		memcpy(&hi, p + 4, 4);
		lo = le32toh(lo) ^ crc;
		hi = le32toh(hi);
		crc = table[7][lo & 0xff] ^ table[6][lo >> 8 & 0xff] ^
		      table[5][lo >> 16 & 0xff] ^ table[4][lo >> 24] ^
		      table[3][hi & 0xff] ^ table[2][hi >> 8 & 0xff] ^
		      table[1][hi >> 16 & 0xff] ^ table[0][hi >> 24];
	}
	for (; len; len--, p++)
		crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
	return ~crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2")))
static uint32_t crc32c_sse42(uint32_t crc, const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t wide = ~crc;

	for (; len >= 8; len -= 8, p += 8) {
		uint64_t v;

		memcpy(&v, p, 8);
		wide = _mm_crc32_u64(wide, v);
	}
	crc = (uint32_t)wide;
	for (; len; len--, p++)
		crc = _mm_crc32_u8(crc, *p);
	return ~crc;
}

uint32_t towi_crc32c(uint32_t crc, const void *data, size_t len)
{
	if (__builtin_cpu_supports("sse4.2"))
		return crc32c_sse42(crc, data, len);
	return towi_crc32c_table(crc, data, len);
}
#else
uint32_t towi_crc32c(uint32_t crc, const void *data, size_t len)
{
	return towi_crc32c_table(crc, data, len);
}
#endif

/* a * b modulo the polynomial, in GF(2) */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		if (a & 1u << 31)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? POLY : 0);
	}
	return product;
}

/* Each zero byte after A multiplies its remainder by x^8; B adds its own. */
uint32_t tow_crc32c_combine(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
	uint32_t square = 1u << 23;		/* x^8 */

	for (; len_b; len_b >>= 1) {
		if (len_b & 1)
			crc_a = multiply(square, crc_a);
		square = multiply(square, square);
	}
	return crc_a ^ crc_b;
}
