#include "vfs/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"

struct item {
	size_t name; /* offset in `names` */
	uint64_t size, inode;
	uint32_t length;
	uint32_t by_inode; /* position in that order */
};

struct order {
	struct bytes names; /* each with its NUL */
	struct item *items; /* as listed */
	size_t count, capacity;
	uint32_t *sorted[ORDER_KINDS]; /* indexes of items; NULL for ORDER_LISTED */
};

struct order *order_new(void)
{
	return calloc(1, sizeof(struct order));
}

void order_free(struct order *order)
{
	if (!order)
		return;
	bytes_release(&order->names);
	free(order->items);
	for (int kind = 0; kind < ORDER_KINDS; kind++)
		free(order->sorted[kind]);
	free(order);
}

bool order_add(struct order *order, const char *name, size_t length, uint64_t size,
               uint64_t inode)
{
	if (order->count == ORDER_NAMES_MAX)
		return false;
	if (order->count == order->capacity) {
		size_t capacity = order->capacity ? order->capacity * 2 : 32;
		struct item *items = reallocarray(order->items, capacity, sizeof(*items));
		if (!items)
			return false;
		order->items = items;
		order->capacity = capacity;
	}
	order->items[order->count++] = (struct item){.name = order->names.length,
	                                             .size = size,
	                                             .inode = inode,
	                                             .length = (uint32_t)length};
	bytes_add(&order->names, name, length);
	bytes_add_byte(&order->names, 0);
	return !order->names.failed;
}

static int compare_text(const char *a, size_t a_length, const char *b, size_t b_length)
{
	int result = memcmp(a, b, MIN(a_length, b_length));
	return result ? result : (a_length > b_length) - (a_length < b_length);
}

static int compare_names(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	const struct item *first = &order->items[*(const uint32_t *)a];
	const struct item *second = &order->items[*(const uint32_t *)b];
	return compare_text(order->names.data + first->name, first->length,
	                    order->names.data + second->name, second->length);
}

static int compare_inodes(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	uint64_t first = order->items[*(const uint32_t *)a].inode;
	uint64_t second = order->items[*(const uint32_t *)b].inode;
	return (first > second) - (first < second);
}

static bool sort(struct order *order, enum order_kind kind,
                 int (*compare)(const void *, const void *, void *))
{
	uint32_t *sorted = reallocarray(NULL, order->count, sizeof(*sorted));
	if (!sorted)
		return false;
	for (uint32_t i = 0; i < order->count; i++)
		sorted[i] = i;
	qsort_r(sorted, order->count, sizeof(*sorted), compare, order);
	order->sorted[kind] = sorted;
	return true;
}

bool order_finish(struct order *order)
{
	if (!order->count)
		return true;
	if (!sort(order, ORDER_BY_NAME, compare_names) ||
	    !sort(order, ORDER_BY_INODE, compare_inodes))
		return false;
	for (uint32_t i = 0; i < order->count; i++)
		order->items[order->sorted[ORDER_BY_INODE][i]].by_inode = i;
	return true;
}

size_t order_count(const struct order *order)
{
	return order->count;
}

bool order_find(const struct order *order, const char *name, size_t length,
                uint32_t positions[ORDER_KINDS])
{
	size_t low = 0, high = order->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint32_t index = order->sorted[ORDER_BY_NAME][middle];
		const struct item *item = &order->items[index];
		int result =
		    compare_text(name, length, order->names.data + item->name, item->length);
		if (result == 0) {
			positions[ORDER_LISTED] = index;
			positions[ORDER_BY_NAME] = (uint32_t)middle;
			positions[ORDER_BY_INODE] = item->by_inode;
			return true;
		}
		if (result < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

struct order_item order_at(const struct order *order, enum order_kind kind, uint32_t position)
{
	uint32_t index = kind == ORDER_LISTED ? position : order->sorted[kind][position];
	const struct item *item = &order->items[index];
	return (struct order_item){.name = order->names.data + item->name,
	                           .length = item->length,
	                           .size = item->size,
	                           .index = index};
}
