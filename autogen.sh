#!/bin/sh
# Generates configure from configure.ac; needed once after a clone.
set -e
cd "$(dirname "$0")"
mkdir -p build-aux
exec autoreconf --install --warnings=all,no-portability "$@"
