# The commands of this project. Each is one or two lines; a sequence is a script below dev/.
.DEFAULT_GOAL := help
.PHONY: help demo demo-down check test test-all soak bench lint generate cluster cluster-down image install release

# Where `make install` puts commands: into `bin` there.
PREFIX ?= $(HOME)/.local

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "With KUBECONFIG=FILE CLUSTER=existing the demo and the cluster tests use a cluster that you have."

demo: ## Show an update, a roll-back and a drain, on a Kubernetes of its own
	dev/demo

demo-down: ## Remove what the demo made
	dev/demo down

check: ## Between two edits: formatting, clippy, unit tests and scenarios of what has changed (under 2 minutes)
	dev/check

test: ## Everything that CI checks, the core of the tests in a cluster too (25 minutes on two cores)
	dev/test

test-all: ## Before a release: all tests in a cluster, the whole model, long histories, fuzz targets, deliberate breakages (110 minutes)
	dev/test-all

soak: ## What takes a day: fuzz targets, every three faults, a million histories, thousands of walks, a thousand updates in storms
	dev/soak

bench: ## Measure on frozen inputs, and how long players wait on a real node
	dev/bench

lint: ## Formatting, clippy, licences, no crate in two versions without a reason, and plain English
	dev/test lint

generate: ## Write the CRD manifests, the renders of the chart, the JSON Schemas, the page of reasons and the picture
	cargo run -p crds --bin crdgen
	dev/cluster helm && dev/chart
	mkdir -p target; for of in lock explanation difference plan outdated ready verify; do cargo run -q -p cli -- schema $$of > target/$$of.schema.json && mv target/$$of.schema.json docs/reference/schemas/ || exit 1; done
	NIGHTSHIFT_GENERATE=1 cargo test -q -p resolver --test scenarios -- page_of_reasons
	NIGHTSHIFT_GENERATE=1 cargo test -q -p cli --test cli -- documented_diagram_matches_command_output

cluster: ## Start Kubernetes on this machine (the first time 5 to 20 minutes)
	dev/cluster up

cluster-down: ## Stop it and remove all that it made
	dev/cluster down

install: ## Install `resolver`, also as `kubectl nightshift`, in PREFIX/bin (~/.local/bin)
	cargo install --quiet --locked --path resolver/cli --root $(PREFIX)
	ln -sf resolver $(PREFIX)/bin/kubectl-nightshift
	ln -sf resolver $(PREFIX)/bin/kubectl_complete-nightshift

release: ## Build the files of a release from the last commit into target/dist
	dev/release

image: ## Build the container images, and load them into the cluster if it is up
	dev/cluster images
