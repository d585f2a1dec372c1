#include "config/ssh_config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/option_value.h"

/* ---- the settings ---- */

static bool add_setting(struct ssh_settings *settings, struct arena *arena, const char *keyword,
                        size_t keyword_length, const char *value, size_t value_length)
{
	struct ssh_setting *setting = arena_alloc(arena, sizeof(*setting));
	char *name = arena_strndup(arena, keyword, keyword_length);
	char *copy = arena_strndup(arena, value, value_length);
	if (!setting || !name || !copy)
		return false;
	for (char *at = name; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	setting->keyword = name;
	setting->value = copy;
	*settings->end = setting;
	settings->end = &setting->next;
	return true;
}

bool ssh_settings_parse(struct ssh_settings *settings, struct arena *arena, const char *text)
{
	settings->first = NULL;
	settings->end = &settings->first;
	while (*text) {
		size_t length = strcspn(text, "\n");
		size_t end = length;
		while (end > 0 && isspace((unsigned char)text[end - 1]))
			end--;
		const char *space = memchr(text, ' ', end);
		if (space && space > text &&
		    !add_setting(settings, arena, text, (size_t)(space - text), space + 1,
		                 (size_t)(text + end - space - 1)))
			return false;
		text += length + (text[length] == '\n');
	}
	return true;
}

bool ssh_settings_add_options(struct ssh_settings *settings, struct arena *arena,
                              char *const *options)
{
	if (!settings->end)
		settings->end = &settings->first;
	for (; options && *options; options++) {
		const char *equals = strchr(*options, '=');
		if (equals &&
		    !add_setting(settings, arena, *options, (size_t)(equals - *options),
		                 equals + 1, strlen(equals + 1)))
			return false;
	}
	return true;
}

static const char *get_raw(const struct ssh_settings *settings, const char *keyword)
{
	for (const struct ssh_setting *at = settings->first; at; at = at->next)
		if (strcmp(at->keyword, keyword) == 0)
			return at->value;
	return NULL;
}

const char *ssh_settings_get(const struct ssh_settings *settings, const char *keyword)
{
	const char *value = get_raw(settings, keyword);
	return value && *value && strcasecmp(value, "none") != 0 ? value : NULL;
}

bool ssh_settings_yes(const struct ssh_settings *settings, const char *keyword)
{
	const char *value = get_raw(settings, keyword);
	bool on = false;
	return value && value_parse_flag(value, &on) && on;
}

bool ssh_settings_no(const struct ssh_settings *settings, const char *keyword)
{
	const char *value = get_raw(settings, keyword);
	bool on = true;
	return value && value_parse_flag(value, &on) && !on;
}

/* ---- expansion ---- */

static bool expand_token(struct bytes *out, char token, const struct ssh_target *target,
                         const struct ssh_surroundings *around)
{
	const char *alias = target->host_key_alias ? target->host_key_alias : target->alias;
	switch (token) {
	case '%':
		bytes_add_byte(out, '%');
		return true;
	case 'd':
		bytes_add_str(out, around->home);
		return true;
	case 'h':
		bytes_add_str(out, target->hostname);
		return true;
	case 'i':
		bytes_addf(out, "%u", around->local_uid);
		return true;
	case 'k':
		bytes_add_str(out, alias);
		return true;
	case 'L':
		bytes_add(out, around->local_host, strcspn(around->local_host, "."));
		return true;
	case 'l':
		bytes_add_str(out, around->local_host);
		return true;
	case 'n':
		bytes_add_str(out, target->alias);
		return true;
	case 'p':
		bytes_addf(out, "%u", target->port);
		return true;
	case 'r':
		bytes_add_str(out, target->user);
		return true;
	case 'u':
		bytes_add_str(out, around->local_user);
		return true;
	default:
		return false;
	}
}

/* "${NAME}" at `at`; returns what follows, NULL when it is none or not set. */
static const char *expand_variable(struct bytes *out, const char *at,
                                   const struct ssh_surroundings *around)
{
	char name[128];
	const char *end = strchr(at, '}');
	if (!end || (size_t)(end - at - 2) >= sizeof(name))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)(end - at - 2), at + 2);
	const char *value = around->environment(name);
	if (!value)
		return NULL;
	bytes_add_str(out, value);
	return end + 1;
}

char *ssh_config_expand(struct arena *arena, const char *text, const struct ssh_target *target,
                        const struct ssh_surroundings *around, const char **unknown)
{
	struct bytes out = BYTES_INIT;
	const char *at = text;
	if (at[0] == '~' && (at[1] == '/' || !at[1])) {
		bytes_add_str(&out, around->home);
		at++;
	}
	while (*at) {
		const char *next = NULL;
		if (at[0] == '$' && at[1] == '{')
			next = expand_variable(&out, at, around);
		else if (at[0] == '%' && expand_token(&out, at[1], target, around))
			next = at + 2;
		if (!next) {
			if (at[0] == '%' || (at[0] == '$' && at[1] == '{'))
				*unknown = text;
			bytes_add_byte(&out, (uint8_t)*at);
			next = at + 1;
		}
		at = next;
	}
	bytes_add_byte(&out, 0);
	char *copy = out.failed ? NULL : arena_strdup(arena, out.data);
	bytes_release(&out);
	return copy;
}
