/*
 * The inside of the prefetch.
 *
 * A place is what is known of the visits to a directory; its node has it. The places that
 * programs visited last are kept; they keep nothing alive themselves. A place ahead is a
 * directory that was listed and not yet visited: it keeps its node.
 *
 * A parcel is a file under way or fetched, known by directory and name.
 *
 * Locks: nodes.lock protects places, momentums and walks; prefetch.lock protects parcels and
 * the paces, and is taken behind nodes.lock. Nothing is submitted under either. Parcels end on
 * the lanes' threads, which take only the second.
 */
#ifndef MOORFS_VFS_PREFETCH_INTERNAL_H
#define MOORFS_VFS_PREFETCH_INTERNAL_H

#include "vfs/internal.h"
#include "vfs/order.h"
#include "vfs/pace.h"
#include "vfs/prefetch.h"
#include "vfs/sequence.h"

/* How long contents count as validated after they came, unless attributes hold shorter. */
#define PREFETCH_VALID_NS (3 * NS_PER_SEC)

enum {
	PREFETCH_FILES_MAX = 128,           /* parcels, under way and waiting for their open */
	PREFETCH_CACHE_PART = 8,            /* of cache_size, for parcels at most */
	PREFETCH_DIRS_MAX = 64,             /* places ahead */
	PREFETCH_DIR_CACHE_PART = 4,        /* of dir_cache_size, for listings ahead at most */
	PREFETCH_LISTING_MAX = 1024 * 1024, /* bytes: a larger one is not listed ahead */
	PREFETCH_PLACES_MAX = 64,           /* visited */
	PREFETCH_EAGER_BYTES = 256 * 1024,  /* a listing so small is sorted at the first open */
	PREFETCH_STEPS_MAX = 512,           /* directories that a walk passes */
	PREFETCH_DEPTH_MAX = 32,            /* levels that a walk goes down */
};

struct place {
	struct prefetch *prefetch;
	/* its regular files and its subdirectories, as they were at `version`; NULL: not made
	 */
	struct order *files, *dirs;
	uint64_t version;  /* of the listing they were made from */
	bool orders_tried; /* with or without success */
	bool opened_file;
	/* one bit for each of `files`: opened in this pass, and hardly wanted again soon; NULL:
	 * none yet, or no memory for them */
	uint8_t *opened;
	struct sequence file_sequence, dir_sequence;

	bool ahead;              /* listed ahead, and not visited */
	struct listing *listing; /* of one ahead; one reference, one user; NULL: being sent */
	uint64_t number;         /* of one ahead, in the pace */
};

struct prefetch {
	struct vfs *vfs;
	bool files_on, dirs_on;

	/* with nodes.lock */
	struct list_node visited; /* nodes by of_places, the latest last */
	struct list_node ahead;   /* likewise, in the order in which they were listed */
	unsigned ahead_count;
	/* places that are or were visited; any lock or none: those of dead nodes are out of the
	 * list before they are out of the count */
	atomic_uint visited_count;
	struct momentum file_momentum, dir_momentum;

	pthread_mutex_t lock;
	pthread_cond_t answered; /* a parcel has come, failed or was dropped */
	struct map parcels;
	struct list_node order;  /* the parcels of the map, oldest first */
	struct list_node flight; /* the parcels under way, also those no more in the map */
	unsigned under_way;      /* how many these are */
	uint64_t under_way_bytes;
	uint64_t bytes;   /* memory of the parcels */
	uint64_t refused; /* parcels that the server did not give */
	uint64_t late;    /* parcels found too old or changed when they were wanted */
	struct pace file_pace, dir_pace;
};

/* ---- places (prefetch.c); all with nodes.lock ---- */

/* The directory's place, visited now; NULL when memory is out. */
struct place *place_visit(struct prefetch *prefetch, struct node *dir);
/* A new place in no list, given to the node; NULL when memory is out. */
struct place *place_add(struct prefetch *prefetch, struct node *dir);
/* Lets go of the place that is in no list. */
void place_remove(struct node *dir);
/* The place is visited from now on: into that list. */
void place_enlist(struct prefetch *prefetch, struct node *dir);
/* Forgets orders and sequences: the directory is read anew. */
void place_reset(struct place *place);

/* Without locks, the node held: makes the orders if there is a complete listing for them. */
void place_make_orders(struct prefetch *prefetch, struct node *dir);

/* The name by which the node is reached; NULL when it has none. nodes.lock held. */
static inline struct dentry *first_name(const struct node *node)
{
	return list_empty(&node->names) ? NULL
	                                : list_entry(node->names.next, struct dentry, of_node);
}

/* ---- parcels (prefetch_parcels.c), with prefetch.lock ---- */

enum parcel_state { PARCEL_UNDER_WAY, PARCEL_HERE, PARCEL_REFUSED };

struct parcel {
	unsigned refs; /* the map's, the fetch's, and of those who wait */
	struct prefetch *prefetch;
	struct list_node of_order;  /* while in the map */
	struct list_node of_batch;  /* until it is sent */
	struct list_node of_flight; /* while it is under way, also when it was dropped */
	bool in_map;
	enum parcel_state state;
	const struct node *dir; /* never followed */
	struct io_whole *whole; /* NULL: given away */
	uint64_t room;          /* bytes it takes */
	uint64_t number;        /* in the pace */
	uint64_t asked_ns, stamp, moves;
	uint64_t came_ns;
	size_t length;
	char name[];
};

struct parcel *parcel_find(const struct prefetch *prefetch, const struct node *dir,
                           const char *name, size_t length);
/* A new one, to be sent right after: into the map and the books. False: no memory, and it is
 * freed. */
bool parcel_enter(struct parcel *parcel);
/* Out of the map; whoever waits for it gives up. May free it. */
void parcel_take_out(struct parcel *parcel);
/* The same for one that was fetched in vain. */
void parcel_drop_unused(struct parcel *parcel);
void parcel_unref(struct parcel *parcel);
bool parcel_is_too_old(const struct parcel *parcel, uint64_t now_ns);
/* Without the lock: the end of its fetch. */
void parcel_came(void *parcel, int err);
void parcels_drop_of(struct prefetch *prefetch, const struct node *dir);
void parcels_purge(struct prefetch *prefetch, uint64_t now_ns);
/* Without: ends and forgets all. */
void parcels_stop(struct prefetch *prefetch);

/* ---- directories (prefetch_dirs.c), with nodes.lock ---- */

/*
 * Without locks: makes the orders that the walk needs and that can be made by now, those of the
 * places ahead and of `dir`'s parent (NULL: of none). `dir` is held.
 */
void places_make_orders(struct prefetch *prefetch, struct node *dir);
void places_ahead_purge(struct prefetch *prefetch);
void places_ahead_drop(struct prefetch *prefetch);

#endif
