/* The words of ssh_config(5) that can be given by -o. Pure. */
#ifndef MOORFS_CONFIG_SSH_KEYWORDS_H
#define MOORFS_CONFIG_SSH_KEYWORDS_H

#include <stdbool.h>
#include <stddef.h>

struct ssh_keyword {
	const char *name; /* as ssh_config(5) spells it */
	bool path;        /* a file: a relative name is meant from where moorfs was started */
};

/* The keyword of these bytes, whatever their case; NULL when ssh has none such. */
const struct ssh_keyword *ssh_keyword_find(const char *name, size_t length);

/* The keyword at the index; NULL at the end. */
const struct ssh_keyword *ssh_keyword_at(size_t index);

#endif
