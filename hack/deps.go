//go:build deps

// Package hack holds no code. This file is never compiled: it keeps the client of the
// cluster's configuration (config.openshift.io) in go.mod and in vendor/, from which
// everything is built, while no package of ours imports it yet.
package hack

import (
	_ "github.com/openshift/client-go/config/clientset/versioned"
	_ "github.com/openshift/client-go/config/informers/externalversions"
)
