# Every target says what it does in `make help`.
SHELL := /bin/bash
.DEFAULT_GOAL := build

# What to build for, as Go names it.
ARCH     := $(or $(shell go env GOARCH),amd64)
OUTPUT   := _output/local/bin/linux/$(ARCH)
PREFIX   ?= /usr
# The plugin, and where container runtimes look for plugins; Debian's is /usr/lib/cni.
CNI_PLUGIN   := $(OUTPUT)/origin-node-cni
CNI_BIN_DIR  ?= /opt/cni/bin

# The release branch of Kubernetes to build against, for example KUBE=1.36; the vendored one if empty.
KUBE =
VENDORED := $(shell awk '$$3 == "vendored" {sub("release-", "", $$1); print $$1}' patches/branches)
ifneq ($(strip $(KUBE)),)
# Each branch as 1.36=v1.36.4, and what it may be called.
PINNED   := $(shell awk '/^release-/ {sub("release-", "", $$1); print $$1 "=" $$2}' patches/branches)
called    = $(1) release-$(1) $(2) $(2:v%=%)
names     = $(call called,$(word 1,$(subst =, ,$(1))),$(word 2,$(subst =, ,$(1))))
MATCHING := $(foreach pin,$(PINNED),$(if $(filter $(call names,$(pin)),$(word 1,$(KUBE))),$(word 1,$(subst =, ,$(pin)))))
ifneq ($(words $(KUBE)) $(words $(MATCHING)),1 1)
$(error KUBE=$(KUBE): want one of the branches in patches/branches: $(foreach pin,$(PINNED),$(word 1,$(subst =, ,$(pin)))))
endif
override KUBE := $(strip $(MATCHING))
endif
ifeq ($(filter-out $(VENDORED),$(KUBE)),)
BINARY       := $(OUTPUT)/openshift
KUBE_VERSION := $(shell awk '$$1 == "k8s.io/kubernetes" && $$2 ~ /^v/ {print $$2; exit}' go.mod)
BUILD         = CGO_ENABLED=0 GOARCH=$(ARCH) go build
else
BINARY       := $(OUTPUT)/openshift-$(KUBE)
KUBE_VERSION := $(shell awk '$$1 == "release-$(KUBE)" {print $$2}' patches/branches)
BUILD         = go run ./hack/patchtool go $(KUBE) build
endif
KUBE_MAJOR   := $(word 1,$(subst ., ,$(KUBE_VERSION:v%=%)))
KUBE_MINOR   := $(word 2,$(subst ., ,$(KUBE_VERSION:v%=%)))
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)

LDFLAGS := -s -w \
	-X github.com/openshift/origin-node/pkg/cmd.version=$(VERSION) \
	-X github.com/openshift/origin-node/pkg/cmd.commit=$(COMMIT) \
	-X k8s.io/component-base/version.gitVersion=$(KUBE_VERSION) \
	-X k8s.io/component-base/version.gitMajor=$(KUBE_MAJOR) \
	-X k8s.io/component-base/version.gitMinor=$(KUBE_MINOR)

# For the targets about patches. Said to make, not taken from the environment.
BRANCH =
MODULE =

# Which end-to-end tests or figures, as a regular expression; all if empty.
RUN =

# Packages whose tests need network namespaces, so root.
NETNS_PACKAGES := ./hack/lab/... ./hack/netns/... ./pkg/kernel/... ./pkg/egress/holders ./pkg/egress/pool/...
# Packages whose tests need a control plane, and root.
E2E_PACKAGES := ./hack/cluster/... ./hack/e2e/...
FUZZTIME ?= 10s
DURATION ?= 5m
MODE =
SCOPE = node
# Of test-conformance: what is judged, origin or stock; its features, default or all; which specs; how many nodes.
PROXY =
FEATURES =
FOCUS =
NODES =

.PHONY: build
build: build-cni ## Build the openshift binary (the default), against another branch with KUBE=1.36, and the CNI plugin
	$(BUILD) -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o $(BINARY) ./cmd/openshift

# What packages are made for, and the time of everything in them.
PACKAGE_ARCHS = amd64 arm64
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)

.PHONY: packages
packages: ## Build a deb and an rpm for amd64 and arm64 (PACKAGE_ARCHS=amd64 for one) in _output/packages, the same byte for byte each time
	for arch in $(PACKAGE_ARCHS); do $(MAKE) build ARCH=$$arch || exit; done
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) hack/build-packages.sh '$(VERSION)' $(PACKAGE_ARCHS)

.PHONY: build-cni
build-cni: ## Build the CNI plugin alone
	CGO_ENABLED=0 GOARCH=$(ARCH) go build -trimpath -buildvcs=false -ldflags '-s -w' -o $(CNI_PLUGIN) ./cmd/origin-node-cni

