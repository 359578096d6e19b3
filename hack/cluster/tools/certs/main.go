// Command certs writes the keys and certificates of one local cluster into a
// folder: its own CA, the API server's serving certificate, the client
// certificate with which the API server talks to kubelets, and the key that
// signs service account tokens. The CA's key is thrown away, so that nothing
// else can ever be signed with it.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 365 * 24 * time.Hour

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: certs FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "certs:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	ca := template("gpu-scheduler-local-ca", nil)
	ca.IsCA = true
	ca.BasicConstraintsValid = true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	caKey, err := newKey()
	if err != nil {
		return err
	}
	if err := writeCertificate(filepath.Join(folder, "ca.crt"), ca, ca, caKey.Public(), caKey); err != nil {
		return err
	}

	server := template("kube-apiserver", nil)
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.DNSNames = []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local",
	}
	// 10.96.0.1 is the first address of the service range: what pods call.
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	if err := writePair(folder, "apiserver", server, ca, caKey); err != nil {
		return err
	}

	client := template("kube-apiserver-kubelet-client", []string{"system:masters"})
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if err := writePair(folder, "apiserver-kubelet-client", client, ca, caKey); err != nil {
		return err
	}

	serviceAccount, err := newKey()
	if err != nil {
		return err
	}
	return writeKey(filepath.Join(folder, "service-account.key"), serviceAccount)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func template(name string, organization []string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail on a working machine
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name, Organization: organization},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func writePair(folder, name string, certificate, ca *x509.Certificate, caKey crypto.Signer) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	path := filepath.Join(folder, name)
	if err := writeCertificate(path+".crt", certificate, ca, key.Public(), caKey); err != nil {
		return err
	}
	return writeKey(path+".key", key)
}

func writeCertificate(path string, certificate, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) error {
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, public, signer)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
