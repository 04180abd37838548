// Package nodeconfig owns node-config.yaml: it turns the bytes of an OpenShift
// NodeConfig (github.com/openshift/api/legacyconfig/v1, apiVersion v1) into a
// Config whose defaults are applied and whose file names are absolute, or into
// errors that each name the file, the line, the field and what was expected
// there.
//
// It is strict where origin was lenient. Origin dropped a field that it did not
// know and let the last of two equal fields win, so a misspelt field was found
// only when the node misbehaved. Here both are errors, field names are
// case-sensitive, and all errors of a file are reported together.
//
// It is lenient in one place where origin was strict. The values of
// proxyArguments and kubeletArguments are strings, but the quotes are easily
// forgotten, as in `v: [4]`. An unquoted scalar in these lists is therefore
// taken as its literal source text ("4", "true", "0x4000", "2001-01-01"), as on
// a command line.
//
// It never starts anything, opens only the file given to Load, does not check
// whether the files named inside exist, and knows no flag of the proxy. Package
// kubeproxy checks proxyArguments and reports errors through Config.Errorf.
package nodeconfig
