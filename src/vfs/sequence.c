#include "vfs/sequence.h"

#include "base/cleanup.h"

bool momentum_is_proved(const struct momentum *momentum)
{
	for (int kind = 0; kind < ORDER_KINDS; kind++)
		if (momentum->points[kind] >= SEQUENCE_PROOF)
			return true;
	return false;
}

/* The directory's first visit: one of the first names goes on with what was proved before. */
static void begin(struct sequence *sequence, const struct momentum *momentum,
                  const uint32_t positions[ORDER_KINDS])
{
	sequence->begun = true;
	for (int kind = 0; kind < ORDER_KINDS; kind++) {
		sequence->furthest[kind] = positions[kind];
		sequence->points[kind] =
		    positions[kind] <= SEQUENCE_SKIP ? momentum->points[kind] : 0;
	}
}

static void step(struct sequence *sequence, int kind, uint32_t position)
{
	int64_t distance = (int64_t)position - sequence->furthest[kind];
	if (distance <= 0 && distance >= -SEQUENCE_TURNS)
		return;
	bool near = distance > 0 && distance <= 1 + SEQUENCE_SKIP;
	unsigned points = distance == 1 ? SEQUENCE_PROOF : near ? 1 : 0;
	points = near ? MIN(sequence->points[kind] + points, (unsigned)SEQUENCE_POINTS_MAX) : 0;
	sequence->points[kind] = (uint8_t)points;
	sequence->furthest[kind] = position;
}

int sequence_note(struct sequence *sequence, struct momentum *momentum,
                  const uint32_t positions[ORDER_KINDS])
{
	if (!sequence->begun)
		begin(sequence, momentum, positions);
	else
		for (int kind = 0; kind < ORDER_KINDS; kind++)
			step(sequence, kind, positions[kind]);
	int best = 0;
	for (int kind = 0; kind < ORDER_KINDS; kind++) {
		momentum->points[kind] = sequence->points[kind];
		if (sequence->points[kind] > sequence->points[best])
			best = kind;
	}
	return sequence->points[best] >= SEQUENCE_PROOF ? best : -1;
}
