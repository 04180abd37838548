package nodeconfig

import (
	"slices"
	"strings"
)

// used are the fields that have an effect, including all fields below them.
var used = []string{
	"apiVersion",
	"iptablesSyncPeriod",
	"kind",
	"masterClientConnectionOverrides",
	"masterKubeConfig",
	"nodeName",
	"proxyArguments",
	"servingInfo.bindAddress",
}

// Unused returns the sorted paths of the fields that are set in the file and
// belong to components that this binary does not run, for example
// "servingInfo.certFile". Lists and argument maps are one field each. A field
// with the value null, "", 0, false or [] is not set: origin wrote every field
// of its type.
func (c *Config) Unused() []string {
	var paths []string
	for _, path := range c.set {
		// A field of a list's element; the list itself is in the set.
		inList := strings.Contains(path, "[")
		if !inList && !isUsed(path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func isUsed(path string) bool {
	return slices.ContainsFunc(used, func(field string) bool {
		return path == field || strings.HasPrefix(path, field+".")
	})
}
