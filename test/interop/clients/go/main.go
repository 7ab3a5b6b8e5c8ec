// Uses each of the two libraries as a program that serves TLS does.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/certmagic"
	eab "github.com/mholt/acmez/acme"
	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

var (
	library   = flag.String("library", "", "autocert or certmagic")
	directory = flag.String("directory", "", "URL of the directory")
	home      = flag.String("home", "", "where certificates are kept")
	trust     = flag.String("trust", "", "the CA of the service's listener")
	email     = flag.String("email", "", "the contact")
	challenge = flag.String("challenge", "", "http-01 or tls-alpn-01")
	port      = flag.Int("port", 0, "where the challenge is answered")
	kid       = flag.String("kid", "", "of the external account")
	hmacKey   = flag.String("hmac-key", "", "of the external account, as it is printed")
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A cache that reports which entries were written, because autocert renews in the background.
type told struct {
	autocert.DirCache
	written chan string
}

func (cache told) Put(ctx context.Context, name string, data []byte) error {
	err := cache.DirCache.Put(ctx, name, data)
	if err == nil {
		cache.written <- name
	}
	return err
}

// Makes a TLS handshake with the server, as a visitor does. The first handshake makes autocert get the certificate.
func visit(name string) {
	address := fmt.Sprintf("127.0.0.1:%d", *port)
	connection, err := tls.Dial("tcp", address, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	must(err)
	connection.Close()
}

func byAutocert(act string, names []string) {
	cache := told{autocert.DirCache(filepath.Join(*home, "autocert")), make(chan string, 100)}
	manager := &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		HostPolicy: autocert.HostWhitelist(names...),
		Cache:      cache,
		Email:      *email,
		Client:     &acme.Client{DirectoryURL: *directory},
	}
	if *kid != "" {
		key, err := base64.RawURLEncoding.DecodeString(*hmacKey)
		must(err)
		manager.ExternalAccountBinding = &acme.ExternalAccountBinding{KID: *kid, Key: key}
	}
	if act == "renew" {
		// This is longer than any certificate is valid, so every certificate is due.
		manager.RenewBefore = 100 * 365 * 24 * time.Hour
	}
	listener, err := tls.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port), manager.TLSConfig())
	must(err)
	go func() {
		for {
			connection, err := listener.Accept()
			must(err)
			go func(connection net.Conn) {
				connection.(*tls.Conn).Handshake()
				connection.Close()
			}(connection)
		}
	}()
	for _, name := range names {
		visit(name)
		for <-cache.written != name {
		}
	}
}

func byCertmagic(act string, names []string) {
	ctx := context.Background()
	pem, err := os.ReadFile(*trust)
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	kept := &certmagic.FileStorage{Path: filepath.Join(*home, "certmagic")}
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil },
	})
	config = certmagic.New(cache, certmagic.Config{Storage: kept})
	template := certmagic.ACMEIssuer{
		CA:                      *directory,
		Email:                   *email,
		Agreed:                  true,
		TrustedRoots:            roots,
		ListenHost:              "127.0.0.1",
		AltHTTPPort:             *port,
		AltTLSALPNPort:          *port,
		DisableHTTPChallenge:    *challenge != "http-01",
		DisableTLSALPNChallenge: *challenge != "tls-alpn-01",
	}
	if *kid != "" {
		template.ExternalAccount = &eab.EAB{KeyID: *kid, MACKey: *hmacKey}
	}
	issuer := certmagic.NewACMEIssuer(config, template)
	config.Issuers = []certmagic.Issuer{issuer}
	for _, name := range names {
		switch act {
		case "issue":
			must(config.ManageSync(ctx, []string{name}))
		case "renew":
			must(config.RenewCertSync(ctx, name, true))
		case "revoke":
			// certmagic finds its account by the contact address. Before a revocation, only PreCheck sets this address.
			must(issuer.PreCheck(ctx, []string{name}, false))
			must(config.RevokeCert(ctx, name, 0, false))
		}
	}
}

func main() {
	flag.Parse()
	act, names := flag.Arg(0), flag.Args()[1:]
	if *library == "autocert" {
		byAutocert(act, names)
	} else {
		byCertmagic(act, names)
	}
}
