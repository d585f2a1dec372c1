# The benchmark: `make bench`, `make bench BENCH_FLAGS=--quick`, see tests/bench/README.md.
PYTHON3 = python3
BENCH_FLAGS =
.PHONY: bench
bench: moorfs tests/servers/delayproxy
	$(PYTHON3) -B $(srcdir)/tests/bench/bench.py --moorfs ./moorfs \
	    --delayproxy tests/servers/delayproxy --json bench.json --markdown bench.md $(BENCH_FLAGS)

CLEANFILES += bench.json bench.md
EXTRA_DIST += \
	tests/bench/README.md \
	tests/bench/behaviour.py \
	tests/bench/bench.py \
	tests/bench/moorbench/__init__.py \
	tests/bench/moorbench/loads.py \
	tests/bench/moorbench/proc.py \
	tests/bench/moorbench/report.py \
	tests/bench/moorbench/server.py \
	tests/bench/moorbench/stats.py \
	tests/bench/moorbench/subjects.py \
	tests/bench/moorbench/worker.py \
	tests/bench/test_stats.py
