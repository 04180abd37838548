//go:build linux

package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"time"
)

// validity of what has no other: a cluster may be left running.
const validity = 365 * 24 * time.Hour

// pair is a certificate and its key, both in PEM.
type pair struct{ cert, key []byte }

// authority signs certificates.
type authority struct {
	pair
	parsed *x509.Certificate
	signer *ecdsa.PrivateKey
}

func newAuthority(name string) (*authority, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	signed, err := sign(template, template, signer, signer)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(signed.cert)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return &authority{pair: signed, parsed: parsed, signer: signer}, nil
}

// server signs the certificate of a server with these names and addresses.
func (a *authority) server(name string, names []string, addrs []netip.Addr) (pair, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: names, NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, addr := range addrs {
		template.IPAddresses = append(template.IPAddresses, addr.AsSlice())
	}
	return a.issue(template)
}

// client signs the certificate of a user who is in groups, until notAfter.
func (a *authority) client(user string, groups []string, notAfter time.Time) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	return sign(template, a.parsed, key, a.signer)
}

// pool trusts the authority.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.parsed)
	return pool
}

// sign signs the template, as valid since before this hour or its end, for the key.
func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return pair{}, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.Before(time.Now()) {
		template.NotBefore = template.NotAfter.Add(-time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return pair{}, fmt.Errorf("sign the certificate of %s: %w", template.Subject, err)
	}
	encoded, err := encodeKey(key)
	return pair{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: encoded}, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func (p pair) tls() (tls.Certificate, error) { return tls.X509KeyPair(p.cert, p.key) }

// signToken makes a JSON web token (RFC 7519) of claims, signed with ES256 (RFC 7518,
// section 3.4). A TokenRequest gives none that lives for less than ten minutes.
func signToken(key *ecdsa.PrivateKey, claims map[string]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"ES256"}`)) + "." + encode(payload)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + encode(signature), nil
}
