/* The CA of the replay, which is fixed, so that two recordings have the same certificates. No system trusts this CA. */

/** The certificate of the CA, valid until 2036. */
export const caCertificate = `-----BEGIN CERTIFICATE-----
MIIBajCCARGgAwIBAgIQQsuvcXNB874Ud/RDS8gCgzAKBggqhkjOPQQDAjAUMRIw
EAYDVQQDDAlSZXBsYXkgQ0EwHhcNMjYxMTMwMjMwMDAwWhcNMzYxMTMwMjMwMDAw
WjAUMRIwEAYDVQQDDAlSZXBsYXkgQ0EwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AARe0QJ4ONwTR25IKLm/J898utLEEKP/3ARHhL0fFA7Q03lP0igriS2jyG13hRgz
unEym2PnKNyUxiigTLP5+fZVo0UwQzASBgNVHRMBAf8ECDAGAQH/AgEAMA4GA1Ud
DwEB/wQEAwIBBjAdBgNVHQ4EFgQU0otsH/H7yGN8DyMuXcws8ElayUkwCgYIKoZI
zj0EAwIDRwAwRAIgMZ+4oNpy5w5XPAB/4kqo8pxonUMSSSBgThR2mF6DH1ACIFbi
xB1BLsBVzKm1+NDFAJUrOLUG8oyz/7+IBhrQlyYR
-----END CERTIFICATE-----
`

/** The private key of the CA. */
export const caKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgvgy0mjAThGELSAcb
97Wnvsax3mBDl7fWMdjNg/Nr/mGhRANCAARe0QJ4ONwTR25IKLm/J898utLEEKP/
3ARHhL0fFA7Q03lP0igriS2jyG13hRgzunEym2PnKNyUxiigTLP5+fZV
-----END PRIVATE KEY-----
`

/** A certificate that the CA has signed for www.example.org and alias.example.org, valid until 2027-03-01. */
export const leafCertificate = `-----BEGIN CERTIFICATE-----
MIIBrDCCAVOgAwIBAgIQRIPtTr2MXlaQWbvMnAaHzDAKBggqhkjOPQQDAjAUMRIw
EAYDVQQDDAlSZXBsYXkgQ0EwHhcNMjYxMTMwMjMwMDAwWhcNMjcwMzAxMDAwMDAw
WjAAMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEgqIVCB6V6CyI/EmkU9mCeSXe
VcyYEM8Pz2VKHxtIlDH6vM3xbDguqYwM8sQiNOT9IHrG70aB+PiPeD0ldqypwaOB
mjCBlzAOBgNVHQ8BAf8EBAMCB4AwEwYDVR0lBAwwCgYIKwYBBQUHAwEwHQYDVR0O
BBYEFPWgERRXm1g1PK+EjjiCsIK8u9pBMB8GA1UdIwQYMBaAFNKLbB/x+8hjfA8j
Ll3MLPBJWslJMDAGA1UdEQEB/wQmMCSCD3d3dy5leGFtcGxlLm9yZ4IRYWxpYXMu
ZXhhbXBsZS5vcmcwCgYIKoZIzj0EAwIDRwAwRAIgLrl0AmneVnBoPvXWyBZc/529
v2wImYrExmQYLZq6v48CICgcnCc6A/K8uayay2nToTx4j6IsxQhEpl0BipW8u78H
-----END CERTIFICATE-----
`

/** The serial number of {@link leafCertificate} in the form in which the database stores it. */
export const leafSerial = "4483ed4ebd8c5e569059bbcc9c0687cc"
