// Package specs judges a run of upstream's end-to-end tests, which are written with ginkgo: it reads the report that ginkgo
// writes ([Read]), and holds it against the file that says what the environment of the run cannot do ([ParseEnvironment]).
// It runs nothing.
package specs
