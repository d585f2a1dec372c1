#include "fuse/options.h"

#include <string.h>

static void add_escaped(struct bytes *out, const char *text)
{
	for (; *text; text++) {
		if (*text == ',' || *text == '\\')
			bytes_add_byte(out, '\\');
		bytes_add_byte(out, (uint8_t)*text);
	}
}

void mount_options(const struct config *config, struct bytes *out)
{
	const bool shared = config->allow_other || config->allow_root;
	const struct {
		bool wanted;
		const char *name;
	} flags[] = {
	    {config->allow_other, "allow_other"},
	    {config->allow_root, "allow_root"},
	    {config->default_permissions || shared, "default_permissions"},
	    {config->read_only, "ro"},
	    {config->auto_unmount, "auto_unmount"},
	};

	bytes_add_str(out, "fsname=");
	add_escaped(out, config->fsname ? config->fsname : config->spec);
	bytes_add_str(out, ",subtype=");
	add_escaped(out, config->subtype ? config->subtype : "moorfs");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (flags[i].wanted)
			bytes_addf(out, ",%s", flags[i].name);
	for (char **option = config->fuse_options; option && *option; option++) {
		bytes_add_byte(out, ',');
		add_escaped(out, *option);
	}
}
