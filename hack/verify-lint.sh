#!/usr/bin/env bash
# Checks the Go code with golangci-lint, built from hack/tools.
set -euo pipefail
cd "$(dirname "$0")/.."
# Built as `make build` builds: the packages that both need are then compiled once.
export CGO_ENABLED=0
GOFLAGS="$(go env GOFLAGS) -trimpath"
export GOFLAGS
go -C hack/tools build -o "${PWD}/_output/tools/golangci-lint" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
exec _output/tools/golangci-lint run ./...
