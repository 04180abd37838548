// Command openshift runs an OpenShift node's service proxy. See README.md.
package main

import (
	"os"

	"github.com/openshift/origin-node/pkg/cmd"
)

func main() {
	os.Exit(cmd.Main())
}
