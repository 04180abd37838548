//go:build linux

package cluster

import (
	"context"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// NodeGroup is the group, and the ClusterRole, of images/node/rbac.yaml.
const NodeGroup = "origin-node"

// leeway is what the API server grants after the end of a token, and lifetimes here do not
// count (jwt.DefaultLeeway of go-jose).
const leeway = time.Minute

// Kubeconfig says what a kubeconfig file has. The zero value is that of an
// authenticated user who may do nothing.
type Kubeconfig struct {
	// Server is a URL such as [Link.URL]; empty means [ControlPlane.URL].
	Server string
	// User and Groups are those of a client certificate.
	User   string
	Groups []string
	// ServiceAccount, when not empty, replaces the client certificate by a token of
	// this service account in kube-system. It is made if need be, and bound to the
	// ClusterRole of [NodeGroup] whatever Groups says.
	ServiceAccount string
	// Lifetime of the certificate or token: zero is longer than any test, negative
	// has ended so long ago. A watch that began earlier goes on after the end, and the
	// API server remembers for up to ten seconds that a token was good.
	Lifetime time.Duration
	// ForeignCA makes the file trust another CA than the API server's.
	ForeignCA bool
}

// NodeKubeconfig writes the file of a node's process: a client certificate of user
// system:origin-node:NODE in group [NodeGroup], which has no rights before
// images/node/rbac.yaml is applied. Server is as in [Kubeconfig].
func (c *ControlPlane) NodeKubeconfig(ctx context.Context, file, node, server string) error {
	return c.WriteKubeconfig(ctx, file, Kubeconfig{Server: server, User: "system:origin-node:" + node, Groups: []string{NodeGroup}})
}

// WriteKubeconfig writes a file that holds all it needs. It replaces the file in one
// step.
func (c *ControlPlane) WriteKubeconfig(ctx context.Context, file string, k Kubeconfig) error {
	if k.ServiceAccount == "" {
		return c.writeKubeconfig(file, k)
	}
	token, err := c.token(ctx, k.ServiceAccount, k.Lifetime)
	if err != nil {
		return err
	}
	return c.writeUser(file, k, &clientcmdapi.AuthInfo{Token: token})
}

// writeKubeconfig is WriteKubeconfig without service accounts, so without the API
// server.
func (c *ControlPlane) writeKubeconfig(file string, k Kubeconfig) error {
	if k.User == "" {
		k.User = "nobody"
	}
	lifetime := k.Lifetime
	if lifetime == 0 {
		lifetime = validity
	}
	signed, err := c.ca.client(k.User, k.Groups, time.Now().Add(lifetime))
	if err != nil {
		return err
	}
	return c.writeUser(file, k, &clientcmdapi.AuthInfo{ClientCertificateData: signed.cert, ClientKeyData: signed.key})
}

func (c *ControlPlane) writeUser(file string, k Kubeconfig, user *clientcmdapi.AuthInfo) error {
	ca := c.ca
	if k.ForeignCA {
		var err error
		if ca, err = newAuthority("somebody else"); err != nil {
			return err
		}
	}
	server := k.Server
	if server == "" {
		server = c.URL()
	}
	const name = "lab"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca.cert}
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, file+"~"); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return os.Rename(file+"~", file)
}

// token makes one of a service account with the node's role.
func (c *ControlPlane) token(ctx context.Context, name string, lifetime time.Duration) (string, error) {
	account, err := c.serviceAccount(ctx, name)
	if err != nil {
		return "", fmt.Errorf("service account %s: %w", name, err)
	}
	if lifetime == 0 {
		lifetime = validity
	}
	ends := time.Now().Add(lifetime - leeway)
	begins := time.Now().Add(min(0, lifetime) - 2*leeway)
	return signToken(c.tokens, map[string]any{
		"iss": issuer, "aud": []string{issuer}, "sub": "system:serviceaccount:" + account.Namespace + ":" + account.Name,
		"iat": begins.Unix(), "nbf": begins.Unix(), "exp": ends.Unix(),
		"kubernetes.io": map[string]any{
			"namespace":      account.Namespace,
			"serviceaccount": map[string]any{"name": account.Name, "uid": account.UID},
		},
	})
}

func (c *ControlPlane) serviceAccount(ctx context.Context, name string) (*v1.ServiceAccount, error) {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "serviceaccount-" + name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: NodeGroup},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: name}},
	}
	_, err := c.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	accounts := c.client.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	account, err := accounts.Create(ctx, &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return accounts.Get(ctx, name, metav1.GetOptions{})
	}
	return account, err
}
