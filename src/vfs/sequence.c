#include "vfs/sequence.h"

#include "base/cleanup.h"

bool momentum_is_proved(const struct momentum *momentum)
{
	for (int kind = 0; kind < ORDER_KINDS; kind++)
		if (momentum->points[kind] >= SEQUENCE_PROOF)
			return true;
	return false;
}

/* How well the position fits behind the head: the less the better; UINT32_MAX: not at all. */
static uint32_t misfit(const struct sequence_head *head, uint32_t position)
{
	int64_t distance = (int64_t)position - head->position;
	if (!head->used || distance < -SEQUENCE_TURNS || distance > 1 + SEQUENCE_SKIP)
		return UINT32_MAX;
	if (distance > 0)
		return (uint32_t)distance;
	return (uint32_t)(1 + SEQUENCE_SKIP - distance);
}

static struct sequence_head *fitting_head(struct sequence_head *heads, uint32_t position)
{
	struct sequence_head *best = NULL;
	uint32_t least = UINT32_MAX;
	for (int i = 0; i < SEQUENCE_HEADS; i++) {
		uint32_t fit = misfit(&heads[i], position);
		if (fit >= least)
			continue;
		least = fit;
		best = &heads[i];
	}
	return best;
}

/* For a reader that was not seen before: the head that was not used for longest. */
static struct sequence_head *oldest_head(struct sequence_head *heads)
{
	struct sequence_head *oldest = &heads[0];
	for (int i = 1; i < SEQUENCE_HEADS; i++)
		if (heads[i].used < oldest->used)
			oldest = &heads[i];
	return oldest;
}

/* The visit in one of the orders; `points` are for the first visit of a directory. */
static struct sequence_head *step(struct sequence *sequence, int kind, uint32_t position,
                                  uint8_t points)
{
	struct sequence_head *head = fitting_head(sequence->heads[kind], position);
	if (!head) {
		bool first = sequence->visits == 1 && position <= SEQUENCE_SKIP;
		head = oldest_head(sequence->heads[kind]);
		*head =
		    (struct sequence_head){.position = position, .points = first ? points : 0};
	} else if (position > head->position) {
		unsigned next = sequence->visits == 2 ? SEQUENCE_PROOF : SEQUENCE_PROOF - 1;
		unsigned more = position - head->position == 1 ? next : 1;
		head->points = (uint8_t)MIN(head->points + more, (unsigned)SEQUENCE_POINTS_MAX);
		head->position = position;
	}
	head->used = sequence->visits;
	return head;
}

int sequence_note(struct sequence *sequence, struct momentum *momentum,
                  const uint32_t positions[ORDER_KINDS], uint32_t *furthest)
{
	int best = -1;
	uint8_t most = SEQUENCE_PROOF - 1;
	sequence->visits++;
	for (int kind = 0; kind < ORDER_KINDS; kind++) {
		const struct sequence_head *head =
		    step(sequence, kind, positions[kind], momentum->points[kind]);
		momentum->points[kind] = head->points;
		if (head->points <= most)
			continue;
		most = head->points;
		best = kind;
		*furthest = head->position;
	}
	return best;
}
