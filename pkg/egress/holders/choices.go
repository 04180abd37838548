package holders

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/openshift/origin-node/pkg/failure"
)

// ChoicesAnnotation of a node's Lease has the egress IPs that the node has chosen for its pods whose Services have several, as a JSON
// object, by Service and the pods' addresses:
//
//	{"shop/web": {"10.128.0.11": "203.0.113.10", "fd00:10:128::11": "2001:db8:113::10"}}
const ChoicesAnnotation = "network.openshift.io/egress-choices"

// Choosing returns what a Lease says that its node has chosen, as [Chosen] has it, without what is wrong with it. It is nil if the Lease
// says nothing, or nothing that can be read.
func Choosing(lease *coordinationv1.Lease) (choices map[string]map[netip.Addr]netip.Addr, err error) {
	text, given := lease.Annotations[ChoicesAnnotation]
	if !given {
		return nil, nil
	}
	field := fmt.Sprintf("Lease %s/%s: metadata.annotations[%s]", lease.Namespace, lease.Name, ChoicesAnnotation)
	services, err := members(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	choices = map[string]map[netip.Addr]netip.Addr{}
	var errs []error
	for _, service := range services {
		pods, err := members(string(service.value))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s[%.100q]: %w", field, service.key, err))
			continue
		}
		of := map[netip.Addr]netip.Addr{}
		for _, m := range pods {
			pod, ip, err := readChoice(m)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s[%.100q][%.100q]: %w", field, service.key, m.key, err))
				continue
			}
			of[pod] = ip
		}
		if len(of) > 0 {
			choices[service.key] = of
		}
	}
	return choices, failure.JoinSome(field, errs)
}

func readChoice(m member) (pod, ip netip.Addr, err error) {
	if pod, err = readAddress(m.key); err != nil {
		return pod, ip, err
	}
	var text string
	if err := json.Unmarshal(m.value, &text); err != nil {
		return pod, ip, fmt.Errorf("%.100s: not an IP address", m.value)
	}
	if ip, err = readAddress(text); err != nil {
		return pod, ip, fmt.Errorf("%.100q: %w", text, err)
	}
	if ip.Is4() != pod.Is4() {
		return pod, ip, fmt.Errorf("%s is not of the pod's IP family", ip)
	}
	return pod, ip, nil
}

// readAddress reads an address as a key has it.
func readAddress(text string) (ip netip.Addr, err error) {
	ip, err = netip.ParseAddr(text)
	switch {
	case err != nil:
		return ip, errors.New("not an IP address")
	case ip.Zone() != "":
		return ip, errors.New("an address with a zone is no egress IP")
	case ip.Is4In6():
		return ip, fmt.Errorf("an IPv4 address in the form of IPv6; write %s", ip.Unmap())
	}
	return ip, nil
}
