/* What was found to do under a lock, done after it. */
#include "io/internal.h"

void batch_init(struct batch *batch)
{
	list_init(&batch->fetches);
	list_init(&batch->reads);
	list_init(&batch->writes);
	batch->send = false;
}

void batch_run(struct batch *batch, struct io_file *file)
{
	struct list_node *node;
	if (batch->send)
		send_queued(file);
	while ((node = list_pop_front(&batch->fetches)))
		fetch_submit(list_entry(node, struct fetch, link));
	while ((node = list_pop_front(&batch->reads)))
		read_answer(list_entry(node, struct read_request, link));
	while ((node = list_pop_front(&batch->writes)))
		write_answer(list_entry(node, struct write_wait, link));
}
