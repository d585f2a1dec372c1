/*
 * The names of a directory in the orders in which programs visit them: as the server lists
 * them (tar, grep, find), sorted by name (shells, git, ls), sorted by inode number (cp, rm).
 * A copy that no change of the directory reaches. Pure; not thread-safe while it is being made.
 */
#ifndef MOORFS_VFS_ORDER_H
#define MOORFS_VFS_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum order_kind { ORDER_LISTED, ORDER_BY_NAME, ORDER_BY_INODE, ORDER_KINDS };

/* More names than that are not worth the memory and the sorting. */
enum { ORDER_NAMES_MAX = 65536 };

struct order;

struct order_item {
	const char *name; /* with a NUL behind it; lives as long as the order */
	size_t length;
	uint64_t size;  /* of the file */
	uint32_t index; /* its position as listed */
};

/* Empty, to be filled; NULL when memory is out. */
struct order *order_new(void);
/* NULL is allowed. */
void order_free(struct order *order);

/* Adds the next name as listed. False when memory is out or there are too many. */
bool order_add(struct order *order, const char *name, size_t length, uint64_t size,
               uint64_t inode);
/* No more come: sorts them. False when memory is out. */
bool order_finish(struct order *order);

/* ---- once it is finished ---- */

size_t order_count(const struct order *order);
/* The name's position in each order; false when it is not in. */
bool order_find(const struct order *order, const char *name, size_t length,
                uint32_t positions[ORDER_KINDS]);
/* The name at the position (below the count) of this order. */
struct order_item order_at(const struct order *order, enum order_kind kind, uint32_t position);

#endif
