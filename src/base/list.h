/* Intrusive doubly linked list: a node sits in the object, the head is a node of its own. */
#ifndef MOORFS_BASE_LIST_H
#define MOORFS_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct list_node {
	struct list_node *next, *prev;
};

static inline void list_init(struct list_node *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list_node *head)
{
	return head->next == head;
}

static inline void list_insert_between(struct list_node *node, struct list_node *prev,
                                       struct list_node *next)
{
	node->prev = prev;
	node->next = next;
	prev->next = node;
	next->prev = node;
}

static inline void list_push_back(struct list_node *head, struct list_node *node)
{
	list_insert_between(node, head->prev, head);
}

static inline void list_push_front(struct list_node *head, struct list_node *node)
{
	list_insert_between(node, head, head->next);
}

/* Takes the node out; it points to itself afterwards, so that removing twice is harmless. */
static inline void list_remove(struct list_node *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* First node, taken out; NULL when the list is empty. */
static inline struct list_node *list_pop_front(struct list_node *head)
{
	struct list_node *node = head->next;
	if (node == head)
		return NULL;
	list_remove(node);
	return node;
}

/* Moves all nodes of `from` to the end of `to`; `from` is empty afterwards. */
static inline void list_splice_back(struct list_node *to, struct list_node *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#define list_entry(node, type, member) CONTAINER_OF(node, type, member)
#define list_for_each(node, head) \
	for (struct list_node *node = (head)->next; node != (head); node = node->next)
/* As list_for_each; the body may remove `node`. */
#define list_for_each_safe(node, head)                                                         \
	for (struct list_node *node = (head)->next, *node##_next = node->next; node != (head); \
	     node = node##_next, node##_next = node->next)

#endif
