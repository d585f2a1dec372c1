# Mount tests (pytest): see tests/conftest.py for their options.
EXTRA_DIST += \
	tests/conftest.py \
	tests/pytest.ini \
	tests/mount/__init__.py \
	tests/mount/compare.py \
	tests/mount/conftest.py \
	tests/mount/expect.py \
	tests/mount/model.py \
	tests/mount/mounted.py \
	tests/mount/test_attributes.py \
	tests/mount/test_authentication.py \
	tests/mount/test_coherence.py \
	tests/mount/test_command_line.py \
	tests/mount/test_data.py \
	tests/mount/test_directories.py \
	tests/mount/test_faults.py \
	tests/mount/test_hostile.py \
	tests/mount/test_integrity.py \
	tests/mount/test_lifetimes.py \
	tests/mount/test_model.py \
	tests/mount/test_mount8.py \
	tests/mount/test_names.py \
	tests/mount/test_owners.py \
	tests/mount/test_prefetch.py \
	tests/mount/test_programs.py \
	tests/mount/test_servers.py \
	tests/mount/test_space.py \
	tests/mount/test_symlinks.py \
	tests/mount/test_write_behind.py
