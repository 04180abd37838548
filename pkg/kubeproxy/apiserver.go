package kubeproxy

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/wake"
)

// reportWaiting reports to the log and the service manager why the API server does not answer, and to n.refused what it answers instead,
// until ctx ends. kube-proxy waits for it without a limit, and at the default log level without a message.
func (p *Proxy) reportWaiting(ctx context.Context, n *notifier) {
	const first, again, patience = 5 * time.Second, 30 * time.Second, 10 * time.Second
	logger := klog.FromContext(ctx)
	for wait := first; wake.Sleep(ctx.Done(), wait); wait = again {
		err := p.askAPIServer(ctx, patience)
		if err == nil || ctx.Err() != nil {
			continue
		}
		waiting := "Waiting for the API server"
		if apierrors.IsNotFound(err) {
			waiting = "Waiting for the Node object of this node" // kube-proxy waits for it for 30 s
		}
		if n.refused != nil {
			n.refused(err)
		}
		logger.Error(err, waiting+"; the rules in the kernel stay as they are", "kubeconfig", p.options.Config().ClientConnection.Kubeconfig)
		n.tell(logger, []string{"STATUS=" + waiting + ": " + strings.ReplaceAll(err.Error(), "\n", " ")})
	}
}

// askAPIServer lists the node's own Node, as kube-proxy does first: a node has the right to list and
// watch Nodes, but not to get one.
func (p *Proxy) askAPIServer(ctx context.Context, patience time.Duration) error {
	config, err := p.clientConfig()
	if err != nil {
		return err
	}
	config.Timeout = patience
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, p.nodeName()).String(),
	})
	if err == nil && len(nodes.Items) == 0 {
		err = apierrors.NewNotFound(v1.Resource("nodes"), p.nodeName())
	}
	return p.explain(err)
}

// explain adds to an error of the API server's client what an operator needs to fix it: the
// kubeconfig, the credentials and their end, or the missing right.
func (p *Proxy) explain(err error) error {
	unauthorized := apierrors.IsUnauthorized(err)
	stranger := errors.As(err, new(x509.UnknownAuthorityError))
	if p.overrides.Manifests != "" || !unauthorized && !stranger && !apierrors.IsForbidden(err) {
		return err
	}
	file := p.options.Config().ClientConnection.Kubeconfig
	config, failed := p.clientConfig()
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; bind the ClusterRole of images/node/rbac.yaml to that user", err)
	case failed != nil: // the file was changed meanwhile
		return errors.Join(err, failed)
	case stranger:
		return fmt.Errorf("%w: the certificate authority in %s did not sign the certificate of the API server at %s", err, file, config.Host)
	}
	return fmt.Errorf("%w: the API server at %s does not accept %s in %s", err, config.Host, credentials(config), file)
}

// credentials names the credentials of a client, and the time at which they expire.
func credentials(config *rest.Config) string {
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		if text, err := os.ReadFile(config.BearerTokenFile); err == nil {
			token = strings.TrimSpace(string(text))
		}
	}
	certificate := config.CertData
	if len(certificate) == 0 && config.CertFile != "" {
		certificate, _ = os.ReadFile(config.CertFile) // if it were unreadable there would be no client
	}
	switch block, _ := pem.Decode(certificate); {
	case block != nil:
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "the client certificate"
		}
		return fmt.Sprintf("the client certificate of %q, which %s,", parsed.Subject.CommonName, lifetime(parsed.NotAfter))
	case token != "":
		end, err := endOfToken(token)
		if err != nil {
			return "the token"
		}
		return fmt.Sprintf("the token, which %s,", lifetime(end))
	}
	return "the credentials"
}

// endOfToken returns when a JSON web token expires.
func endOfToken(token string) (time.Time, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, errors.New("not a JSON web token")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, err
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if err := json.Unmarshal(text, &claims); err != nil || claims.Expires == 0 {
		return time.Time{}, errors.Join(err, errors.New("no expiry time"))
	}
	return time.Unix(claims.Expires, 0), nil
}

func lifetime(end time.Time) string {
	if end.Before(time.Now()) {
		return "expired at " + end.UTC().Format(time.RFC3339)
	}
	return "expires at " + end.UTC().Format(time.RFC3339)
}
