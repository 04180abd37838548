package nodeconfig

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// validate returns the fields of c.NodeConfig, before defaults, that have the
// right type and a wrong value. It also checks the form of fields that belong to
// components of other binaries, so that a typo is found at once.
func (c *Config) validate() []*Error {
	v := &validator{config: c}
	v.addresses()
	v.durations()
	v.numbers()
	v.networkPlugin()
	return v.problems
}

type validator struct {
	config   *Config
	problems []*Error
}

// check reports value unless it is empty or valid. expected follows "is not".
func (v *validator) check(path, value string, valid func(string) bool, expected string) {
	if value != "" && !valid(value) {
		v.errorf(path, "%q is not %s", shorten(value), expected)
	}
}

func (v *validator) errorf(path, format string, args ...any) {
	v.problems = append(v.problems, v.config.Errorf(path, format, args...))
}

func (v *validator) addresses() {
	const (
		anIP       = `an IP address; expected one such as "10.0.0.1" or "2001:db8::1"`
		anIPPort   = `an IP address and a port; expected them as in "0.0.0.0:10250" or "[::]:10250"`
		aHostPort  = `a host and a port; expected them as in "127.0.0.1:53"`
		anIPOrPort = `an IP address with or without a port; expected one such as "10.0.0.1:53" or "10.0.0.1"`
		aNetwork   = `a network; expected "tcp", "tcp4" or "tcp6"`
	)
	n := &v.config.NodeConfig
	v.check("nodeIP", n.NodeIP, isIP, anIP)
	v.check("servingInfo.bindAddress", n.ServingInfo.BindAddress, isIPPort, anIPPort)
	v.check("servingInfo.bindNetwork", n.ServingInfo.BindNetwork, isNetwork, aNetwork)
	v.check("dnsIP", n.DNSIP, isIP, anIP)
	v.check("dnsBindAddress", n.DNSBindAddress, isHostPort, aHostPort)
	for i, server := range n.DNSNameservers {
		path := "dnsNameservers[" + strconv.Itoa(i) + "]"
		v.check(path, server, func(s string) bool { return isIP(s) || isIPPort(s) }, anIPOrPort)
	}
}

func (v *validator) durations() {
	const (
		positive    = `a duration above zero; expected one such as "30s" or "1m30s"`
		notNegative = `a duration of zero or more; expected one such as "5m", or "0s" for no cache`
	)
	n := &v.config.NodeConfig
	v.check("iptablesSyncPeriod", n.IPTablesSyncPeriod, func(s string) bool { return durationAtLeast(s, 1) }, positive)
	v.check("authConfig.authenticationCacheTTL", n.AuthConfig.AuthenticationCacheTTL, func(s string) bool { return durationAtLeast(s, 0) }, notNegative)
	v.check("authConfig.authorizationCacheTTL", n.AuthConfig.AuthorizationCacheTTL, func(s string) bool { return durationAtLeast(s, 0) }, notNegative)
}

// numbers checks signed numbers. The type of mtu excludes negative values.
func (v *validator) numbers() {
	n := &v.config.NodeConfig
	notNegative := func(path string, value int64) {
		if value < 0 {
			v.errorf(path, "%d is negative; expected zero or more", value)
		}
	}
	notNegative("authConfig.authenticationCacheSize", int64(n.AuthConfig.AuthenticationCacheSize))
	notNegative("authConfig.authorizationCacheSize", int64(n.AuthConfig.AuthorizationCacheSize))
	if pods := n.PodManifestConfig; pods != nil {
		notNegative("podManifestConfig.fileCheckIntervalSeconds", pods.FileCheckIntervalSeconds)
	}
	if overrides := n.MasterClientConnectionOverrides; overrides != nil {
		notNegative("masterClientConnectionOverrides.burst", int64(overrides.Burst))
	}
	if quota := n.VolumeConfig.LocalQuota.PerFSGroup; quota != nil && quota.Sign() < 0 {
		v.errorf("volumeConfig.localQuota.perFSGroup", "%s is negative; expected zero or more", quota)
	}
}

// networkPlugin accepts the plugin's name in its old field, its new one, or in
// both if they are equal.
func (v *validator) networkPlugin() {
	old, name := v.config.NodeConfig.DeprecatedNetworkPluginName, v.config.NodeConfig.NetworkConfig.NetworkPluginName
	if old != "" && name != "" && old != name {
		v.errorf("networkPluginName", "%q contradicts networkConfig.networkPluginName, which is %q; remove networkPluginName, it is deprecated",
			shorten(old), shorten(name))
	}
}

// isIP refuses zones: they are valid only on the node itself.
func isIP(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Zone() == ""
}

func isIPPort(s string) bool {
	host, _, err := net.SplitHostPort(s)
	return err == nil && isIP(host) && isHostPort(s)
}

func isHostPort(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}

func isNetwork(s string) bool {
	return slices.Contains([]string{"tcp", "tcp4", "tcp6"}, s)
}

func durationAtLeast(s string, least time.Duration) bool {
	d, err := time.ParseDuration(s)
	return err == nil && d >= least
}
