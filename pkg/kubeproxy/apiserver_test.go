package kubeproxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// certificate is that of a client, until a time.
func certificate(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:origin-node:node-1"}, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestExplain_APIServerErrors: what an operator needs to fix the cause is added, unless the error has it.
func TestExplain_APIServerErrors(t *testing.T) {
	past := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	encode := base64.RawURLEncoding.EncodeToString
	token := func(claims string) string {
		return "token: " + encode([]byte("{}")) + "." + encode([]byte(claims)) + ".x"
	}
	clientCertificate := func(until time.Time) string {
		return "client-key-data: a2V5, client-certificate-data: " + base64.StdEncoding.EncodeToString(certificate(t, until))
	}
	unauthorized := fmt.Errorf("failed to list *v1.Node: %w", apierrors.NewUnauthorized("Unauthorized"))
	forbidden := apierrors.NewForbidden(v1.Resource("nodes"), "node-1", errors.New(`User "x" cannot list`))
	stranger := &url.Error{Op: "Get", URL: "https://192.0.2.254", Err: x509.UnknownAuthorityError{}}
	for _, test := range []struct {
		name, user string
		err        error
		want       string
	}{
		{"certificate that has ended", clientCertificate(past), unauthorized, `the API server at https://192.0.2.254 does not accept the client certificate of "system:origin-node:node-1", which expired at 2020-01-02T03:04:05Z, in FILE`},
		{"certificate", clientCertificate(time.Now().Add(time.Hour)), unauthorized, "which expires at 20"},
		{"token that has ended", token(`{"exp": 1577934245}`), unauthorized, "does not accept the token, which expired at 2020-01-02T03:04:05Z, in FILE"},
		{"token of another kind", "token: secret", unauthorized, "does not accept the token in FILE"},
		{"token without an end", token(`{}`), unauthorized, "does not accept the token in FILE"},
		{"nothing", "{}", unauthorized, "does not accept the credentials in FILE"},
		{"no rights", "{}", forbidden, "bind the ClusterRole of images/node/rbac.yaml"},
		{"another authority", "{}", stranger, "the certificate authority in FILE did not sign the certificate of the API server at https://192.0.2.254"},
		{"something else", "{}", errors.New("connection refused"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, file := proxyFor(t, "https://192.0.2.254", test.user)
			got := p.explain(test.err)
			added, ok := strings.CutPrefix(got.Error(), test.err.Error())
			if want := strings.ReplaceAll(test.want, "FILE", file); !ok || (want == "") != (added == "") || !strings.Contains(added, want) {
				t.Errorf("got %q, want %q behind the error", got, want)
			}
			if !errors.Is(got, test.err) {
				t.Error("it does not wrap the error")
			}
		})
	}
}

// TestNew_KubeconfigWithoutAClient: what a client cannot be made of is found before the node runs.
func TestNew_KubeconfigWithoutAClient(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	for _, test := range []struct{ name, server, user string }{
		{"no file", "", ""},
		{"key of nothing", "https://192.0.2.254", "client-key-data: a2V5, client-certificate-data: " + encode(certificate(t, time.Now().Add(time.Hour)))},
		{"no port", "https://192.0.2.254:port", ""},
		{"authority that is none", "https://192.0.2.254, certificate-authority-data: " + encode([]byte("nonsense")), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, file := proxyFor(t, test.server, test.user)
			if test.server == "" {
				file = "/nowhere"
			}
			_, err := New(parse(t, "masterKubeConfig: "+file), Overrides{})
			if err == nil || !strings.Contains(err.Error(), ":3: masterKubeConfig: "+file+": ") {
				t.Errorf("got %v, want the field and the kubeconfig in it", err)
			}
		})
	}
}

// TestAskAPIServer_OnlyListsNodes: the client has no right to get one.
func TestAskAPIServer_OnlyListsNodes(t *testing.T) {
	for name, nodes := range map[string][]v1.Node{"the Node": {{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}}, "no Node": nil} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Method != http.MethodGet || r.URL.Path != "/api/v1/nodes" || r.URL.Query().Get("fieldSelector") != "metadata.name=node-1" {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				list := v1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: nodes}
				if err := json.NewEncoder(w).Encode(list); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			p, _ := proxyFor(t, server.URL, "{}")
			p.options.Config().ClientConnection.ContentType = "application/json"
			p.options.Config().HostnameOverride = "node-1"
			err := p.askAPIServer(t.Context(), time.Minute)
			if (len(nodes) == 0) != apierrors.IsNotFound(err) || len(nodes) > 0 && err != nil {
				t.Errorf("with %d Nodes: %v", len(nodes), err)
			}
			if err != nil && !strings.Contains(err.Error(), `nodes "node-1" not found`) {
				t.Errorf("it does not name the Node: %v", err)
			}
		})
	}
}

// TestProxy_ClaimsWaitForNoOtherRequests: the client that claims blocks of source ports has a limit of its own, above the proxier's.
func TestProxy_ClaimsWaitForNoOtherRequests(t *testing.T) {
	p, _ := proxyFor(t, "https://127.0.0.1:1", "")
	for range 2 { // each has its own
		client, err := p.claimsClient()
		if err != nil {
			t.Fatal(err)
		}
		limiter := client.CoordinationV1().RESTClient().GetRateLimiter()
		for n := range claimsBurst {
			if !limiter.TryAccept() {
				t.Fatalf("the request %d waits", n+1)
			}
		}
	}
}

// proxyFor is a Proxy whose kubeconfig, in file, has this server and this user.
func proxyFor(t *testing.T, server, user string) (p *Proxy, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "node.kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x,
contexts: [{name: x, context: {cluster: x, user: x}}],
clusters: [{name: x, cluster: {server: %s}}], users: [{name: x, user: {%s}}]}`, server, strings.Trim(user, "{}"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := set(t, "")
	a.options.Config().ClientConnection.Kubeconfig = file
	return &Proxy{options: a.options, config: parse(t, "")}, file
}
