package nodeconfig

import (
	"path/filepath"
	"slices"
	"strings"

	legacyconfigv1 "github.com/openshift/api/legacyconfig/v1"
)

// Files returns the sorted absolute names of the files to watch: the config
// itself, masterKubeConfig, and the files that the proxy arguments config,
// kubeconfig and egress-snat-key-file name. They need not exist. A kubeconfig
// that only kube-proxy's own file names is not among them: this package does
// not open that file.
func (c *Config) Files() []string {
	names := []string{c.absolute, c.NodeConfig.MasterKubeConfig}
	for _, argument := range []string{"config", "kubeconfig", "egress-snat-key-file"} {
		names = append(names, c.Values(argument)...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	for i, name := range names {
		names[i] = filepath.Clean(name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// resolveFiles makes the names of files in n absolute. Relative names are
// relative to folder. It covers the fields that origin resolved
// (GetNodeFileReferences) and the proxy arguments that name files.
func resolveFiles(n *legacyconfigv1.NodeConfig, folder string) {
	names := []*string{
		&n.ServingInfo.CertFile,
		&n.ServingInfo.KeyFile,
		&n.ServingInfo.ClientCA,
		&n.DNSRecursiveResolvConf,
		&n.MasterKubeConfig,
		&n.VolumeDirectory,
	}
	for i := range n.ServingInfo.NamedCertificates {
		certificate := &n.ServingInfo.NamedCertificates[i]
		names = append(names, &certificate.CertFile, &certificate.KeyFile)
	}
	if n.PodManifestConfig != nil {
		names = append(names, &n.PodManifestConfig.Path)
	}
	names = append(names, argumentFiles(n.ProxyArguments, func(name string) bool {
		return slices.Contains([]string{"config", "kubeconfig"}, hyphened(name))
	})...)
	names = append(names, argumentFiles(n.KubeletArguments, func(name string) bool {
		return strings.HasSuffix(name, "-file") || strings.HasSuffix(name, "-dir")
	})...)

	for _, name := range names {
		if *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(folder, *name)
		}
	}
}

// argumentFiles returns the values of the arguments that name files.
func argumentFiles(arguments legacyconfigv1.ExtendedArguments, namesFile func(argument string) bool) []*string {
	var names []*string
	for argument, values := range arguments {
		if !namesFile(argument) {
			continue
		}
		for i := range values {
			names = append(names, &values[i])
		}
	}
	return names
}
