/* What to paste for each client so that it uses a credential. The same text is right for every shell of POSIX. */

/** A credential, as a client is told about it. */
export interface Pasted {
  /** The URL of the directory of a profile that accepts the credential. */
  readonly directory: string
  /** The identifier that clients send. */
  readonly kid: string
  /** The HMAC key, or a word in its place. */
  readonly hmacKey: string
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

const certManager = ({ directory, hmacKey, kid }: Pasted): string =>
  `apiVersion: v1
kind: Secret
metadata:
  name: acme-svc-eab
stringData:
  hmac-key: ${scalar(hmacKey)}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: acme-svc
spec:
  acme:
    server: ${scalar(directory)}
    privateKeySecretRef:
      name: acme-svc-account
    externalAccountBinding:
      keyID: ${scalar(kid)}
      keySecretRef:
        name: acme-svc-eab
        key: hmac-key
    solvers:
      - http01:
          ingress: {}`

const caddyfile = ({ directory, hmacKey, kid }: Pasted): string =>
  `{
  acme_ca ${caddyWord(directory)}
  acme_eab {
    key_id ${caddyWord(kid)}
    mac_key ${caddyWord(hmacKey)}
  }
}`

/** Returns the texts for every client. */
export const clientLines = (pasted: Pasted): ReadonlyArray<ClientLine> => {
  const { directory, hmacKey, kid, names } = pasted
  const at = `--server ${shellWord(directory)}`
  const name = exampleOf(names)
  const bound = `${option("--eab-kid", kid)} ${option("--eab-hmac-key", hmacKey)}`
  return [
    { client: "certbot", text: `certbot certonly ${at} ${bound} -d ${name}` },
    {
      client: "lego",
      text: `lego ${at} --accept-tos --email you@example.org --eab ${option("--kid", kid)} ${
        option("--hmac", hmacKey)
      } --http --domains ${name} run`
    },
    {
      client: "acme.sh",
      text: `acme.sh --register-account ${at} --eab-kid ${shellWord(kid)} --eab-hmac-key ${shellWord(hmacKey)}`
    },
    { client: "cert-manager", text: certManager(pasted), place: "a manifest for kubectl apply" },
    { client: "Caddy", text: caddyfile(pasted), place: "the beginning of the Caddyfile" }
  ]
}
