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
)

// sayWhatItWaitsFor says in the log and to the service manager why the API server gives nothing,
// until ctx ends. kube-proxy waits for it as long as it takes, at the default log level without
// a word if the server cannot be reached.
func (p *Proxy) sayWhatItWaitsFor(ctx context.Context, n *notifier) {
	const first, again, patience = 5 * time.Second, 30 * time.Second, 10 * time.Second
	logger := klog.FromContext(ctx)
	for wait := first; ; wait = again {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		err := p.askAPIServer(ctx, patience)
		if err == nil || ctx.Err() != nil {
			continue
		}
		waiting := "Waiting for the API server"
		if apierrors.IsNotFound(err) {
			waiting = "Waiting for the Node object of this node" // kube-proxy does, for half a minute
		}
		logger.Error(err, waiting+"; the rules in the kernel stay as they are", "kubeconfig", p.options.Config().ClientConnection.Kubeconfig)
		n.tell(logger, []string{"STATUS=" + waiting + ": " + strings.ReplaceAll(err.Error(), "\n", " ")})
	}
}

// askAPIServer asks for what a node asks for first, its own Node, and in the same way: a node may
// list and watch Nodes, and get none.
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

// explain adds to an error of the API server's client what an operator needs to act on it,
// where the error itself does not say it.
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
	case failed != nil: // the file has been changed meanwhile
		return errors.Join(err, failed)
	case stranger:
		return fmt.Errorf("%w: the certificate authority in %s is not the one of the API server at %s", err, file, config.Host)
	}
	return fmt.Errorf("%w: the API server at %s does not accept %s in %s", err, config.Host, credentials(config), file)
}

// credentials says which ones a client has, and until when they are good.
func credentials(config *rest.Config) string {
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		if text, err := os.ReadFile(config.BearerTokenFile); err == nil {
			token = strings.TrimSpace(string(text))
		}
	}
	certificate := config.CertData
	if len(certificate) == 0 && config.CertFile != "" {
		certificate, _ = os.ReadFile(config.CertFile) // unreadable, there would be no client
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

// endOfToken returns until when a JSON web token is good.
func endOfToken(token string) (time.Time, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, errors.New("it is not a JSON web token")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, err
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if err := json.Unmarshal(text, &claims); err != nil || claims.Expires == 0 {
		return time.Time{}, errors.Join(err, errors.New("it does not say how long it is good"))
	}
	return time.Unix(claims.Expires, 0), nil
}

func lifetime(end time.Time) string {
	if end.Before(time.Now()) {
		return "ended at " + end.UTC().Format(time.RFC3339)
	}
	return "is good until " + end.UTC().Format(time.RFC3339)
}
