/* What libfuse is told by the configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fuse/options.h"

static void check(const struct config *config, const char *expected)
{
	struct bytes out = BYTES_INIT;
	mount_options(config, &out);
	assert_false(out.failed);
	assert_string_equal(out.data, expected);
	bytes_release(&out);
}

static void the_source_is_the_spec_unless_told_otherwise(void **state)
{
	(void)state;
	struct config config = {.spec = (char[]){"me@host:/srv"}};
	check(&config, "fsname=me@host:/srv,subtype=moorfs");
	config.fsname = (char[]){"files"};
	config.subtype = (char[]){"sshfs"};
	check(&config, "fsname=files,subtype=sshfs");
}

static void commas_and_backslashes_cannot_end_an_option(void **state)
{
	(void)state;
	struct config config = {.spec = (char[]){"host:/a,allow_other\\b"}};
	check(&config, "fsname=host:/a\\,allow_other\\\\b,subtype=moorfs");
}

static void sharing_brings_permission_checks(void **state)
{
	(void)state;
	struct config config = {.spec = (char[]){"h:"}, .allow_other = true};
	check(&config, "fsname=h:,subtype=moorfs,allow_other,default_permissions");
	config.allow_other = false;
	config.allow_root = true;
	check(&config, "fsname=h:,subtype=moorfs,allow_root,default_permissions");
}

static void other_flags_are_passed_on(void **state)
{
	(void)state;
	char *flags[] = {(char[]){"noexec"}, (char[]){"noatime"}, NULL};
	struct config config = {.spec = (char[]){"h:"},
	                        .default_permissions = true,
	                        .read_only = true,
	                        .auto_unmount = true,
	                        .fuse_options = flags};
	check(&config,
	      "fsname=h:,subtype=moorfs,default_permissions,ro,auto_unmount,noexec,noatime");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_source_is_the_spec_unless_told_otherwise),
	    cmocka_unit_test(commas_and_backslashes_cannot_end_an_option),
	    cmocka_unit_test(sharing_brings_permission_checks),
	    cmocka_unit_test(other_flags_are_passed_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
