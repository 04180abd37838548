#!/usr/bin/env bash
# Checks the Go code with golangci-lint, built from hack/tools.
set -euo pipefail
cd "$(dirname "$0")/.."
(cd hack/tools && GOFLAGS=-mod=mod go build -o ../../_output/tools/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
_output/tools/golangci-lint run ./...
