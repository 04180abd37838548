package manifests

import (
	"fmt"
	"strings"
	"testing"
)

// manyServices are n Services with an EndpointSlice each.
func manyServices(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Service
metadata:
  name: web-%[1]d
  labels: {app: web}
spec:
  clusterIP: 172.30.%[2]d.%[3]d
  externalIPs: [192.0.2.7]
  selector: {app: web}
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: https, port: 443, targetPort: 8443}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-%[1]d
  labels: {kubernetes.io/service-name: web-%[1]d}
addressType: IPv4
ports:
- {name: http, port: 8080}
- {name: https, port: 8443}
endpoints:
- addresses: [10.1.%[2]d.%[3]d]
  conditions: {ready: true}
- addresses: [10.2.%[2]d.%[3]d]
  conditions: {ready: true}
`, i, i>>8, i&255)
	}
	return b.String()
}

// BenchmarkLoad is a folder of one large file that is read anew.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("services=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			text := manyServices(n)
			writeFiles(b, dir, map[string]string{"a.yaml": text})
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Load(dir); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReplace is a store that gets the same objects decoded anew.
func BenchmarkReplace(b *testing.B) {
	text := manyServices(10000)
	one, two := mustLoad(b, "a.yaml", text), mustLoad(b, "a.yaml", text)
	s := newStore(historyLength)
	for b.Loop() {
		if _, err := s.replace(one); err != nil {
			b.Fatal(err)
		}
		one, two = two, one
	}
}
