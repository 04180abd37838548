package nodeconfig

// Default returns the Config of a file that has only kind and apiVersion.
func Default() *Config {
	c := &Config{}
	c.NodeConfig.Kind, c.NodeConfig.APIVersion = kind, apiVersion
	setDefaults(&c.NodeConfig)
	return c
}

// setDefaults fills empty fields with origin's defaults (its
// SetDefaults_NodeConfig, and the output of "oc adm create-node-config").
func setDefaults(n *NodeConfig) {
	setDefault(&n.ServingInfo.BindAddress, "0.0.0.0:10250")
	setDefault(&n.ServingInfo.BindNetwork, "tcp4")
	setDefault(&n.IPTablesSyncPeriod, "30s")
	setDefault(&n.NetworkConfig.MTU, 1450)
	setDefault(&n.NetworkConfig.NetworkPluginName, n.DeprecatedNetworkPluginName)
	setDefault(&n.EnableUnidling, new(true))

	// Each override has a default: setting one of them must not replace the
	// others by the defaults of the client library.
	setDefault(&n.MasterClientConnectionOverrides, &ClientConnectionOverrides{})
	overrides := n.MasterClientConnectionOverrides
	setDefault(&overrides.AcceptContentTypes, "application/vnd.kubernetes.protobuf,application/json")
	setDefault(&overrides.ContentType, "application/vnd.kubernetes.protobuf")
	setDefault(&overrides.QPS, 10)
	setDefault(&overrides.Burst, 20)
}

func setDefault[T comparable](field *T, value T) {
	var empty T
	if *field == empty {
		*field = value
	}
}
