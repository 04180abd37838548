package manifests

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
)

// Serve answers the Kubernetes API for the source's objects on a free port of
// 127.0.0.1 until ctx ends, and writes a kubeconfig for it: a file of mode 0600
// in a folder of its own that only this user can read. The file is needed until
// a client has been built from it; remove deletes it, may be called more than
// once and is called when ctx ends. With an error nothing is left behind.
//
// The endpoint speaks TLS although it is on loopback: client-go sends no
// bearer token without.
func (s *Source) Serve(ctx context.Context) (kubeconfig string, remove func(), err error) {
	certificate, pemCA, err := newCertificate()
	if err != nil {
		return "", nil, fmt.Errorf("make certificate: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	token := rand.Text()
	kubeconfig, remove, err = writeKubeconfig("https://"+listener.Addr().String(), token, pemCA)
	if err != nil {
		return "", nil, errors.Join(err, listener.Close())
	}
	context.AfterFunc(ctx, remove)
	go run(ctx, newServer(ctx, &handler{store: s.store, token: token}, certificate), listener)
	return kubeconfig, remove, nil
}

// run serves until ctx ends.
func run(ctx context.Context, server *http.Server, listener net.Listener) {
	logger := klog.FromContext(ctx)
	logger.V(2).Info("Serving manifests", "address", listener.Addr().String())
	stop := context.AfterFunc(ctx, func() {
		// Do not wait for watches: they do not end by themselves.
		_ = server.Close()
	})
	defer stop()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		logger.Error(err, "Serving manifests ended")
	}
}

// newServer has no read or write timeout: both would end every watch. Bodies
// and writes have deadlines of their own.
func newServer(ctx context.Context, h http.Handler, certificate tls.Certificate) *http.Server {
	logger := klog.FromContext(ctx)
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13},
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(logger.V(2)), slog.LevelInfo),
	}
}

// newCertificate makes a certificate for 127.0.0.1 that signs itself. Nothing
// of it is ever written but the public part. It is valid at any time: a node
// may start with its clock far off.
func newCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("generate key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "origin-node manifests"},
		NotBefore:             time.Unix(0, 0),
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280, 4.1.2.5
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("sign: %w", err)
	}
	certificate := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// writeKubeconfig writes the file into a new folder of mode 0700.
func writeKubeconfig(server, token string, pemCA []byte) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "origin-node-manifests-")
	if err != nil {
		return "", nil, fmt.Errorf("make folder for kubeconfig: %w", err)
	}
	const name = "manifests"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: pemCA}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	path = filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", nil, errors.Join(fmt.Errorf("write kubeconfig: %w", err), os.RemoveAll(dir))
	}
	return path, sync.OnceFunc(func() {
		// Only this user can read the folder, so a file that cannot be
		// removed does no harm.
		_ = os.RemoveAll(dir)
	}), nil
}
