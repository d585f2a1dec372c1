# Checks of the sources themselves; they need python3 alone.
LINT_TESTS = tests/lint/include_directions.py tests/lint/banned_functions.py \
	tests/lint/file_length.py
TESTS += $(LINT_TESTS)
EXTRA_DIST += $(LINT_TESTS) tests/lint/sources.py
