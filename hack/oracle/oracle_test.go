package oracle

import "testing"

func TestParseArguments_Invalid(t *testing.T) {
	for key, value := range map[string]string{"cluster-cidr": "10.128.0.0", "egress-snat-allowed-cidrs": "x", "egress-snat-namespace-cidrs": "bank"} {
		if a, err := ParseArguments(map[string][]string{key: {value}}); err == nil {
			t.Errorf("%s: %q is taken for %+v", key, value, a)
		}
	}
}