BUILD_IMAGE = hack/build-image.sh $(CURDIR)/$(OUTPUT) '$(VERSION)'

.PHONY: image
image: build ## Make the container image as an OCI image archive from Debian's packages, the same bytes each time
	$(BUILD_IMAGE)

# What hack/ judges are processes, not the tests' own code: that is compiled as the binary is, so that nothing is compiled twice.
.PHONY: test
test: build ## Run all tests but test-e2e's (root for those in network namespaces, skipped with a reason otherwise)
	go test -race -count=1 -timeout=30m ./cmd/... ./pkg/...
	packages=$$(go list ./hack/... | grep -v -e /hack/cluster -e /hack/e2e) && \
	OPENSHIFT=$(CURDIR)/$(BINARY) CGO_ENABLED=0 go test -trimpath -count=1 -timeout=30m $$packages

.PHONY: test-unit
test-unit: ## Run the tests of cmd and pkg (those in network namespaces need root, and are skipped without)
	go test -race -count=1 $$(go list ./... | grep -v -e /hack/)

.PHONY: test-netns
test-netns: build ## Run the tests in network namespaces (root); of a binary for another branch with KUBE=1.36
	OPENSHIFT=$(CURDIR)/$(BINARY) go test -race -count=1 -timeout=30m $(if $(filter-out $(VENDORED),$(KUBE)),./hack/netns/...,$(NETNS_PACKAGES))

.PHONY: build-controlplane
build-controlplane: ## Build etcd, the programs of Kubernetes' control plane and nodes, and kubectl for the end-to-end tests
	hack/build-controlplane.sh

# Whether test-e2e builds container runtimes and Multus: for E2E=all, but for RUN as targets below have it, whose tests need none.
RUNTIMES = $(and $(filter all,$(E2E)),$(if $(RUN),$(filter-out TestDaemonSet_ TestSystemd_,$(RUN)),all))

.PHONY: test-e2e
test-e2e: build build-controlplane ## Run the tests against a real control plane (root; RUN=REGEXP for some, E2E=all for long ones too, E2E=ci for a part)
	controlplane=$$(hack/build-controlplane.sh) && \
	metallb=$$(hack/build-metallb.sh) && flannel=$$(hack/build-flannel.sh) && \
	containerd=$(if $(RUNTIMES),$$(hack/build-runtime.sh containerd)) && \
	crio=$(if $(RUNTIMES),$$(hack/build-runtime.sh crio)) && \
	multus=$(if $(RUNTIMES),$$(hack/build-runtime.sh multus)) && \
	debian=$(if $(filter all,$(E2E)),$$(hack/build-debian.sh)) && \
	image=$(if $(filter all,$(E2E)),$$($(BUILD_IMAGE))) && \
	conformance=$(if $(filter all,$(E2E)),$(if $(RUN),,$$(hack/build-conformance.sh))) && \
	OPENSHIFT=$(CURDIR)/$(BINARY) CONTROLPLANE=$$controlplane METALLB=$$metallb FLANNEL=$$flannel CONTAINERD=$$containerd CRIO=$$crio MULTUS=$$multus DEBIAN=$$debian IMAGE=$$image CONFORMANCE=$$conformance CGO_ENABLED=0 \
		go run -trimpath ./hack/e2e/report -trimpath -count=1 -p=1 -timeout=6h $(if $(RUN),-run '$(RUN)') $(E2E_PACKAGES)

.PHONY: test-daemonset
test-daemonset: ## Run the node as the DaemonSet in images/node, which replaces kube-proxy, on real kubelets (root)
	$(MAKE) test-e2e E2E=all RUN=TestDaemonSet_

.PHONY: test-systemd
test-systemd: ## Run the node as a service of a Debian with systemd, in a container (root)
	$(MAKE) test-e2e E2E=all RUN=TestSystemd_

# Which kernel of Debian's, all if empty; which packages; whether to write the table of results.
KERNEL =
PACKAGES =
PUBLISH =

.PHONY: test-kernels
test-kernels: build build-controlplane build-conformance ## Run the tests with packets on the kernels of four Debians, in virtual machines (root; KERNEL=6.12 for one, PACKAGES=REGEXP and RUN=REGEXP for some, ALL=1 for all tests and not the short form, PUBLISH=1 writes hack/kernels/RESULTS.md)
	controlplane=$$(hack/build-controlplane.sh) && conformance=$$(hack/build-conformance.sh) && \
	OPENSHIFT=$(CURDIR)/$(BINARY) CONTROLPLANE=$$controlplane CONFORMANCE=$$conformance CGO_ENABLED=0 go run -trimpath ./hack/kernels $(if $(PACKAGES),-packages '$(PACKAGES)') $(if $(RUN),-run '$(RUN)') $(if $(ALL),-all) $(if $(PUBLISH),-publish) $(KERNEL)

