package nodeconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzParse checks that no input panics, that every error names a line unless
// the file is empty, and that what was accepted is accepted again, unchanged,
// after it was written out.
func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/node-config.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, seed := range []string{
		"", "#", "a: *b", "- a\n- b", header, header + "---\n", header + "nodeName: [",
		header + "servingInfo: &a {namedCertificates: [*a]}", header + "<<: {}",
		header + "proxyArguments: {v: [4, 0x4, true, ~, 2001-01-01, !!str a, !!binary aa]}",
		header + "networkConfig: {mtu: 0o17}\nvolumeConfig: {localQuota: {perFSGroup: 1e3}}",
		header + "masterClientConnectionOverrides: {qps: 1e-7, burst: -1}\nenableUnidling: off",
		`{"kind": "NodeConfig", "apiVersion": "v1", "nodeName": "\u00e9"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const file = "/etc/origin/node/node-config.yaml"
		c, err := Parse(file, data)
		if err != nil {
			checkError(t, data, err)
			return
		}
		c.Unused()
		c.Files()
		again, err := json.Marshal(c.NodeConfig)
		if err != nil {
			t.Fatalf("%q cannot be written: %v", data, err)
		}
		d, err := Parse(file, again)
		if err != nil {
			t.Fatalf("%q became %s: %v", data, again, err)
		}
		if diff := cmp.Diff(c.NodeConfig, d.NodeConfig); diff != "" {
			t.Fatalf("%q became %s (-first +second):\n%s", data, again, diff)
		}
	})
}

func checkError(t *testing.T, data []byte, err error) {
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	last := 0
	for _, err := range list {
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%q gives a %T: %v", data, err, err)
		}
		if e.Line == 0 && len(bytes.TrimSpace(data)) > 0 {
			t.Errorf("%q: no line in %v", data, e)
		}
		if lines := 1 + bytes.Count(data, []byte("\n")); e.Line < last || e.Line > lines && !bytes.ContainsAny(data, "\r\u0085\u2028\u2029") {
			t.Errorf("%q: line %d of %d after %d in %v", data, e.Line, lines, last, e)
		}
		last = e.Line
	}
}
