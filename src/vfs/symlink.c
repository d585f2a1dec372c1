#include "vfs/symlink.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

struct component {
	const char *name;
	size_t length;
};

/* The next component of the path, skipping "/" and "."; false at the end. */
static bool next_component(const char **at, struct component *component)
{
	for (;;) {
		*at += strspn(*at, "/");
		if (!**at)
			return false;
		component->name = *at;
		component->length = strcspn(*at, "/");
		*at += component->length;
		if (component->length != 1 || component->name[0] != '.')
			return true;
	}
}

static bool is_dotdot(const struct component *component)
{
	return component->length == 2 && component->name[0] == '.' && component->name[1] == '.';
}

static bool same(const struct component *a, const struct component *b)
{
	return a->length == b->length && memcmp(a->name, b->name, a->length) == 0;
}

static unsigned depth_of(const char *path)
{
	unsigned depth = 0;
	struct component component;
	while (next_component(&path, &component))
		depth++;
	return depth;
}

/* What follows the last ".." of the path; NULL when there is none. */
static const char *behind_last_dotdot(const char *path)
{
	const char *behind = NULL;
	struct component component;
	while (next_component(&path, &component))
		if (is_dotdot(&component))
			behind = path;
	return behind;
}

/* The part of the absolute path below `base`, or NULL when it is not there. */
static const char *below(const char *base, const char *path)
{
	struct component want, have;
	while (next_component(&base, &want))
		if (!next_component(&path, &have) || !same(&want, &have))
			return NULL;
	return path;
}

/* True when the relative target is inside by its text alone. */
static bool surely_inside(const char *dir, const char *target)
{
	unsigned room = depth_of(dir);
	bool named = false;
	struct component component;
	while (next_component(&target, &component)) {
		if (!is_dotdot(&component))
			named = true;
		else if (named || room-- == 0)
			return false;
	}
	return true;
}

/* True when the target is above or beside the root before any name was passed. */
static bool leaves_root(const struct symlink_policy *policy, const char *dir,
                        const char *target)
{
	if (target[0] == '/')
		return !below(policy->root, target);
	unsigned room = depth_of(dir);
	struct component component;
	while (next_component(&target, &component) && is_dotdot(&component))
		if (room-- == 0)
			return true;
	return false;
}

/* `path` and `more`, both below the root and free of "..", as seen from `dir`. */
static enum symlink_verdict relative(const char *dir, const char *path, const char *more,
                                     char **text)
{
	struct bytes out = BYTES_INIT;
	struct component ours, theirs;
	const char *their_rest = path;
	for (;;) {
		const char *our_next = dir, *their_next = their_rest;
		if (!next_component(&our_next, &ours) ||
		    !next_component(&their_next, &theirs) || !same(&ours, &theirs))
			break;
		dir = our_next;
		their_rest = their_next;
	}
	while (next_component(&dir, &ours))
		bytes_add_str(&out, out.length ? "/.." : "..");
	const char *parts[] = {their_rest, more};
	for (int i = 0; i < 2; i++)
		while (next_component(&parts[i], &theirs)) {
			if (out.length)
				bytes_add_byte(&out, '/');
			bytes_add(&out, theirs.name, theirs.length);
		}
	if (!out.length)
		bytes_add_byte(&out, '.');
	*text = bytes_steal(&out);
	return *text ? SYMLINK_REWRITE : SYMLINK_NOMEM;
}

/* The absolute remote path of target up to `end`. */
static enum symlink_verdict ask(const struct symlink_policy *policy, const char *dir,
                                const char *target, const char *end, char **text,
                                const char **rest)
{
	struct bytes out = BYTES_INIT;
	if (target[0] != '/') {
		bytes_add_str(&out, policy->root);
		bytes_add_byte(&out, '/');
		bytes_add_str(&out, dir);
		bytes_add_byte(&out, '/');
	}
	bytes_add(&out, target, (size_t)(end - target));
	*rest = end;
	*text = bytes_steal(&out);
	return *text ? SYMLINK_ASK : SYMLINK_NOMEM;
}

enum symlink_verdict symlink_judge(const struct symlink_policy *policy, const char *dir,
                                   const char *target, char **text, const char **rest)
{
	*text = NULL;
	*rest = NULL;
	const char *dotdot = behind_last_dotdot(target);
	if (target[0] == '/' && !dotdot && (policy->contain || policy->transform)) {
		const char *inside = below(policy->root, target);
		if (inside)
			return relative(dir, inside, "", text);
	}
	if (!policy->contain)
		return SYMLINK_KEEP;
	if (target[0] != '/' && surely_inside(dir, target))
		return SYMLINK_KEEP;
	/* A link made through this very mount, with the local path in it: relative, as to
	 * programs in a container that path may be something else. */
	if (target[0] == '/' && !dotdot && policy->mountpoint) {
		const char *inside = below(policy->mountpoint, target);
		if (inside)
			return relative(dir, inside, "", text);
	}
	/*
	 * A target that leaves the root by its text may still end inside (the root may have
	 * other names on the server), so all of it is asked; else up to the last "..".
	 */
	bool whole = !dotdot || leaves_root(policy, dir, target);
	const char *end = whole ? target + strlen(target) : dotdot;
	return ask(policy, dir, target, end, text, rest);
}

enum symlink_verdict symlink_settle(const struct symlink_policy *policy, const char *dir,
                                    const char *resolved, const char *rest, char **text)
{
	*text = NULL;
	if (resolved[0] != '/' || behind_last_dotdot(resolved) || behind_last_dotdot(rest))
		return SYMLINK_REFUSE;
	const char *inside = below(policy->root, resolved);
	return inside ? relative(dir, inside, rest, text) : SYMLINK_REFUSE;
}