.PHONY: test-packages
test-packages: packages ## Make the packages again, install, upgrade, remove and purge them in a fresh Debian (root)
	debian=$$(hack/build-debian.sh) && \
	DEBIAN=$$debian PACKAGES=$(CURDIR)/_output/packages VERSION='$(VERSION)' COMMIT='$(COMMIT)' SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) \
		CGO_ENABLED=0 go run -trimpath ./hack/e2e/report -trimpath -count=1 -timeout=30m $(if $(RUN),-run '$(RUN)') ./hack/packages

.PHONY: build-conformance
build-conformance: ## Build upstream's end-to-end specs [sig-network] and what their pods run
	hack/build-conformance.sh

.PHONY: test-conformance
test-conformance: build build-controlplane build-conformance ## Run upstream's specs [sig-network] on real kubelets (root; MODE=nftables, PROXY=stock, FEATURES=all, FOCUS=REGEXP for some, NODES=6)
	controlplane=$$(hack/build-controlplane.sh) && conformance=$$(hack/build-conformance.sh) && \
	MODE=$(MODE) PROXY=$(PROXY) FEATURES=$(FEATURES) FOCUS='$(FOCUS)' NODES=$(NODES) OPENSHIFT=$(CURDIR)/$(BINARY) CONTROLPLANE=$$controlplane CONFORMANCE=$$conformance CGO_ENABLED=0 \
		go test -trimpath -v -count=1 -timeout=0 -run '^TestConformance_' ./hack/e2e

.PHONY: test-soak
test-soak: build build-controlplane ## Change objects all the time, for DURATION=5m, and see that nothing goes wrong (root; MODE=nftables, SCOPE=cluster)
	controlplane=$$(hack/build-controlplane.sh) && \
	DURATION=$(DURATION) MODE=$(MODE) SCOPE=$(SCOPE) OPENSHIFT=$(CURDIR)/$(BINARY) CONTROLPLANE=$$controlplane \
		go run ./hack/e2e/report -count=1 -timeout=0 -run '^TestSoak_NothingGoesWrong$$' ./hack/e2e

.PHONY: test-upstream
test-upstream: ## Compare upstream's tests of patched modules on the patched and the unpatched tree (BRANCH=1.36 for one, or vendored)
	hack/test-upstream.sh $(BRANCH)

.PHONY: test-identity
test-identity: ## Compare what the patched and the unpatched proxiers write, byte for byte (BRANCH as above)
	go run ./hack/upstreamtest $(BRANCH)

.PHONY: cluster-up
cluster-up: build build-controlplane ## Start the cluster of the end-to-end tests to play with, and say how (root)
	@controlplane=$$(hack/build-controlplane.sh) && go run ./hack/playground up $(CURDIR)/$(BINARY) $$controlplane

.PHONY: cluster-down
cluster-down: ## End the cluster that cluster-up started
	@go run ./hack/playground down

.PHONY: fuzz
fuzz: ## Fuzz the loading of configuration and manifests, and the rendering of rules, FUZZTIME each
	hack/fuzz.sh $(FUZZTIME)

# Every value goes to a file, for benchstat. Compiled as the binary is, so that nothing of vendor/ is compiled twice.
BENCH = controlplane=$$(hack/build-controlplane.sh) && OPENSHIFT=$(CURDIR)/$(BINARY) CONTROLPLANE=$$controlplane \
	CGO_ENABLED=0 go run -trimpath ./hack/bench -o _output/bench.txt $(if $(RUN),-run '$(RUN)') $(if $(ROUNDS),-rounds $(ROUNDS))
ROUNDS =

.PHONY: bench
bench: build build-controlplane ## Show what things cost, as ratios in one run against their targets (root; RUN=REGEXP for some, ROUNDS=N)
	$(BENCH)

.PHONY: bench-smoke
bench-smoke: build build-controlplane ## Check that the benchmarks work, not how fast anything is (root; RUN=REGEXP for some)
	$(BENCH) -smoke -o _output/bench-smoke.txt

# How many nodes are real processes; as many as fit into memory, if it is empty.
PROCESSES ?=
export PROCESSES

.PHONY: bench-scale
bench-scale: RUN = ^scale$$
bench-scale: build build-controlplane ## Show what a cluster of 5,000 nodes costs, by simulation (root; PROCESSES=N real nodes)
	$(BENCH)

