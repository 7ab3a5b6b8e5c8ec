// Orders one certificate of a named profile with the library of lego, which answers http-01 itself.
package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"flag"
	"fmt"
	"os"

	"github.com/go-acme/lego/v5/acme"
	"github.com/go-acme/lego/v5/certcrypto"
	"github.com/go-acme/lego/v5/certificate"
	"github.com/go-acme/lego/v5/challenge/http01"
	"github.com/go-acme/lego/v5/lego"
	"github.com/go-acme/lego/v5/registration"
)

var (
	directory = flag.String("directory", "", "URL of the directory")
	port      = flag.String("port", "", "where http-01 is answered")
	profile   = flag.String("profile", "", "the profile of the order")
	out       = flag.String("out", "", "the file for the chain")
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type account struct {
	key          crypto.Signer
	registration *acme.ExtendedAccount
}

func (a *account) GetEmail() string                       { return "" }
func (a *account) GetRegistration() *acme.ExtendedAccount { return a.registration }
func (a *account) GetPrivateKey() crypto.Signer           { return a.key }

func main() {
	flag.Parse()
	ctx := context.Background()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	user := &account{key: key}
	config := lego.NewConfig(user)
	config.CADirURL = *directory
	client, err := lego.NewClient(config)
	must(err)
	must(client.Challenge.SetHTTP01Provider(http01.NewProviderServer("127.0.0.1", *port)))
	user.registration, err = client.Registration.Register(ctx, registration.RegisterOptions{TermsOfServiceAgreed: true})
	must(err)
	request := certificate.ObtainRequest{
		Domains: flag.Args(),
		KeyType: certcrypto.EC256,
		Bundle:  true,
		Profile: *profile,
	}
	found, err := client.Certificate.Obtain(ctx, request)
	must(err)
	must(os.WriteFile(*out, found.Certificate, 0o644))
}
