#include "config/option_value.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Digits at *at in the base; advances. False without a digit or on overflow. */
static bool take_digits(const char **at, unsigned base, uint64_t *value)
{
	uint64_t sum = 0;
	const char *start = *at;
	for (; isdigit((unsigned char)**at) && (unsigned)(**at - '0') < base; (*at)++) {
		if (__builtin_mul_overflow(sum, base, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)(**at - '0'), &sum))
			return false;
	}
	*value = sum;
	return *at > start;
}

static bool parse_in_base(const char *text, unsigned base, uint64_t *value)
{
	uint64_t parsed;
	if (!take_digits(&text, base, &parsed) || *text)
		return false;
	*value = parsed;
	return true;
}

bool value_parse_number(const char *text, uint64_t *value)
{
	return parse_in_base(text, 10, value);
}

bool value_parse_octal(const char *text, uint64_t *value)
{
	return parse_in_base(text, 8, value);
}

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit *find_unit(const struct unit *units, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(units[i].name, name) == 0)
			return &units[i];
	return NULL;
}

static const struct unit time_units[] = {
    {"", NS_PER_SEC},       {"s", NS_PER_SEC},        {"ms", NS_PER_MS},
    {"m", 60 * NS_PER_SEC}, {"min", 60 * NS_PER_SEC}, {"h", 3600 * NS_PER_SEC},
};

bool value_parse_seconds(const char *text, uint64_t *ns)
{
	uint64_t whole, nano = 0;
	if (!take_digits(&text, 10, &whole))
		return false;
	if (*text == '.') {
		uint64_t scale = NS_PER_SEC;
		text++;
		if (!isdigit((unsigned char)*text))
			return false;
		for (; isdigit((unsigned char)*text); text++) {
			scale /= 10;
			nano += scale * (uint64_t)(*text - '0');
		}
	}
	const struct unit *unit = find_unit(time_units, ARRAY_LEN(time_units), text);
	uint64_t sum;
	if (!unit || __builtin_mul_overflow(whole, unit->factor, &sum))
		return false;
	/* nano counts billionths of the unit; units are below 2^42 ns, so split to not overflow
	 */
	uint64_t part = unit->factor >= NS_PER_SEC ? nano * (unit->factor / NS_PER_SEC)
	                                           : nano / (NS_PER_SEC / unit->factor);
	if (__builtin_add_overflow(sum, part, &sum) || sum > (uint64_t)INT64_MAX)
		return false;
	*ns = sum;
	return true;
}

static const struct unit size_units[] = {
    {"", 1},
    {"b", 1},
    {"k", UINT64_C(1) << 10},
    {"kb", UINT64_C(1) << 10},
    {"kib", UINT64_C(1) << 10},
    {"m", UINT64_C(1) << 20},
    {"mb", UINT64_C(1) << 20},
    {"mib", UINT64_C(1) << 20},
    {"g", UINT64_C(1) << 30},
    {"gb", UINT64_C(1) << 30},
    {"gib", UINT64_C(1) << 30},
    {"t", UINT64_C(1) << 40},
    {"tb", UINT64_C(1) << 40},
    {"tib", UINT64_C(1) << 40},
};

bool value_parse_size(const char *text, uint64_t *bytes)
{
	uint64_t count, product;
	if (!take_digits(&text, 10, &count))
		return false;
	const struct unit *unit = find_unit(size_units, ARRAY_LEN(size_units), text);
	if (!unit || __builtin_mul_overflow(count, unit->factor, &product))
		return false;
	*bytes = product;
	return true;
}

bool value_parse_flag(const char *text, bool *value)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
	    {"yes", true}, {"true", true},   {"on", true},   {"1", true},
	    {"no", false}, {"false", false}, {"off", false}, {"0", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcasecmp(words[i].word, text) == 0) {
			*value = words[i].value;
			return true;
		}
	}
	return false;
}

char *value_format_seconds(char *out, size_t size, uint64_t ns)
{
	if (ns % NS_PER_SEC == 0)
		snprintf(out, size, "%" PRIu64, ns / NS_PER_SEC);
	else if (ns < NS_PER_SEC)
		snprintf(out, size, "%" PRIu64 "ms", ns / NS_PER_MS);
	else
		snprintf(out, size, "%g", (double)ns / (double)NS_PER_SEC);
	return out;
}

char *value_format_size(char *out, size_t size, uint64_t bytes)
{
	static const char *const suffixes[] = {"", "K", "M", "G", "T"};
	size_t step = 0;
	for (; step + 1 < ARRAY_LEN(suffixes) && bytes > 0 && bytes % 1024 == 0; step++)
		bytes /= 1024;
	snprintf(out, size, "%" PRIu64 "%s", bytes, suffixes[step]);
	return out;
}

unsigned value_edit_distance(const char *a, const char *b)
{
	enum { LONGEST = 48 };
	size_t a_length = strlen(a), b_length = strlen(b);
	if (a_length > LONGEST || b_length > LONGEST)
		return LONGEST;
	unsigned rows[3][LONGEST + 1]; /* of the usual table: i - 2, i - 1 and i */
	for (unsigned j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= a_length; i++) {
		unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3];
		const unsigned *before = rows[(i + 1) % 3];
		now[0] = i;
		for (unsigned j = 1; j <= b_length; j++) {
			int x = tolower((unsigned char)a[i - 1]);
			int y = tolower((unsigned char)b[j - 1]);
			now[j] = MIN(MIN(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
			    y == tolower((unsigned char)a[i - 2]))
				now[j] = MIN(now[j], before[j - 2] + 1);
		}
	}
	return rows[a_length % 3][b_length];
}
