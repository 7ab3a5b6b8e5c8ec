/* What to paste for each client so that it uses a profile. The same text is right for every shell of POSIX. */

/** A profile and a credential, as a client is told about them. */
export interface Pasted {
  /** The URL of the directory of the profile. */
  readonly directory: string
  /** The credential, if the profile requires one. */
  readonly credential: {
    /** The identifier that clients send. */
    readonly kid: string
    /** The HMAC key, or a word in its place. */
    readonly hmacKey: string
  } | undefined
  /** The patterns of the names that may be ordered, if there are any. */
  readonly names: ReadonlyArray<string> | undefined
}

/** What stands in the place of an HMAC key that is not known. */
export const unknownKey = "HMAC_KEY"

/** The text for a client. A text of several lines belongs into a file, which `place` names. */
export interface ClientLine {
  readonly client: string
  readonly text: string
  readonly place?: string
}

/** Returns a name that the patterns cover, as an example. */
const exampleOf = ([pattern = "host.example.org"]: ReadonlyArray<string> = []): string =>
  pattern.replace(/^\*\*?(?=\.)/, "host")

/** Returns whether a text needs no quotes in a shell and in a Caddyfile. */
const isPlain = (text: string): boolean => /^[\w./:@%+,=-]+$/.test(text)

const shellWord = (text: string): string => isPlain(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`

/** Returns an option with its value. A value that begins with a hyphen would be taken for another option. */
const option = (name: string, value: string): string => `${name}${value.startsWith("-") ? "=" : " "}${shellWord(value)}`

/** Returns a text as a scalar of YAML. The strings of JSON are scalars of YAML. */
const scalar = (text: string): string => JSON.stringify(text)

// In quotes Caddy takes a backslash literally, except before a quote.
const caddyWord = (text: string): string =>
  isPlain(text) ? text : text.includes("`") ? `"${text.replaceAll("\"", String.raw`\"`)}"` : `\`${text}\``

const certManager = ({ credential, directory }: Pasted): string => {
  const secret = credential === undefined ? "" : `apiVersion: v1
kind: Secret
metadata:
  name: acme-svc-eab
stringData:
  hmac-key: ${scalar(credential.hmacKey)}
---
`
  const binding = credential === undefined ? "" : `
    externalAccountBinding:
      keyID: ${scalar(credential.kid)}
      keySecretRef:
        name: acme-svc-eab
        key: hmac-key`
  return `${secret}apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: acme-svc
spec:
  acme:
    server: ${scalar(directory)}
    privateKeySecretRef:
      name: acme-svc-account${binding}
    solvers:
      - http01:
          ingress: {}`
}

const caddyfile = ({ credential, directory }: Pasted): string => {
  const binding = credential === undefined ? "" : `
  acme_eab {
    key_id ${caddyWord(credential.kid)}
    mac_key ${caddyWord(credential.hmacKey)}
  }`
  return `{
  acme_ca ${caddyWord(directory)}${binding}
}`
}

/** Returns words of a command, or nothing if there is no credential. */
const ifBound = ({ credential }: Pasted, words: (kid: string, hmacKey: string) => string): string =>
  credential === undefined ? "" : ` ${words(credential.kid, credential.hmacKey)}`

/** Returns the texts for every client. */
export const clientLines = (pasted: Pasted): ReadonlyArray<ClientLine> => {
  const { directory, names } = pasted
  const at = `--server ${shellWord(directory)}`
  const name = exampleOf(names)
  const certbot = ifBound(pasted, (kid, key) => `${option("--eab-kid", kid)} ${option("--eab-hmac-key", key)}`)
  const lego = ifBound(pasted, (kid, key) => `--eab ${option("--kid", kid)} ${option("--hmac", key)}`)
  const acmeSh = ifBound(pasted, (kid, key) => `--eab-kid ${shellWord(kid)} --eab-hmac-key ${shellWord(key)}`)
  return [
    { client: "certbot", text: `certbot certonly ${at}${certbot} -d ${name}` },
    {
      client: "lego",
      text: `lego ${at} --accept-tos --email you@example.org${lego} --http --domains ${name} run`
    },
    { client: "acme.sh", text: `acme.sh --register-account ${at}${acmeSh}` },
    { client: "cert-manager", text: certManager(pasted), place: "a manifest for kubectl apply" },
    { client: "Caddy", text: caddyfile(pasted), place: "the beginning of the Caddyfile" }
  ]
}
