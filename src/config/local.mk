noinst_LIBRARIES += libconfig.a
libconfig_a_SOURCES = \
	src/config/arena.c src/config/arena.h \
	src/config/askpass.c src/config/askpass.h \
	src/config/command_line.c src/config/command_line.h \
	src/config/config.c src/config/config.h \
	src/config/option_help.c \
	src/config/option_set.c src/config/option_set.h \
	src/config/option_store.c src/config/option_store.h \
	src/config/option_table.c \
	src/config/option_value.c src/config/option_value.h \
	src/config/options.c src/config/options.h \
	src/config/options_check.c \
	src/config/prompter.c src/config/prompter.h \
	src/config/resolve.c \
	src/config/spawn.c src/config/spawn.h \
	src/config/ssh_config.c src/config/ssh_config.h \
	src/config/ssh_identity.c src/config/ssh_identity.h \
	src/config/ssh_keywords.c src/config/ssh_keywords.h \
	src/config/ssh_merge.c \
	src/config/terminal.c src/config/terminal.h \
	src/config/url.c src/config/url.h