.PHONY: bench-readme
bench-readme: build build-controlplane ## Measure, and update hack/bench/RESULTS.md, and what README.md and hack/bench/README.adoc show of it (root, an idle machine; RUN=REGEXP for some)
	$(BENCH) -publish

.PHONY: bench-go
bench-go: ## Run the benchmarks of single packages, with go test (root for those that need a kernel)
	go test -run '^$$' -bench . ./pkg/egress/... ./pkg/manifests

.PHONY: demo
demo: build ## Show in network namespaces who is seen as what (root; KEEP=1 leaves it running)
	hack/demo.sh $(BINARY)

.PHONY: update
update: update-vendor update-fastpath ## Regenerate everything that is generated

.PHONY: update-fastpath
update-fastpath: ## Compile the programs of the fast path (clang 14)
	hack/build-fastpath.sh

.PHONY: update-vendor
update-vendor: ## Make vendor/ anew from go.mod and patches/
	hack/update-vendor.sh

.PHONY: verify
verify: verify-vendor verify-patches verify-fastpath verify-gofmt verify-mod-tidy verify-shell verify-images verify-alerts verify-dashboard verify-lint ## Check without changing anything

.PHONY: verify-vendor
verify-vendor: ## Prove that vendor/ is go.mod + patches/, byte for byte
	hack/verify-vendor.sh

.PHONY: verify-fastpath
verify-fastpath: ## Prove that what is committed of the fast path's programs is what clang makes of their source, byte for byte
	hack/verify-fastpath.sh

# Compiling for a branch costs minutes where nothing is cached, type-checking seconds. `make build` compiles the vendored one.
COMPILE ?= $(if $(filter true,$(CI)),types,all)

.PHONY: verify-patches
verify-patches: ## Prove that patches/ holds on every supported release, and for other modules (BRANCH=1.36 for one; COMPILE=all, types, which only checks those, or none)
	go run ./hack/patchtool verify -branch='$(BRANCH)' -compile='$(COMPILE)'

# VERSION is our own one elsewhere, and has a value then.
.PHONY: rebase-patches
rebase-patches: ## Make a git repository of the vendored release, or VERSION=v1.X.Y, with patches/ as commits on it; MODULE for another module
	hack/rebase-patches.sh '$(if $(filter command,$(firstword $(origin VERSION))),$(VERSION))' $(MODULE)

.PHONY: verify-gofmt
verify-gofmt: ## Check the formatting of Go code
	hack/verify-gofmt.sh

.PHONY: verify-mod-tidy
verify-mod-tidy: ## Check that go.mod and go.sum are tidy
	hack/verify-mod-tidy.sh

.PHONY: verify-shell
verify-shell: ## Check the shell scripts with shellcheck
	hack/verify-shell.sh

.PHONY: verify-images
verify-images: build ## Check the systemd unit and the shipped configuration
	hack/verify-images.sh $(BINARY)

.PHONY: verify-alerts
verify-alerts: ## Check and test the alert rules with promtool
	hack/verify-alerts.sh

DASHBOARD = CGO_ENABLED=0 go run -trimpath ./hack/dashboard

.PHONY: dashboard
dashboard: ## Write images/node/dashboard.json, the Grafana dashboard of the metrics
	$(DASHBOARD)

.PHONY: verify-dashboard
verify-dashboard: ## Check that the dashboard is up to date, and that its queries and the alerts' fit the metrics
	CGO_ENABLED=0 go test -C hack/dashboard/grafana -trimpath .
	$(DASHBOARD) -check

.PHONY: verify-lint
verify-lint: ## Check the Go code with golangci-lint
	hack/verify-lint.sh

.PHONY: install
install: ## Install the binary, the unit and the example configuration below DESTDIR
	install -D -m 0755 $(BINARY) $(DESTDIR)$(PREFIX)/bin/openshift
	install -d -m 0755 $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|/usr/bin/openshift|$(PREFIX)/bin/openshift|g' images/node/origin-node.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/origin-node.service
	[ -e $(DESTDIR)/etc/sysconfig/origin-node ] || install -D -m 0644 images/node/origin-node.sysconfig $(DESTDIR)/etc/sysconfig/origin-node
	[ -e $(DESTDIR)/etc/origin/node/node-config.yaml ] || install -D -m 0600 images/node/node-config.yaml $(DESTDIR)/etc/origin/node/node-config.yaml
	install -d -m 0755 $(DESTDIR)/var/lib/origin

.PHONY: install-cni
install-cni: ## Install the CNI plugin below DESTDIR, in CNI_BIN_DIR (/opt/cni/bin); the network plugin's conflist has to name it
	install -D -m 0755 $(CNI_PLUGIN) $(DESTDIR)$(CNI_BIN_DIR)/origin-node-cni

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf _output

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "%-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
