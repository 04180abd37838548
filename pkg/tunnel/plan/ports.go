package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The keys of the ConfigMap.
const (
	pairsKey = "dnat-ports-pair"
	httpKey  = "http-proxy-ports"
	httpsKey = "https-proxy-ports"
)

// The kubelet's ports.
const (
	kubeletPort         = 10250
	kubeletInsecurePort = 10255
)

// Ports are those that go through the tunnel, by the address that they go to. Both lists are sorted,
// and no port is in both.
type Ports struct {
	Secure, Insecure []uint16
}

// ConfigMap is the one that has more ports.
type ConfigMap struct {
	// Name is NAMESPACE/NAME, or empty if none is followed.
	Name string
	// Found: there is such a ConfigMap, and it may be read. Data is what it holds.
	Found bool
	Data  map[string]string
}

// ReadPorts returns the kubelet's ports and those of the ConfigMap. insecurePorts are the ports of the
// insecure addresses, one of which is on the right of each pair.
func ReadPorts(configMap ConfigMap, insecurePorts []uint16) (Ports, []Problem) {
	r := portReader{secure: map[uint16]bool{kubeletPort: true}, configMap: configMap.Name, insecurePorts: insecurePorts}
	if len(insecurePorts) > 0 {
		r.secure[kubeletInsecurePort] = false
	}
	switch {
	case configMap.Name == "":
	case !configMap.Found:
		r.complain(MissingConfigMap, "it does not exist or may not be read, so the kubelet's ports alone go through the tunnel; create it, and apply rbac-tunnel.yaml, or set proxyArguments.tunnel-ports-configmap to \"\"")
	default:
		r.read(configMap.Data)
	}
	return r.ports(), r.problems
}

// portReader reads the ConfigMap's values.
type portReader struct {
	// secure has the ports that go through the tunnel, and whether to the secure address.
	secure        map[uint16]bool
	configMap     string
	insecurePorts []uint16
	problems      []Problem
}

// mostProblems is how many problems of a ConfigMap are told.
const mostProblems = 20

func (r *portReader) complain(reason Reason, format string, args ...any) {
	if len(r.problems) > mostProblems {
		return
	}
	message := fmt.Sprintf(format, args...)
	if len(r.problems) == mostProblems {
		message = "further entries are invalid, too; correct those that are listed first"
	}
	r.problems = append(r.problems, Problem{Reason: reason, ConfigMap: r.configMap, Message: message})
}

func (r *portReader) read(data map[string]string) {
	missing := true
	for _, key := range []string{pairsKey, httpKey, httpsKey} {
		value, found := data[key]
		missing = missing && !found
		for _, text := range strings.Split(value, ",") {
			if text = strings.TrimSpace(text); text != "" {
				r.entry(key, text)
			}
		}
	}
	if missing {
		r.complain(MissingKey, "it has none of the keys %s, %s and %s, so the kubelet's ports alone go through the tunnel", pairsKey, httpKey, httpsKey)
	}
}

// entry reads one entry of a key's list.
func (r *portReader) entry(key, text string) {
	left, right, paired := strings.Cut(text, "=")
	port, ok := parsePort(left)
	switch {
	case paired != (key == pairsKey):
		r.complain(InvalidPair, "%s: invalid entry %q: expected %s", key, shortened(text), map[bool]string{true: "a port", false: "PORT=PORT"}[paired])
	case !ok:
		r.complain(InvalidPort, "%s: invalid port in %q: expected a number from 1 to 65535", key, shortened(text))
	case paired && !r.isInsecurePort(right):
		r.complain(InvalidPair, "%s: %q does not lead to the port of proxyArguments.tunnel-insecure-address", key, shortened(text))
	case key != httpsKey && len(r.insecurePorts) == 0:
		r.complain(NoTunnelAddress, "%s: port %d needs proxyArguments.tunnel-insecure-address, which is not set", key, port)
	default:
		r.add(key, port, key == httpsKey)
	}
}

func (r *portReader) isInsecurePort(text string) bool {
	port, ok := parsePort(text)
	return ok && (len(r.insecurePorts) == 0 || slices.Contains(r.insecurePorts, port))
}

func (r *portReader) add(key string, port uint16, secure bool) {
	if before, given := r.secure[port]; given && before != secure {
		r.complain(PortGivenTwice, "%s: port %d goes to the %s address already", key, port, map[bool]string{true: "secure", false: "insecure"}[before])
		return
	}
	r.secure[port] = secure
}

func (r *portReader) ports() Ports {
	var p Ports
	for port, secure := range r.secure {
		if secure {
			p.Secure = append(p.Secure, port)
		} else {
			p.Insecure = append(p.Insecure, port)
		}
	}
	slices.Sort(p.Secure)
	slices.Sort(p.Insecure)
	return p
}

// parsePort parses a port as people write it: digits alone.
func parsePort(text string) (port uint16, ok bool) {
	text = strings.TrimSpace(text)
	number, err := strconv.ParseUint(text, 10, 16)
	return uint16(number), err == nil && number > 0
}

// shortened returns as much of a text as a message needs.
func shortened(text string) string {
	const most = 40
	return strings.ToValidUTF8(text[:min(len(text), most)], "?")
}
